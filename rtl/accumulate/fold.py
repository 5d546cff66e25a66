"""One converter and one accumulator for several columns, which take turns."""

from dataclasses import dataclass

from amaranth import Cat, Module, Signal, signed
from amaranth.lib.wiring import In, Out

from ..fixed.align import AlignAdd
from ..fixed.scales import Scales
from ..fp32.arith import Add
from ..fp32.convert import IntToFp32
from ..lib.cell import Cell
from ..lib.layout import ArrayLayout, index
from ..lib.memory import Ram
from ..lib.names import parameter
from ..number.accumulation import Accumulation
from ..number.streams import scale_layout
from .accumulator import accumulation_of
from .partial import require_shared, totals_layout


class Fold(Cell):
    """Folds the block sums of ``share`` columns, one column a cycle, into running accumulators.

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
        Block sums of a row, and exponents and invalid flags of the columns; steady while the row is folded.
    x, nan : ``In``
        Exponent and invalid flag of the row, likewise.
    column : ``In``
        Whose turn it is: first cycle.
    fresh : ``In(1)``
        The block is its command's first; in the cycle in which it is added.
    read_address : ``In``
        Running accumulator, a cycle ahead of that.
    keep, write_address : ``In``
        Whether and where the new running accumulator is kept, in that cycle.
    result, row : ``In(share)``, ``In``
        Columns whose result is complete, and its word: second cycle.
    drain_en, drain_address : ``In``
        Results to read: one cycle later on ``o``, held while ``drain_en`` is low.
    o : ``Out``
        FP32 values of the columns.
    """
    kind, area, apart = "fold", "accumulation", True
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
            fmt = design.format
            return cls(accumulation_of(design), fmt.sum_width(fmt.terms), design.share, design.depth,
                       Scales.of(design))

    @staticmethod
    def ports(params):
        share, word = params.share, index(params.depth)
        place = index(params.depth * share)
        return {
            "sums": In(totals_layout(params.sums, share)), "w": In(scale_layout(params.scales.column, share)),
            "x": In(signed(params.scales.row)), "nan": In(1), "column": In(index(share)), "fresh": In(1),
            "read_address": In(place), "keep": In(1), "write_address": In(place),
            "result": In(share), "row": In(word), "drain_en": In(1), "drain_address": In(word),
            "o": Out(ArrayLayout(32, share)),
        }

    def body(self, platform):
        m, params = Module(), self.params
        accumulation, scales, share, depth = params.accumulation, params.scales, params.share, params.depth
        total = Signal(signed(params.sums))
        scale = Signal(signed(scales.column))
        exponent = Signal(signed(scales.sum))
        flag = Signal()
        invalid = Signal()
        turns = [self.column == n for n in range(share)]

        def select(values):
            """The value whose turn it is."""
            chosen = 0
            for value, turn in zip(values, turns, strict=True):
                chosen = chosen | value.as_unsigned() & turn.replicate(len(value))
            return chosen
        columns = range(share)
        m.d.comb += [
            total.eq(select([self.sums[n] for n in columns])), scale.eq(select([self.w.exponent[n] for n in columns])),
            flag.eq(Cat(self.w.invalid[n] & turns[n] for n in columns).any()),
            exponent.eq(self.x + scale), invalid.eq(self.nan | flag),
        ]
        # Memories: running accumulators by row and column, results by row.
        word = accumulation.word
        m.submodules.running = running = Ram(depth * share, accumulation.width)
        m.submodules.results = results = Ram(depth, 32 * share, share)
        value = Signal(32)
        m.d.comb += [
            running.r_en.eq(1), running.r_addr.eq(self.read_address), running.w_en.eq(self.keep),
            running.w_addr.eq(self.write_address),
            results.w_en.eq(self.result), results.w_addr.eq(self.row), results.w_data.eq(value.replicate(share)),
            results.r_en.eq(self.drain_en), results.r_addr.eq(self.drain_address),
            self.o.as_value().eq(results.r_data),
        ]
        if not accumulation.lead:    # added in the first cycle
            earlier = Signal(word)
            after = Signal(word)
            late = Signal(word, reset_less=True)
            m.submodules.align = align = AlignAdd(len(total), accumulation.bits, accumulation.guard, len(exponent))
            m.submodules.convert = convert = IntToFp32(accumulation.bits, len(exponent))
            m.d.comb += [
                Cat(earlier).eq(running.r_data), align.fresh.eq(self.fresh), align.acc.eq(earlier), align.sum.eq(total),
                align.exponent.eq(exponent), align.invalid.eq(invalid), after.eq(align.o),
                running.w_data.eq(Cat(after)), convert.i.eq(late.sum), convert.exponent.eq(late.exponent),
                convert.invalid.eq(late.invalid), value.eq(convert.o),
            ]
            m.d.sync += late.eq(after)
            return m
        product = Signal(32, reset_less=True)
        m.submodules.convert = convert = IntToFp32(len(total), len(exponent))
        m.submodules.add = add = Add(subnormals="flush", underflow="positive")
        m.d.comb += [
            convert.i.eq(total), convert.exponent.eq(exponent), convert.invalid.eq(invalid),
            add.a.eq(running.r_data & ~self.fresh.replicate(32)), add.b.eq(product),
            running.w_data.eq(add.o), value.eq(add.o),
        ]
        m.d.sync += product.eq(convert.o)
        return m
