"""What a kind of number has to say for itself."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from amaranth import Shape, Signal


@dataclass(frozen=True)
class Number(ABC):
    """A kind of number as the array sees it: shapes, timing and logic of a column of elements.

    The fields of a subclass, a frozen dataclass, are its parameters; they stand in the names of the modules that
    compute with it, see :mod:`rtl.lib.names`.
    """

    #: Cycles in which an element forms its product, before it needs the sum from above.
    lead = 0
    #: Whether elements hold something else of a tile of sparse weights than of a dense one.
    modes = False
    #: Cycles from the sum that enters an element, or a group of them, to the one that leaves.
    step = 1

    @property
    @abstractmethod
    def element(self) -> Shape:
        """One operand element."""

    @property
    def activation(self) -> Shape:
        """An activation inside the array."""
        return self.element

    @property
    def weight(self) -> Shape:
        """A weight as elements hold it."""
        return self.element

    def reach(self, rows):
        """Activations that ``rows`` rows of elements choose from; one each where there is no choice."""
        return rows

    @abstractmethod
    def sum(self, terms, height) -> Shape:
        """The sum of the first ``terms`` products, one at least, of a segment of ``height`` rows."""

    def start(self, height):
        """What the columns of a segment of ``height`` rows start from: a Shape, or None where it is nothing."""
        return None

    def head(self, height):
        """What a column of a segment of ``height`` rows starts from and its weights decide: a Shape, or None."""
        return None

    @abstractmethod
    def accumulation(self, design):
        """How sums of passes add up where operands have no shared exponents: :mod:`rtl.number.accumulation`."""

    def enter(self, m, acts):
        """Activations as the array takes them, given as they come from outside."""
        return acts

    def prepare(self, m, acts):
        """Activations as the columns of a group take them, given as they are in its registers."""
        return acts

    def starts(self, m, segment, acts):
        """The value of :meth:`start` for a segment, :attr:`lead` cycles after its activations inside the array."""
        raise NotImplementedError

    def hold(self, m, load, weight):
        """Registers that take ``weight`` while ``load`` is high; what they hold."""
        weights = Signal.like(weight, name="weights", reset_less=True)
        with m.If(load):
            m.d.sync += weights.eq(weight)
        return weights

    @abstractmethod
    def column(self, m, acts, weights, north, south, name):
        """``north + sum of act * weight``, in the order of the rows; without a clock, but in pipelined floats.

        Parameters
        ----------
        m : Module
            Where the logic goes.
        acts, weights : list of Value
            One per row, top first; activations as :meth:`prepare` gives them.
        north : Value or None
            Sum of the rows above, :attr:`lead` cycles late; None if there is none.
        south : Shape
            Shape of the result.
        name : str
            Prefix of names, unique in ``m``.

        Returns
        -------
        Signal
            The sum: exact if integer; for floats each product and each sum is rounded as its unit says.
        """


def hold_complements(m, load, weight):
    """:meth:`Number.hold` as complements: to hold a bit then costs an AND-OR-invert and no inverter."""
    weights = Signal.like(weight, name="weights", reset_less=True)
    complements = Signal(weight.as_value().shape(), reset_less=True)
    m.d.comb += weights.eq(~complements)
    with m.If(load):
        m.d.sync += complements.eq(~weight.as_value())
    return weights
