# amaranth: UnusedElaboratable=no
"""Sums of blocks are exact, for all sums and from any state: docs/numerics.md, section 3, "nothing rounds or saturates
inside a block". With wide mantissas, whose digits come apart: docs/design/08-wide.md.
"""

from dataclasses import replace

import pytest
from z3 import And, BitVecVal, If, Implies, Not, Or

from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.accumulate.block_sum import BlockSum
from rtl.accumulate.signatures import pass_layout
from tests.cases import sweep
from tests.formal.cycles import Cycles
from tests.formal.views import Fields, chosen, part, signed

#: Words of the memories, and bits of exact numbers.
DEPTH, EXACT = 4, 64


def exact(value, size, place):
    """One of the signed numbers of a port."""
    return signed(part(value, size, place), EXACT)


def within(value, most):
    """That a number is no larger than so much."""
    return And(value <= most, value >= -most)


def unit_of(design):
    """The sums of a column group, with few words."""
    return BlockSum.made(replace(BlockSum.Parameters.of(design), depth=DEPTH))


def memory(state, name):
    """The words of a memory."""
    return [vars(state)[f"{name}.contents[{word}]"] for word in range(DEPTH)]


def kept_law(unit, design, at, wholes, given):
    """What a row's word is after it: exact, with room for all terms of a block, and that no other word changes.

    Parameters
    ----------
    unit, design : BlockSum, Design
    at : list of namespace
        Cycles from the one before the row's last beat is ``west``.
    wholes : dict of int to z3.BitVecRef
        By column, the exact sum of the row's pass.
    given : list of z3.BoolRef
    """
    total, now, before = unit.params.total, at[-3], at[-2]
    beat, address = Fields(now.west__beat, pass_layout(design.wide > 0)), now.west__address
    last = Fields(now.east__beat, pass_layout(design.wide > 0))
    limit = (HBFPFormat(mantissa=design.wide) if design.wide else design.format).limit
    terms, height = design.format.block[1], design.height
    old = chosen(memory(now, "running"), address)
    given = [*given, beat.valid, Not(And(last.valid, now.east__address == address))]
    laws = []
    for column, whole in wholes.items():
        start = exact(old, total, column)
        start = If(beat.opens, BitVecVal(0, EXACT), start)
        given += [within(start, (terms - height) * limit ** 2), within(whole, height * limit ** 2)]
        for name, counts in (("running", True), ("totals", beat.closes)):
            laws.append(Implies(counts, exact(chosen(memory(at[-1], name), address), total, column) == start + whole))
    for name in ("running", "totals"):
        laws += [Or(address == word, after == kept) for word, (kept, after) in enumerate(zip(
            memory(before, name), memory(at[-1], name), strict=True))]
    laws += [Or(beat.closes, after == kept) for kept, after in zip(
        memory(before, "totals"), memory(at[-1], "totals"), strict=True)]
    return Implies(And(*given), And(*laws))


PLAIN = [(mantissa, rows, block) for mantissa in (8, 2, 3, 5, 6, 12, 16)
         for rows, block in ((8, 32), (4, 16), (16, 576))]


def plain_law(mantissa, rows, block):
    """Cycles, and the law of a row of narrow mantissas in them."""
    design = Design(format=HBFPFormat(mantissa=mantissa, block=(1, block)), rows=rows, cols=4, group=(2, 2), share=2)
    unit = unit_of(design)
    cycles = Cycles.of(unit).run(3)
    width = unit.params.sums.width
    return cycles, kept_law(unit, design, cycles.at, {
        n: exact(cycles.at[1].sums, width, n) for n in range(unit.params.columns)}, [])


@pytest.mark.parametrize("mantissa, rows, block", sweep(len(PLAIN), PLAIN))
def test_sum_of_a_block_is_exact(mantissa, rows, block):
    cycles, law = plain_law(mantissa, rows, block)
    assert cycles.law(law)


WIDE = [(8, 15, 8, 32), (9, 16, 8, 32), (4, 7, 4, 16), (6, 11, 8, 64)]


@pytest.mark.parametrize("narrow, wide, rows, block", sweep(len(WIDE), WIDE))
def test_sum_of_wide_mantissas_is_exact(narrow, wide, rows, block):
    """The sums of the four pairs of digits of X and W, each digit worth 2^(narrow - 1) times the one below."""
    design = Design(format=HBFPFormat(mantissa=narrow, block=(1, block)), rows=rows, cols=4, group=(2, 2), share=2,
                    wide=wide)
    unit = unit_of(design)
    cycles = Cycles.of(unit).run(4)
    first, second = (Fields(cycles.at[n].west__beat, pass_layout(True)) for n in range(2))
    width, digit, height = unit.params.sums.width, narrow - 1, design.height
    low, limit = 2 ** digit - 1, 2 ** (wide - 1) - 1
    given = [first.high, first.pair, Not(first.waits), Not(first.valid), second.pair, Not(second.high)]
    products = {(beat, n): exact(cycles.at[1 + beat].sums, width, n) for beat in range(2) for n in range(2)}
    rows_of = [products[beat, 0] + (products[beat, 1] << digit) for beat in range(2)]
    given += [within(each, height * low ** 2) for each in products.values()]
    given += [within(each, height * low * limit) for each in rows_of]
    assert cycles.law(kept_law(unit, design, cycles.at, {0: rows_of[1] + (rows_of[0] << digit)}, given))


def test_room_for_fewer_terms_is_seen():
    """A block of 576 terms in words that are wide enough for 32."""
    design = Design(format=HBFPFormat(mantissa=8, block=(1, 576)), rows=8, cols=4, group=(2, 2), share=2)
    unit = BlockSum.made(replace(BlockSum.Parameters.of(design), depth=DEPTH, total=20))
    cycles = Cycles.of(unit).run(3)
    sums = {n: exact(cycles.at[1].sums, unit.params.sums.width, n) for n in range(unit.params.columns)}
    assert not cycles.law(kept_law(unit, design, cycles.at, sums, []))
