"""The transposer: rows of a square of mantissas in, its columns out."""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import ArrayLayout, index
from ..lib.memory import Ram
from ..lib.names import parameter
from ..lib.pick import pick
from .layouts import ADDRESS_BITS


def rotated(m, name, value, size, amount):
    """``value`` with its parts of ``size`` bits moved up by ``amount`` places; those beyond the top come in below."""
    for bit, by in enumerate(amount):
        moved = Signal(len(value), name=f"{name}{bit}")
        m.d.comb += moved.eq(Mux(by, value.rotate_left(size << bit), value))
        value = moved
    return value


class Transposer(Component):
    """Two squares of mantissas in as many banks as they have columns: one is filled while the other is read.

    Element l of row c is in bank (l + c) mod side, at address c: a row lies in all banks, and so does a column. Two
    rotators move elements to banks and back.

    Rows of a square come in order, one in any cycle. When the last has come, in cycle t, its columns leave in cycles
    t + 2 to t + side + 1. The next square's last row must come no sooner than ``side`` cycles after this one's. Of a
    ``short`` square the last row that comes is any; those behind it are zeros.

    Exponents are kept beside: those of a row's segments come with the row (for W, whose columns are other blocks),
    those of a segment of all columns in the cycle before its last row or sooner (for X, whose rows were columns).

    Parameters
    ----------
    side : int
        Rows and columns, a power of two.
    width : int
        Bits of a mantissa.
    scale : int
        Bits of an exponent with its flag; 0 where there are none, nor any port for them.
    segments : int
        Blocks of a row, each with an exponent.
    apart : bool
        Whether columns may lie apart.
    short : bool
        Whether rows may be missing.

    Members
    -------
    i_en, i_row, i, i_scale : ``In``
        A row: its number, its mantissas, exponents of its segments.
    i_address : ``In``
        Address of the square's first column; the one that comes with the last row counts.
    i_last : ``In(1)``
        Only where squares may be ``short``: the row is its square's last one.
    i_apart : ``In``
        Only where they may lie ``apart``: how far, in addresses, columns are from each other; stays while the
        transposer is busy.
    i_turned : ``In(1)``
        Exponents are those of columns, not of rows; stays while the transposer is busy.
    i_scales_en, i_segment, i_scales : ``In``
        Exponents of all columns in a segment of rows; one cycle before the row that ends it comes.
    o_en, o_address, o : ``Out``
        A column, as a row of mantissas, and its address, that of the first plus its number, if they are not apart.
    o_scale_en, o_scale : ``Out``
        With the last column of a segment: exponents of the segment in each row.
    o_scales : ``Out``
        With each column: exponents of its segments.
    busy : ``Out(1)``
        Columns are to leave.
    """
    kind, area, apart = "transposer", "transposer", True

    @dataclass(frozen=True)
    class Parameters:
        side: int = parameter("n")
        width: int = parameter("m")
        scale: int = parameter("e")
        segments: int = parameter("s", 1)
        apart: bool = parameter("apart", False, rare=True)
        short: bool = parameter("short", False, rare=True)

    @staticmethod
    def ports(params):
        row, number = ArrayLayout(params.width, params.side), index(params.side)
        members = {"i_en": In(1), "i_row": In(number), "i": In(row), "i_address": In(ADDRESS_BITS)}
        if params.apart:
            members["i_apart"] = In(ADDRESS_BITS)
        if params.short:
            members["i_last"] = In(1)
        if params.scale:
            of_row = ArrayLayout(params.scale, params.segments)
            members |= {"i_scale": In(of_row), "i_turned": In(1), "i_scales_en": In(1),
                        "i_segment": In(index(params.segments)), "i_scales": In(ArrayLayout(params.scale, params.side))}
        members |= {"o_en": Out(1), "o_address": Out(ADDRESS_BITS), "o": Out(row)}
        if params.scale:
            members |= {"o_scale_en": Out(1), "o_scale": Out(ArrayLayout(params.scale, params.side)),
                        "o_scales": Out(of_row)}
        return members | {"busy": Out(1)}

    @property
    def latencies(self):
        """``result``: from a square's last row to its first column."""
        return {"result": 2}

    def body(self, platform):
        m, params = Module(), self.params
        side, width = params.side, params.width
        slot, source, reading, complete = (Signal(name=name) for name in ("slot", "source", "reading", "complete"))
        column = Signal(index(side))
        leaving = Signal(index(side))
        first = Signal(ADDRESS_BITS, reset_less=True)
        ends = self.i_last if params.short else self.i_row == side - 1
        m.d.comb += [complete.eq(self.i_en & ends), self.busy.eq(reading | self.o_en)]
        m.d.sync += [self.o_en.eq(reading), leaving.eq(column),
                     self.o_address.eq(first if params.apart else first + column)]
        with m.If(reading):
            if params.apart:
                m.d.sync += first.eq(first + self.i_apart)
            m.d.sync += column.eq(column + 1)
            with m.If(column == side - 1):
                m.d.sync += reading.eq(0)
        with m.If(complete):
            m.d.sync += [slot.eq(~slot), source.eq(slot), reading.eq(1), column.eq(0), first.eq(self.i_address)]

        spread = rotated(m, "spread", self.i.as_value(), width, self.i_row)
        words = []
        for number in range(side):
            m.submodules[f"bank{number}"] = bank = Ram(2 * side, width)
            m.d.comb += [bank.w_en.eq(self.i_en), bank.w_addr.eq(Cat(self.i_row, slot)),
                         bank.w_data.eq(spread.word_select(number, width)),
                         bank.r_en.eq(reading), bank.r_addr.eq(Cat((number - column)[:len(column)], source))]
            words.append(bank.r_data)
        back = Signal(len(leaving))
        turned = rotated(m, "back", Cat(words), width, back)
        if params.short:    # rows that did not come
            last, there = (Signal(index(side), name=name, reset_less=True) for name in ("last", "there"))
            with m.If(complete):
                m.d.sync += last.eq(self.i_row)
            m.d.sync += there.eq(last)    # of the column that leaves
            rows = [turned.word_select(row, width) for row in range(side)]
            turned = Cat(rows[0], *(value & (there >= row).replicate(width) for row, value in enumerate(rows) if row))
        m.d.comb += [back.eq(-leaving), self.o.as_value().eq(turned)]

        if params.scale:
            self._scales(m, slot ^ (self.i_turned & complete), reading, source, leaving)
        return m

    def _scales(self, m, slot, reading, source, leaving):
        """Exponents of a square: those of segment s of row n, or of column n, are part n segments + s of a word."""
        side, segments, scale = self.params.side, self.params.segments, self.params.scale
        m.submodules.scales = scales = Ram(2, scale * segments * side, side * segments)
        low = (side // segments - 1).bit_length()
        m.d.comb += [scales.w_addr.eq(slot), scales.r_en.eq(reading), scales.r_addr.eq(source),
                     self.o_scale_en.eq(self.o_en & leaving[:low].all())]
        kept = []
        for number in range(side):
            for segment in range(segments):
                part = number * segments + segment
                of_columns = self.i_scales_en & (self.i_segment == segment)
                m.d.comb += [
                    scales.w_en[part].eq(Mux(self.i_turned, of_columns, self.i_en & (self.i_row == number))),
                    scales.w_data.word_select(part, scale).eq(
                        Mux(self.i_turned, self.i_scales[number], self.i_scale[segment]))]
            kept.append([scales.r_data.word_select(number * segments + s, scale) for s in range(segments)])
            m.d.comb += self.o_scale[number].eq(pick(kept[number], leaving[low:]))
        for segment, into in enumerate(self.o_scales):
            m.d.comb += into.eq(pick([of_column[segment] for of_column in kept], leaving))
