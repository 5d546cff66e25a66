"""When which column's block sum is accumulated, and when rows have to wait for it."""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import StructLayout, index
from ..lib.memory import Ram
from ..lib.names import parameter
from ..number.kinds import accumulation_of
from ..number.streams import block_scale_layout
from .block_sum import require_shared, shared_scales
from .signatures import beat_layout, read_signature, turn_signature


def entry_layout(exponent):
    """What is kept of a row whose block sums wait: its ``scale``, the place of its block in the command.

    ``pass_end``: last row of its block. ``first``, ``command_end``: the block is the command's first, last.
    ``bank``: the command's.
    """
    return StructLayout({"scale": block_scale_layout(exponent), "pass_end": 1, "first": 1, "command_end": 1, "bank": 1})


class SharedControl(Component):
    """Accumulates rows in the order of their closing passes, ``share`` cycles each, as soon as all totals are there.

    Blocks in flight are at most two: one is accumulated while the next one's rows come, each to the word of a row
    that is done with.

    Parameters
    ----------
    exponent : int
        Bits of a row's exponent.
    share : int
        Columns that take turns.
    depth : int
        Rows of a pass.
    early : bool
        Whether a sum is added in the first of its two cycles.

    Members
    -------
    beat, pass_end, command_end, row : ``In``
        About this cycle's row of X; ``pass_end``, ``command_end``: the pass's last row, the command's last pass.
    scale : ``In``
        Exponent and invalid flag of the same row.
    room : ``Out(1)``
        A row ``row`` of a closing pass may come.
    closed : ``In(1)``
        The totals of a row are written in this cycle, in the last columns.
    read, slot : ``Out(read_signature)``, ``Out(1)``
        Totals and column exponents to read.
    place, vacant : ``Out``, ``In(1)``
        Row that is accumulated; whether its result may be written.
    turn : ``Out(turn_signature)``
        To :class:`rtl.accumulate.shared_accumulator.SharedAccumulator`.
    done : ``Out(2)``
        The last result of a command, by bank, is written.
    """
    kind, area, apart = "shared_control", "control", True
    blocked = True

    @dataclass(frozen=True)
    class Parameters:
        exponent: int = parameter("e")
        share: int = parameter("n")
        depth: int = parameter("d")
        early: bool = parameter("early", False)

        @property
        def latency(self):
            """Cycles from a row's beat at the last column group to its last result, if nothing is in its way."""
            return 3 + self.share

        @classmethod
        def of(cls, design):
            """The control of a design."""
            require_shared(design)
            return cls(shared_scales(design).row, design.share, design.depth, not accumulation_of(design).lead)

    @staticmethod
    def ports(params):
        word = index(params.depth)
        return {
            "beat": In(beat_layout()), "pass_end": In(1), "command_end": In(1), "row": In(word),
            "scale": In(block_scale_layout(params.exponent)), "room": Out(1), "closed": In(1),
            "read": Out(read_signature(params.depth)), "slot": Out(1), "place": Out(word), "vacant": In(1),
            "turn": Out(turn_signature(params.exponent, params.share, params.depth)), "done": Out(2),
        }

    @property
    def latencies(self):
        """``result``: from a row's beat at the last column group to its last result, if nothing is in its way."""
        return {"result": self.params.latency}

    def body(self, platform):
        m, share, depth = Module(), self.params.share, self.params.depth
        read = self.read

        # One entry a row, from its acceptance on; its totals follow.
        layout = entry_layout(self.params.exponent)
        m.submodules.entries = entries = Ram(depth, layout.size)
        pushed = Signal(layout)
        entry = Signal(layout)
        takes = Signal()
        m.d.comb += [
            takes.eq(self.beat.valid & self.beat.closes),
            pushed.scale.eq(self.scale), pushed.pass_end.eq(self.pass_end),
            pushed.first.eq(self.beat.first), pushed.command_end.eq(self.command_end), pushed.bank.eq(self.beat.bank),
            entries.w_en.eq(takes), entries.w_addr.eq(self.row), entries.w_data.eq(Cat(pushed)),
            entries.r_en.eq(read.en), entries.r_addr.eq(read.address), Cat(entry).eq(entries.r_data),
        ]

        # Read: a row, while the last column of the one before has its turn.
        waiting = Signal(range(depth + 1))
        following = Signal(index(depth + 1))
        active = Signal()
        column = Signal(index(share))
        place = Signal(index(depth))
        slot = Signal()
        go = Signal()
        leaves = Signal()
        over = Signal()
        m.d.comb += [
            go.eq(active & (~entry.command_end | (self.vacant & ~self.done.any()))),
            leaves.eq(go & (column == share - 1)),
            over.eq(leaves & entry.pass_end),
            read.en.eq((waiting != 0) & (~active | leaves)), read.address.eq(Mux(over, 0, following)),
            self.slot.eq(slot ^ over),
        ]
        m.d.sync += [waiting.eq(waiting + self.closed - read.en), slot.eq(self.slot),
                     active.eq(read.en | (active & ~leaves)), column.eq(Mux(leaves, 0, column + go))]
        with m.If(over):
            m.d.sync += following.eq(0)
        with m.If(read.en):
            m.d.sync += [following.eq(read.address + 1), place.eq(read.address)]

        # Room: words of rows that have been read, and of no block but two.
        blocks = Signal(range(3))
        blocks_before = Signal(range(3))
        m.d.sync += blocks.eq(blocks + (takes & self.beat.top) - over)
        m.d.comb += [blocks_before.eq(blocks - (self.row != 0)),
                     self.room.eq((blocks_before == 0) | ((blocks_before == 1) & (self.row < following)))]

        self._turns(m, entry, go, over, column, place)
        return m

    def _turns(self, m, entry, go, over, column, place):
        """A column's first cycle and its second."""
        share, depth, read, turn = self.params.share, self.params.depth, self.read, self.turn
        second = Signal()
        last = Signal()
        address = Signal(index(depth * share))
        whose = Signal(index(share))
        bank = Signal()
        fresh = Signal()
        complete = Signal()
        ends = Signal()
        m.d.comb += [self.place.eq(place), turn.column.eq(column), turn.scale.eq(entry.scale)]
        now = Cat(column, place) if share > 1 else place
        m.d.sync += [second.eq(go), last.eq(over), whose.eq(column), complete.eq(entry.command_end),
                     bank.eq(entry.bank), fresh.eq(entry.first), address.eq(now)]
        m.d.comb += [
            turn.row.eq(address[(share - 1).bit_length():]), turn.result.eq((second & complete) << whose),
            # Selected, not shifted: the bank is undefined until an entry is read, and a shift by it would be, too.
            ends.eq(second & last & complete), self.done.eq(Cat(ends & ~bank, ends & bank)),
        ]
        if self.params.early:    # added in the first cycle
            step = Signal(index(share))
            m.d.comb += [
                step.eq(column + go),
                turn.read_address.eq(Mux(read.en, Cat(step & 0, read.address), Cat(step, place))),
                turn.fresh.eq(entry.first), turn.keep.eq(go), turn.write_address.eq(now)]
        else:
            m.d.comb += [turn.read_address.eq(now), turn.fresh.eq(fresh), turn.keep.eq(second),
                         turn.write_address.eq(address)]
