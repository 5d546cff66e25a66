"""FP32 arithmetic on bit patterns, in NumPy integers; see docs/design/02-fp32-arithmetic.md.

Every operation takes and gives bit patterns (``uint32`` arrays or anything that broadcasts to
them) and no step uses floating point. A result that is NaN is always the format's one NaN.
Arguments common to all:

fmt : FloatFormat
    Format of operands and result; FP32 unless a small one is tested.
subnormals : str
    ``gradual`` is IEEE 754; ``flush`` reads subnormals as zero of their sign and gives zero for
    results below the smallest normal number, judged after rounding.
underflow : str
    Sign of a result that ``flush`` turns into zero: ``signed`` keeps it (docs/numerics.md,
    section 7), ``positive`` drops it, as in accumulation and integer to FP32 (sections 4 and 5).

Large FP32 arrays go through :mod:`golden.fast.fp32`, which gives the same bits.
"""

import numpy as np
from numpy.typing import ArrayLike

from hbfp.checks import check_choice, check_kind
from hbfp.format import SUBNORMALS

from .number.arrays import check_broadcast, flags, integers, patterns
from .number.rounding import bit_length
from .spec.floats import BF16, FP16, FP32, FloatFormat

#: Sign of results that are flushed to zero.
UNDERFLOWS = ("signed", "positive")
#: Significands are aligned with their leading one at this bit of an int64.
LEAD = 57
#: Smallest FP32 array for which add, mul and fma use the compiled loops.
COMPILED_SIZE = 1 << 14
FAR = 1 << 20    # exponent distance beyond any that operands can make


class Number:
    """Operands taken apart: value = (-1)^sign * significand * 2^exponent, all ``int64``."""

    def __init__(self, bits: np.ndarray, fmt: FloatFormat, subnormals: str) -> None:
        check_choice("Subnormals", subnormals, SUBNORMALS)
        bits = bits.astype(np.int64)
        field, fraction = bits >> fmt.fraction & fmt.top, bits & ((1 << fmt.fraction) - 1)
        self.sign = bits >> (fmt.width - 1) & 1
        self.nan = (field == fmt.top) & (fraction != 0)
        self.inf = (field == fmt.top) & (fraction == 0)
        hidden = field != 0
        if subnormals == "flush":
            fraction = fraction * hidden
        self.significand = fraction + (hidden.astype(np.int64) << fmt.fraction)
        self.exponent = np.maximum(field, 1) - fmt.bias - fmt.fraction
        self.zero = self.significand == 0


def round_pack(sign: np.ndarray, significand: np.ndarray, exponent: np.ndarray, sticky: np.ndarray | bool,
               fmt: FloatFormat, subnormals: str, underflow: str = "signed") -> np.ndarray:
    """Nearest even of (-1)^sign * (significand + sticky * epsilon) * 2^exponent, as a bit pattern.

    Parameters
    ----------
    significand : array of int64
        At least 0, below 2^61. Where ``sticky`` is set it has more bits than the precision.
    sticky : array of bool, or bool
        Whether the value lies strictly between ``significand`` and ``significand + 1``.

    Returns
    -------
    array of int64
        Patterns; overflow is Inf.
    """
    check_choice("Underflow", underflow, UNDERFLOWS)
    drop = bit_length(significand) - fmt.precision
    if subnormals == "gradual":
        drop = np.maximum(drop, 1 - fmt.bias - fmt.fraction - exponent)
    exponent, right = exponent + drop, np.clip(drop, 0, 62)
    kept = np.where(drop > 0, significand >> right, significand << np.clip(-drop, 0, fmt.precision))
    lost, half = significand - (kept << right), (np.int64(1) << right) >> 1
    up = (drop > 0) & ((lost > half) | (lost == half) & (sticky | (kept & 1 == 1)))
    kept = kept + up
    exponent, kept = exponent + (kept >> fmt.precision), kept >> (kept >> fmt.precision)
    field = np.where(kept >> fmt.fraction, exponent + fmt.fraction + fmt.bias, 0)
    fraction = kept & ((1 << fmt.fraction) - 1)
    flushed = (field <= 0) & (subnormals == "flush")
    sign = np.where(flushed & (underflow == "positive"), 0, sign)
    magnitude = np.where(flushed, 0, np.where(field >= fmt.top, fmt.inf, (field << fmt.fraction) + fraction))
    return magnitude + (sign << (fmt.width - 1))


