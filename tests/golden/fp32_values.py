"""Operands for tests of FP32 arithmetic: special values and random patterns that meet."""

import numpy as np

#: Fractions whose roundings and carries differ: ends, middles, single ones, alternating bits.
FRACTIONS = (0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFE, 0x7FFFFF, 0x2AAAAA, 0x555555, 0x000FFF, 0x001000)
#: Fields: zero and subnormal, smallest, around one, around the precision, largest, Inf and NaN.
FIELDS = (0, 1, 2, 24, 63, 102, 103, 104, 125, 126, 127, 128, 150, 151, 190, 253, 254, 255)


def specials():
    """At least 400 patterns: every field of :data:`FIELDS` with every fraction, both signs."""
    magnitudes = [field << 23 | fraction for field in FIELDS for fraction in FRACTIONS]
    return np.array([sign << 31 | m for sign in (0, 1) for m in magnitudes], np.uint32)


def special_pairs():
    """All ordered pairs of :func:`specials`, as two arrays."""
    values = specials()
    return np.repeat(values, values.size), np.tile(values, values.size)


def random_pairs(count, seed):
    """Two arrays of patterns: unrelated, of near exponents, and nearly opposite, in thirds."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2 ** 32, (2, count), dtype=np.uint32)
    near = (a + rng.integers(-2 ** 25, 2 ** 25, count)).astype(np.uint32)
    kind = rng.integers(0, 3, count)
    return a, np.where(kind == 0, b, np.where(kind == 1, near, near ^ np.uint32(1 << 31)))


def canonical(values):
    """Patterns of float32 values, every NaN made 0x7FC00000."""
    bits = values.view(np.uint32).copy()
    bits[np.isnan(values)] = 0x7FC00000
    return bits


def all_pairs(fmt):
    """Every pair of patterns of a small format, as two arrays."""
    values = np.arange(1 << fmt.width)
    return np.repeat(values, values.size), np.tile(values, values.size)
