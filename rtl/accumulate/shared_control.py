"""When which column's block sum is accumulated, and when rows have to wait for it."""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import StructLayout, index
from ..lib.memory import Ram
from ..lib.names import parameter
from ..lib.skew import delay
from ..lib.stages import Stages
from ..number.streams import block_scale_layout
from .block_sum import require_shared, shared_scales
from .signatures import beat_layout, read_signature, turn_signature
from .turn import Turn


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
    cycles : Turn
        Cycles of the steps of a turn.
    late : int
        Cycles from a row's beat to its exponent.

    Members
    -------
    beat, pass_end, command_end, row : ``In``
        About this cycle's row of X; ``pass_end``, ``command_end``: the pass's last row, the command's last pass.
    scale : ``In``
        Exponent and invalid flag of the row ``late`` cycles ago.
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
        cycles: Turn = parameter("", Turn())
        late: int = parameter("l", 0)

        @property
        def latency(self):
            """Cycles from a row's beat at the last column group to its last result, if nothing is in its way."""
            return 2 + self.share + self.cycles.result

        @classmethod
        def of(cls, design):
            """The control of a design."""
            require_shared(design)
            return cls(shared_scales(design).row, design.share, design.depth, Turn.of(design),
                       int(Stages.of(design).free))

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
        # The row's exponent comes behind the rest of its entry.
        about = Cat(self.pass_end, self.beat.first, self.command_end, self.beat.bank)
        m.d.comb += [
            takes.eq(self.beat.valid & self.beat.closes), pushed.scale.eq(self.scale),
            Cat(pushed.pass_end, pushed.first, pushed.command_end, pushed.bank).eq(
                delay(m, about, self.params.late, "about")),
            entries.w_en.eq(delay(m, takes, self.params.late, "takes", reset_less=False)),
            entries.w_addr.eq(delay(m, self.row, self.params.late, "row")), entries.w_data.eq(Cat(pushed)),
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
        ending = Signal()    # results of a command are complete, and not written yet
        m.d.comb += [
            go.eq(active & (~entry.command_end | (self.vacant & ~ending))),
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

        m.d.comb += ending.eq(self._turns(m, entry, go, over, column, place))
        return m

    def _turns(self, m, entry, go, over, column, place):
        """What belongs to a turn, each in its cycle; whether there is a last turn whose result is not written yet."""
        share, cycles, turn = self.params.share, self.params.cycles, self.turn
        bits = (share - 1).bit_length()

        def stages(value, last, name):
            """The value in each cycle of a turn up to the ``last`` one."""
            found = [value]
            for cycle in range(1, last + 1):
                found.append(Signal(len(value), name=f"{name}_{cycle}"))
                m.d.sync += found[-1].eq(found[-2])
            return found
        going = stages(go, cycles.result, "go")
        address = stages(Cat(column, place), cycles.result, "address")
        fresh = stages(entry.first, cycles.add, "fresh")
        complete = stages(entry.command_end, cycles.result, "complete")
        bank = stages(entry.bank, cycles.result, "bank")
        ends = stages(over & entry.command_end, cycles.result, "ends")
        m.d.comb += [
            self.place.eq(place), turn.column.eq(column),
            turn.scale.as_value().eq(delay(m, entry.scale.as_value(), cycles.scale, "scale")),
            turn.fresh.eq(fresh[cycles.add]), turn.keep.eq(going[cycles.keep]),
            turn.write_address.eq(address[cycles.keep]), turn.row.eq(address[-1][bits:]),
            turn.result.eq((going[-1] & complete[-1]) << address[-1][:bits]),
            # Selected, not shifted: the bank is undefined until an entry is read, and a shift by it would be, too.
            self.done.eq(Cat(ends[-1] & ~bank[-1], ends[-1] & bank[-1])),
        ]
        if cycles.add:
            m.d.comb += turn.read_address.eq(address[cycles.add - 1])
        else:    # read ahead, of the next turn
            step = Signal(index(share))
            m.d.comb += [step.eq(column + go), turn.read_address.eq(
                Mux(self.read.en, Cat(step & 0, self.read.address), Cat(step, place)))]
        return Cat(ends[1:]).any()