def exact_sum(sign_x: np.ndarray, x: np.ndarray, exponent_x: np.ndarray, sign_y: np.ndarray, y: np.ndarray,
              exponent_y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sum of two integers scaled by powers of two, as (sign, significand, exponent, sticky).

    Both leading ones go to bit :data:`LEAD`; then the smaller moves right, and what leaves below
    is only remembered as sticky. No bit that a 24-bit rounding sees is lost: if the distance is at
    least 2, at most one leading bit cancels; if less, nothing leaves.
    """
    scaled = []
    for value, exponent in ((x, exponent_x), (y, exponent_y)):
        move = LEAD + 1 - bit_length(value)
        scaled += [value << np.where(value, move, 0), np.where(value, exponent - move, -FAR)]
    x, exponent_x, y, exponent_y = scaled
    swap = exponent_x < exponent_y
    large, small = np.where(swap, y, x), np.where(swap, x, y)
    exponent = np.where(swap, exponent_y, exponent_x)
    distance = np.minimum(np.abs(exponent_x - exponent_y), 62)
    aligned = small >> distance
    sticky = aligned << distance != small
    same = sign_x == sign_y
    total = np.where(same, large + aligned, large - aligned - sticky)
    sign = np.where(swap, sign_y, sign_x) ^ (total < 0)
    # Equal numbers of opposite sign give +0, zeros of one sign keep it.
    sign = np.where((total == 0) & ~same, 0, sign)
    return sign, np.abs(total), exponent, sticky


def _operands(fmt, *given):
    """Operands as arrays of patterns of a format, whose shapes broadcast."""
    check_kind("Format", fmt, FloatFormat)
    arrays = [patterns(x, width=fmt.width) for x in given]
    check_broadcast("Operands", *arrays)
    return arrays


def _compiled(name, operands, fmt, subnormals, underflow):
    """The result of compiled loop ``name``, or None where operands are few or the format is another."""
    check_choice("Subnormals", subnormals, SUBNORMALS)
    check_choice("Underflow", underflow, UNDERFLOWS)
    if fmt != FP32 or np.broadcast(*operands).size < COMPILED_SIZE:
        return None
    from .fast import fp32 as fast  # here, because numba takes long to load
    flush = subnormals == "flush"
    return fast.run(getattr(fast, name), operands, flush, flush and underflow == "positive")


def _special(result, cases):
    """Overwrite ``result`` where special cases hold, later cases first in rank; give uint32."""
    for where, value in cases:
        result = np.where(where, value, result)
    return result.astype(np.uint32)


def _signed_inf(sign, fmt):
    return fmt.inf + (sign << (fmt.width - 1))


def add(a: ArrayLike, b: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual",
        underflow: str = "signed") -> np.ndarray:
    """a + b."""
    a, b = _operands(fmt, a, b)
    fast = _compiled("add", (a, b), fmt, subnormals, underflow)
    if fast is not None:
        return fast
    x, y = Number(a, fmt, subnormals), Number(b, fmt, subnormals)
    total = exact_sum(x.sign, x.significand, x.exponent, y.sign, y.significand, y.exponent)
    result = round_pack(*total, fmt, subnormals, underflow)
    return _special(result, [
        (x.inf, _signed_inf(x.sign, fmt)),
        (y.inf, _signed_inf(y.sign, fmt)),
        (x.nan | y.nan | x.inf & y.inf & (x.sign != y.sign), fmt.nan)])


def sub(a: ArrayLike, b: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual",
        underflow: str = "signed") -> np.ndarray:
    """a - b."""
    a, b = _operands(fmt, a, b)
    return add(a, b.astype(np.int64) & (1 << fmt.width) - 1 ^ 1 << (fmt.width - 1), fmt, subnormals, underflow)


def mul(a: ArrayLike, b: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual") -> np.ndarray:
    """a * b."""
    a, b = _operands(fmt, a, b)
    fast = _compiled("mul", (a, b), fmt, subnormals, "signed")
    if fast is not None:
        return fast
    x, y = Number(a, fmt, subnormals), Number(b, fmt, subnormals)
    sign = x.sign ^ y.sign
    result = round_pack(sign, x.significand * y.significand, x.exponent + y.exponent, False, fmt, subnormals)
    return _special(result, [
        (x.inf | y.inf, _signed_inf(sign, fmt)),
        (x.nan | y.nan | x.inf & y.zero | x.zero & y.inf, fmt.nan)])


def fma(a: ArrayLike, b: ArrayLike, c: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual",
        underflow: str = "signed") -> np.ndarray:
    """a * b + c, rounded once."""
    a, b, c = _operands(fmt, a, b, c)
    fast = _compiled("fma", (a, b, c), fmt, subnormals, underflow)
    if fast is not None:
        return fast
    x, y, z = (Number(v, fmt, subnormals) for v in (a, b, c))
    sign = x.sign ^ y.sign
    total = exact_sum(sign, x.significand * y.significand, x.exponent + y.exponent,
                      z.sign, z.significand, z.exponent)
    result = round_pack(*total, fmt, subnormals, underflow)
    product_inf = x.inf | y.inf
    return _special(result, [
        (z.inf, _signed_inf(z.sign, fmt)),
        (product_inf, _signed_inf(sign, fmt)),
        (x.nan | y.nan | z.nan | x.inf & y.zero | x.zero & y.inf | product_inf & z.inf & (sign != z.sign),
         fmt.nan)])


def div(a: ArrayLike, b: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual") -> np.ndarray:
    """a / b; a nonzero number over zero is Inf."""
    a, b = _operands(fmt, a, b)
    x, y = Number(a, fmt, subnormals), Number(b, fmt, subnormals)
    sign = x.sign ^ y.sign
    move_x, move_y = (fmt.precision - bit_length(n.significand) for n in (x, y))
    spare = fmt.precision + 2
    dividend = x.significand << (move_x * ~x.zero + spare)
    divisor = np.where(y.zero, 1, y.significand << move_y * ~y.zero)
    quotient = dividend // divisor
    exponent = (x.exponent - move_x) - (y.exponent - move_y) - spare
    result = round_pack(sign, quotient, exponent, quotient * divisor != dividend, fmt, subnormals)
    return _special(result, [
        (x.zero | y.inf, sign << (fmt.width - 1)),
        (x.inf | y.zero, _signed_inf(sign, fmt)),
        (x.nan | y.nan | x.zero & y.zero | x.inf & y.inf, fmt.nan)])


def sqrt(a: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual") -> np.ndarray:
    """Square root; that of -0 is -0, that of a number below zero NaN."""
    a, = _operands(fmt, a)
    x = Number(a, fmt, subnormals)
    move = fmt.precision - bit_length(x.significand)
    odd = (x.exponent - move) & 1
    radicand = x.significand << (np.where(x.zero, 0, move) + odd)
    digits = fmt.precision + 2
    radicand = radicand << (2 * digits - fmt.precision + fmt.precision % 2)
    exponent = (x.exponent - move - odd - (2 * digits - fmt.precision + fmt.precision % 2)) // 2
    root = np.zeros_like(radicand)
    for digit in reversed(range(digits + 1)):    # one binary digit of the root a step
        trial = root | 1 << digit
        root = np.where(trial * trial <= radicand, trial, root)
    result = round_pack(x.sign, root, exponent, root * root != radicand, fmt, subnormals)
    return _special(result, [
        (x.inf, fmt.inf),
        (x.zero, x.sign << (fmt.width - 1)),
        (x.nan | (x.sign == 1) & ~x.zero, fmt.nan)])


def _order(x):
    """Signed integers in the order of the numbers, both zeros equal."""
    magnitude = x.significand + (x.exponent + FAR << 32)
    magnitude = np.where(x.inf, np.int64(1) << 60, np.where(x.zero, 0, magnitude))
    return np.where(x.sign == 1, -magnitude, magnitude)


def _clean(a, fmt, subnormals):
    """Operand as a result: flushed if the mode says so, NaN made the one NaN."""
    a, = _operands(fmt, a)
    x = Number(a, fmt, subnormals)
    zero = x.zero & ~x.inf & ~x.nan
    return x, _special(a.astype(np.int64) & (1 << fmt.width) - 1, [(zero, x.sign << (fmt.width - 1)), (x.nan, fmt.nan)])


def _pick(a, b, fmt, subnormals, larger):
    (x, clean_a), (y, clean_b) = _clean(a, fmt, subnormals), _clean(b, fmt, subnormals)
    order_x, order_y = _order(x), _order(y)
    # Zeros compare equal as numbers; here -0 lies below +0.
    above = (order_x > order_y) | (order_x == order_y) & (x.sign < y.sign)
    return _special(np.where(above == larger, clean_a, clean_b), [(x.nan | y.nan, fmt.nan)])


def min(a: ArrayLike, b: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual") -> np.ndarray:
    """754-2019 minimum: NaN if either is NaN, -0 below +0."""
    a, b = _operands(fmt, a, b)
    return _pick(a, b, fmt, subnormals, False)


def max(a: ArrayLike, b: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual") -> np.ndarray:
    """754-2019 maximum: NaN if either is NaN, -0 below +0."""
    return _pick(a, b, fmt, subnormals, True)


def compare(a: ArrayLike, b: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual") -> np.ndarray:
    """Relation of two numbers, as bits: 1 less, 2 equal, 4 greater, 8 unordered (NaN); one is set."""
    a, b = _operands(fmt, a, b)
    x, y = Number(a, fmt, subnormals), Number(b, fmt, subnormals)
    order_x, order_y = _order(x), _order(y)
    relation = np.where(order_x < order_y, 1, np.where(order_x == order_y, 2, 4))
    return _special(relation, [(x.nan | y.nan, 8)])


def select(condition: ArrayLike, a: ArrayLike, b: ArrayLike, fmt: FloatFormat = FP32,
           subnormals: str = "gradual") -> np.ndarray:
    """``a`` where ``condition`` (bool, or an integer that is not 0), else ``b``; bits move unchanged."""
    a, b = _operands(fmt, a, b)
    check_choice("Subnormals", subnormals, SUBNORMALS)
    condition = flags(condition, "Condition")
    check_broadcast("Condition and operands", condition, a, b)
    return np.where(condition, a, b).astype(np.uint32)


def abs(a: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual") -> np.ndarray:
    """Absolute value."""
    return _clean(a, fmt, subnormals)[1] & np.uint32((1 << (fmt.width - 1)) - 1)


def neg(a: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual") -> np.ndarray:
    """Negation; NaN gives the one NaN."""
    x, clean = _clean(a, fmt, subnormals)
    return np.where(x.nan, clean, clean ^ np.uint32(1 << (fmt.width - 1))).astype(np.uint32)


def from_int(value: ArrayLike, exponent: ArrayLike = 0, invalid: ArrayLike = False, fmt: FloatFormat = FP32,
             subnormals: str = "gradual", underflow: str = "signed") -> np.ndarray:
    """value * 2^exponent of signed integers below 2^60, rounded once; 0 gives +0, ``invalid`` NaN.

    docs/numerics.md, section 4, is ``subnormals="flush", underflow="positive"``.
    """
    value, exponent = integers(value, "Value", 60), integers(exponent, "Exponent", 32)
    invalid = flags(invalid, "Invalid")
    check_broadcast("Value, exponent and invalid", value, exponent, invalid)
    value, exponent, invalid = np.broadcast_arrays(value, exponent, invalid)
    result = round_pack((value < 0).astype(np.int64), np.abs(value), exponent, False,
                        fmt, subnormals, underflow)
    return _special(result, [(invalid, fmt.nan)])


def from_int32(value: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual") -> np.ndarray:
    """Signed 32-bit integers (int32, or their patterns) to floats."""
    return from_int(patterns(value, "Value").astype(np.int64).astype(np.int32), fmt=fmt, subnormals=subnormals)


def to_int32(a: ArrayLike, fmt: FloatFormat = FP32, subnormals: str = "gradual", rounding: str = "rne") -> np.ndarray:
    """Floats to int32 patterns; out of range saturates, NaN gives 0; ``rne`` or ``truncate``."""
    a, = _operands(fmt, a)
    check_choice("Rounding", rounding, ("rne", "truncate"))
    x = Number(a, fmt, subnormals)
    right = np.clip(-x.exponent, 0, 62)
    kept = np.where(x.exponent > 0, x.significand << np.clip(x.exponent, 0, 32), x.significand >> right)
    lost, half = x.significand - (kept << right), (np.int64(1) << right) >> 1
    if rounding == "rne":
        kept = kept + ((x.exponent < 0) & ((lost > half) | (lost == half) & (kept & 1 == 1)))
    kept = np.where(x.inf, np.int64(1) << 40, kept)
    signed = np.clip(np.where(x.sign == 1, -kept, kept), -2 ** 31, 2 ** 31 - 1)
    return np.where(x.nan, 0, signed).astype(np.int32).view(np.uint32)


def convert(a: ArrayLike, source: FloatFormat, target: FloatFormat, subnormals: str = "gradual") -> np.ndarray:
    """Floats of format ``source`` to ``target``, rounded to nearest even."""
    a, = _operands(source, a)
    check_kind("Target", target, FloatFormat)
    x = Number(a, source, subnormals)
    result = round_pack(x.sign, x.significand, x.exponent, False, target, subnormals)
    return _special(result, [(x.inf, _signed_inf(x.sign, target)), (x.nan, target.nan)])


def to_bf16(a: ArrayLike, subnormals: str = "gradual") -> np.ndarray:
    """FP32 patterns to BF16 patterns, in ``uint32``."""
    return convert(a, FP32, BF16, subnormals)


def to_fp16(a: ArrayLike, subnormals: str = "gradual") -> np.ndarray:
    """FP32 patterns to FP16 patterns, in ``uint32``."""
    return convert(a, FP32, FP16, subnormals)


def to_int8(a: ArrayLike, subnormals: str = "gradual") -> np.ndarray:
    """FP32 patterns to those of signed 8-bit integers, in ``uint32``; beyond 127 they saturate, and NaN gives 0."""
    whole = to_int32(a, FP32, subnormals).view(np.int32)
    return np.clip(whole, -127, 127).view(np.uint32) & 0xFF


def from_bf16(a: ArrayLike, subnormals: str = "gradual") -> np.ndarray:
    """BF16 patterns to FP32 patterns; exact, but for flushed subnormals and NaN."""
    return convert(a, BF16, FP32, subnormals)
