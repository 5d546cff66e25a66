"""Numbers rounded to HBFP where they are, with gradients as if they had not been."""

from typing import Any

import torch

from hbfp.format import HBFPFormat

from ..noise import Stream
from ..number.arrays import check_axis
from .formats import checked
from .functional import single
from .once import unviewed
from .options import untraced
from .products import Operand, check_float32


class _StraightThrough(torch.autograd.Function):
    """The rounded numbers; the gradient passes unchanged."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, fmt: HBFPFormat, axis: int, stream: Stream | None) -> torch.Tensor:
        if x.is_meta or not x.numel():
            return torch.empty_like(x)
        rows = x.movedim(axis, -1)
        if fmt.square:                                   # tiles lie over the last two dimensions, matrix by matrix
            parts = [_encoded(matrix, fmt, stream) for matrix in rows.reshape(-1, *rows.shape[-2:])]
            y = torch.stack(parts) if parts else torch.empty_like(rows)
        else:
            y = _encoded(rows.reshape(-1, rows.shape[-1]), fmt, stream)
        return unviewed(y.reshape(rows.shape).movedim(-1, axis))

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return g, None, None, None


def _encoded(matrix, fmt, stream):
    values = Operand(matrix.contiguous(), fmt, stream).along(-1).values
    return values if torch.is_tensor(values) else torch.from_numpy(values)


@untraced
def quantise(x: torch.Tensor, fmt: HBFPFormat | str = "hbfp8", *, axis: int = -1,
             stream: Stream | None = None) -> torch.Tensor:
    """``x`` as HBFP holds it: what :func:`golden.bfp.decode` gives of :func:`golden.bfp.encode`.

    The gradient passes straight through.

    Parameters
    ----------
    x : Tensor
        Of one dimension or more, two for square tiles; float32, bfloat16 or float16, as the result.
    fmt : HBFPFormat or str
        The format, or a name such as ``"hbfp8"``.
    axis : int
        Along which the blocks ``(1, B)`` run; square tiles lie over this dimension and the last of the others.
    stream : golden.noise.Stream, optional
        Where ``stochastic`` draws from.

    Raises
    ------
    TypeError
        If ``x`` has another type, or ``fmt`` is no format.
    ValueError
        If dimensions are missing, ``axis`` is none of them, or ``stochastic`` has no stream.
    """
    fmt = checked("Format", fmt)
    (wide, _), dtype = single(x)
    check_float32(x=wide)
    needed = 2 if fmt.square else 1
    if x.dim() < needed:
        raise ValueError(f"x must have {needed} dimensions or more, not {x.dim()}")
    check_axis(axis, x.dim())
    return _StraightThrough.apply(wide, fmt, axis, stream).to(dtype)
