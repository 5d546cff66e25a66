"""First fit once more, slowly: sets of what is taken, ways walked switch by switch. Tests hold the fast one to it."""

from collections.abc import Sequence

from .check import walk
from .machine import Machine
from .state import NONE
from .tiling import Tiles

#: What :func:`plain_fit` gives of each operation, and of each addition.
Placed = tuple[int, int, int, tuple[int, int, int, int]]
Added = tuple[int, int, int, int, int]


class _Taken:
    """Everything that is used in some round."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.uses: dict[tuple, int] = {}
        self.links: dict[tuple, int] = {}

    def free(self, kind: str, t: int, place: int, user: int) -> bool:
        return self.uses.get((kind, t, place), user) == user

    def copy(self, network: str, t: int, source: int, target: int) -> int | None:
        """The first copy in which no link on the way carries what another source sends."""
        kind = self.machine.interconnect
        if kind.copies == 0:
            return 0
        places = list(enumerate(walk(source, target, self.machine.pods)))
        for copy in range(kind.copies):
            if all(self.links.get((network, t, copy, *place), source) == source for place in places):
                return copy
        return None

    def take(self, network: str, t: int, copy: int, source: int, target: int) -> None:
        if self.machine.interconnect.copies:
            for place in enumerate(walk(source, target, self.machine.pods)):
                self.links[network, t, copy, *place] = source


def plain_fit(tiles: Tiles, machine: Machine, order: Sequence[int], starts: Sequence[int]
              ) -> tuple[list[Placed], list[Added]]:
    """As :func:`golden.perf.pods.first_fit.first_fit`: operations (round, pod, chained, copies) and additions."""
    length = machine.round(max(tiles.partition))
    product_delay, sum_delay = -(-machine.product_cycles // length), -(-machine.sum_cycles // length)
    result_delay = -(-(machine.sum_cycles + max(tiles.partition)) // length)
    taken, busy = _Taken(machine), dict[int, int]()
    placed: dict[int, Placed] = {}
    added: list[Added] = []
    ready: dict[int, int] = {}
    for gemm in order:
        groups, rows, steps, columns = map(int, tiles.shape[gemm])
        for number in range(groups * rows):
            row = int(tiles.first_row[gemm]) + number
            needs = range(tiles.need_at[row], tiles.need_at[row + 1])
            first = max([starts[gemm], *(ready[other] for q in needs
                                         for other in range(tiles.need_first[q], tiles.need_last[q] + 1))])
            sums: list[list[tuple[int, int]]] = [[] for _ in range(columns)]    # (round in which it is there, sum)
            for step in range(steps):
                for column in range(columns):
                    op = int(tiles.first_op[gemm]) + (number * steps + step) * columns + column
                    x = int(tiles.first_x[gemm]) + number * steps + step
                    w = int(tiles.first_w[gemm]) + (number // rows * steps + step) * columns + column
                    t, spot = first, None
                    while (spot := _room(taken, t, op, x, w, sums[column])) is None:
                        t += 1
                    placed[op] = (t, *spot)
                    found = [each for each in sums[column] if each[1] == spot[1]]
                    if found:
                        sums[column][sums[column].index(found[0])] = (t + product_delay, op)
                    else:
                        sums[column].append((t + product_delay, op))
            for column in range(columns):
                left = sums[column]
                while True:
                    left.sort(key=lambda each: each[0])
                    pair, left = left[:2], left[2:]
                    t = max(when for when, _ in pair)
                    while busy.get(t, 0) == machine.pods:
                        t += 1
                    busy[t] = busy.get(t, 0) + 1
                    added.append((pair[0][1], pair[1][1] if len(pair) == 2 else NONE, row, column, t))
                    if not left:
                        break
                    left.append((t + sum_delay, tiles.operations + len(added) - 1))
                ready[row] = max(ready.get(row, 0), t + result_delay)
    return [placed[op] for op in range(tiles.operations)], added


def _room(taken, t, op, x, w, sums):
    """Pod, partial sum to go on from and copies for an operation in round ``t``; None if there is no room."""
    n = taken.machine.pods
    if not (taken.free("x", t, x % n, x) and taken.free("w", t, w % n, w) and taken.free("out", t, op % n, op)):
        return None
    there = [each for each in sums if each[0] <= t]
    back = min(there, key=lambda each: each[0])[1] if there else NONE    # of equals the first
    if back != NONE and not taken.free("in", t, back % n, back):
        back = NONE
    for pod in range(n):
        if ("pod", t, pod) in taken.uses:
            continue
        ways = [("x", x % n, pod), ("w", w % n, pod), ("out", pod, op % n)]
        copies = [taken.copy(name, t, *ends) for name, *ends in ways]
        if None in copies:
            continue
        onward = taken.copy("in", t, back % n, pod) if back != NONE else None
        if onward is not None:
            taken.take("in", t, onward, back % n, pod)
            taken.uses["in", t, back % n] = back
        for (name, *ends), copy in zip(ways, copies, strict=True):
            taken.take(name, t, copy, *ends)
        taken.uses |= {("x", t, x % n): x, ("w", t, w % n): w, ("out", t, op % n): op, ("pod", t, pod): op}
        return pod, NONE if onward is None else back, (copies[0], copies[1], NONE if onward is None else onward,
                                                        copies[2])
    return None
