# amaranth: UnusedElaboratable=no
"""The block-exponent alignment unit equals the golden rule; docs/numerics.md, section 5."""

import itertools

import numpy as np
import pytest
from amaranth import signed

from golden.number.rounding import shift_half_up
from rtl.fixed.align import AlignAdd, aligned_layout
from rtl.lib.layout import ArrayLayout
from tests.cases import sweep

from ..drive import evaluate, pack, stream, unpack

#: sum width, accumulator width, guard, exponent width; the last has exponents that cannot shift everything out.
SIZES = [(6, 12, 2, 8), (20, 32, 4, 12), (9, 10, 0, 10), (5, 24, 16, 6), (12, 20, 3, 3)]


def golden_add(acc, acc_exponent, total, exponent, guard):
    """Section 5, a step: Python integers as int64."""
    new, ahead = total << guard, exponent - acc_exponent
    moved = shift_half_up(acc, np.maximum(ahead, 0)) + shift_half_up(new, np.maximum(-ahead, 0))
    return moved, np.maximum(exponent, acc_exponent)


def cases(sum_width, width, guard, exponent_width):
    """Accumulators that leave room for one more block, sums, exponents; differences on both sides of the width."""
    rng = np.random.default_rng(width)
    limit = 2 ** (sum_width - 1) - 1
    room = 2 ** (width - 1) - 1 - (limit << guard)
    top = 2 ** (exponent_width - 1)
    differences = [d for d in (0, 1, 2, width - 1, width, width + 1, 2 * width, 2 * top - 1) if d < 2 * top]
    accs = [0, 1, -1, room, -room, 3, -3, *rng.integers(-room, room + 1, 6).tolist()]
    sums = [0, 1, -1, limit, -limit, *rng.integers(-limit, limit + 1, 4).tolist()]
    rows = []
    for acc in accs:
        for total in sums:
            for d in (*differences, *rng.integers(0, min(2 * top, width + 3), 4).tolist()):
                low = int(rng.integers(-top, top - d))
                rows += [(acc, low, total, low + d), (acc, low + d, total, low)]
    return np.array(rows, np.int64).T


@pytest.mark.parametrize(["size"], sweep(2, [(size,) for size in SIZES]), ids=str)
def test_step_equals_golden(size):
    sum_width, width, guard, exponent_width = size
    acc, acc_exponent, total, exponent = cases(*size)
    layout = aligned_layout(width, exponent_width)
    words = [pack(layout, sum=a, exponent=e, invalid=0) for a, e in zip(acc, acc_exponent, strict=True)]
    got = [unpack(layout, word) for word in evaluate(
        AlignAdd(*size), {"acc": words, "sum": total, "exponent": exponent, "fresh": 0, "invalid": 0}, "o")]
    want, high = golden_add(acc, acc_exponent, total, exponent, guard)
    assert [g["sum"][0] for g in got] == want.tolist()
    assert [g["exponent"][0] for g in got] == high.tolist()
    assert not any(g["invalid"][0] for g in got)


@pytest.mark.parametrize("pipeline, columns", sweep(3, itertools.product(range(1, len(AlignAdd.CUTS) + 1), [1, 2])))
def test_registers_change_no_bit(pipeline, columns):
    """A new step in every cycle; fresh and invalid ones among them."""
    sum_width, width, guard, exponent_width = size = SIZES[0]
    acc, acc_exponent, total, exponent = cases(*size)
    rng, layout = np.random.default_rng(pipeline), aligned_layout(width, exponent_width, columns)
    fresh, invalid, bad = (rng.integers(0, 2, len(acc)) for _ in range(3))
    inputs = {
        "acc": [pack(layout, sum=[a] * columns, exponent=e, invalid=i) for a, e, i in zip(
            acc, acc_exponent, bad, strict=True)],
        "sum": [pack(ArrayLayout(signed(sum_width), columns), value=[t] * columns) for t in total],
        "exponent": exponent, "fresh": fresh, "invalid": invalid}
    want = evaluate(AlignAdd(*size, columns), inputs, "o")
    assert stream(AlignAdd(*size, columns, pipeline), inputs, "o").tolist() == want.tolist()


@pytest.mark.parametrize("columns", sweep(2, [2, 3]))
def test_columns_of_one_exponent(columns):
    """Each has the accumulator that it has alone."""
    sum_width, width, guard, exponent_width = size = SIZES[1]
    acc, acc_exponent, total, exponent = cases(*size)
    order = np.arange(len(acc)) + np.arange(columns)[:, None] * 5    # any pairs of operands have room
    accs, totals = np.take(acc, order, mode="wrap"), np.take(total, order, mode="wrap")
    layout = aligned_layout(width, exponent_width, columns)
    words = [pack(layout, sum=a, exponent=e, invalid=0) for a, e in zip(accs.T, acc_exponent, strict=True)]
    sums = [pack(ArrayLayout(signed(sum_width), columns), value=row) for row in totals.T]
    got = [unpack(layout, word) for word in evaluate(
        AlignAdd(*size, columns), {"acc": words, "sum": sums, "exponent": exponent, "fresh": 0, "invalid": 0}, "o")]
    for n in range(columns):
        want, high = golden_add(accs[n], acc_exponent, totals[n], exponent, guard)
        assert [g["sum"][n] for g in got] == want.tolist()
        assert [g["exponent"][0] for g in got] == high.tolist()


def test_exact_ties_round_up():
    size = 8, 12, 0, 6
    layout = aligned_layout(*size[1::2])
    values = np.arange(-127, 128)
    words = [pack(layout, sum=v, exponent=0, invalid=0) for v in values]
    got = evaluate(AlignAdd(*size), {"acc": words, "sum": 0, "exponent": 1, "fresh": 0, "invalid": 0}, "o")
    assert [unpack(layout, word)["sum"][0] for word in got] == np.floor(values / 2 + 0.5).astype(int).tolist()


@pytest.mark.parametrize("acc_invalid", [0, 1])
@pytest.mark.parametrize("invalid", [0, 1])
@pytest.mark.parametrize("fresh", [0, 1])
def test_fresh_forgets_and_invalid_stays(fresh, invalid, acc_invalid):
    size = 8, 14, 2, 6
    layout = aligned_layout(*size[1::2])
    acc = pack(layout, sum=1000, exponent=20, invalid=acc_invalid)
    got = unpack(layout, evaluate(AlignAdd(*size), {"acc": [acc], "sum": 5, "exponent": -3, "fresh": fresh,
                                                    "invalid": invalid}, "o")[0])
    assert got["invalid"] == [invalid | (acc_invalid & ~fresh)]
    assert (got["sum"], got["exponent"]) == (([20], [-3]) if fresh else ([1000], [20]))
