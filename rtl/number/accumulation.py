"""How the sums of passes add up along K: the word of an accumulator bank and what is added to it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from amaranth import Cat, Const, Shape, Signal, signed, unsigned

from hbfp.golden.spec.floats import FP32, FloatFormat

from ..fixed.align import AlignAdd, aligned_layout
from ..fp32.arith import Add
from ..fp32.convert import IntToFp32
from ..fp32.scaled_add import ScaledAdd, Term
from ..lib.names import parameter
from ..lib.skew import delay

#: Keywords of an FP32 sum, but for the widths and registers of the unit: subnormals kept, or zero and then +0.
RULES = {"gradual": {"subnormals": "gradual"}, "flush": {"subnormals": "flush", "underflow": "positive"}}


@dataclass(frozen=True)
class Accumulation(ABC):
    """One way of adding up; the fields of a subclass stand in the names of the modules that use it."""

    #: Cycles between a sum and the cycle in which it is added.
    lead = 0
    #: Registers inside the adder.
    registers = 0
    #: Registers between an accumulator and what :meth:`result` gives.
    leaving = 0
    #: Whether a fresh accumulator has to read as zero; if not, :meth:`add` is told.
    cleared = True
    #: Columns of a word, which have one exponent.
    columns = 1
    #: Whether a sum has to be in a register before :meth:`results` takes it.
    settles = False

    def offset(self, width):
        """What is added to the exponents of sums of ``width`` bits before they come."""
        return 0

    @property
    @abstractmethod
    def word(self):
        """Layout or shape of an accumulator, or of those of :attr:`columns` together."""

    @property
    def width(self):
        """Bits of a word."""
        return Shape.cast(self.word).width

    @property
    def result_shape(self):
        """Shape of what :meth:`result` gives: the bits of an FP32, or an integer."""
        return unsigned(32)

    @property
    def float_results(self):
        """Whether a side unit takes results on."""
        return True

    @abstractmethod
    def add(self, m, place, acc, values, scale, fresh):
        """The word after one sum a column.

        Parameters
        ----------
        m : Module
        place : tuple of int
            Segment and first column, for names.
        acc : Value
            Word before.
        values : list of Value
            The sums: integers, or FP32.
        scale : tuple of Value
            Exponent and invalid flag of the sum; None where operands have no shared exponents.
        fresh : Value
            Whether the accumulator starts from the sum alone.
        """

    def results(self, m, column, word):
        """What the columns from ``column`` on give out for a word."""
        return [word]


@dataclass(frozen=True)
class IntegerSum(Accumulation):
    """Integers, wide enough for as many passes as a command may have.

    Parameters
    ----------
    bits : int
        Of an integer.
    sided : bool
        Whether a side unit takes results on, whose lanes make FP32 of them, and not the accumulators: there are fewer.
    """
    NAME = "int"
    bits: int = parameter("a")
    sided: bool = parameter("sided", False, rare=True)

    @property
    def word(self):
        return signed(self.bits)

    @property
    def result_shape(self):
        return unsigned(self.bits) if self.sided else self.word

    @property
    def float_results(self):
        return self.sided

    def add(self, m, place, acc, values, scale, fresh):
        value, = values
        total = Signal(self.word, name=f"c{place[1]}_acc")
        m.d.comb += total.eq(acc.as_signed() + value)
        return total


@dataclass(frozen=True)
class FloatSum(Accumulation):
    """FP32 sums of FP32 numbers."""
    NAME = "float"
    subnormals: str = parameter("")
    registers: int = parameter("p", 0)
    chain: bool = parameter("chain", False, rare=True)

    @property
    def word(self):
        return unsigned(32)

    def add(self, m, place, acc, values, scale, fresh):
        (segment, column), (value,) = place, values
        m.submodules[f"add{segment}_{column}"] = add = Add(
            pipeline=self.registers, enable=False, chain=self.chain, **RULES[self.subnormals])
        m.d.comb += [add.a.eq(acc), add.b.eq(value)]
        return add.o


@dataclass(frozen=True)
class ScaledSum(FloatSum):
    """Sums of integers with exponents in a float: each is made ready, with a register behind, and then added.

    Parameters
    ----------
    fmt : FloatFormat
        The format of the sums; it has FP32's exponent.
    term : int
        Registers inside what makes an integer ready.
    """
    NAME = "scaled"
    fmt: FloatFormat = parameter("", FP32)
    term: int = parameter("t", 0)

    @property
    def lead(self):
        return 1 + self.term

    @property
    def word(self):
        return unsigned(self.fmt.width)

    def offset(self, width):
        return Term.Parameters(width, 1, self.fmt).offset

    def add(self, m, place, acc, values, scale, fresh):
        (segment, column), (value,) = place, values
        exponent, invalid = scale
        width = value.shape().width
        m.submodules[f"term{segment}_{column}"] = term = Term(
            width, len(exponent), self.fmt, self.term)
        m.submodules[f"add{segment}_{column}"] = add = ScaledAdd(
            fmt=self.fmt, width=width, pipeline=self.registers, enable=False, chain=self.chain)
        ready = Signal(term.o.shape(), name=f"s{segment}_c{column}_term", reset_less=True)
        m.d.comb += [term.i.eq(value), term.exponent.eq(exponent), term.invalid.eq(invalid), add.a.eq(acc),
                     add.b.eq(ready)]
        m.d.sync += ready.eq(term.o)
        return add.o

    def results(self, m, column, word):
        return [Cat(Const(0, FP32.width - self.fmt.width), word)]


@dataclass(frozen=True)
class AlignedSum(Accumulation):
    """Integers with an exponent of their own, to which integers with exponents are aligned; FP32 on the way out.

    Parameters
    ----------
    bits, guard : int
        Bits of the accumulator, and how many of them are fraction bits below a sum.
    exponent : int
        Bits of the exponents.
    columns : int
        Accumulators with one exponent.
    registers, leaving, lead : int
        Inside the alignment, inside the conversion on the way out, and before the alignment.
    """
    NAME = "aligned"
    settles = True
    bits: int = parameter("a")
    guard: int = parameter("g")
    exponent: int = parameter("e")
    columns: int = parameter("c", 1)
    registers: int = parameter("p", 0)
    leaving: int = parameter("i", 0)
    lead: int = parameter("l", 0)
    cleared = False

    @property
    def word(self):
        return aligned_layout(self.bits, self.exponent, self.columns)

    def add(self, m, place, acc, values, scale, fresh):
        segment, column = place
        exponent, invalid, *values = (delay(m, value, self.lead, f"s{segment}_c{column}_before{n}")
                                      for n, value in enumerate((*scale, *values)))
        m.submodules[f"align{segment}_{column}"] = align = AlignAdd(
            values[0].shape().width, self.bits, self.guard, self.exponent, self.columns,
            self.registers)
        m.d.comb += [align.fresh.eq(fresh if segment == 0 else 0), align.acc.eq(acc),
                     *(into.eq(value) for into, value in zip(align.sum, values, strict=True)),
                     align.exponent.eq(exponent), align.invalid.eq(invalid)]
        return align.o

    def results(self, m, column, word):
        acc, results = Signal(self.word, name=f"c{column}_out"), []
        m.d.comb += Cat(acc).eq(word)
        for n in range(self.columns):
            m.submodules[f"convert_{column + n}"] = convert = IntToFp32(
                self.bits, self.exponent, pipeline=self.leaving, enable=False)
            m.d.comb += [convert.i.eq(acc.sum[n]), convert.exponent.eq(acc.exponent), convert.invalid.eq(acc.invalid)]
            results.append(convert.o)
        return results
