"""Every FP32 unit with its golden twin and the operands that test it."""

import numpy as np

import golden.fp32 as fp32
from golden.spec.floats import BF16, FP32, FloatFormat
from tests.golden.fp32_fields import addends, factors
from tests.golden.fp32_values import random_pairs, special_pairs

#: Formats small enough for all operands; three-operand units take those of at most six bits.
SMALL = [FloatFormat(2, 2), FloatFormat(3, 2), FloatFormat(4, 3), FloatFormat(5, 2), FloatFormat(3, 4)]


def triples(count, seed):
    """Three arrays of patterns: the third often nearly cancels the product of the first two; and field by field."""
    a, b = (np.concatenate(v)[:count] for v in zip(special_pairs(), random_pairs(count, seed), strict=True))
    order = np.random.default_rng(seed)
    a, b = (v[order.permutation(count)] if k else v for k, v in enumerate((a, b)))
    product = fp32.mul(a, b) ^ np.uint32(1 << 31)
    step = order.integers(-2, 3, count) << order.integers(0, 27, count)
    c = np.where(order.random(count) < 0.4, order.integers(0, 2 ** 32, count, np.uint32), product + step)
    hard = factors(seed)
    hard = *hard, addends(fp32.mul(*hard), seed)
    return tuple(np.concatenate(v).astype(np.uint32) for v in zip((a, b, c), hard, strict=True))


def pairs(count, seed):
    a, b = (np.concatenate(v) for v in zip(special_pairs(), random_pairs(count, seed), strict=True))
    return a, b


def products(count, seed):
    """Pairs, and all pairs of fractions that are hard to multiply."""
    return tuple(np.concatenate(v) for v in zip(pairs(count, seed), factors(seed), strict=True))


def one(count, seed):
    """One operand; half of them of moderate exponent, where integers lie."""
    a = pairs(count, seed)[0]
    return (np.concatenate([a, a & np.uint32(0x8FFFFFFF) | np.uint32(0x40000000)]),)


def chosen(count, seed):
    a, b, c = triples(count, seed)
    return a & 1, b, c


def integers(count, seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(-2 ** 31, 2 ** 31, count) >> rng.integers(0, 32, count)
    return (np.concatenate([values, [0, 1, -1, 2 ** 31 - 1, -2 ** 31]]),)


def narrow(count, seed):
    a, b, c = triples(count, seed)
    return a >> 16, b >> 16, c


def bf16(count, seed):
    return (np.arange(1 << BF16.width),)


def mul_add(a, b, c, fmt, subnormals):
    return fp32.add(fp32.mul(a, b, fmt, subnormals), c, fmt, subnormals)


def bf16_mul_add(a, b, c, fmt, subnormals):
    return fp32.fma(a << 16, b << 16, c, fmt, subnormals)


#: Unit -> (golden twin, operands for FP32, number of float operands or None if not for small formats).
TABLE = {
    "fp32.add": (fp32.add, pairs, 2),
    "fp32.sub": (fp32.sub, pairs, 2),
    "fp32.mul": (fp32.mul, products, 2),
    "fp32.fma": (fp32.fma, triples, 3),
    "fp32.div": (fp32.div, pairs, 2),
    "fp32.sqrt": (fp32.sqrt, one, 1),
    "fp32.min": (fp32.min, pairs, 2),
    "fp32.max": (fp32.max, pairs, 2),
    "fp32.compare": (fp32.compare, pairs, 2),
    "fp32.select": (fp32.select, chosen, None),
    "fp32.abs": (fp32.abs, one, 1),
    "fp32.neg": (fp32.neg, one, 1),
    "fp32.from_int32": (fp32.from_int32, integers, None),
    "fp32.to_int32": (fp32.to_int32, one, 1),
    "fp32.to_bf16": (lambda a, fmt, mode: fp32.to_bf16(a, mode), one, None),
    "fp32.to_fp16": (lambda a, fmt, mode: fp32.to_fp16(a, mode), one, None),
    "fp32.to_int8": (lambda a, fmt, mode: fp32.to_int8(a, mode), one, None),
    "fp32.from_bf16": (lambda a, fmt, mode: fp32.from_bf16(a, mode), bf16, None),
    "fp32.mul_add": (mul_add, triples, 3),
    "fp32.bf16_mul_add": (bf16_mul_add, narrow, None),
}


def small_operands(name, fmt):
    """All operands of a small format."""
    values = np.arange(1 << fmt.width)
    return tuple(v.reshape(-1) for v in np.meshgrid(*[values] * TABLE[name][2]))


def expected(name, operands, fmt=FP32, subnormals="gradual"):
    """What the golden twin gives, as unsigned 64-bit patterns."""
    return TABLE[name][0](*operands, fmt, subnormals).astype(np.uint64)
