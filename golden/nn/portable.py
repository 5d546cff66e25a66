"""Conversion and block-ordered product in torch operations alone, for devices without compiled kernels.

Float64 holds every step exactly (products of blocks up to 53 bits), so results equal the NumPy
definitions whatever order the device's matrix product adds in.
"""

from typing import Any

import torch

from hbfp.format import HBFPFormat

from ..blocks import CANONICAL_NAN, block_sides
from ..to_fp32 import FLUSHED_BELOW

_NAN = int(CANONICAL_NAN)


def _canonical(x):
    return torch.where(x.isnan(), torch.tensor(_NAN, dtype=torch.int32, device=x.device).view(torch.float32), x)


def _pad_cut(x, high, wide):
    rows, columns = x.shape
    x = torch.nn.functional.pad(x, (0, -columns % wide, 0, -rows % high))
    return x.reshape(x.shape[0] // high, high, x.shape[1] // wide, wide)


def encoded(x: torch.Tensor, fmt: HBFPFormat, noise: torch.Tensor | None = None, *,
            axis: int = -1) -> tuple[torch.Tensor, None]:
    """:func:`golden.fast.kernels.encoded` for a tensor on any device; the span is None."""
    rows, columns = x.shape
    high, wide = block_sides(fmt, axis)
    pieces = _pad_cut(x.contiguous(), high, wide)
    bits = pieces.view(torch.int32).to(torch.int64)
    field, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    top = field.amax((1, 3), keepdim=True) if x.numel() else field
    exponent = (top - 126).clamp(*fmt.exponent_range)
    gradual = fmt.subnormals == "gradual"
    significand = torch.where(field > 0, fraction | 1 << 23, fraction if gradual else torch.zeros_like(fraction))
    shift = (exponent + 126 - field.clamp(min=1) + 24 - fmt.magnitude).clamp(0, 63)
    whole = significand >> shift
    if fmt.rounding == "rne":
        rest, half = significand - (whole << shift), (torch.ones_like(shift) << (shift - 1).clamp(min=0))
        half = torch.where(shift > 0, half, torch.ones_like(half))
        whole = whole + ((rest > half) | ((rest == half) & (whole & 1 == 1)))
    elif noise is not None:
        kept = torch.where(shift > fmt.noise_bits, significand >> (shift - fmt.noise_bits).clamp(min=0),
                           significand << (fmt.noise_bits - shift).clamp(min=0))
        whole = (kept + _pad_cut(noise.to(torch.int64), high, wide)) >> fmt.noise_bits
    whole = whole.clamp(max=fmt.limit)
    values = torch.ldexp(torch.where(bits < 0, -whole, whole).double(), exponent - fmt.magnitude).float()
    values = torch.where(top == 255, torch.full_like(values, float("nan")), values)
    return _canonical(values.reshape(pieces.shape[0] * high, -1)[:rows, :columns]).contiguous(), None


def product(a: torch.Tensor, b: torch.Tensor, a_fmt: HBFPFormat, b_fmt: HBFPFormat, a_span: Any = None,
            b_span: Any = None) -> torch.Tensor:
    """:func:`golden.fast.kernels.product` for tensors on any device and formats up to 53 bits a block sum."""
    side, subnormals = a_fmt.terms, a_fmt.subnormals
    total = torch.zeros(a.shape[0], b.shape[1], device=a.device)
    for left in range(0, a.shape[1], side):
        wide = a[:, left:left + side].double() @ b[left:left + side].double()
        part = wide.float()
        if subnormals == "flush":
            part = torch.where(wide.abs() < float(FLUSHED_BELOW), torch.zeros_like(part), part)
        total = total + part
        if subnormals == "flush":
            total = torch.where(total.abs() < 2.0 ** -126, torch.zeros_like(total), total)
    return _canonical(total)
