"""A training whose steps are all one program, which is told where they begin and what optimisers say."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from hbfp.program import Program

from ..lowering import Lowered
from .updates import PLACE

#: Places in DRAM for what comes with a step; a host may write the next batch during a step.
PLACES = 2
#: The tensor that has the optimiser's numbers, where they are too many for arguments.
NUMBERS = "numbers"


class OneProgram:
    """A training whose steps are all one program."""
    lowered: Lowered
    place: range

    @property
    def done(self) -> int:
        """Steps that PyTorch has done."""
        raise NotImplementedError

    def told(self) -> Sequence[int]:
        """The optimiser's numbers of the next step; LoweringError as of :meth:`arguments`."""
        raise NotImplementedError

    def arguments(self) -> tuple[int, ...]:
        """What the next step's program is told: how far behind the first place it begins, and how far before the second
        it ends, modulo 2^32; and numbers. A step that was stopped, or has failed, is done again with the same.

        Raises
        ------
        LoweringError
            If the optimiser's options have changed otherwise than by learning rates.
        """
        return *turn(self.done, self.place), *(() if NUMBERS in self.lowered.program.tensors else self.told())

    def numbers(self) -> dict[str, np.ndarray]:
        """What a host writes of what optimisers tell the next step; nothing if they are arguments."""
        return {NUMBERS: floats(self.told())} if NUMBERS in self.lowered.program.tensors else {}

    def at(self, number: int) -> Self:
        """The step of a number: each is this one."""
        return self

    @property
    def programs(self) -> list[Program]:
        """All programs of the training."""
        return [self.lowered.program]

    @property
    def stays(self) -> set[str]:
        """Tensors that a step finds as the one before leaves them: parameters, state and buffers."""
        names = self.lowered.program.tensors
        return {name for name in names if f"{name} after" in names}

    @property
    def kept(self) -> range:
        """Bytes of DRAM that a step finds as the one before, and the host, leave them."""
        return range(self.place.start, self.place.start + PLACES * len(self.place))

    def shift(self, name: str, arguments: Sequence[int]) -> int:
        """Bytes by which a tensor lies behind its address in a step whose arguments these are; less than 0 for one
        that lies before it.
        """
        address, further = self.lowered.program.tensors[name].address, arguments[PLACE - 1]
        behind = range(self.place.stop, self.kept.stop)
        return further if address in self.place else -further if address in behind else 0


def turn(step: int, place: range) -> tuple[int, int]:
    """The first two arguments of a step, counted from 0."""
    further = step % PLACES * len(place)
    return further, -further % (1 << 32)


def floats(told: Sequence[int]) -> np.ndarray:
    """Bit patterns as a column of numbers."""
    return np.array(told, np.uint32).view(np.float32)[:, None]
