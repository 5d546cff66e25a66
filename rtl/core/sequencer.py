"""Commands in, passes out: counts rows and tiles, and says when a pass may start."""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hbfp.design import TILE_BITS

from ..accumulate.signatures import beat_layout
from ..lib.component import Component
from ..lib.layout import StructLayout, index
from ..lib.names import parameter
from ..number.kinds import accumulation_of

#: Steps of the side unit that a command may ask for, in their order.
STEPS = ("scale", "bias", "relu")


def steps_layout():
    """One bit per step of the side unit."""
    return StructLayout({step: 1 for step in STEPS})


def wide_layout():
    """Whether the mantissas of X and of W are wide."""
    return StructLayout({"wide_x": 1, "wide_w": 1})


def command_layout(design):
    """A command of a design: the passes of one column of tiles."""
    return command_of(design.depth, accumulation_of(design).float_results, bool(design.wide), design.takes_sparse)


def command_of(depth, side, wide=False, sparse=False):
    """A command for up to ``depth`` rows, with steps where there is a side unit, and modes where there are some."""
    flags = (*(STEPS if side else ()), *(wide_layout().members if wide else ()), *(("sparse",) if sparse else ()))
    return StructLayout({"rows": range(depth + 1), "tiles": TILE_BITS, **{flag: 1 for flag in flags}})


def _within(value, most):
    """Whether ``value`` is 1 to ``most``."""
    return value.any() & (value <= most if most < 2 ** len(value) - 1 else 1)


