"""When which column's block sum is folded, and when rows have to wait for it."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from .accumulator import row_exponent_shape
from .buffer import Ram
from .cell import Cell
from .layout import StructLayout, index
from .sequencer import beat_layout


def entry_layout(design):
    """What is kept of a row whose block sums wait: its exponent and flag, the place of its block in the command.

    ``pass_end``: last row of its block. ``first``, ``command_end``: the block is the command's first, last.
    ``bank``: the command's.
    """
    return StructLayout({"exponent": row_exponent_shape(design), "invalid": 1, "pass_end": 1, "first": 1,
                         "command_end": 1, "bank": 1})


class FoldControl(Cell):
    """Folds rows in the order of their closing passes, ``share`` cycles each, as soon as every column has its total.

    Blocks in flight are at most two: one is folded while the next one's rows come, each to the word of a row that has
    been folded.

    Parameters
    ----------
    design : golden.spec.config.Design

    Members
    -------
    beat, pass_end, command_end, row : ``In``
        About this cycle's row of X; ``pass_end``, ``command_end``: the pass's last row, the command's last pass.
    exponent, invalid : ``In``
        Of the same row.
    room : ``Out(1)``
        A row ``row`` of a closing pass may come.
    closed : ``In(1)``
        The totals of a row are written in this cycle, in the last columns.
    fold_en, fold_address, slot : ``Out``
        Totals and column exponents to read.
    place, vacant : ``Out``, ``In(1)``
        Row that is folded; whether its result may be written.
    x, nan, column, fresh, read_address, keep, write_address, result, target : ``Out``
        To :class:`rtl.fold.Fold`; ``target`` is its ``row``.
    done : ``Out(2)``
        The last result of a command, by bank, is written.
    """
    kind = "fold_control"

    def __init__(self, design):
        self.design = design
        share, word = design.share, index(design.depth)
        wide = index(design.depth * share)
        super().__init__({
            "beat": In(beat_layout()), "pass_end": In(1), "command_end": In(1), "row": In(word),
            "exponent": In(row_exponent_shape(design)), "invalid": In(1), "room": Out(1), "closed": In(1),
            "fold_en": Out(1), "fold_address": Out(word), "slot": Out(1),
            "place": Out(word), "vacant": In(1),
            "x": Out(row_exponent_shape(design)), "nan": Out(1), "column": Out(index(share)), "fresh": Out(1),
            "read_address": Out(wide), "keep": Out(1), "write_address": Out(wide), "result": Out(share),
            "target": Out(word), "done": Out(2),
        }, m=design.format.mantissa, e=design.format.exponent, n=share, d=design.depth,
            **({"aligned": design.guard} if design.accumulate == "aligned" else {}))

    @staticmethod
    def latency(design):
        """Cycles from a row's beat at the last column group to its last result, if nothing is in its way."""
        return 3 + design.share

    def body(self, platform):
        m = Module()
        design, share = self.design, self.design.share

        # One entry a row, from its acceptance on; its totals follow.
        layout = entry_layout(design)
        m.submodules.entries = entries = Ram(design.depth, layout.size)
        pushed = Signal(layout)
        entry = Signal(layout)
        takes = Signal()
        m.d.comb += [
            takes.eq(self.beat.valid & self.beat.closes),
            pushed.exponent.eq(self.exponent), pushed.invalid.eq(self.invalid), pushed.pass_end.eq(self.pass_end),
            pushed.first.eq(self.beat.first), pushed.command_end.eq(self.command_end), pushed.bank.eq(self.beat.bank),
            entries.w_en.eq(takes), entries.w_addr.eq(self.row), entries.w_data.eq(Cat(pushed)),
            entries.r_en.eq(self.fold_en), entries.r_addr.eq(self.fold_address), Cat(entry).eq(entries.r_data),
        ]

        # Read: a row, while the last column of the one before has its turn.
        waiting = Signal(range(design.depth + 1))
        following = Signal(index(design.depth + 1))
        active = Signal()
        column = Signal(index(share))
        place = Signal(index(design.depth))
        slot = Signal()
        go = Signal()
        leaves = Signal()
        over = Signal()
        m.d.comb += [
            go.eq(active & (~entry.command_end | (self.vacant & ~self.done.any()))),
            leaves.eq(go & (column == share - 1)),
            over.eq(leaves & entry.pass_end),
            self.fold_en.eq((waiting != 0) & (~active | leaves)),
            self.fold_address.eq(Mux(over, 0, following)), self.slot.eq(slot ^ over),
        ]
        m.d.sync += [waiting.eq(waiting + self.closed - self.fold_en), slot.eq(self.slot),
                     active.eq(self.fold_en | (active & ~leaves)), column.eq(Mux(leaves, 0, column + go))]
        with m.If(over):
            m.d.sync += following.eq(0)
        with m.If(self.fold_en):
            m.d.sync += [following.eq(self.fold_address + 1), place.eq(self.fold_address)]

        # Room: words of rows that have been read, and of no block but two.
        blocks = Signal(range(3))
        blocks_before = Signal(range(3))
        m.d.sync += blocks.eq(blocks + (takes & self.beat.top) - over)
        m.d.comb += [blocks_before.eq(blocks - (self.row != 0)),
                     self.room.eq((blocks_before == 0) | ((blocks_before == 1) & (self.row < following)))]

        # First cycle, second cycle.
        second = Signal()
        last = Signal()
        address = Signal(index(design.depth * share))
        turn = Signal(index(share), name="turn")
        bank = Signal()
        fresh = Signal()
        complete = Signal()
        ends = Signal()
        m.d.comb += [self.place.eq(place), self.column.eq(column), self.x.eq(entry.exponent),
                     self.nan.eq(entry.invalid)]
        now = Cat(column, place) if share > 1 else place
        m.d.sync += [second.eq(go), last.eq(over), turn.eq(column), complete.eq(entry.command_end), bank.eq(entry.bank),
                     fresh.eq(entry.first), address.eq(now)]
        m.d.comb += [
            self.target.eq(address[(share - 1).bit_length():]), self.result.eq((second & complete) << turn),
            # Selected, not shifted: the bank is undefined until an entry is read, and a shift by it would be, too.
            ends.eq(second & last & complete), self.done.eq(Cat(ends & ~bank, ends & bank)),
        ]
        if design.accumulate == "aligned":    # added in the first cycle
            step = Signal(index(share))
            m.d.comb += [
                step.eq(column + go),
                self.read_address.eq(Mux(self.fold_en, Cat(step & 0, self.fold_address), Cat(step, place))),
                self.fresh.eq(entry.first), self.keep.eq(go), self.write_address.eq(now)]
        else:
            m.d.comb += [self.read_address.eq(now), self.fresh.eq(fresh), self.keep.eq(second),
                         self.write_address.eq(address)]
        return m
