"""Whether a schedule keeps the rules, told from the schedule alone, without anything of the schedulers.

Networks are walked stage by stage as switches: a banyan's stage s replaces one bit of the place where a row is by that
bit of its target, the highest first.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from golden.perf.pods.machine import Machine
from golden.perf.pods.state import NONE, Schedule
from golden.perf.pods.tiling import Tiles


def walk(source: int, target: int, ports: int) -> list[int]:
    """The places after each stage of a banyan on the way from a port to another."""
    at, places = source, []
    for bit in reversed(range(ports.bit_length() - 1)):
        at = at & ~(1 << bit) | target & (1 << bit)
        places.append(at)
    return places


class _Ways:
    """Links of one network: in a round each carries what one source sends."""

    def __init__(self, name, machine):
        self.name, self.machine, self.carries = name, machine, {}

    def add(self, t, copy, source, target):
        network, ports = self.machine.interconnect, self.machine.pods
        if network.copies == 0:
            return
        assert 0 <= copy < network.copies, f"{self.name}: no copy {copy}"
        for stage, place in enumerate(walk(source, target, ports)):
            other = self.carries.setdefault((t, copy, stage, place), source)
            assert other == source, f"{self.name}: a link in round {t} from ports {other} and {source}"


def verify(tiles: Tiles, machine: Machine, plan: Schedule) -> None:
    """Go through a schedule.

    Raises
    ------
    AssertionError
        If an operation is missing, something is used twice in a round, or a result is read before it is there.
    """
    starts = np.cumsum(plan.length) - plan.length
    pods = machine.pods
    assert len(plan.round) == tiles.operations and (plan.round >= 0).all(), "an operation is missing"
    ways = {name: _Ways(name, machine) for name in ("X", "W", "sums in", "sums out")}
    reads: dict[tuple, int] = {}
    taken: set[tuple] = set()

    def once(*key):
        assert key not in taken, f"{key[0]} {key[2]} is used twice in round {key[1]}"
        taken.add(key)

    def one(kind, t, bank, tile):
        assert reads.setdefault((kind, t, bank), tile) == tile, f"bank {bank} of {kind} reads twice in round {t}"

    consumed: set[int] = set()
    sums = defaultdict(list)
    needed = np.zeros(len(tiles.need_at) - 1, np.int64)    # cycle in which all of a need is there
    written = _written(tiles, machine, plan, starts)
    for need in range(len(needed)):
        for q in range(tiles.need_at[need], tiles.need_at[need + 1]):
            needed[need] = max(needed[need], written[tiles.need_first[q]:tiles.need_last[q] + 1].max())
    for op in range(tiles.operations):
        gemm = int(np.searchsorted(tiles.first_op, op, "right")) - 1
        groups, rows, steps, columns = (int(each) for each in tiles.shape[gemm])
        rest, column = divmod(op - int(tiles.first_op[gemm]), columns)
        rest, step = divmod(rest, steps)
        x = int(tiles.first_x[gemm]) + rest * steps + step
        w = int(tiles.first_w[gemm]) + (rest % groups * steps + step) * columns + column
        t, pod, back = int(plan.round[op]), int(plan.pod[op]), int(plan.chained[op])
        assert plan.length[t] >= machine.round(int(tiles.partition[gemm])), f"round {t} is too short"
        once("pod", t, pod)
        once("bank of sums out", t, op % pods)
        one("X", t, x % pods, x)
        one("W", t, w % pods, w)
        ways["X"].add(t, plan.copy[op, 0], x % pods, pod)
        ways["W"].add(t, plan.copy[op, 1], w % pods, pod)
        ways["sums out"].add(t, plan.copy[op, 3], pod, op % pods)
        row = int(tiles.first_row[gemm]) + rest
        assert starts[t] >= needed[tiles.need_of[x]], f"operation {op} reads X before it is there"
        sums[row, column].append(op)
        if back != NONE:
            once("bank of sums in", t, back % pods)
            ways["sums in"].add(t, plan.copy[op, 2], back % pods, pod)
            assert back in sums[row, column] and back not in consumed, f"operation {op} goes on from another tile's sum"
            assert starts[t] >= starts[plan.round[back]] + machine.product_cycles, f"sum {back} is read too early"
            consumed.add(back)
    _verify_sums(tiles, machine, plan, starts, sums, consumed)
    if machine.chains:
        verify_chains(tiles, machine, plan, sums)


def verify_chains(tiles: Tiles, machine: Machine, plan: Schedule, sums: Mapping[Any, list[int]]) -> None:
    """Sums go on in ascending order, tiles stay with their post-processor, and all that it reads and gives has room."""
    taken: set[tuple] = set()
    ways, pods = [_Ways(name, machine) for name in ("post-processors", "results")], machine.pods
    for ops in sums.values():
        chained = [NONE if step % machine.chains == 0 else ops[step - 1] for step in range(len(ops))]
        assert list(plan.chained[ops]) == chained, "a tile's sums are no chain along K"
    home: dict[tuple, int] = {}
    for row, column, post, before in zip(plan.add_row, plan.add_column, plan.add_post, plan.add_b, strict=True):
        assert before == NONE or home[row, column] == post, "a tile goes from one post-processor to another"
        home[row, column] = post
    becomes = [int(tile) for tile in plan.add_x if tile != NONE]
    assert len(set(becomes)) == len(becomes), "a tile of X comes twice"
    for value, post, t, tile, to, back in zip(plan.add_a, plan.add_post, plan.add_round, plan.add_x, plan.add_in,
                                              plan.add_out, strict=True):
        uses = {("post-processor", t, post), ("bank of sums", t, value % pods)}
        uses |= {("bank of X", t, tile % pods)} if tile != NONE else set()
        assert not taken & uses, f"a post-processor or a bank is used twice in round {t}"
        taken |= uses
        ways[0].add(t, to, value % pods, post)
        if tile != NONE:
            ways[1].add(t, back, post, tile % pods)


def _written(tiles, machine, plan, starts):
    """The cycle in which each row tile is whole in its banks."""
    written = np.zeros(int(tiles.first_row[-1]), np.int64)
    for row, t in zip(plan.add_row, plan.add_round, strict=True):
        gemm = np.searchsorted(tiles.first_row, row, "right") - 1
        written[row] = max(written[row], starts[t] + machine.sum_cycles + tiles.partition[gemm])
    return written


def _verify_sums(tiles, machine, plan, starts, sums, consumed):
    """Every partial sum is added once, into one for each tile, by no more post-processors than there are."""
    count = tiles.operations
    gemms = np.searchsorted(tiles.first_row, plan.add_row, "right") - 1
    for t, gemm in zip(plan.add_round, gemms, strict=True):
        assert plan.length[t] >= machine.round(int(tiles.partition[gemm])), f"round {t} is too short"
    assert np.bincount(plan.add_round).max() <= machine.pods, "more additions in a round than post-processors"
    adds = defaultdict(list)
    for number in range(len(plan.add_a)):
        adds[int(plan.add_row[number]), int(plan.add_column[number])].append(number)
    assert set(adds) == set(sums), "a tile is never activated"
    for tile, ops in sums.items():
        left = {op for op in ops if op not in consumed}
        for number in adds[tile]:
            for value in (int(plan.add_a[number]), int(plan.add_b[number])):
                if value == NONE:
                    continue
                assert value in left, f"sum {value} is added twice, or to another tile's"
                left.remove(value)
                ready = (starts[plan.round[value]] + machine.product_cycles if value < count else
                         starts[plan.add_round[value - count]] + (1 if machine.chains else machine.sum_cycles))
                assert starts[plan.add_round[number]] >= ready, f"sum {value} is added too early"
            left.add(count + number)
        assert left == {count + adds[tile][-1]}, "partial sums are left over"
