"""The unit convert: a matrix of FP32 numbers in V to blocks in X or W."""

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from hbfp.arithmetic import KINDS
from hbfp.format import HBFPFormat
from hbfp.golden.spec.noise import NUMBER
from hbfp.isa.instructions import EXTRAS, Opcode
from hbfp.sparsity import DENSE

from ..convert.encode_lane import (
    FIELD,
    FRACTION,
    EncodeLane,
    clamped_field,
    larger_field,
    largest_field,
    least_field,
)
from ..convert.numbers import Numbers
from ..convert.prune import larger
from ..fp32.convert import ToBf16, ToFp16, ToInt8
from ..lib.component import Component
from ..lib.layout import StructLayout, index
from ..lib.names import parameter
from ..lib.pick import pick
from ..lib.signals import named
from ..lib.skew import delay
from .block_order import BlockOrder
from .layouts import ADDRESS_BITS
from .signatures import unit_members, v_read, w_index_write, w_scales_write, w_write, x_write
from .sizes import Sizes
from .transposer import Transposer

#: Numbers of fewer bits than FP32, which share no exponents -> what rounds to them.
_ROUNDED = {"bf16": ToBf16, "fp16": ToFp16, "int8": ToInt8}


class Convert(Component):
    """Converts a matrix of V to blocks, a word a cycle, and writes them by rows or columns to X or W.

    Three stages. A word is *asked for* on ``read``; a row beyond the matrix is a word of zeros and needs no grant. One
    cycle after the grant it is *measured* or *converted*; one later its mantissas are *written* to X or W, or into the
    transposer. A block that is one word of a row, or less, is measured and converted in the same cycle; of any other
    all words come to be measured, and then once more to be converted; numbers that share no exponents (``plain``, an
    arithmetic) are converted as they come. One word is asked for in every cycle, in the
    order of :class:`~rtl.accelerator.block_order.BlockOrder`; only ``read`` may refuse. The writes have to be granted
    at once.

    Of wide mantissas an instruction writes half: to X one digit of each, to W both digits of every other column, which
    lie in a pair of columns. Where rows are columns of W each row of the half comes twice, in place of its neighbour.

    With stochastic rounding the numbers of a word's elements are drawn while it is on its way
    (:class:`~rtl.convert.numbers.Numbers`); an instruction that draws none rounds to nearest.

    Where weights may be sparse, an instruction may *prune*: of each group of lanes only the largest elements count.
    Sparse ones go on to W without the others, in the first lanes, and their places in their groups in the last ones; so
    of a square's columns the first are rows of W, the last ones of its indices, and those in between nothing.

    Where units are ``registered``, a word of V passes a register before it is measured, and its block's exponent
    another one before it is converted, in two cycles: all that is said here of cycles comes three later.

    An instruction is taken when the unit is idle. With n words to ask for (those of zeros, and both times where words
    come twice, counted) and all grants at once, it is idle again and ``done`` is high n + 3 cycles after the
    instruction is taken; if it is transposed, n + 4 + C cycles: the last square leaves the transposer. A row of W, or
    a word of X, is written in each of these C cycles, and so for earlier squares, while the next one comes.

    Members
    -------
    instruction, held, done, fault :
        :func:`~rtl.accelerator.signatures.unit_members`; nothing is refused.
    seed : ``In(32)``
        Only with stochastic rounding: the register, a part of every key.
    read : ``Out(v_read)``
    x, w, scales : ``Out(x_write)``, ``Out(w_write)``, ``Out(w_scales_write)``
        Exponents of a segment of W are written with its last row; numbers without have no ``scales``.
    index : ``Out(w_index_write)``
        Only where weights may be sparse.
    """
    kind, area, apart = "convert", "converter", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        format: HBFPFormat = parameter("")
        lanes: int = parameter("l")
        packed: int = parameter("p")
        segments: int = parameter("s", 1)
        wide: int = parameter("wide", 0)
        plain: str = parameter("", "")
        sparse: tuple[int, int] = parameter("sparse", DENSE, rare=True)
        word_pieces: int = parameter("wp", 1, rare=True)
        row_pieces: int = parameter("rp", 1, rare=True)
        registered: bool = parameter("rg", False, rare=True)

        @property
        def takes_sparse(self):
            """Whether conversions may be of sparse weights."""
            return self.sparse != DENSE

        @property
        def index(self):
            """Bits of the place of a sparse weight in its group."""
            return (self.sparse[1] - 1).bit_length()

        @property
        def rows(self):
            """Rows of W that a word of V has, of sparse weights."""
            return self.lanes * self.sparse[0] // self.sparse[1]

        @property
        def blocks(self):
            """Blocks of a word of V, or 1."""
            return 1 if self.plain else max(1, self.lanes // self.format.terms)

        @property
        def height(self):
            """Rows of a segment of W."""
            return self.lanes // self.word_pieces * self.row_pieces // self.segments

        @property
        def oblong(self):
            """Whether a word of V and a row of the core differ."""
            return self.word_pieces != self.row_pieces

        @property
        def mantissa(self):
            """Bits of an element."""
            return (KINDS[self.plain].bits if self.plain else None) or self.format.mantissa

        @property
        def exponent(self):
            """Bits of an exponent; 0 for numbers without."""
            return 0 if self.plain else self.format.exponent

        @property
        def stochastic(self):
            """Whether conversions may draw numbers."""
            return self.format.rounding == "stochastic"

        @property
        def extras(self):
            """What its instructions have that not all accelerators' have."""
            has = {"stochastic": self.stochastic, "wide": self.wide, "sparse": self.takes_sparse}
            return tuple(extra for extra in EXTRAS if has.get(extra))

    @staticmethod
    def ports(params):
        return unit_members(Opcode.CONVERT, params.extras) | ({"seed": In(32)} if params.stochastic else {}) | {
            "read": Out(v_read(params)), "x": Out(x_write(params)), "w": Out(w_write(params))} | (
            {"scales": Out(w_scales_write(params))} if params.exponent else {}) | (
            {"index": Out(w_index_write(params))} if params.takes_sparse else {})

    def body(self, platform):
        m, params = Module(), self.params
        new, held = self.instruction.payload, self.held
        active, start, step = (Signal(name=name) for name in ("active", "start", "step"))
        order = BlockOrder(m, params.format, params.lanes, new, held, start, step, bool(params.wide),
                           params.exponent > 0, params.lanes // params.rows, params.height, params.row_pieces)
        now = order.walk()
        m.d.comb += [self.read.en.eq(active & ~now.pad), self.read.addr.eq(now.source),
                     step.eq(active & (now.pad | self.read.grant))]
        with m.If(step & now.last):
            m.d.sync += active.eq(0)
        with m.If(start):
            m.d.sync += [active.eq(1)]

        # What is known of the word that V gives one cycle later, and of its mantissas one cycle after that.
        given = Signal(StructLayout({"valid": 1, "pad": 1, "convert": 1, "opens": 1, "ends": 1, "segment": 1,
                                     "row": index(params.lanes), "target": ADDRESS_BITS}), name="word")
        m.d.sync += given.valid.eq(step)
        with m.If(step):
            m.d.sync += [getattr(given, name).eq(getattr(now, name))
                         for name in ("pad", "convert", "opens", "ends", "segment", "row", "target")]
        word = delay(m, given, params.registered, "measured", reset_less=False)
        scaled = delay(m, word, params.registered, "scaled", reset_less=False)
        aligned = delay(m, scaled, params.registered, "aligned", reset_less=False)
        later = Signal.like(given, name="later")
        m.d.sync += [later.eq(aligned), later.valid.eq(aligned.valid & aligned.convert)]
        if params.stochastic:    # they are there with the word that is converted
            m.submodules.numbers = numbers = Numbers(params.lanes)
            late = 2 * params.registered
            m.d.comb += [numbers.en.eq(delay(m, step, late, "asks", reset_less=False)),
                         numbers.key.eq(held.key ^ self.seed), numbers.word.eq(delay(m, now.place, late, "place"))]
        data = [delay(m, value, params.registered, f"data{n}") for n, value in enumerate(self.read.data)]
        mantissas, exponents = self._plain(m, word, data) if params.plain else self._lanes(m, word, data, order.columns)
        if params.wide:
            mantissas, exponents = self._digits(m, later, mantissas, exponents)
        if params.takes_sparse:
            mantissas = self._compressed(m, mantissas)
        self._write(m, held, order, aligned, later, mantissas, exponents)

        busy = Signal()
        was_busy = Signal()
        stages = [each.valid for each in ((given, word, scaled, aligned) if params.registered else (given,))]
        m.d.comb += [busy.eq(active | reduce(or_, stages) | later.valid | m.submodules.transposer.busy),
                     self.instruction.ready.eq(~busy), self.done.eq(was_busy & ~busy),
                     start.eq(self.instruction.valid & self.instruction.ready)]
        m.d.sync += was_busy.eq(busy)
        return m

    def _plain(self, m, word, data):
        """Elements of the word one cycle later, which share no exponents."""
        params = self.params
        elements = []
        for n, value in enumerate(data):
            given = named(m, value & ~word.pad.replicate(len(value)), f"element{n}")
            element = Signal(params.mantissa, name=f"mantissa{n}", reset_less=True)
            if params.plain in _ROUNDED:
                m.submodules[f"lane{n}"] = lane = _ROUNDED[params.plain](subnormals="flush", enable=False)
                m.d.comb += lane.a.eq(given)
                given = lane.o
            m.d.sync += element.eq(delay(m, given, 2 * params.registered, f"rounded{n}"))
            elements.append(element)
        return elements, []

    def _lanes(self, m, word, given, columns):
        """Mantissas of the word one cycle later; exponent and flag, in one number, of each lane's block, at once.

        Where units have registers, each comes two cycles later.
        """
        params = self.params
        fmt, lanes, terms = params.format, params.lanes, params.format.terms
        data = [Signal(32, name=f"element{lane}") for lane in range(lanes)]
        m.d.comb += [element.eq(Cat(value[:FRACTION], value[FRACTION:-1] & ~word.pad.replicate(FIELD), value[-1]))
                     for element, value in zip(data, given, strict=True)]
        if params.takes_sparse:
            data = self._pruned(m, data)
        size = min(terms, lanes)
        largest = [Signal(FIELD, name=f"largest{s}") for s in range(params.blocks)]
        search = larger_field if params.registered else largest_field
        m.d.comb += [field.eq(search(m, data[s * size:(s + 1) * size])) for s, field in enumerate(largest)]
        tops = (self._tops_of_tiles if fmt.square else self._tops_of_rows)(m, word, columns, data, largest)

        widest = replace(fmt, mantissa=params.wide or fmt.mantissa)
        mantissas = [Signal(widest.mantissa, name=f"mantissa{lane}", reset_less=True) for lane in range(lanes)]
        exponents = []
        for n, (element, top, mantissa) in enumerate(zip(data, tops, mantissas, strict=True)):
            element, top = (delay(m, value, params.registered, f"{name}{n}")
                            for name, value in (("scaled_element", element), ("scaled_top", top)))
            m.submodules[f"lane{n}"] = lane = EncodeLane(widest, narrow=fmt.mantissa if params.wide else 0,
                                                         choice=params.stochastic, registers=int(params.registered))
            if params.stochastic:
                m.d.comb += [lane.noise.eq(m.submodules.numbers.o[n][NUMBER - fmt.noise_bits:]),
                             lane.nearest.eq(~self.held.stochastic)]
            clamped, exponent = clamped_field(m, fmt, top), Signal(signed(fmt.exponent), name=f"exponent{n}")
            base = clamped
            if params.wide:    # a narrow mantissa is the same number with as many bits less
                base = Signal(FIELD + 1, name=f"base{n}")
                m.d.comb += [base.eq(clamped + Mux(self.held.wide, 0, params.wide - fmt.mantissa)), lane.base.eq(base),
                             lane.wide.eq(self.held.wide)]
            m.d.comb += [lane.i.eq(element), lane.top.eq(clamped), lane.least.eq(least_field(m, widest, base)),
                         exponent.eq(clamped - 126)]
            exponent, invalid = (delay(m, value, params.registered, f"{name}{n}")
                                 for name, value in (("exponent_late", exponent), ("invalid_late", top.all())))
            m.d.sync += mantissa.eq(lane.o & ~invalid.replicate(widest.mantissa))
            exponents.append(Cat(exponent, invalid))
        return mantissas, exponents

    def _pruned(self, m, data):
        """The elements, of which those that a group of lanes loses are zero if the instruction prunes."""
        kept, group = self.params.sparse
        self._stay, pruned = [], []
        for first in range(0, len(data), group):
            elements = data[first:first + group]
            beaten = larger(m, [element[:31] for element in elements], f"g{first}")
            for lane, (element, by) in enumerate(zip(elements, beaten, strict=True), first):
                stays = Signal(name=f"stays{lane}")
                stayed = Signal(name=f"stayed{lane}", reset_less=True)    # with the mantissa
                m.d.comb += stays.eq(sum(by, 0) < kept)
                m.d.sync += stayed.eq(stays)
                pruned.append(named(m, element & (stays | ~self.held.prune).replicate(32), f"pruned{lane}"))
                self._stay.append(stayed)
        return pruned

    def _compressed(self, m, mantissas):
        """What is written lane by lane; of sparse weights first what stays, group by group, and last where it stood."""
        params = self.params
        kept, group = params.sparse
        written = list(mantissas)
        for number in range(params.rows):
            first, place = number // kept * group, number % kept
            value, where = 0, 0
            for at in range(place, place + group - kept + 1):
                lane = first + at
                chosen = self._stay[lane] & (sum(self._stay[first:lane], Const(0, 1)) == place)
                value |= mantissas[lane] & chosen.replicate(params.mantissa)
                where |= Mux(chosen, at, 0)
            for lane, sparse in ((number, value), (params.lanes - params.rows + number, where)):
                written[lane] = Signal(params.mantissa, name=f"written{lane}")
                m.d.comb += written[lane].eq(Mux(self.held.sparse, sparse, mantissas[lane]))
        return written

    def _sparse(self, m, transposer):
        """Whether a column of the transposer is a row of W, and the address of rows that come late; writes indices."""
        params, held = self.params, self.held
        column, late = Signal(range(params.lanes)), Signal(ADDRESS_BITS, name="late")
        m.d.sync += column.eq(column + transposer.o_en)    # squares leave whole
        m.d.comb += [late.eq(transposer.o_address - (params.lanes - params.rows)),
                     self.index.en.eq(transposer.o_en & held.sparse & (column >= params.lanes - params.rows)),
                     self.index.addr.eq(late),
                     *(into.eq(value) for into, value in zip(self.index.data, transposer.o, strict=True))]
        return ~held.sparse | (column < params.rows), late

    def _digits(self, m, later, mantissas, exponents):
        """What of mantissas and exponents is written, lane by lane: of wide ones digits; see :meth:`_write`.

        X takes one digit of each. W takes both of every other lane where lanes are columns, and else of a row one: rows
        come twice, their low digits first.
        """
        held, low = self.held, self.params.mantissa - 1
        high = [Signal(signed(self.params.mantissa), name=f"high{n}") for n, _ in enumerate(mantissas)]
        rest = [Signal(signed(self.params.mantissa), name=f"low{n}") for n, _ in enumerate(mantissas)]
        for mantissa, above, below in zip(mantissas, high, rest, strict=True):
            lowest = 0
            if self.params.wide == 2 * self.params.mantissa - 1:    # no digit: one more, and the low one makes up
                lowest = mantissa[-1] & ~mantissa[low:-1].any()
            m.d.comb += [above.eq(mantissa[low:].as_signed() | lowest), below.eq(Cat(mantissa[:low], lowest))]
        pairs, upper = Signal(name="pairs"), Signal(name="upper")
        m.d.comb += [pairs.eq(held.wide & held.to_w & held.columns),
                     upper.eq(Mux(held.to_w, later.row[0], ~held.part))]
        written, scales = [], []
        for n, (above, below) in enumerate(zip(high, rest, strict=True)):
            even, odd = n & ~1, n | 1
            digit = high if n % 2 else rest
            written.append(value := Signal(self.params.mantissa, name=f"digit{n}"))
            m.d.comb += value.eq(Mux(pairs, Mux(held.part, digit[odd], digit[even]),
                                     Mux(held.wide, Mux(upper, above, below), mantissas[n][:low + 1])))
            scales.append(Mux(pairs, Mux(held.part, exponents[odd], exponents[even]), exponents[n]))
        return written, scales

    def _running(self, m, name, opens, enable, field):
        """The largest field since ``opens``."""
        largest = Signal(FIELD, name=name, reset_less=True)
        with m.If(enable & (opens | (field > largest))):
            m.d.sync += largest.eq(field)
        return largest

    def _tops_of_tiles(self, m, word, columns, data, largest):
        """The field of each lane's block, for square blocks: measured by segment."""
        measure = word.valid & ~word.convert
        tops = [self._running(m, f"top{s}", word.opens, measure, field) for s, field in enumerate(largest)]
        return [tops[lane // (len(data) // len(tops))] for lane in range(len(data))]

    def _tops_of_rows(self, m, word, columns, data, largest):
        """The field of each lane's block, for blocks (1, B): measured by column, or by row if it is several words."""
        long = self.params.format.terms > len(data)
        fields = [element[FRACTION:-1] for element in data]
        measured = []
        for lane, field in enumerate(fields):
            mine = columns | (word.row == lane) if long else columns
            value = Signal(FIELD, name=f"measured{lane}")
            m.d.comb += value.eq(Mux(columns, field, largest[0]) if long else field)
            measured.append(self._running(m, f"top{lane}", word.opens, word.valid & ~word.convert & mine, value))
        by_row = [pick(measured, word.row)] if long else largest
        tops = []
        for lane, field in enumerate(measured):
            top = Signal(FIELD, name=f"field{lane}")
            m.d.comb += top.eq(Mux(columns, field, by_row[lane // (len(data) // len(by_row))]))
            tops.append(top)
        return tops

    def _write(self, m, held, order, word, later, mantissas, exponents):
        """Mantissas to X, W and the transposer, and those that come from there to W; exponents with them."""
        params = self.params
        size, blocks = params.exponent, params.blocks
        scale = size + 1 if size else 0
        m.submodules.transposer = transposer = Transposer(params.lanes, params.mantissa, scale, blocks, params.oblong,
                                                          order.short)
        row = Signal(params.mantissa * params.lanes)
        leaves, late = self._sparse(m, transposer) if params.takes_sparse else (None, None)
        turned_en = transposer.o_en if leaves is None else transposer.o_en & leaves
        if order.short:
            m.d.comb += transposer.i_last.eq(later.ends)
        if params.oblong:    # rows of X lie as far apart as its words are of rows, those of W behind each other
            m.d.comb += transposer.i_apart.eq(Mux(held.to_w, 1, held.target_word >> (params.lanes - 1).bit_length()))
        m.d.comb += [
            self.x.en.eq(Mux(order.columns, transposer.o_en, later.valid) & ~held.to_w),
            self.x.addr.eq(Mux(order.columns, transposer.o_address, later.target)),
            Cat(piece.mantissa for piece in self._pieces()).eq(
                Mux(order.columns, transposer.o.as_value(), Cat(mantissas))),
            transposer.i_en.eq(later.valid & order.turned), transposer.i_row.eq(later.row),
            transposer.i_address.eq(later.target), transposer.i.eq(Cat(mantissas)),
            self.w.en.eq(Mux(order.columns, later.valid, turned_en) & held.to_w),
            self.w.addr.eq(Mux(order.columns, later.target, transposer.o_address)),
            self.w.mask.eq(1 << self.w.addr[:(params.packed - 1).bit_length()]),
            row.eq(Mux(order.columns, Cat(mantissas), transposer.o.as_value())),
            self.w.data.eq(row.replicate(params.packed)),
        ]
        if size:
            self._scales(m, held, order, word, exponents, transposer, late)

    def _pieces(self):
        """What of X is written at once, piece by piece."""
        return [self.x.data] if self.params.word_pieces == 1 else list(self.x.data)

    def _scales(self, m, held, order, word, exponents, transposer, late):
        """Exponents and flags beside the mantissas."""
        params, size, blocks = self.params, self.params.exponent, self.params.blocks
        part = params.lanes // blocks
        turned_address = transposer.o_address if late is None else Mux(held.sparse, late, transposer.o_address)
        of_row = [Signal(size + 1, name=f"row_exponent{s}", reset_less=True) for s in range(blocks)]
        m.d.sync += [into.eq(exponents[s * part]) for s, into in enumerate(of_row)]
        # A segment of W may be a part of a block that is turned: each has the block's exponents.
        ends = transposer.o_scale_en if params.height >= part else (
            transposer.o_en & transposer.o_address[:(params.height - 1).bit_length()].all())
        m.d.comb += [
            transposer.i_scale.eq(Cat(of_row)), transposer.i_turned.eq(order.columns),
            transposer.i_scales.eq(Cat(exponents)),
            transposer.i_scales_en.eq(word.valid & word.convert & word.segment & ~held.to_w),
            transposer.i_segment.eq(word.row[(part - 1).bit_length():]),
            # Of columns the exponents are known from the first row of the segment on.
            self.scales.addr.eq(Mux(order.columns, word.target, turned_address)),
        ]
        if late is not None and params.height < params.rows:    # a word of V has several segments of sparse weights
            ends = Mux(held.sparse, self.index.en & late[:(params.height - 1).bit_length()].all(), ends)
        elif late is not None and params.height < part:
            ends = Mux(held.sparse, transposer.o_scale_en, ends)
        m.d.comb += self.scales.en.eq(
            held.to_w & Mux(order.columns, word.valid & word.convert & word.segment, ends))
        scales = [Mux(order.columns, transposer.o_scales[s], exponent) for s, exponent in enumerate(of_row)]
        places = [(piece.exponent[s], piece.invalid[s]) for piece in self._pieces() for s in range(len(piece.exponent))]
        for n, (exponent, invalid) in enumerate(places):
            scale = scales[n * blocks // len(places)]
            m.d.comb += [exponent.eq(scale[:size]), invalid.eq(scale[size])]
        for n, exponent in enumerate(exponents):
            scale = Mux(order.columns, exponent, transposer.o_scale[n])
            m.d.comb += [self.scales.data.exponent[n].eq(scale[:size]), self.scales.data.invalid[n].eq(scale[size])]