class Sequencer(Component):
    """Runs commands one after another without a bubble between them.

    Parameters
    ----------
    depth : int
        Most rows of a command.
    interval : int
        Fewest cycles between a row of a pass and the same row of the next; a pass without pauses starts no
        sooner after the last.
    tiles : int
        Most passes of a command.
    block_tiles : int
        Passes of a block.
    side : bool
        Whether there is a side unit, whose steps a command asks for.
    shared : bool
        Whether columns share an accumulator.
    wide : bool
        Whether mantissas may be wide.
    sparse_tiles, sparse_block : int
        Most passes of a sparse command, and passes of its blocks; 0 where there is none.
    banks : int
        Accumulator banks, 1 or 2. With one, the first sums that a command keeps follow the read-out of the command
        before row by row, and the next ones, which need the bank's read port, wait for its end.
    ahead : bool
        Whether registers say that a row or a pass is the last one, which is worked out a row ahead.

    Members
    -------
    i_cmd : ``In(stream)``
        Commands. One with no rows, more rows than ``depth``, no tiles or more of them than an integer
        accumulator holds raises ``error`` and is dropped.
    error : ``Out(1)``
        A command was refused since reset.
    x_valid, x_ready : ``In(1)``, ``Out(1)``
        Handshake of the rows of X.
    weights : ``In(1)``
        A whole tile of weights is there.
    start : ``Out(1)``
        This cycle's row of X is the first of a pass.
    beat : ``Out(beat_layout)``
        About this cycle's row of X.
    rows, steps : ``Out``
        Rows and steps of the command whose pass runs; valid while ``begins`` is high.
    begins : ``Out(1)``
        First pass of a command starts; its bank is ``beat.bank``, in turns also where there is one bank.
    free : ``In(2)``
        Accumulator banks that hold nothing.
    vacant : ``In(1)``
        Only with one bank: row ``row`` of the command before has been read out.
    sparse : ``Out(1)``
        Only where commands may be sparse: this cycle's row of X, if there is one, belongs to such a one.
    row : ``Out``
        Only with one bank, and where columns share an accumulator: row of the pass.
    pass_end, command_end, room : ``Out(1)``, ``Out(1)``, ``In(1)``
        Only where columns share an accumulator: whether it is the last one, whether the pass is the
        command's last; whether a row of a pass that closes a block may come.
    wide : ``Out(wide_layout)``
        Only where mantissas may be wide: which are, in the command whose pass runs. Rows of wide X take two beats each.
    """
    kind, area, apart = "sequencer", "control", True

    @dataclass(frozen=True)
    class Parameters:
        depth: int = parameter("d")
        interval: int = parameter("i")
        tiles: int = parameter("t")
        block_tiles: int = parameter("b", 1)
        side: bool = parameter("int", True)
        shared: bool = parameter("shared", False)
        wide: bool = parameter("wide", False)
        sparse_tiles: int = parameter("st", 0)
        sparse_block: int = parameter("sb", 0)
        banks: int = parameter("k", 2)
        ahead: bool = parameter("ahead", False, rare=True)

        @classmethod
        def of(cls, design, interval):
            """The sequencer of a design whose passes may follow each other after ``interval`` cycles."""
            return cls(design.depth, interval, design.max_tiles, design.block_tiles,
                       accumulation_of(design).float_results, design.share > 1, bool(design.wide),
                       *((design.most_tiles(True), design.lay(True).block_tiles) if design.takes_sparse else (0, 0)),
                       design.banks, design.on_fpga)

        @property
        def command(self):
            """Layout of a command."""
            return command_of(self.depth, self.side, self.wide, bool(self.sparse_tiles))

    @staticmethod
    def ports(params):
        members = {
            "i_cmd": In(stream.Signature(params.command)), "error": Out(1),
            "x_valid": In(1), "x_ready": Out(1), "weights": In(1), "start": Out(1),
            "beat": Out(beat_layout(params.wide)),
            "rows": Out(range(params.depth + 1)), "steps": Out(steps_layout()), "begins": Out(1), "free": In(2),
        }
        if params.shared:
            members |= {"row": Out(index(params.depth)), "pass_end": Out(1), "command_end": Out(1), "room": In(1)}
        if params.banks == 1:
            members |= {"row": Out(index(params.depth)), "vacant": In(1)}
        if params.wide:
            members["wide"] = Out(wide_layout())
        if params.sparse_tiles:
            members["sparse"] = Out(1)
        return members

    def body(self, platform):
        m, params = Module(), self.params
        pop = Signal()
        command, held = self._queue(m, pop)
        row = Signal(index(params.depth))
        tile = Signal(TILE_BITS)
        gap = Signal(range(params.interval))
        bank = Signal()
        fresh = Signal(init=1)
        last_row = Signal()
        last_tile = Signal()
        may_start = Signal()
        step = Signal()
        opens = Signal()
        closes = Signal()
        room = Signal(init=1)
        if params.shared:
            m.d.comb += [room.eq(self.room | ~closes), self.row.eq(row), self.pass_end.eq(last_row),
                         self.command_end.eq(last_tile)]
        if params.banks == 1:    # registers alone decide: whether the way out moves in this cycle is not known yet
            over = Mux(bank, self.free[0], self.free[1])
            m.d.comb += [room.eq(~closes | over | (fresh & self.vacant)), self.row.eq(row)]
        # Whether a pass is under way; whether this beat completes a row.
        under_way, whole = self._digits(m, command, step, row) if params.wide else (row != 0, step)
        if params.ahead:
            m.d.comb += Cat(last_row, last_tile).eq(self._ahead(m, command, row, tile, whole, pop))
        else:
            m.d.comb += [last_row.eq(row + 1 == command.rows), last_tile.eq(tile + 1 == command.tiles)]
        m.d.comb += [
            may_start.eq(self.weights & (gap == 0) & ((tile != 0) | Mux(bank, self.free[1], self.free[0]))),
            self.x_ready.eq((held != 0) & (under_way | may_start) & room),
            step.eq(self.x_valid & self.x_ready),
            self.start.eq(step & (~under_way if params.wide else row == 0)), self.begins.eq(self.start & (tile == 0)),
            self.rows.eq(command.rows), pop.eq(whole & last_row & last_tile),
            self.beat.valid.eq(whole), self.beat.first.eq(fresh), self.beat.opens.eq(opens),
            self.beat.closes.eq(closes), self.beat.last.eq(last_row & last_tile), self.beat.top.eq(row == 0),
            self.beat.bank.eq(bank),
        ]
        for name in STEPS:
            if params.side:
                m.d.comb += self.steps[name].eq(command[name])
        # While a row of the pass is late the gap waits with it: the next pass gets no closer to that row.
        with m.If((gap != 0) & (step | (~under_way if params.wide else row == 0))):
            m.d.sync += gap.eq(gap - 1)
        with m.If(self.start):
            m.d.sync += gap.eq(params.interval - 1)
        with m.If(whole):
            m.d.sync += row.eq(row + 1)
            with m.If(last_row):
                m.d.sync += [row.eq(0), tile.eq(tile + 1)]
                with m.If(closes):
                    m.d.sync += fresh.eq(0)
                with m.If(last_tile):
                    m.d.sync += [tile.eq(0), fresh.eq(1)]
                    m.d.sync += bank.eq(~bank)

        if params.sparse_tiles:
            m.d.comb += self.sparse.eq(command.sparse)
        most = max(params.block_tiles, params.sparse_block)
        if most == 1:
            m.d.comb += [opens.eq(1), closes.eq(1)]
        else:
            place = Signal(range(most))
            ends = place == params.block_tiles - 1
            if params.sparse_tiles:
                ends = Mux(command.sparse, place == params.sparse_block - 1, ends)
            m.d.comb += [opens.eq(place == 0), closes.eq(ends | last_tile)]
            with m.If(whole & last_row):
                m.d.sync += place.eq(place + 1)
                with m.If(closes):
                    m.d.sync += place.eq(0)
        return m

    def _ahead(self, m, command, row, tile, whole, pop):
        """Whether this row is the pass's last one and this pass the command's last one, from registers."""
        offered, last = self.i_cmd.payload, Signal(2, name="last_ahead")
        # Of each command that is held: whether it has one row, and one pass.
        ones = [Signal(2, name=f"ones{n}", reset_less=True) for n in range(2)]
        coming = Signal(2, name="ones_coming")
        m.d.comb += coming.eq(Cat(offered.rows == 1, offered.tiles == 1))
        with m.If(whole):
            m.d.sync += last[0].eq(Mux(last[0], ones[0][0], row + 2 == command.rows))
            with m.If(last[0]):
                m.d.sync += last[1].eq(tile + 2 == command.tiles)
        with m.If(pop):
            m.d.sync += [ones[0].eq(ones[1]), last.eq(ones[1])]
        with m.If(self._alone):
            m.d.sync += [ones[0].eq(coming), last.eq(coming)]
        with m.If(self._behind):
            m.d.sync += ones[1].eq(coming)
        return last

    def _digits(self, m, command, step, row):
        """Two beats for each row of wide X, the high digits first: whether a pass is under way, and a row complete."""
        half = Signal()
        whole = Signal()
        under_way = Signal()
        m.d.comb += [
            whole.eq(step & (half | ~command.wide_x)), under_way.eq(half | (row != 0)),
            self.beat.high.eq(step & ~whole), self.beat.waits.eq(half & ~step), self.beat.pair.eq(command.wide_w),
            self.wide.wide_x.eq(command.wide_x), self.wide.wide_w.eq(command.wide_w),
        ]
        with m.If(step):
            m.d.sync += half.eq(~whole)
        return under_way, whole

    def _queue(self, m, pop):
        """Two commands: the one that runs and the next, so that a change costs no cycle; and how many there are."""
        params = self.params
        queue = [Signal(params.command, name=f"command{n}", reset_less=True) for n in range(2)]
        held = Signal(range(3))
        offered = self.i_cmd.payload
        good = Signal()
        push = Signal()
        tiles = _within(offered.tiles, params.tiles)
        if params.sparse_tiles not in (0, params.tiles):
            tiles = Mux(offered.sparse, _within(offered.tiles, params.sparse_tiles), tiles)
        m.d.comb += [
            self.i_cmd.ready.eq(held != 2),
            good.eq(_within(offered.rows, params.depth) & tiles),
            push.eq(self.i_cmd.valid & self.i_cmd.ready & good),
        ]
        with m.If(self.i_cmd.valid & self.i_cmd.ready & ~good):
            m.d.sync += self.error.eq(1)
        m.d.sync += held.eq(held + push - pop)
        with m.If(pop):
            m.d.sync += queue[0].eq(queue[1])
        with m.If(push):
            with m.If((held - pop)[:2] == 0):
                m.d.sync += queue[0].eq(offered)
            with m.Else():
                m.d.sync += queue[1].eq(offered)
        self._alone, self._behind = push & ((held - pop)[:2] == 0), push & ((held - pop)[:2] != 0)
        return queue[0], held
