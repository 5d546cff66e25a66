"""Where ``--pipeline`` puts registers outside the elements."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Stages:
    """Registers by unit, for a level of ``--pipeline``; docs/decisions/0114-one-clock.md has the measured periods.

    Attributes
    ----------
    free : bool
        Whether the way out and the converter never stall: queues with credits stand behind them, and what drives many
        loads is fanned out by registers.
    element : int
        Between the products of a column of a group and the sum from above; that of floats has its own.
    sum : int
        Inside the adder of block sums in a float.
    term : int
        Inside what makes a block sum ready for a float.
    align, leaving : int
        Inside each alignment of an integer; inside the conversion of an integer to FP32 on the way out.
    multiply, add : int
        Inside the multiplier and the adder of a side lane.
    search : int
        In the search for a block's largest exponent.
    lane : int
        Inside each lane of the converter.
    """
    free: bool = False
    element: int = 0
    sum: int = 0
    term: int = 0
    align: int = 0
    leaving: int = 0
    multiply: int = 0
    add: int = 0
    search: int = 0
    lane: int = 0

    @classmethod
    def of(cls, design):
        """The stages of a design."""
        level = LEVELS[min(design.pipeline, len(LEVELS) - 1)]
        if not design.on_fpga:
            return level
        # DSP blocks have registers inside, and wires are most of every path of the converter.
        return replace(level, element=1, term=max(level.term, 2), search=3, lane=1)


#: By level of ``--pipeline``.
LEVELS = (
    Stages(),
    Stages(True, sum=1, term=0, align=1, leaving=1, multiply=1, add=1, search=0),
    Stages(True, sum=2, term=0, align=2, leaving=2, multiply=2, add=2, search=1),
    Stages(True, sum=3, term=0, align=2, leaving=2, multiply=3, add=3, search=1),
    Stages(True, sum=4, term=1, align=3, leaving=2, multiply=3, add=4, search=1),
    Stages(True, sum=5, term=1, align=3, leaving=3, multiply=5, add=5, search=1),
    Stages(True, sum=6, term=2, align=3, leaving=3, multiply=5, add=6, search=1),
    Stages(True, element=1, sum=7, term=1, align=3, leaving=3, multiply=5, add=6, search=1),
)
