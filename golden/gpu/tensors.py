"""Conversion and products of tensors of any shape: :mod:`golden.bfp` and :mod:`golden.matmul` on a GPU."""

import math
from dataclasses import dataclass

import torch

from hbfp.checks import check_choice, check_kind
from hbfp.design import ACCUMULATES
from hbfp.format import HBFPFormat

from ..number.blocks import block_axis
from .runtime import check, on

#: Types that conversions read: FP32 has all of their numbers.
TYPES = (torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True, eq=False)
class Blocks:
    """:class:`golden.number.blocks.Blocks` as tensors.

    Attributes
    ----------
    mantissa : Tensor
        Shape of the tensor; int8 for widths up to 8, else int16. 0 in invalid blocks.
    exponent : Tensor of int32
        One per block.
    invalid : Tensor of bool
        One per block.
    fmt : HBFPFormat
        The format.
    axis : int
        The blocked axis, counted from the end; -1 for square tiles.
    """
    mantissa: torch.Tensor
    exponent: torch.Tensor
    invalid: torch.Tensor
    fmt: HBFPFormat
    axis: int = -1


def check_tensor(x: torch.Tensor, what: str = "x") -> None:
    """Raise one line if kernels cannot take a tensor: ``TypeError``, or what :func:`golden.gpu.runtime.check` does."""
    check_kind(what, x, torch.Tensor)
    if x.dtype not in TYPES:
        raise TypeError(f"{what} must be float32, bfloat16 or float16, not {str(x.dtype).removeprefix('torch.')}")
    check(x.device)


def encode(x: torch.Tensor, fmt: HBFPFormat, axis: int = -1, noise: torch.Tensor | None = None) -> Blocks:
    """:func:`golden.bfp.encode` on a GPU, or on the CPU where Triton interprets.

    Parameters
    ----------
    x : Tensor
        float32, bfloat16 or float16, of any shape and strides; ragged edges count as padded with zeros.
    fmt : HBFPFormat
        Format. Blocks ``(1, B)`` run along ``axis``, ``(t, t)`` over the last two axes.
    axis : int
        The axis that blocks ``(1, B)`` run along.
    noise : Tensor of int, optional
        ``stochastic`` only, and needed there: shape and device of ``x``, ``0 .. 2^noise_bits - 1``, which is not
        looked at before.

    Returns
    -------
    Blocks

    Raises
    ------
    ImportError
        If Triton is not installed.
    TypeError
        If ``x`` is of another type, or the noise is.
    ValueError
        If the device has no kernels, the axis does not exist, or the noise is missing, superfluous or of another shape
        or device.
    """
    check_tensor(x)
    axis = block_axis(x.dim(), fmt, axis)
    _check_noise(x, fmt, noise)
    with on(x):
        return _encoded(x.detach(), fmt, axis, noise)


def _encoded(x, fmt, axis, noise):
    from .convert import converted  # only now, for nothing else needs Triton
    kind, shape = "int8" if fmt.mantissa <= 8 else "int16", x.shape

    def tensors(lines, *outer):
        parts = lines.data, lines.exponent.contiguous(), lines.invalid
        return tuple(part.reshape(*outer, *part.shape[1:]) for part in parts)

    if fmt.square:
        stack = x.reshape(math.prod(shape[:-2]), *shape[-2:])
        dice = None if noise is None else noise.reshape(stack.shape)
        return Blocks(*tensors(converted(stack, fmt, across=True, kind=kind, noise=dice)[0], *shape[:-2]), fmt)
    if noise is None and axis < -1:                    # where they lie: lines are columns of a stack
        stack = x.reshape(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:]))
        parts = tensors(converted(stack, fmt, down=True, kind=kind)[1], *shape[:axis])
        inner = shape[axis + 1:]
        return Blocks(*(part.mT.reshape(*part.shape[:-2], part.shape[-1], *inner) for part in parts), fmt, axis)
    x = x.movedim(axis, -1)
    matrix = x.reshape(1, math.prod(x.shape[:-1]), x.shape[-1])
    dice = None if noise is None else noise.movedim(axis, -1).reshape(matrix.shape)
    lines = converted(matrix, fmt, across=True, kind=kind, noise=dice)[0]
    parts = (part[0].reshape(*x.shape[:-1], part.shape[-1]) for part in tensors(lines, 1))
    return Blocks(*(part.movedim(-1, axis) for part in parts), fmt, axis)


