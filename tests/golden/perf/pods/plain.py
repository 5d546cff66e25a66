"""First fit once more, slowly: sets of what is taken, ways walked switch by switch. Tests hold the fast one to it."""

from collections.abc import Sequence

from golden.perf.pods.machine import Machine
from golden.perf.pods.state import NONE
from golden.perf.pods.tiling import Tiles

from .check import walk

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
    shortest = machine.round(min(tiles.partition))
    length: dict[int, int] = {}
    taken, busy = _Taken(machine), dict[int, int]()

    def after(t, cycles):
        return t if cycles <= 0 else after(t + 1, cycles - length.get(t, shortest))
    placed: dict[int, Placed] = {}
    added: list[Added] = []
    ready: dict[int, int] = {}
    for gemm in order:
        groups, rows, steps, columns = map(int, tiles.shape[gemm])
        cycles = machine.round(int(tiles.partition[gemm]))
        for number in range(groups * rows):
            row = int(tiles.first_row[gemm]) + number
            sums: list[list[tuple[int, int]]] = [[] for _ in range(columns)]    # (round in which it is there, sum)
            for step in range(steps):
                need = tiles.need_of[int(tiles.first_x[gemm]) + number * steps + step]
                first = max([starts[gemm], *(ready[other] for q in range(tiles.need_at[need], tiles.need_at[need + 1])
                                             for other in range(tiles.need_first[q], tiles.need_last[q] + 1))])
                for column in range(columns):
                    op = int(tiles.first_op[gemm]) + (number * steps + step) * columns + column
                    x = int(tiles.first_x[gemm]) + number * steps + step
                    w = int(tiles.first_w[gemm]) + (number % groups * steps + step) * columns + column
                    t, spot = first, None
                    while length.get(t, cycles) < cycles or (
                            spot := _room(taken, t, op, x, w, sums[column])) is None:
                        t += 1
                    length[t] = max(length.get(t, 0), cycles)
                    placed[op] = (t, *spot)
                    found = [each for each in sums[column] if each[1] == spot[1]]
                    if found:
                        sums[column][sums[column].index(found[0])] = (after(t, machine.product_cycles), op)
                    else:
                        sums[column].append((after(t, machine.product_cycles), op))
            for column in range(columns):
                left = sums[column]
                while True:
                    left.sort(key=lambda each: each[0])
                    pair, left = left[:2], left[2:]
                    t = max(when for when, _ in pair)
                    while busy.get(t, 0) == machine.pods or length.get(t, cycles) < cycles:
                        t += 1
                    length[t] = max(length.get(t, 0), cycles)
                    busy[t] = busy.get(t, 0) + 1
                    added.append((pair[0][1], pair[1][1] if len(pair) == 2 else NONE, row, column, t))
                    if not left:
                        break
                    left.append((after(t, machine.sum_cycles), tiles.operations + len(added) - 1))
                ready[row] = max(ready.get(row, 0),
                                 after(t, machine.sum_cycles + int(tiles.partition[gemm])))
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
