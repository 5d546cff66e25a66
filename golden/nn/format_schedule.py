"""Formats by epoch and by layer: the recipe of Accuracy Boosters for formats of any kind."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hbfp.checks import check_range

from ..schedule import outermost
from .formats import FormatLike, Formats


@dataclass(frozen=True, kw_only=True)
class FormatSchedule:
    """Which format each layer has in each epoch.

    Of HBFP formats that differ in mantissa width alone, :class:`golden.nn.MixedMantissa` says more.

    Parameters
    ----------
    base : Formats, HBFPFormat, Number or str
        Of most layers in most epochs.
    boosted : Formats, HBFPFormat, Number or str
        Of the last epochs, and of the first and last layer.
    epochs : int
        Epochs of the whole training.
    last_epochs : int
        Epochs at the end in which every layer is boosted.
    ends : bool
        Whether the first and the last layer are always boosted.

    Raises
    ------
    TypeError, ValueError
        If a format is none, or a number is out of range.
    """
    base: FormatLike
    boosted: FormatLike
    epochs: int
    last_epochs: int = 1
    ends: bool = True

    def __post_init__(self):
        for name in ("base", "boosted"):
            object.__setattr__(self, name, Formats.of(getattr(self, name)))
        check_range("Epochs", self.epochs, 1, 1_000_000)
        check_range("Last epochs", self.last_epochs, 0, self.epochs)

    def format(self, layer: int, layers: int, epoch: int) -> Formats:
        """Of ``layer`` of ``layers`` in ``epoch``, each counted from 0."""
        check_range("Epoch", epoch, 0, self.epochs - 1)
        check_range("Layer", layer, 0, layers - 1)
        boosted = epoch >= self.epochs - self.last_epochs or self.ends and layer in (0, layers - 1)
        return Formats.of(self.boosted if boosted else self.base)

    def apply(self, layers: Iterable[Any], epoch: int) -> None:
        """Give each of ``layers`` (as of :func:`golden.nn.hbfp_layers`, without names or with) its format.

        With names, what lies inside a layer, such as an attention's output projection, is a part of it, not a layer.
        """
        found = outermost(layers)
        for index, layer in enumerate(found):
            layer.formats = self.format(index, len(found), epoch)
