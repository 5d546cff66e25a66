"""Area times time of a whole training with mixed mantissas, on cores that can run all of it.

It is one number: a core's NAND2-equivalents for each multiply-accumulate element, times the cycles that such an element
takes at its peak for a multiply-accumulate of the training, on average. Clocks are taken as equal, and every width as
used to the same share of its peak. A core of 4 bits with ``--wide 6`` takes four cycles where mantissas have 6 bits; a
core of 6 bits, or a float, takes one for all. What is not a dot product is not counted, nor are memories.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..schedule import MixedMantissa, resnet20_macs, resnet50_macs
from .prices import FP32_CORE, NAND2, WIDE_CORE

#: Cycles of a multiply-accumulate with both mantissas wide: two beats of a row, two columns of a weight.
WIDE_CYCLES = 4
EPOCHS = (90, 160, 330)
#: Network -> multiply-accumulates of its layers.
NETWORKS = {"ResNet-20": resnet20_macs(), "ResNet-50": resnet50_macs()}


@dataclass(frozen=True)
class Case:
    """One training.

    Attributes
    ----------
    network : str
        Of :data:`NETWORKS`.
    epochs : int
        The last of which is wide.
    ends : bool
        Whether the first and the last layer are wide in all of them.
    wide : float
        Share of the multiply-accumulates that is wide.
    area_time : dict of str to float
        Core -> area a multiply-accumulate element times cycles of a multiply-accumulate.
    """
    network: str
    epochs: int
    ends: bool
    wide: float
    area_time: dict[str, float]

    def over(self, other: str = "FP32") -> dict[str, float]:
        """Core -> how many times as much the other core takes."""
        return {name: self.area_time[other] / value for name, value in self.area_time.items()}


def case(network: str, macs: Sequence[int], epochs: int, ends: bool) -> Case:
    """The training of a network with 4 bits, and 6 in the last epoch and, where asked for, at the ends."""
    share = MixedMantissa(base=4, boosted=6, epochs=epochs, ends=ends).share(macs)
    wide = share.get(6, 0.0)
    return Case(network, epochs, ends, wide, {
        "HBFP4 --wide 6": WIDE_CORE * (1 - wide + WIDE_CYCLES * wide), "HBFP6": NAND2["hbfp6"],
        "HBFP8": NAND2["hbfp8"], "BF16": NAND2["bf16"], "FP32": FP32_CORE})


def cases() -> list[Case]:
    """Cases for every network and number of epochs, first and last layer narrow or wide."""
    return [case(name, macs, epochs, ends) for name, macs in NETWORKS.items() for ends in (False, True)
            for epochs in EPOCHS]
