"""Block-exponent alignment unit: adds block sums to integer accumulators that have one exponent of their own."""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.cuts import Pipeline, choose_cuts
from ..lib.layout import ArrayLayout, StructLayout
from ..lib.names import parameter
from ..lib.stages import Stages
from .scales import Scales


def aligned_layout(width, exponent_width, columns=1):
    """Accumulators of ``columns``: each ``sum`` * 2^``exponent``, or all NaN if ``invalid``."""
    return StructLayout({"sum": ArrayLayout(signed(width), columns), "exponent": signed(exponent_width), "invalid": 1})


class AlignAdd(Component):
    """Sums of accumulators and block sums, at the larger of their exponents, ``pipeline`` cycles later.

    The operand with the smaller exponent is shifted right by the difference and rounded half up:
    ``floor((v + 2^(d - 1)) / 2^d)``. Columns whose blocks have one exponent are compared once. Golden twin and rule:
    docs/numerics.md, section 5.

    Parameters
    ----------
    sum_width, width : int
        Bits of a block sum, and of an accumulator.
    guard : int
        Fraction bits of the accumulator below a block sum.
    exponent_width : int
        Bits of both exponents.
    columns : int
        Accumulators with one exponent.
    pipeline : int
        Registers between input and output, 0 (combinational) to the number of :attr:`CUTS`.

    Members
    -------
    fresh : ``In(1)``
        Start from the block sums alone.
    acc, o : ``In``, ``Out(aligned_layout)``
        Accumulators before and after.
    sum, exponent, invalid : ``In``
        The block sums, their exponent, and whether they are NaN.
    """
    kind, area = "align", "accumulation"
    blocked = True
    #: Cut name -> share of the combinational delay before it.
    CUTS = {"compare": 0.4, "shift": 0.75, "output": 1.0}

    @dataclass(frozen=True)
    class Parameters:
        sum_width: int = parameter("s")
        width: int = parameter("a")
        guard: int = parameter("g")
        exponent_width: int = parameter("e")
        columns: int = parameter("c", 1)
        pipeline: int = parameter("p", 0)

        @classmethod
        def of(cls, design):
            """The alignment of a design's block sums."""
            return cls(design.block_sum_width, design.accumulator_width, design.guard, Scales.of(design).sum,
                       design.scale_cols, Stages.of(design).align)

    @staticmethod
    def ports(params):
        layout = aligned_layout(params.width, params.exponent_width, params.columns)
        return {"fresh": In(1), "acc": In(layout), "sum": In(ArrayLayout(signed(params.sum_width), params.columns)),
                "exponent": In(signed(params.exponent_width)), "invalid": In(1), "o": Out(layout)}

    @property
    def latencies(self):
        """``result``: from operands to result."""
        return {"result": self.params.pipeline}

    def body(self, platform):
        m, params = Module(), self.params
        exponent_width = params.exponent_width
        pipe = Pipeline(m, choose_cuts(self.CUTS, params.pipeline), Const(1))
        # The sign of the difference chooses the operand to shift, and the difference to shift it by. A negative one is
        # negated without an adder: its complement is one less, and that one is a shift in the same multiplexer.
        lower_by = Signal(signed(exponent_width + 1))
        rises = Signal()
        amount = Signal(exponent_width)
        gone = Signal()
        stages = min((params.width + 1).bit_length(), exponent_width)
        m.d.comb += [
            lower_by.eq(self.acc.exponent - self.exponent), rises.eq(lower_by[-1] | self.fresh),
            amount.eq(lower_by[:-1] ^ lower_by[-1].replicate(len(amount))),
            gone.eq(amount[stages:].any() | self.fresh),
        ]
        exponent = Signal(signed(exponent_width))
        invalid = Signal()
        m.d.comb += [exponent.eq(Mux(rises, self.exponent, self.acc.exponent)),
                     invalid.eq(self.invalid | (self.acc.invalid & ~self.fresh))]
        rises, amount, gone, exponent, invalid = pipe.cut("compare", rises, amount[:stages], gone, exponent, invalid)
        gone, exponent, invalid = pipe.cut("shift", gone, exponent, invalid)
        for column in range(params.columns):
            total, = pipe.cut("output", self._sum(m, pipe, column, rises, amount, gone))
            m.d.comb += self.o.sum[column].eq(total)
        exponent, invalid = pipe.cut("output", exponent, invalid)
        m.d.comb += [self.o.exponent.eq(exponent), self.o.invalid.eq(invalid)]
        return m

    def _sum(self, m, pipe, column, rises, amount, gone):
        """The accumulator of a column after: its operand that moves is shifted by ``amount``, or all ``gone``, which
        comes behind the shift.
        """
        width, stem = self.params.width, f"c{column}"

        def value(name, bits):
            return Signal(signed(bits), name=f"{stem}_{name}")
        old, added, fixed, kept, total = (value(name, width) for name in ("old", "added", "fixed", "kept", "total"))
        moving = shifted = value("moving", width + 1)    # one bit below the cut stays in sight: it rounds
        half = Signal(name=f"{stem}_half")
        m.d.comb += [old.eq(self.acc.sum[column]), added.eq(self.sum[column] << self.params.guard)]
        old, added = pipe.cut("compare", old, added)
        m.d.comb += [
            moving.eq(Mux(rises, old, Cat(Const(0, 1), added).as_signed())), fixed.eq(Mux(rises, added, old)),
        ]
        for stage, moves in enumerate(amount):
            after = value(f"shift{stage}", width + 1)
            m.d.comb += after.eq(Mux(moves, shifted >> (1 << stage), shifted))
            shifted = after
        shifted, fixed = pipe.cut("shift", shifted, fixed)
        m.d.comb += [kept.eq(Mux(gone, 0, shifted[1:].as_signed())), half.eq(shifted[0] & ~gone)]
        m.d.comb += total.eq((Cat(Const(1, 1), fixed).as_signed() + Cat(half, kept).as_signed())[1:])
        return total
