"""Where ``--pipeline`` puts registers outside the elements."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stages:
    """Registers by unit, for a level of ``--pipeline``; docs/decisions/0114-one-clock.md has the measured periods.

    Attributes
    ----------
    free : bool
        Whether the way out and the converter never stall: queues with credits stand behind them, and what drives many
        loads is fanned out by registers.
    term : int
        Inside what makes a block sum ready for a float; the adder behind it has as many as the level says.
    align, leaving : int
        Inside each alignment of an integer; inside the conversion of an integer to FP32 on the way out.
    multiply, add : int
        Inside the multiplier and the adder of a side lane.
    search : int
        In the search for a block's largest exponent.
    """
    free: bool = False
    term: int = 0
    align: int = 0
    leaving: int = 0
    multiply: int = 0
    add: int = 0
    search: int = 0

    @classmethod
    def of(cls, design):
        """Those of a design."""
        return LEVELS[min(design.pipeline, len(LEVELS) - 1)]


#: By level of ``--pipeline``.
LEVELS = (
    Stages(),
    Stages(True, term=0, align=1, leaving=1, multiply=1, add=1, search=0),
    Stages(True, term=0, align=2, leaving=2, multiply=2, add=2, search=1),
    Stages(True, term=0, align=2, leaving=2, multiply=3, add=3, search=1),
    Stages(True, term=1, align=3, leaving=2, multiply=3, add=4, search=1),
    Stages(True, term=1, align=3, leaving=3, multiply=3, add=5, search=1),
    Stages(True, term=2, align=3, leaving=3, multiply=4, add=6, search=1),
)
