"""Operands of products as the kernels of :mod:`golden.gpu` take them."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import pad

from hbfp.format import HBFPFormat

from ..gpu.runtime import on, serves
from .formats import Formats
from .memory import plain
from .placed import Draw, Given
from .record import watcher

__all__ = ["Stack", "drawn", "gathered", "given", "product", "row_sums", "serves", "takes"]


def takes(x: torch.Tensor, formats: Formats) -> bool:
    """Whether a product of a tensor goes to the kernels at once: in hardware order, and nobody watches its operands."""
    return serves(x) and (formats.mode, formats.order) == ("hbfp", "block") and watcher() is None


def drawn(matrix: torch.Tensor, fmt: HBFPFormat, stream: Any, axis: int) -> torch.Tensor | None:
    """The noise of a matrix (rows, columns), on its device; None where none is drawn.

    ``stream`` is what draws: a stream, a :class:`~golden.nn.placed.Draw`, or numbers that were drawn before. What the
    kernels serve is drawn there, if the stream has its state there, too.
    """
    if fmt.rounding != "stochastic" or stream is None:
        return None
    shape = matrix.shape[0], matrix.shape[1]
    if isinstance(stream, Given):
        return stream.numbers.reshape(shape).to(matrix.device)
    if not serves(matrix):
        return torch.from_numpy(stream.draw(shape, fmt, axis=axis)).to(matrix.device)
    from ..gpu import noise
    if isinstance(stream, Draw):
        key, first = stream.key ^ stream.step, stream.first
        found = noise.drawn(key, shape[::-1] if stream.turned else shape, fmt, matrix.device, first=first)
        return found.T if stream.turned else found
    buffer = getattr(stream, "buffer", None)
    if buffer is None or buffer.device != matrix.device:
        return torch.from_numpy(stream.draw(shape, fmt, axis=axis)).to(matrix.device)
    return noise.of_stream(buffer, shape, fmt, axis=axis)


def given(draw: Any, g: torch.Tensor, fmt: HBFPFormat) -> Any:
    """How images (N, C, H, W) draw as a matrix (pixels, C), by position; a stream stays as it is."""
    if not isinstance(draw, Draw) or fmt.rounding != "stochastic":
        return draw
    n, c, h, w = g.shape
    numbers = drawn(g.new_empty(1).expand(n * h * w, c), fmt, draw, -1)
    assert numbers is not None
    return Given(numbers.view(n, h, w, c))


class Stack:
    """A stack of matrices that is read once for both directions in which training multiplies it.

    Parameters
    ----------
    source : Tensor
        (S, rows, columns), detached.
    fmt : HBFPFormat
        The format.
    noise : Tensor of int, optional
        (rows, columns), for ``stochastic``; S is 1 then.
    both : bool
        Whether the other direction will be asked for when one is. It is made in the same pass, and kept; what was asked
        for is not, since a product takes each direction once.
    """

    def __init__(self, source: torch.Tensor, fmt: HBFPFormat, noise: torch.Tensor | None = None, *,
                 both: bool = False) -> None:
        self.source, self.fmt, self.both = source, fmt, both
        self.noise = None if noise is None else noise.to(torch.uint8) if fmt.noise_bits <= 8 else noise
        self._kept: dict[bool, Any] = {}

    def lines(self, down: bool) -> Any:
        """:class:`golden.gpu.convert.Lines` with K along the rows (``down``) or along the columns."""
        if down in self._kept:
            return self._kept[down]
        from ..gpu.convert import converted
        with on(self.source):
            found = converted(plain(self.source), self.fmt, across=self.both or not down, down=self.both or down,
                              noise=self.noise)
        if self.both:
            self._kept[not down] = found[not down]
        return found[down]


def gathered(lines: Any, cut: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Lines (1, pixels, K) made of lines of other pixels, which ``cut`` makes of a matrix: of channels or of blocks."""
    data, blocks, *rest = vars(lines).values()
    patches = cut(data[0])
    width = patches.shape[1]
    patches = pad(patches, (0, -width % 16))[:, :width]    # a line begins where the copy engine can
    return type(lines)(patches[None], cut(blocks[0].T).T.contiguous()[None], *rest)


def product(a: Any, b: Any, formats: Formats) -> torch.Tensor:
    """:func:`golden.gpu.product.product` of lines (S, M, K) and (S, N, K): (S, M, N) float32."""
    from ..gpu.product import product as multiply
    with on(a.data):
        return multiply(a, b, formats.accumulate, guard=formats.guard, growth=formats.growth)


def row_sums(g: torch.Tensor) -> torch.Tensor:
    """:func:`golden.gpu.sums.row_sums`."""
    from ..gpu.sums import row_sums as summed
    return summed(plain(g))