def _check_noise(x, fmt, noise):
    if fmt.rounding != "stochastic":
        if noise is not None:
            raise ValueError(f"Noise needs rounding 'stochastic', not {fmt.rounding!r}")
        return
    if noise is None:
        raise ValueError("Rounding 'stochastic' needs noise, one integer per element")
    check_kind("Noise", noise, torch.Tensor)
    if noise.is_floating_point() or noise.is_complex() or noise.dtype == torch.bool:
        raise TypeError(f"Noise must be integers, not {str(noise.dtype).removeprefix('torch.')}")
    if noise.shape != x.shape or noise.device != x.device:
        raise ValueError(f"Noise must have shape and device of x, {tuple(x.shape)} on {x.device}, not "
                         f"{tuple(noise.shape)} on {noise.device}")


def matmul(a: torch.Tensor, b: torch.Tensor, fmt_a: HBFPFormat, fmt_b: HBFPFormat | None = None,
           accumulate: str = "fp32", *, guard: int = 4, growth: int = 8, noise_a: torch.Tensor | None = None,
           noise_b: torch.Tensor | None = None) -> torch.Tensor:
    """:func:`golden.matmul.matmul` on a GPU, or on the CPU where Triton interprets.

    Parameters
    ----------
    a, b : Tensor
        (..., M, K) and (..., K, N), float32, bfloat16 or float16; leading dimensions as of :func:`torch.matmul`.
    fmt_a, fmt_b : HBFPFormat
        Formats, with as many terms along K; that of ``b`` is that of ``a`` unless given.
    accumulate : str
        ``fp32``, ``aligned``, ``fp24`` or ``bf16``: docs/numerics.md, section 5.
    guard, growth : int
        ``aligned`` only: fraction bits below a block sum, and bits for 2^growth blocks along K.
    noise_a, noise_b : Tensor of int, optional
        For ``stochastic``: shapes of ``a`` and ``b``.

    Returns
    -------
    Tensor of float32
        (..., M, N).

    Raises
    ------
    ImportError
        If Triton is not installed.
    TypeError
        If an operand is of another type.
    ValueError
        If the device has no kernels, or shapes, formats, options or the number of blocks do not fit.
    """
    check_choice("Accumulation", accumulate, ACCUMULATES)
    check_tensor(a, "a")
    check_tensor(b, "b")
    fmt_b = fmt_a if fmt_b is None else fmt_b
    for fmt in (fmt_a, fmt_b):
        check_kind("Format", fmt, HBFPFormat)
    if fmt_a.terms != fmt_b.terms:
        raise ValueError(f"Blocks of a and b must have equal terms along K, not {fmt_a.terms} and {fmt_b.terms}")
    if a.dim() < 2 or b.dim() < 2 or a.shape[-1] != b.shape[-2] or not _alike(a.shape[:-2], b.shape[:-2]):
        raise ValueError(f"Shapes of a and b must be (..., M, K) and (..., K, N), not {tuple(a.shape)} and "
                         f"{tuple(b.shape)}")
    if a.device != b.device:
        raise ValueError(f"a and b must be on one device, not {a.device} and {b.device}")
    for x, fmt, noise in ((a, fmt_a, noise_a), (b, fmt_b, noise_b)):
        _check_noise(x, fmt, noise)
    from .convert import converted
    from .product import product
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shared = math.prod(b.shape[:-2]) == 1
    def stack(x, alone):
        if x is None:
            return None
        return x.reshape(1, *x.shape[-2:]) if alone else x.expand(*lead, *x.shape[-2:]).reshape(-1, *x.shape[-2:])
    with on(a):
        left = converted(stack(a.detach(), not lead), fmt_a, across=True, noise=stack(noise_a, not lead))[0]
        right = converted(stack(b.detach(), shared), fmt_b, down=True, noise=stack(noise_b, shared))[1]
        assert left is not None and right is not None
        y = product(left, right, accumulate, guard=guard, growth=growth)
    return y.reshape(*lead, a.shape[-2], b.shape[-1])


def _alike(first, second):
    """Whether leading dimensions broadcast."""
    try:
        torch.broadcast_shapes(first, second)
    except RuntimeError:
        return False
    return True
