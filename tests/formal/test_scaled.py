# amaranth: UnusedElaboratable=no
"""Sums of scaled integers in floats, for all inputs: docs/numerics.md, section 4; each addition is rounded once."""

import pytest
from z3 import (
    RNE,
    And,
    BitVec,
    BitVecVal,
    Concat,
    Extract,
    FPSort,
    If,
    Implies,
    Not,
    Or,
    SignExt,
    ZeroExt,
    fpAdd,
    fpBVToFP,
    fpIsNaN,
    fpIsSubnormal,
    fpIsZero,
    fpMinusInfinity,
    fpNaN,
    fpPlusInfinity,
    fpPlusZero,
    fpSignedToFP,
)

from golden.spec.floats import FP32, FloatFormat
from rtl.fp32.scaled_add import ScaledAdd, Term
from tests.cases import sweep
from tests.formal.prove import proved
from tests.formal.views import Fields

FP24, BF16 = FloatFormat(fraction=15), FloatFormat(fraction=7)


def _named(value):
    return f"f{value.fraction}" if isinstance(value, FloatFormat) else str(value)


def sort(fmt):
    return FPSort(fmt.exponent, fmt.precision)


def port(unit, name):
    """A port of a unit, as a variable or as its fields."""
    shape = unit.signature.members[name].shape
    layout = hasattr(shape, "members")
    bits = BitVec(name, shape.size if layout else getattr(shape, "width", shape))
    return Fields(bits, shape) if layout else bits


def term_law(unit):
    """What a term is: the nearest float of the integer, its exponent field moved by the exponent.

    It is Inf above the last normal field, and zero below the first: rounding does not depend on the exponent. ``r``
    is that float.
    """
    params, fmt = unit.params, unit.params.fmt
    i, exponent, invalid, o = (port(unit, name) for name in ("i", "exponent", "invalid", "o"))
    r, wide = BitVec("r", fmt.width), params.exponent_width + 10
    field = (ZeroExt(wide - fmt.exponent, Extract(fmt.width - 2, fmt.fraction, r))
             + SignExt(wide - params.exponent_width, exponent) - params.offset)
    zero, inf = Or(i == 0, field < 1), And(i != 0, field > 2 ** fmt.exponent - 2)
    fraction = Concat(o.fraction, BitVecVal(0, fmt.fraction - params.fraction)) if params.fraction < fmt.fraction \
        else o.fraction
    return Implies(
        And(fpBVToFP(r, sort(fmt)) == fpSignedToFP(RNE(), i, sort(fmt)), i != 1 << params.width - 1),
        And(o.nan == (invalid == 1), Or(o.nan, And(
            o.inf == inf, Or(inf, o.zero == zero), Or(zero, o.sign == (Extract(fmt.width - 1, fmt.width - 1, r) == 1)),
            Or(zero, inf, And(o.exponent == Extract(fmt.exponent - 1, 0, field),
                              fraction == Extract(fmt.fraction - 1, 0, r)))))))


TERMS = [(20, 11, FP32), (25, 11, FP32), (4, 10, FP32), (8, 9, FP32), (32, 11, FP32), (40, 16, FP32), (20, 11, FP24),
         (12, 11, BF16)]


@pytest.mark.parametrize("width, exponent, fmt", sweep(len(TERMS), TERMS), ids=_named)
def test_term_is_the_scaled_integer(width, exponent, fmt):
    unit = Term(width, exponent, fmt)
    assert proved(unit, f"term{width}_{exponent}_f{fmt.fraction}", term_law(unit).sexpr(),
                  f"(declare-const r (_ BitVec {fmt.width}))", 900)


def sum_law(unit, canonical=True):
    """That ``o`` is the sum of ``a``, which such a unit gave, and of the term ``b``, rounded once.

    A sum below the normal numbers is exact, and gives +0; so does a zero.
    """
    fmt = unit.params.fmt
    a, b, o = (port(unit, name) for name in "abo")
    low, kind = fmt.fraction - b.fraction.size(), sort(fmt)
    fraction = Concat(b.fraction, BitVecVal(0, low)) if low else b.fraction
    one = fpBVToFP(a, kind)
    other = If(b.nan, fpNaN(kind), If(b.inf, If(b.sign, fpMinusInfinity(kind), fpPlusInfinity(kind)), If(
        b.zero, fpPlusZero(kind), fpBVToFP(Concat(If(b.sign, BitVecVal(1, 1), BitVecVal(0, 1)), b.exponent, fraction),
                                           kind))))
    total = fpAdd(RNE(), one, other)
    given = [Not(fpIsSubnormal(one)) if canonical else True, Implies(fpIsZero(one), a == 0),
             Implies(fpIsNaN(one), a == fmt.nan),
             Or(b.nan, b.inf, b.zero, And(b.exponent != 0, b.exponent != 2 ** fmt.exponent - 1))]
    return Implies(And(*given), And(
        fpBVToFP(o, kind) == If(Or(fpIsZero(total), fpIsSubnormal(total)), fpPlusZero(kind), total),
        Implies(fpIsNaN(total), o == fmt.nan)))


SUMS = [(BF16, 12), (FP32, 20), (FP32, 32), (FP32, 4), (FP24, 20), (BF16, 5)]


@pytest.mark.parametrize("fmt, width", sweep(len(SUMS), SUMS), ids=_named)
def test_sum_is_rounded_once(fmt, width):
    unit = ScaledAdd(fmt=fmt, width=width)
    assert proved(unit, f"scaled{width}_f{fmt.fraction}", sum_law(unit).sexpr(), "", 1800,
                  "bitwuzla" if fmt == FP32 else "z3")


def test_subnormal_sum_is_seen():
    """No sum is below the normal numbers: if one were, what is added to it would be wrong."""
    unit = ScaledAdd(fmt=BF16, width=5)
    assert not proved(unit, "scaled_subnormal", sum_law(unit, canonical=False).sexpr(), "", solver="z3")
