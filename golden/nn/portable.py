"""Conversion and products in torch operations alone, for devices without kernels: neither a CPU nor, where Triton is
installed, a GPU for which :mod:`golden.gpu` has some. It is slow: each block of K is a product in FP32 of its own.

No step needs float64. Mantissas are integers in float32. A product multiplies them block by block: while the sum of a
block fits 24 bits, that is exact in whatever order the device adds. Wider mantissas are cut into digits of few bits,
whose products are exact, and their sum is an int64. So results equal the NumPy definitions bit for bit.
"""

from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch

from hbfp.format import HBFPFormat

from ..gpu.runtime import serves
from ..matmul import check_aligned
from ..narrow import NARROW
from ..number.blocks import CANONICAL_NAN, block_sides
from ..within import within

_NAN = int(CANONICAL_NAN)
#: Integers up to two to this are exact in float32.
_EXACT = 24
_FORCED = ContextVar("portable", default=False)


def forced() -> AbstractContextManager[None]:
    """Within, tensors on the CPU take this way, too."""
    return within(_FORCED, True)


def on_host(x: torch.Tensor) -> bool:
    """Whether kernels and NumPy may work on a tensor."""
    return x.device.type == "cpu" and not _FORCED.get() and not serves(x)


@contextmanager
def _ieee():
    """FP32 products as they are, whatever the user allows torch to make of them (TF32)."""
    before = torch.get_float32_matmul_precision()
    if before == "highest":
        yield
        return
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _canonical(x):
    return torch.where(x.isnan(), torch.tensor(_NAN, dtype=torch.int32, device=x.device).view(torch.float32), x)


def _power(exponent):
    """Two to an int32 within -126 to 127."""
    return ((exponent + 127) << 23).view(torch.float32)


