"""One converter and one accumulator for several columns, which take turns."""

from dataclasses import dataclass

from amaranth import Cat, Module, Signal, signed
from amaranth.lib.wiring import In, Out

from ..fixed.scales import Scales
from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.memory import Ram
from ..lib.names import parameter
from ..lib.stages import Stages
from ..number.accumulation import Accumulation
from ..number.kinds import accumulation_of
from ..number.streams import scale_layout
from .block_sum import require_shared, shared_scales, totals_layout
from .signatures import read_signature, turn_signature


class SharedAccumulator(Component):
    """Accumulates the block sums of ``share`` columns, one column a cycle, into running accumulators.

    In the first cycle of two the column's block sum is made ready (``aligned``: is added to the accumulator); in the
    second it is added (``aligned``: the accumulator becomes FP32). With registers inside, :class:`.turn.Turn` says
    which cycles these are. Running accumulators have a memory with a word a column; the results, complete with a
    command's last block, have one with a word a row.

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
        With what the accumulation adds to exponents; see :func:`shared_scales`.
    selected : bool
        Whether there is a register behind the selection of a column.

    Members
    -------
    sums, w : ``In``
        Block sums of a row, and exponents and invalid flags of the columns; steady while the row is accumulated.
    turn : ``In(turn_signature)``
        Which column has its turn, and what becomes of its sum.
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
        selected: bool = parameter("sel", False)

        @classmethod
        def of(cls, design):
            """The accumulator of some of a design's columns."""
            require_shared(design)
            return cls(accumulation_of(design), design.block_sum_width, design.share, design.depth,
                       shared_scales(design), Stages.of(design).free)

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
        total = Signal(signed(params.sums), reset_less=True)
        scale = Signal(signed(scales.column), reset_less=True)
        flag = Signal(reset_less=True)
        exponent = Signal(signed(scales.sum))
        invalid = Signal()
        turns = [turn.column == n for n in range(share)]

        def select(values):
            """The value whose turn it is."""
            chosen = 0
            for value, chooses in zip(values, turns, strict=True):
                chosen = chosen | value.as_unsigned() & chooses.replicate(len(value))
            return chosen
        columns = range(share)
        chosen = (select([self.sums[n] for n in columns]), select([self.w.exponent[n] for n in columns]),
                  Cat(self.w.invalid[n] & turns[n] for n in columns).any())
        for into, each in zip((total, scale, flag), chosen, strict=True):
            m.d["sync" if params.selected else "comb"] += into.eq(each)
        m.d.comb += [
            exponent.eq(turn.scale.exponent + scale), invalid.eq(turn.scale.invalid | flag),
        ]
        # Memories: running accumulators by row and column, results by row.
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
        before = running.r_data
        if accumulation.cleared:
            before = before & ~turn.fresh.replicate(accumulation.width)
        after = Signal(accumulation.width)
        m.d.comb += [after.eq(accumulation.add(m, (0, 0), before, [total], (exponent, invalid), turn.fresh)),
                     running.w_data.eq(after)]
        result = after
        if accumulation.settles:
            result = Signal(accumulation.width, name="late", reset_less=True)
            m.d.sync += result.eq(after)
        m.d.comb += value.eq(accumulation.results(m, 0, result)[0])
        return m
