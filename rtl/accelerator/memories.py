"""The memories V, X, W and P: each has one read port and one write port, which its users share by fixed priority.

Who they are, and who comes first: :data:`hbfp.isa.ports.PORTS`. Where memories have one port, a bank is read or
written in a cycle: what the other port does keeps it *busy* for this one. Where they have parity, each has the ports of
:func:`~rtl.accelerator.guard.guard_members`, too.
"""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Shape, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import In

from hbfp.isa.ports import PATIENT, users

from ..lib.component import Component
from ..lib.names import parameter
from ..lib.pick import pick
from .control import FIRST_BITS, SIZE_BITS
from .guard import Memories, guard_members
from .layouts import (
    ADDRESS_BITS,
    p_layout,
    v_layout,
    w_index_layout,
    w_layout,
    w_scales_layout,
    x_layout,
    x_piece_layout,
)
from .signatures import (
    p_read,
    p_write,
    v_read,
    v_write,
    w_index_write,
    w_read,
    w_scales_write,
    w_write,
    x_read,
    x_write,
)
from .sizes import Sizes


def bits_of(layout):
    """Bits of a layout."""
    return Shape.cast(layout).width


def _parts(word, count):
    """The parts of a word, the lowest first."""
    size = len(word) // count
    return [word[n * size:(n + 1) * size] for n in range(count)]


def share_members(params):
    """Inputs of a memory of which contexts have shares: the first sixteenth of this one's, and how many it has."""
    return {"share_first": In(FIRST_BITS), "share_size": In(SIZE_BITS)} if params.contexts > 1 else {}


def arbitrate(m, name, ports, words, step=1, share=None, busy=None):
    """Grant the first of the ports that asks; a grant does not follow from whether its own port asks.

    Parameters
    ----------
    ports : list of interface
        The ports as units see them, flipped; the first has priority.
    words, step : int
        Addresses below ``words`` are legal, and ``step`` of them (a power of two) are one word.
    share : Component, optional
        Has :func:`share_members`: addresses count from the share's first, and beyond its last they are not legal.
    busy : callable, optional
        Of a port: whether the bank of its address is; then it is not granted. It does not follow from whether the port
        itself asks.

    Returns
    -------
    tuple of Signal
        Whether there is an access to a legal address; its word; whether each port is the one that has it.
    """
    low, high = (step - 1).bit_length(), (words - 1).bit_length()
    address = Signal(ADDRESS_BITS, name=f"{name}_address")
    any_access = Signal(name=f"{name}_any")
    beyond = Signal(name=f"{name}_beyond")
    legal = Signal(name=f"{name}_legal")
    for port in reversed(ports):
        with m.If(port.en):
            m.d.comb += [any_access.eq(1), address.eq(port.addr)]
    taken, chosen = Const(0, 1), []
    refused = []
    for port in ports:
        mine = port.en & ~taken
        grant = ~taken
        if busy:
            waits = Signal(name=f"{name}_waits{len(refused)}")
            m.d.comb += waits.eq(busy(port))
            refused.append(mine & waits)
            grant = ~taken & ~waits
        m.d.comb += [port.grant.eq(grant), port.fault.eq(mine & beyond)]
        chosen.append(mine)
        taken = taken | port.en
    m.d.comb += legal.eq(any_access & ~beyond & ~Cat(refused).any() if busy else any_access & ~beyond)
    if not hasattr(share, "share_first"):
        m.d.comb += beyond.eq(address[high:].any() if high < ADDRESS_BITS else 0)
        return legal, address[low:high], chosen
    part = high - FIRST_BITS    # bits of an address in a sixteenth
    upper = Signal(FIRST_BITS, name=f"{name}_sixteenth")
    m.d.comb += [beyond.eq(address[part:] >= share.share_size), upper.eq(address[part:] + share.share_first)]
    return legal, Cat(address[low:part], upper), chosen


def choose(ports, chosen, name):
    """What the chosen port gives, of those that all have it; that of the last if none is chosen."""
    value = getattr(ports[-1], name)
    for port, mine in reversed(list(zip(ports[:-1], chosen[:-1], strict=True))):
        value = Mux(mine, getattr(port, name), value)
    return value


