"""First fit: equal to its slow twin, and every schedule passes a checker that knows nothing of it.

Covers: golden/perf/pods/state.py,
golden/perf/pods/graph.py, golden/perf/pods/chains.py.
"""

import re
from dataclasses import replace

import numpy as np
import pytest

from golden.perf.pods.first_fit import first_fit
from golden.perf.pods.graph import Gemm, Reach
from golden.perf.pods.interconnect import parse
from golden.perf.pods.machine import Machine, Timing
from golden.perf.pods.tiling import cut

from .check import verify, verify_chains
from .plain import plain_fit


def random_gemms(rng):
    """A few products that read each other at random."""
    gemms = []
    for number in range(rng.integers(1, 6)):
        height, width = (int(each) for each in rng.integers(1, 6, 2))
        stacked = bool(rng.integers(4) == 0)
        groups = int(rng.integers(1, 4)) if rng.integers(3) == 0 or stacked else 1
        sources = {}
        for source in rng.permutation(number)[:rng.integers(0, 3)]:
            low = int(rng.integers(-2, 1))
            sources[int(source)] = None if rng.integers(3) == 0 else Reach() if rng.integers(2) else Reach(
                int(rng.integers(1, 3)), low, low + int(rng.integers(0, 3)), False)
        images, m = (groups if stacked else 1), height * width
        k, n = (int(each) for each in rng.integers(1, 20, 2))
        parts = tuple((1, {source: reach}) for source, reach in sources.items() for _ in range(2))
        gemms.append(Gemm(str(number), groups, m, k, n, images, height, width, stacked, sources,
                          parts if groups == 1 else (), len(parts)))
    return gemms


def case(seed):
    """Tiles, a machine, and when each product may run."""
    rng = np.random.default_rng(seed)
    gemms = random_gemms(rng)
    rows, columns = (int(each) for each in rng.integers(2, 7, 2))
    machine = Machine(int(2 ** rng.integers(1, 5)), rows, columns,
                      parse(str(rng.choice(["butterfly-1", "butterfly-2", "butterfly-4", "crossbar", "benes"]))))
    partition = [int(each) for each in rng.integers(1, 9, len(gemms))] if rng.integers(2) else [5] * len(gemms)
    tiles = cut(gemms, partition, rows, columns, str(rng.choice(["rows", "channels", "layer"])),
                machine.pods if seed % 3 == 0 else 1)
    return tiles, machine, [int(each) for each in rng.integers(0, 4, len(gemms))]


@pytest.mark.parametrize("seed", range(30))
def test_equals_the_plain_one_and_keeps_the_rules(seed):
    tiles, machine, starts = case(seed)
    order = list(range(len(tiles.gemms)))
    plan = first_fit(tiles, machine, order, starts)
    placed, added = plain_fit(tiles, machine, order, starts)
    assert [(int(t), int(pod), int(back), tuple(map(int, copy))) for t, pod, back, copy in
            zip(plan.round, plan.pod, plan.chained, plan.copy, strict=True)] == placed
    assert list(zip(*(map(int, column) for column in (plan.add_a, plan.add_b, plan.add_row, plan.add_column,
                                                      plan.add_round)), strict=True)) == added
    verify(tiles, machine, plan)


def small(pods=4):
    """Two products, the second on the first, and their schedule."""
    tiles = cut([Gemm("a", 1, 12, 8, 8, height=12), Gemm("b", 1, 12, 8, 8, height=12, sources={0: Reach()})], [4, 4],
                4, 4)
    machine = Machine(pods, 4, 4, parse("butterfly-1"))
    return tiles, machine, first_fit(tiles, machine, [0, 1], [0, 0])


def changed(plan, name, at, value):
    """The schedule with one entry changed."""
    column = getattr(plan, name).copy()
    column[at] = value
    return plan._replace(**{name: column})


@pytest.mark.parametrize("change, message", [
    (lambda plan: changed(plan, "round", 3, -1), "an operation is missing"),
    (lambda plan: changed(plan, "pod", 1, plan.pod[0]), "pod 0 is used twice in round 0"),
    (lambda plan: changed(plan, "add_b", 0, plan.add_a[0]), "sum 0 is added twice, or to another tile's"),
    (lambda plan: changed(plan, "add_round", 0, 0), "sum 0 is added too early"),
    (lambda plan: changed(plan, "copy", (0, 0), 1), "X: no copy 1"),
    (lambda plan: plan._replace(**{name: getattr(plan, name)[:-1] for name in plan._fields if "add" in name}),
     "a tile is never activated")])
