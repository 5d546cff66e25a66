"""FP32 to blocks: hand-checked bits, an exact oracle, and the laws of docs/numerics.md, sections 1 and 2."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.bfp import decode, encode, per_line, spread, used_blocks
from hbfp.format import HBFPFormat

#: (format options, element bits, mantissas, exponent): worked out by hand.
HAND = [
    # 1.0, 0.5, -0.75, 0: max field 127, E = 1, step 2^-6.
    (dict(mantissa=8), [0x3F800000, 0x3F000000, 0xBF400000, 0], [64, 32, -48, 0], 1),
    # Largest below 2: 1.99999988 rounds to 128 and saturates at 127.
    (dict(mantissa=8), [0x3FFFFFFF, 0x3F800000, 0, 0], [127, 64, 0, 0], 1),
    # Ties: with max 1.0 the step is 2^-6; 0.5, 1.5, 2.5 steps go to 0, 2, 2.
    (dict(mantissa=8), [0x3F800000, 0x3C000000, 0x3CC00000, 0x3D200000], [64, 0, 2, 2], 1),
    # One bit above and below the tie at 0.5 step.
    (dict(mantissa=8), [0x3F800000, 0x3C000001, 0x3BFFFFFF, 0xBC000001], [64, 1, 0, -1], 1),
    (dict(mantissa=8, rounding="truncate"), [0x3F800000, 0x3CFFFFFF, 0xBCFFFFFF, 0], [64, 1, -1, 0], 1),
    # hbfp2: m = 1, step 2^(E-1); 1.0 is M = 1 of E = 1.
    (dict(mantissa=2), [0x3F800000, 0xBF000000, 0x3F000001, 0xBF800000], [1, 0, 1, -1], 1),
    # All zeros, negative zeros and subnormals: E = -126.
    (dict(mantissa=8), [0x80000000, 0x007FFFFF, 0, 0x80000001], [0, 0, 0, 0], -126),
    # The same with gradual: 0x007FFFFF is 2^23 - 1 units of 2^-149; the step is 2^-133, so 128 saturates to 127.
    (dict(mantissa=8, subnormals="gradual"), [0x80000000, 0x007FFFFF, 0x00010000, 0x80008000], [0, 127, 1, 0], -126),
    # Largest finite number: field 254, E = 128.
    (dict(mantissa=4), [0x7F7FFFFF, 0xFF000000, 0x7E000000, 0], [7, -4, 1, 0], 128),
    # e = 5 clamps E = 1 - 30 = -29 up to -16: 2^-30 is lost (step 2^-23), 2^-22 with it E = -21 is two steps.
    (dict(mantissa=8, exponent=5), [0x30800000, 0, 0, 0], [0, 0, 0, 0], -16),
    (dict(mantissa=8, exponent=5), [0x34800000, 0, 0, 0], [2, 0, 0, 0], -16),
    # e = 5 clamps E = 21 down to 15: everything of 2^15 and more saturates.
    (dict(mantissa=8, exponent=5), [0x49800000, 0xC7000000, 0x46800000, 0], [127, -127, 64, 0], 15),
]


@pytest.mark.parametrize("options, words, mantissas, exponent", HAND)
def test_hand_checked_bits(options, words, mantissas, exponent):
    blocks = encode(np.array(words, np.uint32).view(np.float32), HBFPFormat(block=(1, 4), **options))
    assert blocks.mantissa.tolist() == mantissas
    assert blocks.exponent.tolist() == [exponent]
    assert not blocks.invalid.any()


def awkward(rng, shape):
    """FP32 with ties, neighbours of ties, powers of two and their neighbours, zeros and subnormals."""
    field = rng.integers(-12, 3, shape) + rng.integers(20, 240, (*shape[:-1], 1))
    fraction = rng.integers(0, 1 << 23, shape)
    coarse = rng.integers(4, 24, shape)              # cut to a few bits: ties abound
    fraction = fraction >> coarse << coarse
    fraction = (fraction + rng.integers(-1, 2, shape)).clip(0, (1 << 23) - 1)
    field[rng.random(shape) < 0.05] = 0
    bits = field << 23 | fraction | rng.integers(0, 2, shape) << 31
    return bits.astype(np.uint32).view(np.float32)


def exact_block(values, fmt, noise):
    """The law with fractions, from the real numbers instead of the bit fields."""
    tiny = Fraction(2) ** -126
    values = [Fraction(float(v)) for v in values]
    if fmt.subnormals == "flush":
        values = [v if abs(v) >= tiny else Fraction(0) for v in values]
    top, exponent = max(map(abs, values)), -126
    while Fraction(2) ** exponent <= top:
        exponent += 1
    low, high = -2 ** (fmt.exponent - 1), 2 ** (fmt.exponent - 1) - 1
    exponent = min(max(exponent, low), high)
    mantissas = []
    for v, u in zip(values, noise, strict=True):
        scaled = abs(v) / Fraction(2) ** (exponent - fmt.mantissa + 1)
        match fmt.rounding:
            case "rne":
                m = round(scaled)
            case "truncate":
                m = floor(scaled)
            case "stochastic":
                unit = 2 ** fmt.noise_bits
                m = floor((floor(scaled * unit) + int(u)) / Fraction(unit))
        m = min(m, 2 ** (fmt.mantissa - 1) - 1)
        mantissas.append(-m if v < 0 else m)
    return mantissas, exponent


@pytest.mark.parametrize("subnormals", ["flush", "gradual"])
@pytest.mark.parametrize("rounding", ["rne", "truncate", "stochastic"])
@pytest.mark.parametrize("exponent", [5, 8, 10])
@pytest.mark.parametrize("mantissa", [2, 3, 4, 6, 8, 12, 16])
def test_equals_exact_arithmetic(mantissa, exponent, rounding, subnormals):
    fmt = HBFPFormat(mantissa=mantissa, exponent=exponent, rounding=rounding, subnormals=subnormals, block=(1, 8))
    rng = np.random.default_rng(mantissa * 100 + exponent)
    x = awkward(rng, (24, 8))
    x[0], x[1, 1:] = 0, 0
    noise = rng.integers(0, 256, x.shape)
    blocks = encode(x, fmt, noise if rounding == "stochastic" else None)
    for row, want in enumerate(zip(x, noise, strict=True)):
        mantissas, e = exact_block(want[0], fmt, want[1])
        assert blocks.mantissa[row].tolist() == mantissas
        assert blocks.exponent[row, 0] == e


BLOCKS = [(1, 1), (1, 8), (1, 32), (4, 4), (24, 24)]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("mantissa", [2, 8, 16])
def test_idempotent(mantissa, block):
    fmt = HBFPFormat(mantissa=mantissa, block=block, subnormals="gradual")
    blocks = encode(awkward(np.random.default_rng(1), (30, 50)), fmt)
    again = encode(decode(blocks), fmt)
    assert (again.mantissa == blocks.mantissa).all()
    used = used_blocks(blocks)
    assert used.any() and (again.exponent == blocks.exponent)[used].all()


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("rounding, part", [("rne", 0.5), ("truncate", 1), ("stochastic", 1)])
def test_error_is_at_most_half_a_step(block, rounding, part):
    fmt = HBFPFormat(mantissa=6, block=block, rounding=rounding)
    rng = np.random.default_rng(2)
    x = rng.standard_normal((40, 60)).astype(np.float32)
    blocks = encode(x, fmt, rng.integers(0, 256, x.shape) if rounding == "stochastic" else None)
    step = np.ldexp(1.0, spread(blocks.exponent, x.shape, fmt) - fmt.magnitude)
    free = np.abs(blocks.mantissa) < fmt.limit
    assert free.sum() > 2000
    assert (np.abs(decode(blocks) - x.astype(np.float64)) <= part * step)[free].all()


@pytest.mark.parametrize("scale", [-60, -1, 1, 60])
@pytest.mark.parametrize("block", BLOCKS)
def test_scaling_moves_only_the_exponent(block, scale):
    fmt = HBFPFormat(mantissa=8, block=block)
    x = np.random.default_rng(3).standard_normal((30, 50)).astype(np.float32)
    blocks, scaled = encode(x, fmt), encode(np.ldexp(x, scale), fmt)
    assert (blocks.mantissa == scaled.mantissa).all()
    assert (blocks.exponent + scale == scaled.exponent).all()


def mxint8(block):
    """OCP Microscaling v1.0 MXINT8: shared scale 2^floor(log2(max)), elements with 6 fraction bits, RNE, saturated.

    From the specification's definitions, with frexp instead of bit fields; the code -128 is unused.
    """
    scale = int(np.frexp(np.abs(block).max().astype(np.float64))[1]) - 1
    elements = np.rint(np.ldexp(block.astype(np.float64), 6 - scale)).clip(-127, 127)
    return elements.astype(int).tolist(), scale


def test_is_mxint8():
    fmt = HBFPFormat(mantissa=8, block=(1, 32), subnormals="gradual")
    x = awkward(np.random.default_rng(4), (2000, 32))
    blocks = encode(x, fmt)
    for row in range(len(x)):
        elements, scale = mxint8(x[row])
        assert blocks.mantissa[row].tolist() == elements
        assert blocks.exponent[row, 0] == scale + 1      # the point of M * 2^(E - 7) is one bit higher


def tiny(rng, count):
    """Blocks of 32 whose maximum is 2^-127 or more, most of them with elements below 2^-126, which are subnormal."""
    field = rng.integers(0, 8, (count, 1)) * rng.integers(0, 2, (count, 32))
    fraction = rng.integers(0, 1 << 23, field.shape)
    bits = field << 23 | fraction | rng.integers(0, 2, field.shape) << 31
    bits[:, 0] |= 1 << 22                                # 2^-127 if its field is 0
    return bits.astype(np.uint32).view(np.float32)


def test_is_mxint8_among_subnormals_if_gradual():
    """Down to a maximum of 2^-127, the smallest scale that MXINT8 has; below it the exponent stays at -126."""
    fmt = HBFPFormat(mantissa=8, block=(1, 32), subnormals="gradual")
    x = tiny(np.random.default_rng(14), 500)
    blocks = encode(x, fmt)
    for row in range(len(x)):
        elements, scale = mxint8(x[row])
        assert blocks.mantissa[row].tolist() == elements and blocks.exponent[row, 0] == scale + 1
    below = encode(np.full((1, 32), 2.0 ** -128, np.float32), fmt)
    assert below.exponent[0, 0] == -126 and (below.mantissa == 32).all()


def test_flush_is_mxint8_of_what_it_leaves():
    """Elements below 2^-126 become 0; that alone is the difference, and it is one."""
    fmt = HBFPFormat(mantissa=8, block=(1, 32))
    x = tiny(np.random.default_rng(15), 500)
    left, differ = np.where(np.abs(x) < 2.0 ** -126, np.float32(0), x), 0
    blocks = encode(x, fmt)
    for row in np.flatnonzero(left.any(axis=1)):
        elements, scale = mxint8(left[row])
        assert blocks.mantissa[row].tolist() == elements and blocks.exponent[row, 0] == scale + 1
        differ += elements != mxint8(x[row])[0]
    assert differ > 100


@pytest.mark.parametrize("word", [0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001])
def test_infinity_or_nan_makes_its_block_invalid(word):
    x = np.ones((3, 64), np.float32)
    x.view(np.uint32)[1, 40] = word
    blocks = encode(x, HBFPFormat())
    assert blocks.invalid.tolist() == [[False, False], [False, True], [False, False]]
    assert not blocks.mantissa[1, 32:].any() and blocks.mantissa[1, :32].all()
    assert (decode(blocks).view(np.uint32)[1, 32:] == 0x7FC00000).all()


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_axis_chooses_where_blocks_run(axis):
    fmt = HBFPFormat(block=(1, 8))
    x = awkward(np.random.default_rng(5), (9, 20, 17))
    blocks, moved = encode(x, fmt, axis=axis), encode(np.ascontiguousarray(np.moveaxis(x, axis, -1)), fmt)
    assert (np.moveaxis(blocks.mantissa, axis, -1) == moved.mantissa).all()
    assert (np.moveaxis(blocks.exponent, axis, -1) == moved.exponent).all()
    assert np.array_equal(np.moveaxis(decode(blocks), axis, -1), decode(moved))


def test_square_blocks_equal_blocks_of_the_tile_as_a_row():
    fmt, flat = HBFPFormat(block=(4, 4)), HBFPFormat(block=(1, 16))
    x = awkward(np.random.default_rng(6), (2, 8, 12))
    blocks = encode(x, fmt)
    assert blocks.exponent.shape == (2, 2, 3)
    for b, i, j in np.ndindex(2, 2, 3):
        part = np.s_[b, 4 * i:4 * i + 4, 4 * j:4 * j + 4]
        one = encode(x[part].reshape(1, 16), flat)
        assert (one.mantissa.reshape(4, 4) == blocks.mantissa[part]).all()
        assert one.exponent[0, 0] == blocks.exponent[b, i, j]


@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from(BLOCKS))
@settings(max_examples=60, deadline=None)
def test_ragged_edges_count_as_zeros(rows, columns, block):
    fmt = HBFPFormat(block=block)
    x = awkward(np.random.default_rng(rows), (rows, columns)) if rows and columns else np.zeros((rows, columns), "f4")
    padded = np.pad(x, ((0, -rows % block[0]), (0, -columns % block[1])))
    small, large = encode(x, fmt), encode(padded, fmt)
    assert np.array_equal(small.mantissa, large.mantissa[:rows, :columns])
    assert np.array_equal(small.exponent, large.exponent)
    assert decode(small).shape == x.shape


def test_wrong_dtype():
    with pytest.raises(TypeError, match=r"^x must be float32, not float64$"):
        encode(np.ones(4), HBFPFormat())


def test_wrong_axis():
    with pytest.raises(ValueError, match=r"^Axis must be -2 to 1, not 2$"):
        encode(np.ones((4, 4), np.float32), HBFPFormat(), axis=2)


def test_wrong_dimensions():
    with pytest.raises(ValueError, match=r"^Blocks \(4, 4\) need 2 or more dimensions, not 1$"):
        encode(np.ones(4, np.float32), HBFPFormat(block=(4, 4)))


@pytest.mark.parametrize("rounding, noise, error, message", [
    ("rne", np.zeros(4, int), ValueError, r"^Noise needs rounding 'stochastic', not 'rne'$"),
    ("stochastic", None, ValueError, r"^Rounding 'stochastic' needs noise, one integer per element$"),
    ("stochastic", np.zeros(3, int), ValueError, r"^Noise must have the shape of x, \(4,\), not \(3,\)$"),
    ("stochastic", np.zeros(4), TypeError, r"^Noise must be integers, not float64$"),
    ("stochastic", np.array([0, 256, 0, 0]), ValueError, r"^Noise must be 0 to 255, not 0 to 256$")])
def test_wrong_noise(rounding, noise, error, message):
    with pytest.raises(error, match=message):
        encode(np.ones(4, np.float32), HBFPFormat(rounding=rounding), noise)


@pytest.mark.parametrize("line", [0, 1])
def test_one_exponent_of_a_tile_serves_every_line(line):
    x = np.random.default_rng(0).standard_normal((7, 11)).astype(np.float32)
    blocks = encode(x, HBFPFormat(block=(3, 3)))
    lines = per_line(blocks, blocks.exponent, line)
    assert lines.shape == ((7, 4) if line == 0 else (3, 11))
    for row in range(7):
        for column in range(11):
            want = blocks.exponent[row // 3, column // 3]
            assert (lines[row, column // 3] if line == 0 else lines[row // 3, column]) == want
