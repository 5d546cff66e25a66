"""Formats: derived widths, and every message word for word."""

import re

import pytest

from hbfp.format import ROUNDINGS, SUBNORMALS, HBFPFormat


def test_defaults():
    fmt = HBFPFormat()
    assert (fmt.mantissa, fmt.exponent, fmt.block, fmt.rounding, fmt.noise_bits, fmt.subnormals) == (
        8, 10, (1, 32), "rne", 8, "flush")


def test_frozen_and_hashable():
    assert len({HBFPFormat(), HBFPFormat(mantissa=8), HBFPFormat(mantissa=4)}) == 2
    with pytest.raises(AttributeError):
        HBFPFormat().mantissa = 9


@pytest.mark.parametrize("mantissa, limit", [(2, 1), (3, 3), (8, 127), (16, 32767)])
def test_limit_is_symmetric(mantissa, limit):
    fmt = HBFPFormat(mantissa=mantissa)
    assert fmt.limit == limit and fmt.magnitude == mantissa - 1


@pytest.mark.parametrize("mantissa", range(2, 17))
@pytest.mark.parametrize("terms", [1, 2, 3, 31, 32, 33, 576, 1024])
def test_sum_width_is_the_smallest_that_holds(mantissa, terms):
    fmt = HBFPFormat(mantissa=mantissa)
    width, most = fmt.sum_width(terms), terms * fmt.limit ** 2
    assert -2 ** (width - 1) <= -most and most <= 2 ** (width - 1) - 1
    assert most > 2 ** (width - 2) - 1


def test_sum_width_of_the_law():
    """docs/numerics.md, section 3: 2m + ceil(log2 B) + 1 bits hold it."""
    for mantissa in range(2, 17):
        fmt = HBFPFormat(mantissa=mantissa)
        for terms in range(1, 1025):
            assert fmt.sum_width(terms) <= 2 * fmt.magnitude + (terms - 1).bit_length() + 1


@pytest.mark.parametrize("exponent, span", [(5, (-16, 15)), (8, (-128, 127)), (10, (-512, 511)), (16, (-32768, 32767))])
def test_exponent_range(exponent, span):
    assert HBFPFormat(exponent=exponent).exponent_range == span


@pytest.mark.parametrize("block, terms, square", [((1, 8), 8, False), ((24, 24), 24, True), ((1, 1), 1, False),
                                                  ([16, 16], 16, True)])
def test_block(block, terms, square):
    fmt = HBFPFormat(block=block)
    assert (fmt.block, fmt.terms, fmt.square) == (tuple(block), terms, square)


@pytest.mark.parametrize("options", [{"mantissa": w} for w in (2, 16)] + [{"exponent": e} for e in (5, 16)]
                         + [{"noise_bits": n} for n in (1, 24)] + [{"block": (1, n)} for n in (1, 1024)]
                         + [{"rounding": r} for r in ROUNDINGS] + [{"subnormals": s} for s in SUBNORMALS], ids=str)
def test_edges_are_valid(options):
    HBFPFormat(**options)


@pytest.mark.parametrize("options, message", [
    ({"mantissa": 1}, "Mantissa width must be 2 to 16 bits, not 1"),
    ({"mantissa": 17}, "Mantissa width must be 2 to 16 bits, not 17"),
    ({"mantissa": 8.0}, "Mantissa width must be 2 to 16 bits, not 8.0"),
    ({"mantissa": True}, "Mantissa width must be 2 to 16 bits, not True"),
    ({"mantissa": "8"}, "Mantissa width must be 2 to 16 bits, not '8'"),
    ({"mantissa": None}, "Mantissa width must be 2 to 16 bits, not None"),
    ({"exponent": 4}, "Exponent width must be 5 to 16 bits, not 4"),
    ({"exponent": 17}, "Exponent width must be 5 to 16 bits, not 17"),
    ({"noise_bits": 0}, "Noise width must be 1 to 24 bits, not 0"),
    ({"noise_bits": 25}, "Noise width must be 1 to 24 bits, not 25"),
    ({"rounding": "nearest"}, "Rounding must be one of rne, stochastic, truncate, not 'nearest'"),
    ({"rounding": None}, "Rounding must be one of rne, stochastic, truncate, not None"),
    ({"subnormals": "keep"}, "Subnormals must be one of flush, gradual, not 'keep'"),
    ({"block": 32}, "Block must be a pair (1, B) or (t, t), not 32"),
    ({"block": (1, 2, 3)}, "Block must be a pair (1, B) or (t, t), not (1, 2, 3)"),
    ({"block": "32"}, "Block must be a pair (1, B) or (t, t), not '32'"),
    ({"block": (1, 0)}, "Block side must be 1 to 1024 elements, not 0"),
    ({"block": (1, 1025)}, "Block side must be 1 to 1024 elements, not 1025"),
    ({"block": (1.0, 8)}, "Block side must be 1 to 1024 elements, not 1.0"),
    ({"block": (8, 1)}, "Block must be (1, B) or (t, t), not (8, 1)"),
    ({"block": (2, 4)}, "Block must be (1, B) or (t, t), not (2, 4)"),
], ids=str)
def test_wrong_value(options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        HBFPFormat(**options)


@pytest.mark.parametrize("one, other", [(2, 16), (4, 8), (8, 8)])
def test_sum_width_of_two_formats(one, other):
    a, b = HBFPFormat(mantissa=one), HBFPFormat(mantissa=other)
    most = 32 * a.limit * b.limit
    width = a.sum_width(32, b)
    assert width == b.sum_width(32, a) and -2 ** (width - 1) <= -most and 2 ** (width - 2) <= most < 2 ** (width - 1)
