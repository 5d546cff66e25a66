"""Block-exponent alignment unit: adds a block sum to an integer accumulator with its own exponent."""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import StructLayout
from ..lib.names import parameter
from .scales import Scales


def aligned_layout(width, exponent_width):
    """An accumulator: ``sum`` * 2^``exponent``, or NaN if ``invalid``."""
    return StructLayout({"sum": signed(width), "exponent": signed(exponent_width), "invalid": 1})


class AlignAdd(Component):
    """Combinational sum of an accumulator and a block sum, at the larger of their exponents.

    The operand with the smaller exponent is shifted right by the difference and rounded half up:
    ``floor((v + 2^(d - 1)) / 2^d)``. Golden twin and rule: docs/numerics.md, section 5.

    Parameters
    ----------
    sum_width, width : int
        Bits of a block sum, and of the accumulator.
    guard : int
        Fraction bits of the accumulator below a block sum.
    exponent_width : int
        Bits of both exponents.

    Members
    -------
    fresh : ``In(1)``
        Start from the block sum alone.
    acc, o : ``In``, ``Out(aligned_layout)``
        Accumulator before and after.
    sum, exponent, invalid : ``In``
        The block sum, its exponent, and whether it is NaN.
    """
    kind, area = "align", "accumulation"
    blocked = True

    @dataclass(frozen=True)
    class Parameters:
        sum_width: int = parameter("s")
        width: int = parameter("a")
        guard: int = parameter("g")
        exponent_width: int = parameter("e")

        @classmethod
        def of(cls, design):
            """The alignment of a design's block sums."""
            return cls(design.block_sum_width, design.accumulator_width, design.guard, Scales.of(design).sum)

    @staticmethod
    def ports(params):
        layout = aligned_layout(params.width, params.exponent_width)
        return {"fresh": In(1), "acc": In(layout), "sum": In(signed(params.sum_width)),
                "exponent": In(signed(params.exponent_width)), "invalid": In(1), "o": Out(layout)}

    def body(self, platform):
        m = Module()
        width, guard, exponent_width = self.params.width, self.params.guard, self.params.exponent_width
        old = Signal(signed(width))
        added = Signal(signed(width))
        m.d.comb += [old.eq(self.acc.sum), added.eq(self.sum << guard)]
        # The sign of the difference chooses the operand to shift, and the difference to shift it by. A negative one is
        # negated without an adder: its complement is one less, and that one is a shift in the same multiplexer.
        lower_by = Signal(signed(exponent_width + 1))
        rises = Signal()
        amount = Signal(exponent_width)
        m.d.comb += [lower_by.eq(self.acc.exponent - self.exponent), rises.eq(lower_by[-1] | self.fresh),
                     amount.eq(lower_by[:-1] ^ lower_by[-1].replicate(len(amount)))]
        # One bit below the cut stays in sight: it rounds.
        moving = Signal(signed(width + 1))
        fixed = Signal(signed(width))
        m.d.comb += [moving.eq(Mux(rises, old, Cat(Const(0, 1), added).as_signed())), fixed.eq(Mux(rises, added, old))]
        shifted = moving
        stages = min((width + 1).bit_length(), len(amount))
        for stage in range(stages):
            value = Signal(signed(width + 1), name=f"shift{stage}")
            m.d.comb += value.eq(Mux(amount[stage], shifted >> (1 << stage), shifted))
            shifted = value
        gone = Signal()
        kept = Signal(signed(width))
        half = Signal()
        m.d.comb += [gone.eq(amount[stages:].any() | self.fresh), kept.eq(Mux(gone, 0, shifted[1:].as_signed())),
                     half.eq(shifted[0] & ~gone)]
        m.d.comb += [
            self.o.sum.eq((Cat(Const(1, 1), fixed).as_signed() + Cat(half, kept).as_signed())[1:]),
            self.o.exponent.eq(Mux(rises, self.exponent, self.acc.exponent)),
            self.o.invalid.eq(self.invalid | (self.acc.invalid & ~self.fresh)),
        ]
        return m
