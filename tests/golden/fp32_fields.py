"""Operands for multipliers, field by field: fractions whose products carry far or end near a half, at both ends."""

import numpy as np

#: Single ones, ones from the top and from the bottom, ones but one, and the neighbours of a half.
FRACTIONS = sorted({0, 0x7FFFFF, 0x2AAAAA, 0x555555, *(0x400000 + step for step in (-2, -1, 1, 2)),
                    *(1 << k for k in range(23)), *(0x7FFFFF >> k for k in range(23)),
                    *(0x7FFFFF ^ 0x7FFFFF >> k for k in range(23)), *(0x7FFFFF ^ 1 << k for k in range(23))})
#: Exponent fields of two operands: a product of one's size, at the largest numbers, at the smallest, far below.
FIELDS = ((127, 127), (126, 128), (254, 127), (191, 190), (253, 128), (254, 254), (64, 63), (1, 126), (64, 62),
          (1, 125), (40, 64), (1, 104), (52, 51), (0, 127), (0, 150), (0, 0))


def factors(seed):
    """All pairs of :data:`FRACTIONS`, each with every pair of :data:`FIELDS`, signs at random: two arrays."""
    rng = np.random.default_rng(seed)
    fractions, fields = np.array(FRACTIONS, np.uint32), np.array(FIELDS, np.uint32) << np.uint32(23)
    a = fields[:, 0, None, None] | fractions[:, None]
    b = fields[:, 1, None, None] | fractions
    a, b = (v.reshape(-1) for v in np.broadcast_arrays(a, b))
    sign = rng.integers(0, 2, (2, a.size), np.uint32) << np.uint32(31)
    return a | sign[0], b | sign[1]


def addends(product, seed):
    """A third operand for each product: its field at any distance that alignment tells apart, fractions as above."""
    rng = np.random.default_rng(seed)
    field = (product >> 23 & 255).astype(np.int64) + rng.integers(-52, 30, product.size)
    fraction = rng.choice(np.array(FRACTIONS, np.uint32), product.size)
    sign = rng.integers(0, 2, product.size, np.uint32) << np.uint32(31)
    return sign | np.clip(field, 0, 254).astype(np.uint32) << np.uint32(23) | fraction