def _pad_cut(x, high, wide):
    rows, columns = x.shape
    x = torch.nn.functional.pad(x, (0, -columns % wide, 0, -rows % high))
    return x.reshape(x.shape[0] // high, high, x.shape[1] // wide, wide)


@dataclass(frozen=True, eq=False)
class Pieces:
    """A matrix in HBFP: :class:`golden.number.blocks.Blocks` as tensors.

    Attributes
    ----------
    mantissa : Tensor
        (rows, columns) float32, integers.
    exponent, invalid : Tensor
        One int32 and one bool for each block, in the grid of the blocks.
    fmt : HBFPFormat
        The format.
    sides : tuple of int
        Rows and columns of a block.
    """
    mantissa: torch.Tensor
    exponent: torch.Tensor
    invalid: torch.Tensor
    fmt: HBFPFormat
    sides: tuple[int, int]

    def turned(self) -> "Pieces":
        """The transposed matrix; nothing is converted again."""
        return Pieces(self.mantissa.T, self.exponent.T, self.invalid.T, self.fmt, self.sides[::-1])

    def spread(self, per_block: torch.Tensor, *dims: int) -> torch.Tensor:
        """A tensor with an entry for each block, repeated for the rows (0) or columns (1) that a block has."""
        for dim in dims:
            per_block = per_block.repeat_interleave(self.sides[dim], dim).narrow(dim, 0, self.mantissa.shape[dim])
        return per_block

    def values(self) -> torch.Tensor:
        """The numbers: (rows, columns) float32."""
        exponent = self.spread(self.exponent, 0, 1) - self.fmt.magnitude
        first = exponent.clamp(-100, 127)                # two exact steps, as the result may be subnormal
        y = self.mantissa * _power(first) * _power((exponent - first).clamp(-100, 0))
        nan = torch.tensor(_NAN, dtype=torch.int32, device=y.device).view(torch.float32)
        return torch.where(self.spread(self.invalid, 0, 1), nan, y).contiguous()


def encoded(x: torch.Tensor, fmt: HBFPFormat, noise: torch.Tensor | None = None, *, axis: int = -1) -> Pieces:
    """:func:`golden.bfp.encode` of a matrix (rows, columns) of float32 on any device."""
    rows, columns = x.shape
    high, wide = block_sides(fmt, axis)
    pieces = _pad_cut(x.contiguous(), high, wide)
    bits = pieces.view(torch.int32)
    field, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    top = field.amax((1, 3), keepdim=True) if x.numel() else field.new_zeros(pieces.shape[0], 1, pieces.shape[2], 1)
    exponent = (top - 126).clamp(*fmt.exponent_range)
    gradual = fmt.subnormals == "gradual"
    significand = torch.where(field > 0, fraction | 1 << 23, fraction if gradual else torch.zeros_like(fraction))
    shift = exponent + 126 - field.clamp(min=1) + 24 - fmt.magnitude
    cut = shift.clamp(0, 25)                           # from 25 on nothing stays; below 0 the mantissa saturates
    whole = significand >> cut
    rest = significand - (whole << cut)
    if fmt.rounding == "rne":
        half = torch.where(cut > 0, (torch.ones_like(cut) << cut) >> 1, torch.ones_like(cut))
        whole = whole + ((rest > half) | ((rest == half) & (whole & 1 == 1)))
    elif noise is not None:
        kept = torch.where(shift > fmt.noise_bits, rest >> (shift - fmt.noise_bits).clamp(0, 31),
                           rest << (fmt.noise_bits - cut).clamp(min=0))
        whole = whole + ((kept + _pad_cut(noise.to(torch.int32), high, wide)) >> fmt.noise_bits)
    whole = whole.clamp(max=fmt.limit)
    mantissa = torch.where(bits < 0, -whole, whole).float().reshape(pieces.shape[0] * high, -1)[:rows, :columns]
    return Pieces(mantissa, exponent[:, 0, :, 0], top[:, 0, :, 0] == 255, fmt, (high, wide))


def product(a: Pieces, b: Pieces, accumulate: str = "fp32", *, guard: int = 4,
            growth: int | None = 8) -> torch.Tensor:
    """:func:`golden.matmul.matmul_blocks` of (M, K) and (K, N) with blocks along K; float32."""
    side, subnormals = a.fmt.terms, a.fmt.subnormals
    a_last = a.spread(a.exponent, 0) - a.fmt.magnitude
    b_last = b.spread(b.exponent, 1) - b.fmt.magnitude
    narrow = a.fmt.sum_width(side, b.fmt) <= _EXACT + 1
    digit = _EXACT if narrow else (_EXACT - side.bit_length()) // 2
    left, right = _digits(a, digit), _digits(b, digit)
    y = torch.zeros(a.mantissa.shape[0], b.mantissa.shape[1], device=a.mantissa.device)
    if accumulate in NARROW:
        raise ValueError(f"Accumulation {accumulate!r} is on the host, and without noise in convolutions; here it must "
                         "be 'fp32' or 'aligned'")
    if accumulate == "aligned":
        check_aligned(a.fmt, b.fmt, a_last.shape[1], guard, growth)
    acc = last = None
    with _ieee():
        for j in range(a_last.shape[1]):
            part = slice(j * side, (j + 1) * side)
            step = a_last[:, j, None] + b_last[j]
            sums = [(at + to, p[:, part] @ q[part]) for at, p in left for to, q in right]
            if accumulate == "fp32" and narrow:
                y = _add(y, _scaled(sums[0][1] + 0.0, step, subnormals), subnormals)
                continue
            total = sum(value.long() << shift for shift, value in sums)
            if accumulate == "fp32":
                y = _add(y, _rounded(total, step, subnormals), subnormals)
                continue
            total = total << guard
            if acc is None or last is None:
                acc, last = total, step
                continue
            ahead = step - last
            acc, last = _half_up(acc, ahead) + _half_up(total, -ahead), torch.maximum(last, step)
    if acc is not None and last is not None:
        y = _rounded(acc, last - guard, subnormals)
    bad = a.spread(a.invalid, 0).any(1)[:, None] | b.spread(b.invalid, 1).any(0)
    return _canonical(torch.where(bad, torch.full_like(y, float("nan")), y))


def _digits(pieces, bits):
    """Mantissas as sums of integers of so many bits: pairs of the power of two and a float32 tensor."""
    found, rest, left = [], pieces.mantissa, pieces.fmt.magnitude
    while left > bits:
        upper = (rest * 2.0 ** -bits).trunc()
        found.append((bits * len(found), rest - upper * 2.0 ** bits))
        rest, left = upper, left - bits
    return [*found, (bits * len(found), rest)]


def _scaled(total, exponent, subnormals):
    """``total * 2^exponent`` of integers of up to 24 bits in float32: one rounding at most, of a subnormal result."""
    exponent = exponent.clamp(-200, 200)               # beyond it everything is 0 or infinite
    first = exponent.clamp(-100, 100)
    second = exponent - first
    near = total * _power(first)                       # exact
    y = near * _power(second)
    if subnormals == "gradual":
        return y
    return torch.where(near.abs() < _power(-126 - second.clamp(max=0)), torch.zeros_like(y), y)


def _add(y, part, subnormals):
    """:func:`golden.number.to_fp32.add_fp32`, NaN apart."""
    y = y + part
    return torch.where(y.abs() < 2.0 ** -126, torch.zeros_like(y), y) if subnormals == "flush" else y


def _half_up(value, shift):
    """:func:`golden.number.rounding.shift_half_up`; a shift below 0 is none."""
    shift = shift.long().clamp(0, 63)
    below = (value >> (shift - 1).clamp(min=0)) & 1
    return (value >> shift) + torch.where(shift > 0, below, torch.zeros_like(below))


def _bit_length(x):
    length = torch.zeros_like(x)
    for step in (32, 16, 8, 4, 2, 1):
        big = x >= 1 << step
        x, length = torch.where(big, x >> step, x), length + step * big
    return length + (x > 0)


def _rounded(total, exponent, subnormals):
    """:func:`golden.number.to_fp32.to_fp32` of int64 integers."""
    exponent, magnitude = exponent.long(), total.abs()
    drop = _bit_length(magnitude) - 24
    if subnormals == "gradual":
        drop = torch.maximum(drop, -149 - exponent)
    cut = drop.clamp(0, 63)
    whole = magnitude >> cut
    rest, half = magnitude - (whole << cut), torch.ones_like(cut) << (cut - 1).clamp(min=0)
    up = (cut > 0) & ((rest > half) | ((rest == half) & (whole & 1 == 1)))
    significand = torch.where(drop >= 0, whole + up, magnitude << (-drop).clamp(0, 62))
    carry = significand >> 24
    significand, last = significand >> carry, exponent + drop + carry
    field = torch.where(significand >> 23 > 0, last + 150, torch.zeros_like(last))
    bits = (field << 23) + (significand & 0x7FFFFF)
    bits = torch.where(field >= 255, torch.full_like(bits, 0x7F800000), bits)
    if subnormals == "flush":
        bits = torch.where(field < 1, torch.zeros_like(bits), bits)
    bits = torch.where(magnitude == 0, torch.zeros_like(bits), bits).to(torch.int32).view(torch.float32)
    return torch.where((total < 0) & ((bits != 0) | (subnormals == "gradual")), -bits, bits)