def busy_with(writes, address, banks, step=1):
    """What :func:`arbitrate` takes for reads, of whose addresses ``step`` are a word: their bank is written; None where
    there are two ports.
    """
    low, skip = (banks - 1).bit_length(), (step - 1).bit_length()
    return (lambda port: writes & (port.addr[skip:skip + low] == address[:low])) if banks else None


class VMemory(Component):
    """V: FP32 words. Grants are given in the same cycle; of several that ask, the first in the order of the ports.

    Drain comes first among the reads, since the way out of the core waits for its factors, and vector among the
    writes, so that a pass never stalls: it is always granted at once. Every instruction makes a finite number of
    accesses, so that nobody starves for ever.

    Members
    -------
    read_drain, read_convert, read_vector, read_store : ``In(v_read)``
        In the order of their priority.
    write_vector, write_drain, write_load : ``In(v_write)``
        In the order of their priority, too.
    """
    kind, area, apart = "v_memory", "memories", True
    READERS, WRITERS = users("v_read"), users("v_write")

    @dataclass(frozen=True)
    class Parameters(Sizes):
        v_words: int = parameter("v")
        lanes: int = parameter("l")
        contexts: int = parameter("cx", 1)
        memory_banks: int = parameter("mb", 0, rare=True)
        parity: bool = parameter("parity", False, rare=True)

    @staticmethod
    def ports(params):
        return {f"read_{name}": In(v_read(params)) for name in VMemory.READERS} | {
            f"write_{name}": In(v_write(params)) for name in VMemory.WRITERS} | share_members(params) | guard_members(
            params, len(VMemory.READERS))

    def body(self, platform):
        m, params = Module(), self.params
        memory = Memories(m, self)
        readers = [getattr(self, f"read_{name}") for name in self.READERS]
        ram = memory("ram", params.v_words, bits_of(v_layout(params)), params.lanes, params.memory_banks,
                     readers=Cat(port.en & port.grant for port in readers))
        memory.watch()
        writers = [getattr(self, f"write_{name}") for name in self.WRITERS]
        writes, w_addr, chosen = arbitrate(m, "write", writers, params.v_words, share=self)
        reads, r_addr, _ = arbitrate(m, "read", readers, params.v_words, share=self,
                                     busy=busy_with(writes, w_addr, params.memory_banks))
        m.d.comb += [ram.r_en.eq(reads), ram.r_addr.eq(r_addr), ram.w_addr.eq(w_addr),
                     ram.w_en.eq(choose(writers, chosen, "mask") & writes.replicate(params.lanes)),
                     ram.w_data.eq(choose(writers, chosen, "data")),
                     *(port.data.as_value().eq(ram.r_data) for port in readers)]
        return m


