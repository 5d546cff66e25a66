"""Numbers rounded to a format where they are, with gradients as if they had not been."""

from typing import Any

import torch

from hbfp.format import HBFPFormat

from ..formats.names import Operand
from ..noise import Stream
from ..number.arrays import check_axis
from . import again
from .formats import checked
from .functional import single
from .once import unviewed
from .options import untraced
from .products import check_float32
from .rounded import held


class _StraightThrough(torch.autograd.Function):
    """The rounded numbers; the gradient passes unchanged."""

    @staticmethod
    def forward(x: torch.Tensor, fmt: Operand, axis: int, stream: Stream | None) -> torch.Tensor:
        return unviewed(held(x, fmt, axis, stream))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return g, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *given: Any) -> tuple[torch.Tensor, int]:
        return again.looped(_StraightThrough.apply, info.batch_size, in_dims, *given)


@untraced
def quantise(x: torch.Tensor, fmt: Operand | str = "hbfp8", *, axis: int = -1,
             stream: Stream | None = None) -> torch.Tensor:
    """``x`` as a format holds it: of HBFP what :func:`golden.bfp.decode` gives of :func:`golden.bfp.encode`.

    The gradient passes straight through.

    Parameters
    ----------
    x : Tensor
        Of one dimension or more, two for square tiles; float32, bfloat16 or float16, as the result.
    fmt : HBFPFormat, Number or str
        The format, or a name such as ``"hbfp8"`` or ``"mxfp6-e2m3"``.
    axis : int
        Along which the blocks ``(1, B)`` run, and rows that share a scale; square tiles lie over this dimension and the
        last of the others.
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
    needed = 2 if isinstance(fmt, HBFPFormat) and fmt.square else 1
    if x.dim() < needed:
        raise ValueError(f"x must have {needed} dimensions or more, not {x.dim()}")
    check_axis(axis, x.dim())
    if fmt.rounding == "stochastic" and again.transformed(x):
        raise NotImplementedError(again.NO_RULE)
    return _StraightThrough.apply(wide, fmt, axis, stream).to(dtype)
