"""One converter and one accumulator for several columns, which take turns."""

from dataclasses import dataclass

from amaranth import Cat, Module, Signal, signed
from amaranth.lib.wiring import In, Out

from ..fixed.align import AlignAdd
from ..fixed.scales import Scales
from ..fp32.arith import Add
from ..fp32.convert import IntToFp32
from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.memory import Ram
from ..lib.names import parameter
from ..number.accumulation import Accumulation
from ..number.kinds import accumulation_of
from ..number.streams import scale_layout
from .block_sum import require_shared, totals_layout
from .signatures import read_signature, turn_signature


class SharedAccumulator(Component):
    """Accumulates the block sums of ``share`` columns, one column a cycle, into running accumulators.

    In the first cycle of two the column's block sum is scaled and becomes FP32 (``aligned``: is added to the
    accumulator); in the second it is added (``aligned``: the accumulator becomes FP32). Running accumulators have a
    memory with a word a column; the results, complete with a command's last block, have one with a word a row.

    Parameters
    ----------
    accumulation : rtl.number.accumulation.ScaledSum or rtl.number.accumulation.AlignedSum
    sums : int
        Bits of a block sum.
    share : int
        Columns.
    depth : int
        Rows of a pass.
    scales : rtl.fixed.scales.Scales

    Members
    -------
    sums, w : ``In``
        Block sums of a row, and exponents and invalid flags of the columns; steady while the row is accumulated.
    turn : ``In(turn_signature)``
        Whose turn it is, and what becomes of its sum.
    read : ``In(read_signature)``
        Results to read: one cycle later on ``o``.
    o : ``Out``
        FP32 values of the columns.
    """
    kind, area, apart = "shared_accumulator", "accumulation", True
    blocked = True

    @dataclass(frozen=True)
    class Parameters:
        accumulation: Accumulation = parameter("")
        sums: int = parameter("s")
        share: int = parameter("n")
        depth: int = parameter("d")
        scales: Scales = parameter("")

        @classmethod
        def of(cls, design):
            """The accumulator of some of a design's columns."""
            require_shared(design)
            return cls(accumulation_of(design), design.block_sum_width, design.share, design.depth,
                       Scales.of(design))

    @staticmethod
    def ports(params):
        share = params.share
        return {
            "sums": In(totals_layout(params.sums, share)), "w": In(scale_layout(params.scales.column, share)),
            "turn": In(turn_signature(params.scales.row, share, params.depth)),
            "read": In(read_signature(params.depth)), "o": Out(ArrayLayout(32, share)),
        }

    def body(self, platform):
        m, params, turn = Module(), self.params, self.turn
        accumulation, scales, share, depth = params.accumulation, params.scales, params.share, params.depth
        total = Signal(signed(params.sums))
        scale = Signal(signed(scales.column))
        exponent = Signal(signed(scales.sum))
        flag = Signal()
        invalid = Signal()
        turns = [turn.column == n for n in range(share)]

        def select(values):
            """The value whose turn it is."""
            chosen = 0
            for value, chooses in zip(values, turns, strict=True):
                chosen = chosen | value.as_unsigned() & chooses.replicate(len(value))
            return chosen
        columns = range(share)
        m.d.comb += [
            total.eq(select([self.sums[n] for n in columns])), scale.eq(select([self.w.exponent[n] for n in columns])),
            flag.eq(Cat(self.w.invalid[n] & turns[n] for n in columns).any()),
            exponent.eq(turn.scale.exponent + scale), invalid.eq(turn.scale.invalid | flag),
        ]
        # Memories: running accumulators by row and column, results by row.
        word = accumulation.word
        m.submodules.running = running = Ram(depth * share, accumulation.width)
        m.submodules.results = results = Ram(depth, 32 * share, share)
        value = Signal(32)
        m.d.comb += [
            running.r_en.eq(1), running.r_addr.eq(turn.read_address), running.w_en.eq(turn.keep),
            running.w_addr.eq(turn.write_address),
            results.w_en.eq(turn.result), results.w_addr.eq(turn.row), results.w_data.eq(value.replicate(share)),
            results.r_en.eq(self.read.en), results.r_addr.eq(self.read.address),
            self.o.as_value().eq(results.r_data),
        ]
        if not accumulation.lead:    # added in the first cycle
            earlier = Signal(word)
            after = Signal(word)
            late = Signal(word, reset_less=True)
            m.submodules.align = align = AlignAdd(len(total), accumulation.bits, accumulation.guard, len(exponent))
            m.submodules.convert = convert = IntToFp32(accumulation.bits, len(exponent))
            m.d.comb += [
                Cat(earlier).eq(running.r_data), align.fresh.eq(turn.fresh), align.acc.eq(earlier),
                align.sum[0].eq(total), align.exponent.eq(exponent), align.invalid.eq(invalid), after.eq(align.o),
                running.w_data.eq(Cat(after)), convert.i.eq(late.sum[0]), convert.exponent.eq(late.exponent),
                convert.invalid.eq(late.invalid), value.eq(convert.o),
            ]
            m.d.sync += late.eq(after)
            return m
        product = Signal(32, reset_less=True)
        m.submodules.convert = convert = IntToFp32(len(total), len(exponent))
        m.submodules.add = add = Add(subnormals="flush", underflow="positive")
        m.d.comb += [
            convert.i.eq(total), convert.exponent.eq(exponent), convert.invalid.eq(invalid),
            add.a.eq(running.r_data & ~turn.fresh.replicate(32)), add.b.eq(product),
            running.w_data.eq(add.o), value.eq(add.o),
        ]
        m.d.sync += product.eq(convert.o)
        return m
