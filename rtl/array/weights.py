"""Weight buffer: rows of weight tiles in, one word per column group out, on the diagonal."""

from dataclasses import dataclass
from itertools import count

from amaranth import Cat, Module, Mux, Shape, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.layout import ArrayLayout, index
from ..lib.memory import Ram
from ..lib.names import parameter
from ..lib.skew import delay
from ..lib.stages import Stages
from ..number.kinds import number_of
from ..number.streams import exponent_bits, row_layout, scale_layout


def weight_buffer_row(params):
    """A row of a tile as it is written."""
    return row_layout(params.element, params.cols, params.exponent, params.cols)


def spare_words(params, entry):
    """Fewest words beyond a tile with which a tile is whole in time while passes follow each other.

    Passes are as long as a tile has rows, or the longer interval, and rows of weights are offered in every cycle. Row r
    of the next tile has to be taken by cycle ``span - rows - 1 + r`` of the pass, and a word is free, to be filled
    again, in cycle ``entry + word_release + 1`` or ``step`` cycles after the word before. With this, tiles also come
    one behind the other, a row a cycle, where passes are shorter.

    Parameters
    ----------
    params : WeightBuffer.Parameters
    entry : int
        Cycles from the first row of a pass to ``start``.
    """
    rows, words, height = params.rows, params.words, params.group[0]
    late = max(rows, params.interval) - rows - 1
    return next(spare for spare in count(1) if spare >= words or all(
        entry + params.word_release + 1 + word * params.step <= late + (spare + word) * height
        for word in range(words - spare)))


