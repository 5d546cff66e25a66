"""How the sums of passes add up along K: the word of an accumulator bank and what is added to it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from amaranth import Cat, Shape, Signal, signed, unsigned

from ..fixed.align import AlignAdd, aligned_layout
from ..fp32.arith import Add
from ..fp32.convert import IntToFp32
from ..lib.names import parameter

#: Keywords of an FP32 sum, but for the widths and registers of the unit: subnormals kept, or zero and then +0.
RULES = {"gradual": {"subnormals": "gradual"}, "flush": {"subnormals": "flush", "underflow": "positive"}}


@dataclass(frozen=True)
class Accumulation(ABC):
    """One way of adding up; the fields of a subclass stand in the names of the modules that use it."""

    #: Cycles between a sum and the cycle in which it is added.
    lead = 0
    #: Registers inside the adder.
    registers = 0
    #: Whether a fresh accumulator has to read as zero; if not, :meth:`add` is told.
    cleared = True

    @property
    @abstractmethod
    def word(self):
        """Layout or shape of an accumulator."""

    @property
    def width(self):
        """Bits of an accumulator."""
        return Shape.cast(self.word).width

    @property
    def result_shape(self):
        """Shape of what :meth:`result` gives: the bits of an FP32, or an integer."""
        return unsigned(32)

    @property
    def float_results(self):
        """Whether results are FP32, which a side unit can take on."""
        return True

    @abstractmethod
    def add(self, m, place, acc, value, scale, fresh):
        """The accumulator after one sum.

        Parameters
        ----------
        m : Module
        place : tuple of int
            Segment and column, for names.
        acc, value : Value
            Accumulator before, and the sum: integer, or FP32.
        scale : tuple of Value
            Exponent and invalid flag of the sum; None where operands have no shared exponents.
        fresh : Value
            Whether the accumulator starts from the sum alone.
        """

    def result(self, m, column, word):
        """What a column gives out for an accumulator."""
        return word


@dataclass(frozen=True)
class IntegerSum(Accumulation):
    """Integers, wide enough for as many passes as a command may have."""
    NAME = "int"
    bits: int = parameter("a")

    @property
    def word(self):
        return signed(self.bits)

    @property
    def result_shape(self):
        return self.word

    @property
    def float_results(self):
        return False

    def add(self, m, place, acc, value, scale, fresh):
        total = Signal(self.word, name=f"c{place[1]}_acc")
        m.d.comb += total.eq(acc.as_signed() + value)
        return total


@dataclass(frozen=True)
class FloatSum(Accumulation):
    """FP32 sums of FP32 numbers."""
    NAME = "float"
    subnormals: str = parameter("")
    registers: int = parameter("p", 0)

    @property
    def word(self):
        return unsigned(32)

    def add(self, m, place, acc, value, scale, fresh):
        segment, column = place
        m.submodules[f"add{segment}_{column}"] = add = Add(
            pipeline=self.registers, enable=False, **RULES[self.subnormals])
        m.d.comb += [add.a.eq(acc), add.b.eq(value)]
        return add.o


@dataclass(frozen=True)
class ScaledSum(FloatSum):
    """FP32 sums of integers with exponents: each is converted, and added a cycle later."""
    NAME = "scaled"
    lead = 1

    def add(self, m, place, acc, value, scale, fresh):
        segment, column = place
        exponent, invalid = scale
        m.submodules[f"convert{segment}_{column}"] = convert = IntToFp32(value.shape().width, len(exponent))
        product = Signal(32, name=f"s{segment}_c{column}_product", reset_less=True)
        m.d.comb += [convert.i.eq(value), convert.exponent.eq(exponent), convert.invalid.eq(invalid)]
        m.d.sync += product.eq(convert.o)
        return super().add(m, place, acc, product, scale, fresh)


@dataclass(frozen=True)
class AlignedSum(Accumulation):
    """Integers with an exponent of their own, to which integers with exponents are aligned; FP32 on the way out.

    Parameters
    ----------
    bits, guard : int
        Of the accumulator, and its fraction bits below a sum.
    exponent : int
        Bits of the exponents.
    """
    NAME = "aligned"
    bits: int = parameter("a")
    guard: int = parameter("g")
    exponent: int = parameter("e")
    cleared = False

    @property
    def word(self):
        return aligned_layout(self.bits, self.exponent)

    def add(self, m, place, acc, value, scale, fresh):
        segment, column = place
        exponent, invalid = scale
        m.submodules[f"align{segment}_{column}"] = align = AlignAdd(
            value.shape().width, self.bits, self.guard, self.exponent)
        m.d.comb += [align.fresh.eq(fresh if segment == 0 else 0), align.acc.eq(acc), align.sum.eq(value),
                     align.exponent.eq(exponent), align.invalid.eq(invalid)]
        return align.o

    def result(self, m, column, word):
        acc = Signal(self.word, name=f"c{column}_out")
        m.submodules[f"convert_{column}"] = convert = IntToFp32(self.bits, self.exponent)
        m.d.comb += [Cat(acc).eq(word), convert.i.eq(acc.sum), convert.exponent.eq(acc.exponent),
                     convert.invalid.eq(acc.invalid)]
        return convert.o
