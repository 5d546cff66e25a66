# amaranth: UnusedElaboratable=no
"""Arrays give dot products of the weights that were loaded, for all inputs and from any state.

The timing is that of :class:`rtl.array.array.Array`: a row of X at cycle 0 with ``swap``, its weights behind it, a
group row every ``step`` cycles; a second row of X at cycle 1 without. What comes in all other cycles, and new weights
from cycle 2 on, is of no account.

A solver is told how large a product of two mantissas can be, which is arithmetic, so that it need not look into one.
"""

import pytest
from amaranth import Shape
from z3 import And, BitVecVal, Implies, Not, SignExt, is_bool

from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.array.array import Array
from tests.cases import sweep
from tests.formal.cycles import Cycles
from tests.formal.views import part


def high(value):
    """Whether a signal of one bit is high."""
    return value if is_bool(value) else value == 1


def array_of(rows, block, mantissa=8, **options):
    """The array of a design, of two columns if nothing else is said."""
    return Array.made(Array.Parameters.of(Design(
        format=HBFPFormat(mantissa=mantissa, block=(1, block)), rows=rows, **{"cols": 2} | options)))


class Ports:
    """What goes into an array in some cycles and comes out in others, by the page.

    Parameters
    ----------
    at : list of namespace
        Signals in each cycle.
    array : Array
    """

    def __init__(self, at, array):
        self.at, self.params = at, array.params
        self.rows = self.params.segments * self.params.height
        self.bits = len(array.weight[0].as_value()) // (array.params.group[0] * array.params.group[1])
        self.size = len(array.sums[0][0].as_value()) // array.params.group[1]

    def seen(self, name, cycle):
        return vars(self.at[cycle])[name]

    def act(self, x, row):
        """An element of row x of X."""
        return part(self.seen("x", x), Shape.cast(self.params.number.element).width, row)

    def swaps(self):
        """That row 0 of X brings new weights, and row 1 none."""
        return And(high(self.seen("swap", 0)), Not(high(self.seen("swap", 1))))

    def weight(self, row, col):
        """The weight of an element; it is there when the row of X comes to it."""
        (kr, kc), j = self.params.group, col // self.params.group[1]
        word = self.seen(f"weight__{j}", row // kr * self.params.number.step + j)
        return part(word, self.bits, row % kr * kc + col % kc)

    def sum(self, x, segment, col):
        """The sum of a segment and a column for row x of X."""
        kc = self.params.group[1]
        return part(self.seen(f"sums__{segment}__{col // kc}", x + self.due(segment, col)), self.size, col % kc)

    def due(self, segment, col):
        params = self.params
        per_segment = params.height // params.group[0]
        return 1 + params.number.lead + (segment + 1) * per_segment * params.number.step + col // params.group[1]

    @property
    def last(self):
        """Cycles until all has come out for both rows of X."""
        return self.due(self.params.segments - 1, self.params.cols - 1) + 2


def product(one, other):
    """The exact product of signed bits, in twice as many: written as hardware has it."""
    width = one.size()
    return SignExt(width, one) * SignExt(width, other)


def integer_law(ports):
    """Each sum is the exact one of its segment; no operand is the code that no format has."""
    params, width = ports.params, ports.params.number.width
    none, most, exact = BitVecVal(1 << width - 1, width), (2 ** (width - 1) - 1) ** 2, 2 * width + 8
    given, sums = [ports.swaps()], []
    for x in range(2):
        for segment in range(params.segments):
            for col in range(params.cols):
                total = BitVecVal(0, exact)
                for row in range(segment * params.height, (segment + 1) * params.height):
                    act, weight = ports.act(x, row), ports.weight(row, col)
                    each = product(act, weight)
                    given += [act != none, weight != none, each <= most, each >= -most]
                    total += SignExt(exact - 2 * width, each)
                sums.append(SignExt(exact - ports.size, ports.sum(x, segment, col)) == total)
    return Implies(And(*given), And(*sums))


def holds(array, law=integer_law, kind=Ports, seconds=900):
    """Whether a law of an array's ports holds."""
    cycles = Cycles.of(array)
    cycles.run(kind([], array).last)
    return cycles.law(law(kind(cycles.at, array)), seconds)


#: Groups of both ways, and pipelines whose arrays are others: 1 has quick trees, 7 a register behind each product.
GROUPS = (1, 1), (2, 1), (1, 2), (2, 2)
SIZES = (2, 2), (4, 4), (4, 2)
PLAIN = [(rows, block, {"mantissa": mantissa, "group": group, "pipeline": pipeline})
         for rows, block in SIZES for mantissa in (8, 2, 5, 16) for group in GROUPS for pipeline in (0, 7)
         if (not pipeline or rows == block) and (mantissa < 16 or rows == 2)]
RECODED = [(rows, block, {"mantissa": mantissa, "multiplier": "recoded", "group": group, "pipeline": pipeline})
           for rows, block, mantissas in ((2, 2, (2, 3, 4)), (4, 4, (2,)), (4, 2, (2, 3))) for mantissa in mantissas
           for group in GROUPS for pipeline in (0, 1, 7)
           if (rows == block or pipeline <= block // group[0]) and (mantissa < 4 or not pipeline)]
#: The default number in whole groups, and in all rows of a column with one that is idle.
WHOLE = [(4, 4, {"cols": 4, "group": (4, 4)}), (8, 8, {"cols": 4, "group": (8, 4)}),
         (8, 4, {"cols": 4, "group": (4, 4)}), (3, 2, {"group": (1, 1), "ragged": True})]
INTEGERS = PLAIN + RECODED + WHOLE
QUICK = [WHOLE[0], (4, 2, {"mantissa": 2, "multiplier": "recoded", "group": (2, 1), "pipeline": 0})]


def named(options):
    return "-".join(str(value).replace(" ", "") for value in options.values()) if isinstance(options, dict) else None


@pytest.mark.parametrize("rows, block, options", sweep(len(INTEGERS), INTEGERS, QUICK), ids=named)
def test_integer_array_is_the_dot_product(rows, block, options):
    assert holds(array_of(rows, block, **options))


def test_sums_a_cycle_late_are_seen():
    """The law that a sum is there, asked a cycle later: weights that row 2 of X may bring are another's."""
    class Late(Ports):
        def due(self, segment, col):
            return super().due(segment, col) + 1
    assert not holds(array_of(2, 2, mantissa=2, group=(1, 1)), kind=Late)
