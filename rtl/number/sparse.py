"""Integers of which N weights stand for M terms: each element picks its activation from those that its place reaches.

Place e of the N elements of a group reaches activations e to e + M - N of the group's M, since indices ascend; the
offset of an index from e, which is all that an element has to hold, is 0 for every place in a dense command.
"""

from dataclasses import dataclass

from amaranth import Cat, Signal, Value, signed, unsigned

from hbfp.format import HBFPFormat

from ..fixed.booth import BoothDot, biased_shape, correction_shape
from ..fixed.packed import packed_width, unpacked
from ..lib.layout import StructLayout
from ..lib.names import parameter
from .integer import Integer


def pick(choices, offset):
    """``choices[offset]``, which there has to be; as AND-OR of a line for each choice: less area than multiplexers.

    A line looks at the bits that are set in its place, and at those that a place with the same bits has more.
    """
    picked = 0
    for place, choice in enumerate(choices):
        more = 0
        for other in range(len(choices)):
            more |= other & ~place if other & place == place else 0
        bits = Value.cast(choice).as_unsigned()
        line = Cat(offset[n] if place >> n & 1 else ~offset[n] for n in range(len(offset)) if (place | more) >> n & 1)
        picked |= bits & line.all().replicate(len(bits))
    return picked


def _flat(weights):
    """The weights of a group one by one, row by row."""
    return [weights[row][col] for row in range(len(weights)) for col in range(len(weights[row]))]


@dataclass(frozen=True)
class Sparse(Integer):
    """Integers of ``width`` bits whose weights are ``kept`` of every ``group`` terms; the synthesis forms products."""
    width: int = parameter("sparse")
    kept: int = parameter("n", 0)
    group: int = parameter("m", 0)
    modes = True

    @property
    def offset(self):
        """Shape of the place of an activation among those that an element reaches."""
        return unsigned((self.group - self.kept).bit_length())

    @property
    def index(self):
        """Shape of the place of a term in its group."""
        return unsigned((self.group - 1).bit_length())

    @property
    def weight(self):
        return StructLayout({"value": self.element, "offset": self.offset})

    def reach(self, rows):
        return rows * self.group // self.kept

    def hold(self, m, load, weight, sparse):
        """As of any number, but with offsets of 0 if they are not those of ``sparse`` weights."""
        weights = super().hold(m, load, weight)
        with m.If(load & ~sparse):
            m.d.sync += [held.offset.eq(0) for held in _flat(weights)]
        return weights

    def picked(self, m, acts, weights, name):
        """The activation of each weight, from all that the rows reach."""
        result = []
        for row, weight in enumerate(weights):
            first = row // self.kept * self.group + row % self.kept
            act = Signal(self.element, name=f"{name}_act{row}")
            m.d.comb += act.eq(pick(acts[first:first + self.group - self.kept + 1], weight.offset))
            result.append(act)
        return result

    def column(self, m, acts, weights, north, south, name):
        values = [weight.value for weight in weights]
        return super().column(m, self.picked(m, acts, weights, name), values, north, south, name)


@dataclass(frozen=True)
class SparseRecoded(Sparse):
    """As :class:`Sparse` in the least area: the weights are recoded, once, where they are written.

    Columns pick different activations, so the ones that complete negations would differ for each column and row of X.
    Those of recoded weights are the same for a whole tile: a column starts from them (:attr:`head`). ``quick`` ones
    take less delay and more area.
    """
    width: int = parameter("sparse_recoded")
    quick: bool = parameter("quick", False)

    @property
    def weight(self):
        return StructLayout({"value": unsigned(packed_width(self.width)), "offset": self.offset})

    def sum(self, terms, height):
        if terms < height:
            return biased_shape(self.width, terms, height - terms)
        return signed(HBFPFormat(mantissa=self.width).sum_width(terms))

    def head(self, height):
        return correction_shape(self.width, height)

    def turned(self, place):
        """Whether an activation travels as its complement.

        That in the middle of a group, which every place reaches, does where there is an odd number to pick from: it
        is the one beside the pairs of an AND-OR-invert, and its complement is what the cell after that takes.
        """
        return place % self.group == self.group // 2 and not (self.group - self.kept) % 2

    def enter(self, m, acts):
        return [~act if self.turned(place) else act for place, act in enumerate(acts)]

    def picked(self, m, acts, weights, name):
        return super().picked(m, self.enter(m, acts), weights, name)

    def hold(self, m, load, weight, sparse):
        """As complements, as :class:`rtl.number.recoded.Recoded` does; that of a dense tile's offset is all ones."""
        weights = Signal.like(weight, name="weights", reset_less=True)
        complements = Signal.like(weight, name="complements", reset_less=True)
        m.d.comb += weights.as_value().eq(~complements.as_value())
        with m.If(load):
            m.d.sync += complements.as_value().eq(~weight.as_value())
        for given, held, complement in zip(_flat(weight), _flat(weights), _flat(complements), strict=True):
            bits = len(held.offset)
            m.d.sync += complement.offset.eq(~(given.offset & (load & sparse).replicate(bits)
                                               | held.offset & ~load.replicate(bits)))
        return weights

    def column(self, m, acts, weights, north, south, name, head=None):
        shapes = [None if value is None else value.shape() for value in (north, head)]
        m.submodules[name] = dot = BoothDot(self.width, len(weights), shapes[0], south, shapes[1], self.quick,
                                             self.lead)
        m.d.comb += [dot.code.eq(Cat(unpacked(weight.value, self.width) for weight in weights)),
                     dot.weight.eq(Cat(self.picked(m, acts, weights, name)))]
        if north is not None:
            m.d.comb += dot.north.eq(north)
        if head is not None:
            m.d.comb += dot.head.eq(head)
        return dot.south