def test_the_checker_sees(change, message):
    tiles, machine, plan = small()
    verify(tiles, machine, plan)
    with pytest.raises(AssertionError, match=f"^{message}$"):
        verify(tiles, machine, change(plan))


def test_the_checker_sees_what_is_read_too_early():
    tiles, machine, plan = small()
    later = cut(tiles.gemms, [4, 4], 4, 4, "layer")
    with pytest.raises(AssertionError, match="^operation 12 reads X before it is there$"):
        verify(later, machine, plan)


@pytest.mark.parametrize("network, links", [("crossbar", False), ("butterfly-1", True)])
def test_what_two_operations_cannot_share_is_seen(network, links):
    tiles = cut([Gemm("a", 1, 28, 20, 12, height=28)], [4], 4, 4)
    machine = Machine(8, 4, 4, parse(network))
    plan = first_fit(tiles, machine, [0], [0])
    seen = set()
    for op in range(0, tiles.operations, 31):
        for t in range(plan.round.max() + 1):
            for pod in range(8):
                try:
                    verify(tiles, machine, changed(changed(plan, "round", op, t), "pod", op, pod))
                except AssertionError as error:
                    seen.add(re.sub("[0-9]+", "_", str(error)))
    assert seen >= {"pod _ is used twice in round _", "bank of sums out _ is used twice in round _",
                    "bank _ of X reads twice in round _", "bank _ of W reads twice in round _"}
    assert any("a link in round" in each for each in seen) == links


# --- Chains ------------------------------------------------------------------------------------


def layers(m, *sizes):
    """Products that each read the one before."""
    return [Gemm(str(n), 1, m, k, columns, height=m, sources={n - 1: Reach()} if n else {})
            for n, (k, columns) in enumerate(zip(sizes, sizes[1:], strict=False))]


@pytest.mark.parametrize("name", ["butterfly-1", "butterfly-2", "crossbar", "benes"])
@pytest.mark.parametrize("pods", [2, 8])
@pytest.mark.parametrize("chain", [1, 3, 100])
def test_chains_keep_the_rules(name, pods, chain):
    tiles = cut(layers(19, 30, 20, 9, 4), [4] * 3, 4, 4)
    machine = Machine(pods, 4, 4, parse(name), chains=chain)
    plan = first_fit(tiles, machine, [0, 1, 2], [0, 0, 0])
    verify(tiles, machine, plan)
    assert (plan.add_b == -1).sum() == 5 * (5 + 3 + 1) and len(plan.add_a) == sum(
        5 * columns * -(-steps // chain) for columns, steps in ((5, 8), (3, 5), (1, 3)))
    becomes = [int(tile) for tile in plan.add_x if tile >= 0]
    assert sorted(becomes) == list(range(int(tiles.first_x[1]), int(tiles.first_x[3])))


@pytest.mark.parametrize("seed", range(10))
def test_chains_of_random_products(seed):
    tiles, machine, starts = case(seed)
    machine = replace(machine, chains=1 + seed % 4, timing=Timing(9, 5, 4, 12))
    plan = first_fit(tiles, machine, list(range(len(tiles.gemms))), starts)
    verify(tiles, machine, plan)
    assert (plan.chained != -1).sum() == tiles.operations - len(plan.add_a)


def chained():
    """Two products in chains on two pods, and their schedule."""
    tiles = cut(layers(8, 8, 8, 8), [4] * 2, 4, 4)
    machine = Machine(2, 4, 4, parse("crossbar"), chains=2)
    return tiles, machine, first_fit(tiles, machine, [0, 1], [0, 0])


def test_the_checker_sees_broken_chains():
    tiles, machine, plan = chained()
    for name, value, message in (("chained", -1, "a tile's sums are no chain along K"),
                                 ("add_x", plan.add_x[0], "a tile of X comes twice"),
                                 ("add_round", plan.add_round[0],
                                  "a post-processor or a bank is used twice in round \\d+")):
        at = int(np.flatnonzero(plan.chained != -1)[0]) if name == "chained" else int(
            np.flatnonzero(plan.add_a % 2 == plan.add_a[0] % 2)[1])
        with pytest.raises(AssertionError, match=f"^{message}$"):
            verify_chains(tiles, machine, changed(plan, name, at, value), tile_sums(tiles))


def tile_sums(tiles):
    """The operations of each tile along K."""
    sums = {}
    for op in range(tiles.operations):
        gemm = int(np.searchsorted(tiles.first_op, op, "right")) - 1
        _, _, steps, columns = tiles.shape[gemm]
        row, rest = divmod(op - int(tiles.first_op[gemm]), int(steps * columns))
        sums.setdefault((gemm, row, rest % int(columns)), []).append(op)
    return sums