class WeightBuffer(Component):
    """Holds :attr:`TILES` tiles of weights; the next is filled while the array takes up the last.

    A row is written whole, one bank for each column group; a word is what a group takes up at once. Column group j
    reads with an address that is j cycles late, so no weight is ever delayed in registers.

    Parameters
    ----------
    element : Shape
        One weight.
    rows, cols : int
        Rows and columns of a tile.
    group : tuple of int
        Rows kr and columns kc of a group.
    step : int
        Cycles from a group's word to that of the group below.
    exponent : int
        Bits of a shared exponent; 0 for numbers without.
    height : int
        Rows of a segment, each with exponents of its own.
    spare : int
        Words beyond one tile, at most as many as that has; 0: a whole tile, which is released as one. Else words are
        released one by one, as soon as the last column group is done with them; see :func:`spare_words`.
    registered : int
        Registers behind the words and exponents of the banks, for an FPGA: 0 or 1.

    Members
    -------
    i : ``In(stream)``
        Rows of tiles, R beats a tile.
    ready : ``Out(1)``
        A whole tile is there.
    start : ``In(1)``
        Take the next tile; only while ``ready``, at least ``interval`` cycles apart.
    weight : ``Out(weight_word).array``
        With ``start`` at cycle t - ``registered``: word i for column group j at ``t + i * step + j``.
    scale : ``Out(scale_layout).array``
        Exponents and invalid flags of the tile by segment and column group: segment s from ``t + (s + 1) * h - 1``
        on, h groups a segment, for two cycles more than there are column groups: sums may be a cycle later where
        elements have registers. Only if the design has exponents.
    """
    kind, area, apart = "weights", "weight load", True
    #: Tiles that fit, or at least their exponents.
    TILES = 2

    @dataclass(frozen=True)
    class Parameters:
        element: Shape = parameter("m")
        rows: int = parameter("r")
        cols: int = parameter("c")
        group: tuple[int, int] = parameter("g")
        step: int = parameter("s", 1)
        exponent: int = parameter("e", 0)
        height: int = parameter("h", 0)
        spare: int = parameter("w", 0)
        registered: int = parameter("rg", 0, rare=True)

        @property
        def kept(self):
            """A weight as it is kept and given out."""
            return self.element

        @property
        def words(self):
            """Words of a tile in each column group."""
            return self.rows // self.group[0]

        @property
        def size(self):
            """Words of each column group's bank."""
            return self.words + (self.spare or self.words)

        @property
        def groups(self):
            """Column groups."""
            return self.cols // self.group[1]

        @property
        def interval(self):
            """Fewest cycles between two starts: every word of a tile is read, every column has its exponents."""
            return max(self.words * self.step, self.groups + 2)

        @property
        def release(self):
            """Cycles from a start until the next rows may be written: then no row catches up with the reading."""
            return self.groups + (self.words - 1) * max(self.step - self.group[0], 0)

        @property
        def word_release(self):
            """Cycles from a start until the tile's first word counts as released; the others follow ``step`` apart.

            A row may be written from the next cycle on: in that one the last column group asks for the word after it.
            Where a row is a word, its exponents, which sums a cycle later still need, keep it for a cycle more.
            """
            return max(self.groups - (3 if self.group[0] > 1 else 2), 0)

        @property
        def scale(self):
            """Exponents and flags of a column group."""
            return scale_layout(self.exponent, self.group[1])

        @classmethod
        def of(cls, design):
            """The weight buffer of a design."""
            number, registered = number_of(design), int(design.on_fpga)
            usual = (number.element, design.rows, design.cols, design.group, number.step, exponent_bits(design),
                     design.height if design.blocked else 0)
            entry = int(Stages.of(design).free) - registered
            return cls(*usual, spare_words(cls(*usual), entry) if design.weight_tiles == 1 else 0, registered)

    @staticmethod
    def ports(params):
        (kr, kc), exponent = params.group, params.exponent
        members = {"i": In(stream.Signature(weight_buffer_row(params))), "ready": Out(1), "start": In(1),
                   "weight": Out(ArrayLayout(ArrayLayout(params.kept, kc), kr)).array(params.groups)}
        if exponent:
            members["scale"] = Out(params.scale).array(params.rows // params.height, params.groups)
        return members

    @property
    def latencies(self):
        """``interval``: fewest between two starts. ``release``: from a start until its rows may be overwritten, or
        those of its first word, and the next ones ``word`` apart."""
        params = self.params
        if params.spare:
            return {"interval": params.interval, "release": params.word_release, "word": params.step}
        return {"interval": params.interval, "release": params.release}

    def body(self, platform):
        m, params = Module(), self.params
        words, step = params.words, params.step
        kr, _ = params.group

        # Fill: rows in order, tile after tile.
        row = Signal(index(kr))
        size = params.size
        word = Signal(range(size))
        slot = Signal(range(self.TILES))
        tile_row = Signal(index(params.rows))
        filled = Signal(range(self.TILES + 1))
        most = size if params.spare else self.TILES    # words, or tiles
        taken = Signal(range(most + 1))
        beat = Signal()
        tile_done = Signal()
        released = Signal()
        m.d.comb += [self.i.ready.eq(taken != most), beat.eq(self.i.valid & self.i.ready),
                     tile_done.eq(beat & (tile_row == params.rows - 1)),
                     released.eq(delay(m, self.start, params.release, "start", reset_less=False))]
        with m.If(beat):
            m.d.sync += [row.eq(row + 1), tile_row.eq(tile_row + 1)]
            with m.If(row == kr - 1):
                m.d.sync += [row.eq(0), word.eq(word + 1)]
                with m.If(word == size - 1):
                    m.d.sync += word.eq(0)
        with m.If(tile_done):
            m.d.sync += [tile_row.eq(0), slot.eq(slot + 1)]
        # A slot, or a word where there is not room for two tiles, counts as taken from its first row on, until it is
        # released.
        opened = row if params.spare else tile_row
        let_go = Signal(name="word_released") if params.spare else released
        m.d.sync += taken.eq(taken + (beat & (opened == 0)) - let_go)
        with m.If((taken == most) & (opened != 0)):
            m.d.comb += self.i.ready.eq(1)
        # One cycle late, so that a word just written can be read.
        done = Signal()
        m.d.sync += [done.eq(tile_done), filled.eq(filled + done - self.start)]
        m.d.comb += self.ready.eq(filled != 0)

        # Read: the address runs one ahead of the word on the bus.
        pointer, following, tile_word = (Signal(range(size), name=name)
                                      for name in ("pointer", "following", "tile_word"))
        m.d.comb += following.eq(pointer)
        m.d.sync += pointer.eq(following)
        advance = self.start | (tile_word != 0)
        if step > 1:    # each word stays until its group row needs it
            phase = Signal(range(step))
            advance = self.start | (tile_word != 0) & (phase == 0)
            m.d.sync += phase.eq(Mux(advance, step - 1, Mux(phase == 0, 0, phase - 1)))
        with m.If(advance):
            m.d.comb += following.eq(pointer + 1)
            with m.If(pointer == size - 1):
                m.d.comb += following.eq(0)
            m.d.sync += tile_word.eq(tile_word + 1)
            with m.If(tile_word == words - 1):
                m.d.sync += tile_word.eq(0)

        if params.spare:
            m.d.comb += let_go.eq(delay(m, advance, params.word_release, "advance", reset_less=False))
        self._banks(m, beat, row, word, following)
        if params.exponent:
            self._scales(m, beat, tile_row, slot, released)
        return m

    def _banks(self, m, beat, row, word, address):
        """Mantissas: a bank a column group, read one cycle later than that of the group before."""
        params, weights = self.params, self._rows(m, row)
        kr, kc = params.group
        for j in range(params.groups):
            bank = Ram(params.size, kr * kc * Shape.cast(params.kept).width, kr)
            m.submodules[f"bank{j}"] = bank
            columns = Cat(weights[j * kc + c] for c in range(kc))
            m.d.comb += [bank.w_en.eq(beat << row), bank.w_addr.eq(word), bank.w_data.eq(columns.replicate(kr)),
                         bank.r_en.eq(1), bank.r_addr.eq(address),
                         self.weight[j].eq(delay(m, bank.r_data, params.registered, f"weight{j}"))]
            if j + 1 < params.groups:
                address = delay(m, address, 1, f"address{j}", reset_less=False)

    def _rows(self, m, row):
        """The weights of this beat, row ``row`` of its groups, as they are kept."""
        return [self.i.payload.mantissa[column] for column in range(self.params.cols)]

    def _scales(self, m, beat, tile_row, slot, released):
        """Exponents and flags of the columns: a bank a segment, with a word a tile."""
        params, groups = self.params, self.params.groups
        kr, kc = params.group
        per_segment, size = params.height // kr, params.scale.size
        for s in range(params.rows // params.height):
            m.submodules[f"scale{s}"] = bank = Ram(self.TILES, size * groups)
            # Every column group has taken its exponents: on to the next tile's.
            advance = delay(m, released, (s + 1) * per_segment - 1, f"advance{s}", reset_less=False)
            current = Signal(range(self.TILES), name=f"current{s}")
            with m.If(advance):
                m.d.sync += current.eq(current + 1)
            m.d.comb += [bank.w_en.eq(beat & (tile_row == (s + 1) * params.height - 1)), bank.w_addr.eq(slot),
                         bank.r_en.eq(1), bank.r_addr.eq(current)]
            data = delay(m, bank.r_data, params.registered, f"words{s}")
            for j in range(groups):
                columns = range(j * kc, (j + 1) * kc)
                m.d.comb += [bank.w_data.word_select(j, size).eq(Cat(
                    *(self.i.payload.exponent[c] for c in columns), *(self.i.payload.invalid[c] for c in columns))),
                    self.scale[s][j].eq(data.word_select(j, size))]
