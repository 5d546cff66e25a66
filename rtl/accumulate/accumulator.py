"""What becomes of the sums of a group of columns: exponents, conversion, accumulation along K."""

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_

from amaranth import Cat, Const, Module, Mux, Shape, Signal, signed
from amaranth.lib.wiring import In, Out

from ..fixed.scales import Scales
from ..lib.compass import pass_east
from ..lib.component import Component
from ..lib.fanout import branches
from ..lib.layout import ArrayLayout, index
from ..lib.memory import Ram
from ..lib.names import parameter
from ..lib.signals import named
from ..lib.skew import delay
from ..lib.stages import Stages
from ..number.accumulation import Accumulation
from ..number.kinds import accumulation_of, number_of
from ..number.streams import scale_layout
from .digits import Digits
from .signatures import beat_layout, read_signature, row_signature


class Accumulator(Component):
    """Accumulation for the columns of one column group.

    Cycles are counted from the one in which ``west`` shows a row. The row's sum of segment 0 is there at cycle 1, of
    segment s at ``1 + s * h``; the row is in its bank ``latency`` cycles after cycle 0.

    Parameters
    ----------
    accumulation : rtl.number.accumulation.Accumulation
    sums : Shape
        Shape of the sum of a column's segment.
    columns, segments : int
    spacing : int
        h, cycles between the sums of two segments.
    depth : int
        Words of a bank.
    scales : Scales
        None for numbers without shared exponents.
    block_sum : int
        Bits of the sum of a block that spans several passes; 0 where none does.
    digits : Digits
        None where no mantissas are wide.
    skips : bool
        Whether sums of a segment may have to be left out.
    scale_cols : int
        Neighbouring columns whose exponents and flags are always equal; those of the first one count.
    banks : int
        1 or 2. One is written by the first block of a command while the command before is read out, and its old sums
        are asked for when that is over.
    late : int
        Registers between a bank and what takes its word.
    copied : bool
        Whether what selects the words of a bank has a register for each column.

    Members
    -------
    west, east : ``In(row_signature)``, ``Out(row_signature)``
        ``east`` is ``west`` a cycle later. The row's exponent and flag in segment s come at cycle ``s * h``; with that
        of the first row that uses them, bit s of ``load`` says to take ``w[s]``. Bit s of ``skip``, which comes with
        the exponent, too, says to leave the sums of segment s out.
    w : ``In``
        Exponents and invalid flags of the columns, per segment.
    sums : ``In``
        Sums of the columns, per segment.
    draining, read : ``In(2)``, ``In(read_signature)``
        Bank that is read out, by bit, and its word: ``1 + late`` cycles later on ``o``.
    o : ``Out``
        FP32 or integer values of the bank that is read out.
    """
    kind, area, apart = "accumulator", "accumulation", True

    @dataclass(frozen=True)
    class Parameters:
        accumulation: Accumulation = parameter("")
        sums: Shape = parameter("s")
        columns: int = parameter("c")
        segments: int = parameter("n")
        spacing: int = parameter("h")
        depth: int = parameter("d")
        scales: Scales | None = parameter("", None)
        block_sum: int = parameter("b", 0)
        digits: Digits | None = parameter("", None)
        skips: bool = parameter("skips", False)
        scale_cols: int = parameter("k", 1)
        banks: int = parameter("banks", 2)
        late: int = parameter("l", 0, rare=True)
        copied: bool = parameter("free", False)

        @property
        def ready(self):
            """Cycles from a row's sum to the one in which it is added, if words came at once."""
            return self.accumulation.lead + int(self.block_sum > 0)

        @property
        def read(self):
            """Cycle in which a row's word is asked for."""
            return max(self.ready - self.late, 0)

        @property
        def added(self):
            """Cycle in which a row's word is there, and is added."""
            return self.read + self.late + 1

        @property
        def wait(self):
            """Cycles that a sum waits for the word that it is added to."""
            return self.added - self.ready - 1

        @property
        def latency(self):
            """Cycle in which a row is written to its bank."""
            return self.added + (self.segments - 1) * self.spacing + self.accumulation.registers

        @property
        def interval(self):
            """Fewest cycles between two rows with the same address."""
            return max(self.latency - self.read + 1, 3)

        @classmethod
        def of(cls, design):
            """The accumulator of one column group of a design."""
            whole = design.height * design.joined
            return cls(
                accumulation_of(design), number_of(design).sum(whole, whole), design.group[1],
                design.segments, design.height // design.group[0], design.depth,
                Scales.of(design) if design.blocked else None,
                design.block_sum_width if design.block_tiles > 1 else 0, Digits.of(design), design.joined > 1,
                design.scale_cols if design.blocked else 1, design.banks, int(design.on_fpga), Stages.of(design).free)

    @staticmethod
    def ports(params):
        columns, segments, scales = params.columns, params.segments, params.scales
        row = row_signature(params.depth, beat_layout(params.digits is not None), scales.row if scales else 0, segments,
                            params.skips)
        members = {
            "west": In(row), "east": Out(row), "sums": In(ArrayLayout(params.sums, columns)).array(segments),
            "draining": In(2), "read": In(read_signature(params.depth)),
            "o": Out(ArrayLayout(params.accumulation.result_shape.width, columns)),
        }
        if scales:
            members["w"] = In(scale_layout(scales.column, columns)).array(segments)
        return members

    @property
    def latencies(self):
        """``result``: from a row's beat to its bank. ``interval``: fewest from a row to the next with its address."""
        return {"result": self.params.latency, "interval": self.params.interval}

    # --- Logic ----------------------------------------------------------------------------------

    def body(self, platform):
        m, params = Module(), self.params
        accumulation, kc, depth = params.accumulation, params.columns, params.depth
        pass_east(m, self.west, self.east, reset_less=("address", "exponent", "invalid", "skip"))
        read = params.read
        late = [self.west.beat, self.east.beat]
        addresses = [self.west.address, self.east.address]
        for stage in range(1, params.latency):
            late.append(Signal(self.west.beat.shape(), name=f"beat_{stage + 1}"))
            addresses.append(Signal(index(depth), name=f"address_{stage + 1}", reset_less=True))
            m.d.sync += [late[-1].eq(late[-2]), addresses[-1].eq(addresses[-2])]

        # Banks: one read port, for the accumulation or for the way out. A word is read only if it is added to: one
        # that starts anew, or a bank that idles, costs no access.
        asked = late[read]
        adds = named(m, asked.valid & asked.closes & ~asked.first, "adds")
        words = kc // accumulation.columns
        size = words * accumulation.width
        banks = [Ram(depth, size) for _ in range(params.banks)]
        written = Signal(size)
        for n, bank in enumerate(banks):
            m.submodules[f"bank{n}"] = bank
            drains = self.draining[n]
            m.d.comb += [
                bank.w_en.eq(late[-1].valid & late[-1].closes & (late[-1].bank == n if params.banks > 1 else 1)),
                bank.w_addr.eq(addresses[-1]), bank.w_data.eq(written),
                bank.r_en.eq(Mux(drains, self.read.en, adds & (asked.bank == n if params.banks > 1 else 1))),
                bank.r_addr.eq(Mux(drains, self.read.address, addresses[read])),
            ]
        fresh = late[params.added].first
        words_of = [delay(m, bank.r_data, params.late, f"word{n}") for n, bank in enumerate(banks)]
        held, out = (self._copied(m, words_of, late[params.added - 1]) if params.copied else
                     self._chosen(m, words_of, late[params.added]))

        sums = self._counted(m)
        if params.digits:
            sums = [params.digits.join(m, f"s{s}", [self.sums[s][column] for column in range(kc)],
                                       late[1 + s * params.spacing]) for s in range(params.segments)]
            # One offset of exponents serves all columns, and follows from the width of their sums.
            wide = max(len(total) for total in sums[0])
            sums = [[named(m, Cat(total, total[-1].replicate(wide - len(total))).as_signed(), f"s{s}_c{n}_whole")
                     for n, total in enumerate(each)] for s, each in enumerate(sums)]
        if params.block_sum:
            sums = self._block_sums(m, late, addresses, sums)
        scales = self._scales(m, sums) if params.scales else [[None] * kc] * params.segments
        sums = [[delay(m, sums[s][n], params.wait, f"s{s}_c{n}_sum") for n in range(kc)]
                for s in range(params.segments)]
        # Segments of a column in ascending order, each `spacing` cycles after the last; the bank's write port
        # registers the last one's sum.
        between = params.spacing - accumulation.registers
        for word in range(words):
            first = word * accumulation.columns
            columns = range(first, first + accumulation.columns)
            acc = held.word_select(word, accumulation.width)
            for s in range(params.segments):
                acc = delay(m, acc, between, f"c{first}_acc{s}") if s else acc
                acc = accumulation.add(m, (s, first), acc, [sums[s][n] for n in columns], scales[s][first], fresh)
            results = accumulation.results(m, first, out.word_select(word, accumulation.width))
            m.d.comb += [written.word_select(word, accumulation.width).eq(acc),
                         *(self.o[n].eq(result) for n, result in zip(columns, results, strict=True))]
        return m

    def _chosen(self, m, words, beat):
        """The word that is added to in the cycle of ``beat``, and the one that is read out, of those of the banks."""
        cleared, size = self.params.accumulation.cleared, len(words[0])
        held = Signal(size)
        out = Signal(size)
        fresh, bank = beat.first, beat.bank
        if self.params.banks == 1:
            m.d.comb += [held.eq(words[0] & (~fresh).replicate(size) if cleared else words[0]), out.eq(words[0])]
            return held, out
        if cleared:    # what is fresh starts from zero
            m.d.comb += held.eq(words[0] & (~bank & ~fresh).replicate(len(held))
                                | words[1] & (bank & ~fresh).replicate(len(held)))
        else:
            m.d.comb += held.eq(Mux(bank, words[1], words[0]))
        drained = Signal()
        m.d.sync += drained.eq(Mux(self.read.en, self.draining[1], drained))
        m.d.comb += out.eq(Mux(delay(m, drained, self.params.late, "drained"), words[1], words[0]))
        return held, out

    def _copied(self, m, words, before):
        """The same with a register for each column; ``before`` is about the row a cycle ahead."""
        params, size, cleared = self.params, len(words[0]), self.params.accumulation.cleared
        edges = [n * size // params.columns for n in range(params.columns + 1)]
        pieces = [[word[low:high] for word in words] for low, high in pairwise(edges)]

        def gated(what, name):
            """Of each piece, what its copies of the bits of ``what`` let through, by bank."""
            passed = [reduce(or_, (word & bit.replicate(len(word)) for word, bit in zip(piece, copy, strict=True)))
                      for piece, copy in zip(pieces, branches(m, what, params.columns, name), strict=True)]
            return named(m, Cat(passed), f"{name}_words")
        counts = ~before.first if cleared else Const(1, 1)
        if params.banks == 1:
            return gated(counts, "held") if cleared else words[0], words[0]
        drained = Signal(2)
        leaves = named(m, Mux(self.read.en, self.draining, drained), "leaves")
        m.d.sync += drained.eq(leaves)
        leaves = delay(m, leaves, params.late, "leaves")
        return gated(Cat(~before.bank & counts, before.bank & counts), "held"), gated(leaves, "out")

    def _scales(self, m, sums):
        """Es and the NaN flag of each segment and column, when the sum is there that they belong to."""
        params = self.params
        scales, most = [], 1 << params.scales.column - 1
        for s in range(params.segments):
            scales.append([])
            offset = params.accumulation.offset(sums[s][0].shape().width)
            row = Signal(range(offset - (1 << params.scales.row - 1), offset + most), name=f"s{s}_row_exponent")
            m.d.comb += row.eq(self.east.exponent[s] + offset)
            for column in range(0, params.columns, params.scale_cols):
                stem = f"s{s}_c{column}"
                exponent = Signal(signed(params.scales.column), name=f"{stem}_w", reset_less=True)
                invalid = Signal(name=f"{stem}_w_invalid", reset_less=True)
                with m.If(self.west.load[s]):
                    m.d.sync += [exponent.eq(self.w[s].exponent[column]), invalid.eq(self.w[s].invalid[column])]
                # The row's exponent is east in the cycle in which its sum is there.
                shape = (row + exponent).shape() if offset else signed(params.scales.sum)
                total = Signal(shape, name=f"{stem}_exponent")
                either = Signal(name=f"{stem}_invalid")
                m.d.comb += [total.eq(row + exponent), either.eq(self.east.invalid[s] | invalid)]
                if params.skips:    # a sum of zero at the lowest exponent moves nothing
                    with m.If(self.east.skip[s]):
                        m.d.comb += [total.eq(-(1 << len(total) - 1)), either.eq(0)]
                # The block's sum comes a cycle later, and the word that it is added to may come later still.
                wait = int(params.block_sum > 0) + params.wait
                total = delay(m, total, wait, f"{stem}_exponent_late")
                either = delay(m, either, wait, f"{stem}_invalid_late")
                scales[-1] += [(total, either)] * params.scale_cols
        return scales

    def _counted(self, m):
        """The sums, those that are left out as zero."""
        params = self.params
        if not params.skips:
            return self.sums
        counted = []
        for s in range(params.segments):
            each = Signal.like(self.sums[s], name=f"counted{s}")
            m.d.comb += each.as_value().eq(self.sums[s].as_value() & ~self.east.skip[s].replicate(len(each.as_value())))
            counted.append(each)
        return counted

    def _block_sums(self, m, late, addresses, sums):
        """Sums of whole blocks, which are those of several passes."""
        params, kc, width = self.params, self.params.columns, self.params.block_sum
        m.submodules.partial = bank = Ram(params.depth, kc * width)
        total = Signal(ArrayLayout(signed(width), kc), reset_less=True)
        m.d.comb += [bank.r_en.eq(late[0].valid & ~late[0].opens), bank.r_addr.eq(addresses[0]),
                     bank.w_en.eq(late[2].valid), bank.w_addr.eq(addresses[2]), bank.w_data.eq(total)]
        for column in range(kc):
            before = Signal(signed(width), name=f"before{column}")
            m.d.comb += before.eq(Mux(late[1].opens, 0, bank.r_data.word_select(column, width)))
            m.d.sync += total[column].eq(before + sums[0][column])
        return [total]
