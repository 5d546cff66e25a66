"""How weights are cut for memory W: as much at a time as it holds beside what comes next.

Covers: golden/lower/products/weights.py.
"""

from itertools import product
from types import SimpleNamespace

import pytest

from golden.lower.errors import LoweringError
from golden.lower.products.weights import Weights, pieces, plan
from golden.lower.products.wide import NARROW, Wide
from golden.lower.schedule import Ring
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator


def of(rows=8, block=(1, 8), w=256, **more):
    """A machine, as far as a plan asks it."""
    machine = Accelerator(core=Design(rows=rows, depth=32, format=HBFPFormat(mantissa=4 if more else 8, block=block),
                                      **more), w_words=w)
    return SimpleNamespace(accelerator=machine, lanes=machine.lanes, w=Ring("W", 0, w))


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize(("build", "wide"), [
    (of(), NARROW), (of(16, (1, 32), 512), NARROW), (of(8, (16, 16), 512), NARROW), (of(wide=6), Wide(1, 1))],
    ids=["8", "16-long", "8-large-tiles", "wide"])
def test_columns_are_as_many_as_half_of_it_holds(build, wide, computed):
    """The other half is for those that come next; whole blocks of columns where a block has more than one."""
    core, half = build.accelerator.core, build.w.size // 2
    square = max(1, core.format.block[0] // build.lanes)
    seen = set()
    for terms, columns in product((5, 16, 40, 64, 100, 129, 250, 300, 1000), (3, 8, 17, 33, 64, 200)):
        weights = Weights(terms, columns, lines=object() if computed else None, wide=wide)
        side = max(core.format.terms, build.accelerator.whole)
        height = -(-terms // side) * side * wide.tiles     # of a column
        try:
            found = plan(build, weights)
        except LoweringError:
            assert height > half and computed and square * height > build.w.size and square > 1
            continue
        assert found.tiles * core.rows * wide.tiles == height and found.columns == -(-columns // build.lanes)
        assert found.streamed == (height > half and (not computed or square == 1))
        if found.streamed:
            assert found.group == 1
        else:
            assert found.group == found.columns or found.group % square == 0
            assert found.group * height <= half or found.group <= square and found.group * height <= build.w.size
            assert found.group == found.columns or (found.group + square) * height > half
        seen.add((found.streamed, found.group == found.columns))
    assert {(False, True), (False, False)} <= seen and (any(streamed for streamed, _ in seen) or square > 1)


def test_pieces_are_as_large_as_is_wanted():
    """Whole steps unless that is all: words first, and then rows, of which one step more would be too much."""
    for rows, words, row_step, word_step, wanted in product((1, 7, 8, 40), (1, 4, 6, 30), (1, 8), (1, 2), (8, 20, 64)):
        down, across = pieces(rows, words, row_step, word_step, wanted, 64)
        limit = max(wanted, row_step * word_step)
        assert down == rows or down % row_step == 0 and (down + row_step) * across > limit
        assert across == words or across % word_step == 0 and (across + word_step) * row_step > limit
        assert down * across <= limit and 0 < down <= rows and 0 < across <= words
    assert pieces(40, 40, 8, 8, 1, 64) == (8, 8)
    with pytest.raises(LoweringError, match="^blocks of 8 rows and 8 words need 64 words of memory V, not 63; larger "
                                            "--v-words would do$"):
        pieces(40, 40, 8, 8, 1, 63)