class XMemory(Component):
    """X: rows of the core. Each port has one user, which is always granted.

    With more columns than rows a word of the memory is several rows, which are written together and read one by one;
    with fewer a row is several words of V, which are written one by one and read together. Addresses count pieces: the
    lesser of both. Of a segment of several pieces the first one's exponent is read.

    Members
    -------
    read : ``In(x_read)``
        The port of multiply.
    write : ``In(x_write)``
        The port of convert.
    """
    kind, area, apart = "x_memory", "memories", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        x_words: int = parameter("x")
        lanes: int = parameter("l")
        mantissa: int = parameter("m")
        exponent: int = parameter("e")
        segments: int = parameter("s", 1)
        spread: int = parameter("sp", 1, rare=True)
        contexts: int = parameter("cx", 1)
        memory_banks: int = parameter("mb", 0, rare=True)
        parity: bool = parameter("parity", False, rare=True)
        word_pieces: int = parameter("wp", 1, rare=True)
        row_pieces: int = parameter("rp", 1, rare=True)

    @staticmethod
    def ports(params):
        return {"read": In(x_read(params)), "write": In(x_write(params)), **share_members(params),
                **guard_members(params)}

    def body(self, platform):
        m, params = Module(), self.params
        memory = Memories(m, self)
        if params.spread > 1:
            self._side_by_side(m, memory)
            memory.watch()
            return m
        rows, parts, each = params.word_pieces, params.row_pieces, params.word_pieces * params.row_pieces
        words, low = params.x_words * parts, (each - 1).bit_length()
        ram = memory("ram", words // each, bits_of(x_piece_layout(params)) * each, parts, params.memory_banks)
        memory.watch()
        writes, w_addr, _ = arbitrate(m, "write", [self.write], words, each, share=self)
        reads, r_addr, _ = arbitrate(m, "read", [self.read], words, each, share=self,
                                     busy=busy_with(writes, w_addr, params.memory_banks, each))
        found, w_en, w_data = ram.r_data, writes, self.write.data.as_value()
        if rows > 1:
            place = Signal(range(rows))
            with m.If(reads):
                m.d.sync += place.eq(self.read.addr[:low])
            found = pick(_parts(found, rows), place)
        elif parts > 1:
            found = self._row(m, [View(x_piece_layout(params), part) for part in _parts(found, parts)])
            w_en, w_data = Mux(writes, 1 << self.write.addr[:low], 0), w_data.replicate(parts)
        m.d.comb += [ram.r_en.eq(reads), ram.r_addr.eq(r_addr), self.read.data.as_value().eq(found),
                     ram.w_en.eq(w_en), ram.w_addr.eq(w_addr), ram.w_data.eq(w_data)]
        return m

    def _side_by_side(self, m, memory):
        """Rows that a sparse row has in memories side by side, which are read together.

        The row that was asked for comes first: where it is the first of a sparse row, all are in order. With more rows
        than columns a memory's word is one of them, of which a piece is written; with fewer it may be several.
        """
        params, parts, spread = self.params, self.params.row_pieces, self.params.spread
        each = params.word_pieces * parts    # addresses of a memory's word
        line = max(each, parts * spread)     # and of a word of all of them
        pieces, low, inner, skip = params.x_words * parts, *((n - 1).bit_length() for n in (line, each, parts))
        writes, w_addr, _ = arbitrate(m, "write", [self.write], pieces, share=self)
        reads, r_addr, _ = arbitrate(m, "read", [self.read], pieces, share=self,
                                     busy=busy_with(writes, w_addr[low:], params.memory_banks, line))
        place, rows = Signal(range(line // parts)), []
        with m.If(reads):
            m.d.sync += place.eq(r_addr[skip:])
        for number in range(line // each):
            ram = memory(f"ram{number}", pieces // line, bits_of(x_piece_layout(params)) * each, parts,
                         params.memory_banks)
            mine = writes & (w_addr[inner:low] == number)
            m.d.comb += [ram.r_en.eq(reads), ram.r_addr.eq(r_addr[low:]), ram.w_addr.eq(w_addr[low:]),
                         ram.w_en.eq(Mux(mine, 1 << w_addr[:inner], 0) if parts > 1 else mine),
                         ram.w_data.eq(self.write.data.as_value().replicate(parts))]
            found = _parts(ram.r_data, each)
            if parts > 1:
                rows.append(self._row(m, [View(x_piece_layout(params), part) for part in found], number))
            else:
                rows += found
        sparse = place[(spread - 1).bit_length():]    # the sparse row that it is in
        given = [pick(rows, place), *(pick(rows[n::spread], sparse) if line // parts > spread else rows[n]
                                      for n in range(1, spread))]
        taken = [Signal(x_layout(params), name=f"taken{n}") for n in range(spread)]
        m.d.comb += [*(row.as_value().eq(value) for row, value in zip(taken, given, strict=True)),
                     self.read.data.mantissa.as_value().eq(Cat(row.mantissa.as_value() for row in taken)),
                     *(getattr(self.read.data, name).eq(getattr(taken[0], name)) for name in ("exponent", "invalid"))]

    def _row(self, m, pieces, number=0):
        """A row of the core, from its pieces; the ``number`` of a row beside others."""
        row = Signal(x_layout(self.params), name=f"row{number or ''}")
        m.d.comb += row.mantissa.eq(Cat(piece.mantissa for piece in pieces))
        if self.params.exponent:
            for name in ("exponent", "invalid"):
                every = [value for piece in pieces for value in piece[name]]
                m.d.comb += [into.eq(value) for into, value in zip(
                    row[name], every[::len(every) // self.params.segments], strict=True)]
        return row.as_value()


class WMemory(Component):
    """W: rows of weights, ``packed`` of them a word, and beside it the exponents and flags of segments.

    Convert comes first among the writes, so that it never stalls; it makes a finite number of them.

    Members
    -------
    read : ``In(w_read)``
        Of weights, which reads rows in ascending order: a word is read when its first row is asked for, and the
        exponents of a segment with its first row.
    index_convert : ``In(w_index_write)``
        Only where weights may be sparse.
    write_convert, write_load, scales_convert, scales_load : ``In(w_write)``, ``In(w_scales_write)``
        The latter only where numbers share exponents.
        An address of mantissas is that of the word's first row, or of any other of its rows; one of exponents is that
        of any row of the segment.
    """
    kind, area, apart = "w_memory", "memories", True
    WRITERS, SCALERS = users("w_write"), users("w_scales")

    @dataclass(frozen=True)
    class Parameters(Sizes):
        w_words: int = parameter("w")
        lanes: int = parameter("l")
        mantissa: int = parameter("m")
        exponent: int = parameter("e")
        height: int = parameter("h")
        packed: int = parameter("p")
        index: int = parameter("ix", 0, rare=True)
        contexts: int = parameter("cx", 1)
        single: bool = parameter("single", False, rare=True)
        parity: bool = parameter("parity", False, rare=True)

    @staticmethod
    def ports(params):
        scalers = WMemory.SCALERS if params.exponent else ()
        return {"read": In(w_read(params))} | {f"write_{name}": In(w_write(params)) for name in WMemory.WRITERS} | {
            f"scales_{name}": In(w_scales_write(params)) for name in scalers} | (
            {"index_convert": In(w_index_write(params))} if params.index else {}) | share_members(
            params) | guard_members(params)

    def body(self, platform):
        m, params = Module(), self.params
        rows, packed, height = params.w_words, params.packed, params.height
        memory = Memories(m, self)
        ram = memory("ram", rows // packed, bits_of(w_layout(params)), packed, params.single)
        low, segment = (packed - 1).bit_length(), (height - 1).bit_length()
        waits, busy = self._waits(low, segment) if params.single else (None, {})
        reads, row, _ = arbitrate(m, "read", [self.read], rows, share=self, busy=waits)
        found = ram.r_data
        if packed > 1:
            place = Signal(range(packed))
            with m.If(reads):
                m.d.sync += place.eq(row)
            found = pick(_parts(ram.r_data, packed), place)
        m.d.comb += [ram.r_en.eq(reads & ~row[:low].any()), ram.r_addr.eq(row[low:]),
                     self.read.data.as_value().eq(found)]
        if params.index:
            self._indices(m, memory, reads, row)
        written = [(ram, "write", self.WRITERS, packed)]
        if params.exponent:
            scales = memory("scales", rows // height, bits_of(w_scales_layout(params)), banks=params.single)
            m.d.comb += [scales.r_en.eq(reads & ~row[:segment].any()), scales.r_addr.eq(row[segment:]),
                         self.read.scales.as_value().eq(scales.r_data)]
            written.append((scales, "scales", self.SCALERS, height))
        memory.watch()
        for each, name, who, step in written:
            ports = [getattr(self, f"{name}_{writer}") for writer in who]
            writes, w_addr, chosen = arbitrate(m, name, ports, rows, step, self, busy.get(name))
            mask = choose(ports, chosen, "mask") & writes.replicate(packed) if name == "write" else writes
            m.d.comb += [each.w_en.eq(mask), each.w_addr.eq(w_addr),
                         each.w_data.eq(choose(ports, chosen, "data"))]
        return m

    def _indices(self, m, memory, reads, row):
        """Places of sparse weights in their groups, which convert alone writes."""
        params = self.params
        ram = memory("index", params.w_words, bits_of(w_index_layout(params)), banks=params.single)
        writes, w_addr, _ = arbitrate(m, "index", [self.index_convert], params.w_words, share=self)
        m.d.comb += [ram.r_en.eq(reads), ram.r_addr.eq(row), self.read.index.as_value().eq(ram.r_data),
                     ram.w_en.eq(writes), ram.w_addr.eq(w_addr), ram.w_data.eq(self.index_convert.data)]

    def _waits(self, low, segment):
        """Where there is one port: whether the read waits; name of a memory -> whether one of its writes does.

        Loads come after reads (:data:`hbfp.isa.ports.PATIENT`), conversions before.
        """
        begins = {"write": ~self.read.addr[:low].any()}
        if self.params.exponent:
            begins["scales"] = ~self.read.addr[:segment].any()
        patient = {name: PATIENT[f"w_{name}"].name.lower() for name in begins}

        def waits(port):
            others = Cat(getattr(self, f"{name}_{unit}").en & begin for name, begin in begins.items()
                         for unit in self.WRITERS if unit != patient[name]).any()
            return others | self.index_convert.en if self.params.index else others    # each row has places

        def after(name):
            last = getattr(self, f"{name}_{patient[name]}")
            return lambda port: self.read.en & begins[name] if port is last else 0
        return waits, {name: after(name) for name in begins}


class PMemory(Component):
    """P: instructions of the vector unit, as many a word as a beat has. Each port has one user.

    With one port a word is one instruction: a beat is granted when its last one is written, a cycle for each, and
    nothing is read until then. A small memory takes less area the narrower it is.

    Members
    -------
    read : ``In(p_read)``
        The port of vector, which reads one instruction.
    write : ``In(p_write)``
        The port of load, which writes a beat of instructions.
    """
    kind, area, apart = "p_memory", "memories", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        p_words: int = parameter("pw")
        lanes: int = parameter("l")
        contexts: int = parameter("cx", 1)
        single: bool = parameter("single", False, rare=True)
        parity: bool = parameter("parity", False, rare=True)

    @staticmethod
    def ports(params):
        return {"read": In(p_read()), "write": In(p_write(params)), **share_members(params),
                **guard_members(params)}

    def body(self, platform):
        m, params = Module(), self.params
        each = params.lanes // 2    # instructions of a beat
        memory = Memories(m, self)
        if params.single:
            self._narrow(m, memory, each)
            memory.watch()
            return m
        ram = memory("ram", params.p_words // each, bits_of(p_layout(params)))
        memory.watch()
        low = (each - 1).bit_length()
        place = Signal(range(each))
        writes, w_addr, _ = arbitrate(m, "write", [self.write], params.p_words // each, share=self)
        reads, instruction, _ = arbitrate(m, "read", [self.read], params.p_words, share=self)
        with m.If(reads):
            m.d.sync += place.eq(instruction)
        m.d.comb += [ram.r_en.eq(reads), ram.r_addr.eq(instruction[low:]),
                     self.read.data.eq(pick(_parts(ram.r_data, each), place)),
                     ram.w_en.eq(writes), ram.w_addr.eq(w_addr), ram.w_data.eq(self.write.data)]
        return m

    def _narrow(self, m, memory, each):
        """A word for each of so many instructions of a beat."""
        params, turn = self.params, Signal(range(each))
        ram = memory("ram", params.p_words, bits_of(p_layout(params)) // each, banks=1)
        _, w_addr, _ = arbitrate(m, "write", [self.write], params.p_words // each, share=self,
                                 busy=lambda port: ~turn.all())
        reads, r_addr, _ = arbitrate(m, "read", [self.read], params.p_words, share=self,
                                     busy=lambda port: self.write.en)
        with m.If(self.write.en):
            m.d.sync += turn.eq(turn + 1)
        m.d.comb += [ram.r_en.eq(reads), ram.r_addr.eq(r_addr), self.read.data.eq(ram.r_data),
                     ram.w_en.eq(self.write.en & ~self.write.fault), ram.w_addr.eq(Cat(turn, w_addr)),
                     ram.w_data.eq(pick(_parts(self.write.data.as_value(), each), turn))]
