"""The order in which convert goes through a matrix: block by block, twice where it does not see a block at once."""

from dataclasses import dataclass, replace

from amaranth import Cat, Const, Module, Mux, Signal, Value

from ..convert.numbers import place_bits
from .layouts import ADDRESS_BITS
from .loops import Loops


@dataclass
class Step:
    """What convert does next.

    Attributes
    ----------
    source, target : Value
        Address of a word in V; of its place in X, of its row in W, or of the first place of its square in X or W.
    pad : Value
        The row lies beyond the matrix: a word of zeros.
    row : Value
        Row of the word in its square.
    convert, opens : Value
        The word is to be converted, not measured; it is the first of those that are measured together.
    ends, segment : Value
        The word ends the rows of its square; of a segment.
    place : Value or None
        Its place in its tensor, in words; None without stochastic rounding.
    last : Value
        Nothing follows.
    """
    source: Value
    target: Value
    pad: Value
    row: Value
    convert: Value
    opens: Value
    ends: Value
    segment: Value
    place: Value | None
    last: Value


def may_be_short(fmt, side, shared, height, pieces):
    """Whether a square's last rows may be left out; parameters as of :class:`BlockOrder`."""
    return bool(shared and fmt.terms == side == height and pieces == 1)


class BlockOrder:
    """Walks through the matrix of an instruction; plain logic inside a component.

    Rows are counted up to the end of a square where they go to W or are turned, those beyond the matrix as rows of
    zeros, which are not measured where blocks are a word or less. Nor are they converted where a block is a column of a
    square for X, if as many rows as a square has have been measured and converted: its columns leave meanwhile.

    Parameters
    ----------
    m : Module
    fmt : HBFPFormat
    side : int
        Rows of a square, lanes of a word of V.
    new, held : interface
        The instruction that is taken, and that which is executed.
    start, step : Value
        See :class:`~rtl.accelerator.loops.Loops`.
    wide : bool
        Whether mantissas may be wide.
    shared : bool
        Whether elements share exponents; if not, every word comes once.
    spread : int
        Terms of a group that a sparse weight stands for, of which it keeps one; 1 where there are none.
    height : int
        Rows of a segment of W.
    pieces : int
        Words that K is filled up to a multiple of with zeros, where it runs along lanes; else squares: a row of the
        core has so many.
    """

    def __init__(self, m: Module, fmt, side, new, held, start, step, wide=False, shared=True,
                 spread=1, height=0, pieces=1):
        self.m, self.new, self.held, self.start, self.step, self.shared = m, new, held, start, step, shared
        self.side, self.square, self.wide = side, fmt.square, wide
        self.terms = fmt.terms if shared else min(fmt.terms, side)
        self.stochastic = fmt.rounding == "stochastic"
        self.bits, self.height, self.pieces = (side - 1).bit_length(), height or side, pieces
        self.short = may_be_short(fmt, side, shared, self.height, pieces)
        # Whether blocks run along rows, not lanes; whether each square leaves through the transposer.
        self.columns, self.turned = held.columns, held.to_w ^ held.columns
        self.plain = ~held.to_w & ~held.columns
        # How far the target moves with a row, a word, and as many rows as the core has.
        self.by_row, self.by_word, self.by_side = (Signal(ADDRESS_BITS, name=f"by_{name}")
                                                   for name in ("row", "word", "side"))
        rows = Mux(held.sparse, side // spread, side) if spread > 1 else side    # that a word of V gives to W
        m.d.comb += [
            self.by_row.eq(Mux(self.plain, held.target_row, held.to_w & held.columns)),
            self.by_word.eq(Mux(held.to_w & ~held.columns, rows, held.target_word)),
            self.by_side.eq(Mux(self.turned, held.target_row, Mux(held.to_w, self.side,
                                                                  held.target_row << self.bits))),
        ]

    def _place(self, loops, strides):
        """The place of the word in its tensor; ``strides`` gives those of the loops from that of a row."""
        if not self.stochastic:
            return None
        return loops.follow("place", place_bits(self.side), self.new.place, strides(self.held.place_row))

    def walk(self):
        """The :class:`Step`."""
        step = self._within() if self.terms <= self.side else self._across()
        return self._instead(step) if self.wide else step

    def _instead(self, step):
        """Where rows are columns of W and wide: of two rows that one in place of both which the instruction is for.

        What a square's rows are measured for is all of them.
        """
        m, held = self.m, self.held
        moves, back = Signal(name="moves"), Signal(name="back")
        pad = Signal(name="pad_instead")
        m.d.comb += [back.eq(step.row[0]), moves.eq(
            held.wide & held.to_w & ~held.columns & (back ^ held.part) & (step.convert if self.square else 1))]

        def moved(name, value, stride):
            into = Signal(len(value), name=f"{name}_instead")
            m.d.comb += into.eq(value + Mux(moves, Mux(back, -stride, stride), 0))
            return into
        other = Mux(back, self.row > held.rows, self.row + 1 >= held.rows)
        m.d.comb += pad.eq(Mux(moves, self._filled(other, self.word), step.pad))
        place = moved("place", step.place, held.place_row) if self.stochastic else None
        return replace(step, source=moved("source", step.source, held.stride), place=place, pad=pad)

    def _ends(self, row):
        """Whether a row is the matrix's last or lies beyond it; whether it ends what goes to X, and what goes to W."""
        self.row, reach, pad = row, Signal(name="reach"), Signal(name="pad")
        self.m.d.comb += [reach.eq(row + 1 >= self.held.rows), pad.eq(row >= self.held.rows)]
        return reach, pad

    def _ends_segment(self, row):
        """Whether a row of a block or a square is the last of a segment of W."""
        return row[:min(len(row), (self.height - 1).bit_length())].all()

    def _filled(self, pad, word):
        """Whether a word is one of zeros, those that fill up K along lanes counted, too."""
        self.word = word
        return pad | (word >= self.held.words) if self.pieces > 1 else pad

    def _last_word(self, word, last):
        """Whether a word is the last of its row, where without filling up it is the ``last``."""
        low = (self.pieces - 1).bit_length()
        return (word + 1 >= self.held.words) & (self.columns | word[:low].all()) if low else last

    def _last_square(self, number, last, count=1):
        """The same of squares, or groups of ``count`` of them."""
        low = (max(1, self.pieces // count) - 1).bit_length()
        return last & (~self.columns | number[:low].all()) if low else last

    def _within(self):
        """Blocks of a word or less: rows of a block, twice if need be, blocks of a square, words, squares of rows."""
        m, held, terms, side = self.m, self.held, self.terms, self.side
        low = (terms - 1).bit_length()
        loops = Loops(m, "loop", (low, 1, max(1, self.bits - low), 16, 17 - self.bits), self.start, self.step)
        r, phase, g, k, j = loops.counter
        row = Cat(r, *([g] if terms < side else []), j)
        reach, pad = self._ends(row)
        twice = (self.columns if not self.square else 1) if self.shared else 0
        stop, zeros = self.plain & reach, phase != twice
        if self.short:
            zeros |= self.columns & ~held.to_w & (r + 1 + held.rows[:self.bits] >= side)
        m.d.comb += [end.eq(value) for end, value in zip(loops.ends, (
            r.all() | stop | (reach & zeros), phase == twice, g.all() | stop if terms < side else 1,
            self._last_word(k, k + 1 == held.words), self._last_square(j, reach)), strict=True)]
        pad = self._filled(pad, k)
        source = loops.follow("source", ADDRESS_BITS, self.new.base,
                              (held.stride, None, held.stride << low, 1, held.stride << self.bits))
        target = loops.follow("target", ADDRESS_BITS, self.new.target,
                              (self.by_row, None, (self.by_row << low)[:ADDRESS_BITS], self.by_word, self.by_side))
        place = self._place(loops, lambda by: (by, None, by << low, 1, by << self.bits))
        return Step(source, target, pad, row[:self.bits], phase == twice, ~r.any(),
                    *((loops.ends[0],) * 2 if self.short else (row[:self.bits].all(), self._ends_segment(r))), place,
                    loops.last)

    def _across(self):
        """Blocks of several words: rows, words and squares of rows of a group, twice; words, groups of rows."""
        m, held, side = self.m, self.held, self.side
        count = self.terms // side
        # A group has as many words as a block, but where blocks run along rows; as many squares where they do not.
        square = Const(self.square, 1)
        wide, high = square | ~self.columns, square | self.columns
        size = max(1, (count - 1).bit_length())
        loops = Loops(m, "loop", (self.bits, size, size, 1, 16, 17 - self.bits), self.start, self.step)
        r, kk, j, phase, _, groups = loops.counter
        by_rows, by_words = Signal(ADDRESS_BITS, name="by_rows"), Signal(ADDRESS_BITS, name="by_words")
        m.d.comb += [by_rows.eq(Mux(high, count * side, side)), by_words.eq(Mux(wide, count, 1))]
        row = loops.follow("row", 17, 0, (1, None, side, None, None, by_rows))
        word = loops.follow("word", 17, 0, (None, 1, None, None, by_words, None))
        reach, pad = self._ends(row)
        end = Signal(name="last_word")
        m.d.comb += end.eq(self._last_word(word, word + 1 >= held.words))
        pad = self._filled(pad, word)
        m.d.comb += [each.eq(value) for each, value in zip(loops.ends, (
            r.all() | (self.plain & reach), (kk == count - 1) | end | ~wide, (j == count - 1) | ~high | (
                ~self.columns & reach), phase == 1, end, self._last_square(groups, reach, count)), strict=True)]
        far = Signal(ADDRESS_BITS, name="far")
        m.d.comb += far.eq(Mux(high, held.stride * count, held.stride) << self.bits)
        source = loops.follow("source", ADDRESS_BITS, self.new.base,
                              (held.stride, 1, held.stride << self.bits, None, by_words, far))
        target = loops.follow("target", ADDRESS_BITS, self.new.target, (
            self.by_row, self.by_word, self.by_side, None, Mux(wide, self.by_word * count, self.by_word)[:ADDRESS_BITS],
            Mux(high, self.by_side * count, self.by_side)[:ADDRESS_BITS]))
        opens = ~kk.any() & (~high | ~r.any() & ~j.any())
        place = self._place(loops, lambda by: (by, 1, by << self.bits, None, by_words,
                                               Mux(high, by * count, by) << self.bits))
        return Step(source, target, pad, r, phase, opens, r.all(), self._ends_segment(r), place, loops.last)
