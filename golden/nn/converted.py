"""Operands of products as the kernels of :mod:`golden.gpu` take them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import pad

from hbfp.format import HBFPFormat

from ..gpu.runtime import on, serves
from .formats import Formats
from .memory import plain
from .placed import Draw, Given
from .record import watcher

__all__ = ["Stack", "drawn", "gathered", "given", "patches", "product", "row_sums", "serves", "takes"]


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
    if serves(matrix) and _there(stream, matrix.device):
        found, = drawn_pairs(1, [(shape, fmt, stream, axis)], matrix.device)
        assert found is not None
        return found[0]
    return torch.from_numpy(stream.draw(shape, fmt, axis=axis)).to(matrix.device)


def _there(stream, device):
    """Whether what a stream draws can be drawn on a device: by position, or by lanes whose state is there."""
    return isinstance(stream, Draw) or getattr(getattr(stream, "buffer", None), "device", None) == device


def draws(formats: Formats, streams: Any, device: torch.device) -> bool:
    """Whether all numbers that roles x, w and g draw can be drawn on a device; ``streams``: what each draws from."""
    return all(fmt.rounding != "stochastic" or _there(stream, device)
               for fmt, stream in zip((formats.x, formats.w, formats.g), streams, strict=True))


def drawn_pairs(pairs: int, wanted: Sequence[tuple[Any, HBFPFormat, Any, int]],
                device: torch.device) -> list[torch.Tensor | None]:
    """Noise of stacks of matrices, where :func:`draws` says that it can be drawn.

    ``wanted``: shape of a matrix, format, what it draws from, and axis, in the order in which a pair draws. Of each
    (pairs, rows, columns), or None where nothing is drawn.
    """
    from ..gpu import noise
    found: list[torch.Tensor | None] = [None] * len(wanted)
    noisy = [i for i, (_, fmt, _, _) in enumerate(wanted) if fmt.rounding == "stochastic"]
    by_lanes = [i for i in noisy if not isinstance(wanted[i][2], Draw)]
    for i in (i for i in noisy if i not in by_lanes):
        shape, fmt, draw, _ = wanted[i]
        rows, columns = shape[::-1] if draw.turned else shape
        numbers = noise.drawn(draw.key ^ draw.step, (pairs * rows, columns), fmt, device,
                              first=draw.first).view(pairs, rows, columns)
        found[i] = numbers.mT if draw.turned else numbers
    if by_lanes:
        made = noise.of_stack(wanted[by_lanes[0]][2].buffer, pairs,
                              [(tuple(shape), fmt, axis) for shape, fmt, _, axis in (wanted[i] for i in by_lanes)])
        for i, numbers in zip(by_lanes, made, strict=True):
            found[i] = numbers
    return found


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
        (S, rows, columns), for ``stochastic``.
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
    matrix = data[0]
    wide = data.stride(1) == matrix.shape[1] and matrix.shape[1] * data.element_size() % 8 == 0
    patches = cut(matrix.view(torch.int64)).view(data.dtype) if wide else cut(matrix)      # fewer, larger numbers
    width = patches.shape[1]
    if width % 16:                                     # a line begins where the copy engine can
        patches = pad(patches, (0, -width % 16))[:, :width]
    return type(lines)(patches[None], cut(blocks[0].T).T.contiguous()[None], *rest)


def patches(x: torch.Tensor, fmt: HBFPFormat, places: tuple[torch.Tensor, torch.Tensor], *, down: bool = False) -> Any:
    """Lines (1, pixels, K) of patches of ``x``, whose elements lie where ``places`` of pixels and of K say together;
    ``down``: (1, K, pixels), with blocks along the pixels."""
    from ..gpu.convert import converted
    with on(x):
        return converted(plain(x), fmt, across=not down, down=down, places=places)[down]


def product(a: Any, b: Any, formats: Formats) -> torch.Tensor:
    """:func:`golden.gpu.product.product` of lines (S, M, K) and (S, N, K): (S, M, N) float32."""
    from ..gpu.product import product as multiply
    with on(a.data):
        return multiply(a, b, formats.accumulate, guard=formats.guard, growth=formats.growth)


def row_sums(g: torch.Tensor) -> torch.Tensor:
    """:func:`golden.gpu.sums.row_sums`."""
    from ..gpu.sums import row_sums as summed
    return summed(plain(g))
