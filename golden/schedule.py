"""Mixed mantissas by epoch and by layer, and what share of the arithmetic each width does.

The published recipe (Accuracy Boosters, arXiv 2211.10737): 4 bits, and 6 bits in the last epoch and in
the first and last layer. This file needs no torch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hbfp.checks import check_range
from hbfp.format import MANTISSA_RANGE

from .number.arrays import listed

#: Most of any count.
MOST = 1 << 60


@dataclass(frozen=True, kw_only=True)
class MixedMantissa:
    """Which mantissa width each layer has in each epoch.

    Parameters
    ----------
    base : int
        Width of most layers in most epochs.
    boosted : int
        Width of the boosted ones.
    epochs : int
        Epochs of the whole training.
    last_epochs : int
        Epochs at the end in which every layer is boosted.
    ends : bool
        Whether the first and the last layer are always boosted.
    first, last : int
        Width of the first and of the last layer in every epoch, in place of what ``ends`` says; 0: as ``ends`` says.
    intervals : tuple of (int, int)
        Further epochs in which every layer is boosted: from the first of a pair, counted from 0, to before the second.

    Raises
    ------
    ValueError
        If a value is out of range.
    """
    base: int = 4
    boosted: int = 6
    epochs: int = 160
    last_epochs: int = 1
    ends: bool = True
    first: int = 0
    last: int = 0
    intervals: tuple[tuple[int, int], ...] = ()

    def __post_init__(self):
        check_range("Base width", self.base, *MANTISSA_RANGE, " bits")
        check_range("Boosted width", self.boosted, *MANTISSA_RANGE, " bits")
        if self.boosted < self.base:
            raise ValueError(f"Boosted width must be the base width of {self.base} bits or more, not {self.boosted}")
        check_range("Epochs", self.epochs, 1, 1_000_000)
        check_range("Last epochs", self.last_epochs, 0, self.epochs)
        for name, width in (("First layer's width", self.first), ("Last layer's width", self.last)):
            if type(width) is not int or width:
                check_range(name, width, *MANTISSA_RANGE, " bits")
        for start, stop in self.intervals:
            if not 0 <= start < stop <= self.epochs:
                raise ValueError(f"Interval must be two epochs with 0 <= START < STOP <= {self.epochs}, not "
                                 f"{start!r}, {stop!r}")

    def mantissa(self, layer: int, layers: int, epoch: int) -> int:
        """Width of ``layer`` of ``layers`` in ``epoch``, each counted from 0; the widest of all that is asked for."""
        check_range("Epoch", epoch, 0, self.epochs - 1)
        check_range("Layers", layers, 1, MOST)
        check_range("Layer", layer, 0, layers - 1)
        asked = self._end(layer, layers)
        return max([self.boosted, *asked]) if self._whole(epoch) else max(asked, default=self.base)

    def kinds(self) -> list[int]:
        """The first epoch of each kind: of those in which every layer is boosted, and of the others."""
        found: dict[bool, int] = {}
        for epoch in range(self.epochs):
            found.setdefault(self._whole(epoch), epoch)
        return list(found.values())

    def _whole(self, epoch):
        """Whether every layer is boosted in an epoch."""
        return epoch >= self.epochs - self.last_epochs or any(start <= epoch < stop for start, stop in self.intervals)

    def _end(self, layer, layers):
        """The widths that a layer has as first or last, none if it is neither or nothing is asked for."""
        general = self.boosted if self.ends else 0
        asked = (self.first or general) * (layer == 0), (self.last or general) * (layer == layers - 1)
        return [width for width in asked if width]

    def apply(self, layers: Any, epoch: int) -> None:
        """Give each of ``layers`` (as of :func:`golden.nn.hbfp_layers`, without names or with) its width.

        With names, what lies inside a layer, such as an attention's output projection, is a part of it, not a layer.
        """
        layers = outermost(layers)
        for index, layer in enumerate(layers):
            layer.formats = layer.formats.with_mantissa(self.mantissa(index, len(layers), epoch))

    def share(self, macs: Sequence[int]) -> dict[int, float]:
        """Share of all multiply-accumulates of the training at each width.

        Parameters
        ----------
        macs : sequence of int
            Multiply-accumulates of each layer for one sample; the three products of training have
            equally many.

        Returns
        -------
        dict of int to float
            Width -> share, adding up to 1.
        """
        macs = listed(macs, "Multiply-accumulates")
        for count in macs:
            check_range("Multiply-accumulates", count, 0, MOST)
        done: dict[int, int] = {}
        kinds = {self._whole(epoch): epoch for epoch in self.kinds()}
        whole = sum(map(self._whole, range(self.epochs)))
        for kind, epoch in kinds.items():
            epochs = whole if kind else self.epochs - whole
            for index, count in enumerate(macs):
                width = self.mantissa(index, len(macs), epoch)
                done[width] = done.get(width, 0) + epochs * count
        total = sum(done.values())
        return {width: count / total for width, count in sorted(done.items())}


def outermost(layers: Iterable[Any]) -> list[Any]:
    """Layers, of which those with names come as pairs: what lies inside a layer, by its name, is left out."""
    layers = list(layers)
    outer: list[Any] = []
    for item in layers:
        if isinstance(item, tuple):
            if outer and item[0].startswith(f"{outer[-1][0]}."):
                continue
            outer.append(item)
    return [item[1] for item in outer] if outer else layers


def linear_macs(*sizes: int) -> list[int]:
    """Per layer of a network of fully connected layers, from inputs to outputs."""
    for size in sizes:
        check_range("Size", size, 1, MOST)
    return [a * b for a, b in zip(sizes, sizes[1:], strict=False)]


def convolution_macs(side: int, kernel: int, channels_in: int, channels: int) -> int:
    """Multiply-accumulates of a convolution with ``side`` x ``side`` outputs."""
    for name, value in (("Side", side), ("Kernel", kernel), ("Channels in", channels_in), ("Channels", channels)):
        check_range(name, value, 1, MOST)
    return side * side * kernel * kernel * channels_in * channels


def resnet20_macs(classes: int = 10) -> list[int]:
    """Per layer for one 32 x 32 image; shortcuts of option A have no arithmetic (He et al. 2016)."""
    check_range("Classes", classes, 1, MOST)
    macs, channels = [convolution_macs(32, 3, 3, 16)], 16
    for width, side in ((16, 32), (32, 16), (64, 8)):
        for _ in range(3):
            macs += [convolution_macs(side, 3, channels, width), convolution_macs(side, 3, width, width)]
            channels = width
    return [*macs, 64 * classes]


def resnet50_macs(classes: int = 1000) -> list[int]:
    """Per layer for one 224 x 224 image; the stride of a bottleneck lies in its 3 x 3 convolution (v1.5)."""
    check_range("Classes", classes, 1, MOST)
    macs, channels, side = [convolution_macs(112, 7, 3, 64)], 64, 56
    for width, blocks, out_side in ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)):
        for block in range(blocks):
            macs.append(convolution_macs(side if block == 0 else out_side, 1, channels, width))
            macs.append(convolution_macs(out_side, 3, width, width))
            macs.append(convolution_macs(out_side, 1, width, 4 * width))
            if block == 0:
                macs.append(convolution_macs(out_side, 1, channels, 4 * width))
            channels = 4 * width
        side = out_side
    return [*macs, channels * classes]
