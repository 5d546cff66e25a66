"""When what of a column's turn happens, where columns share an accumulator."""

from dataclasses import dataclass

from ..lib.names import parameter
from ..lib.stages import Stages
from ..number.kinds import accumulation_of


@dataclass(frozen=True)
class Turn:
    """Cycles of a turn, counted from the one in which the column is selected.

    Parameters
    ----------
    scale : int
        Cycle in which the row's exponent is added to the column's: 1 behind a register after the selection, or 0.
    add : int
        Cycle in which the running accumulator is there, and the sum begins to be added.
    keep, result : int
        Cycles in which the accumulator and, if it is complete, the result are written.
    """
    NAME = "turn"
    scale: int = parameter("s", 0)
    add: int = parameter("a", 1)
    keep: int = parameter("k", 1)
    result: int = parameter("r", 1)

    @classmethod
    def of(cls, design):
        """That of a design."""
        accumulation, scale = accumulation_of(design), int(Stages.of(design).free)
        add = scale + accumulation.lead
        keep = add + accumulation.registers
        return cls(scale, add, keep, keep + 1 + accumulation.leaving if accumulation.settles else keep)

    @property
    def apart(self):
        """Fewest cycles between two turns of a column in the same row: the second reads what the first one kept."""
        return self.keep - self.add + 2
