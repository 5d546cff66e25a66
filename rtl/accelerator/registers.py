"""The registers, on AXI4-Lite."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hbfp.isa.registers import BY_NAME, REGISTERS, SPAN, WORD, Access, Cause, parameters

from .part import Part
from .queue import NUMBER_BITS

#: Bits of an address.
ADDRESS = (SPAN - 1).bit_length()
#: Counters, in the order of their addresses: ``cycles`` and what follows.
COUNTERS = tuple(register.name for register in REGISTERS if register.address >= BY_NAME["cycles"].address)
#: Bits that are written of registers that have fewer than 32.
NARROW = {"interrupt_enable": 2}
#: Registers that the host writes.
WRITTEN = tuple(register.name for register in REGISTERS if register.access is Access.WRITE)


def lite_members():
    """AXI4-Lite by its standard names without the prefix."""
    return {"awaddr": In(ADDRESS), "awprot": In(3), "awvalid": In(1), "awready": Out(1),
            "wdata": In(WORD), "wstrb": In(WORD // 8), "wvalid": In(1), "wready": Out(1),
            "bresp": Out(2), "bvalid": Out(1), "bready": In(1),
            "araddr": In(ADDRESS), "arprot": In(3), "arvalid": In(1), "arready": Out(1),
            "rdata": Out(WORD), "rresp": Out(2), "rvalid": Out(1), "rready": In(1)}


class Registers(Part):
    """Registers by the map of :mod:`hbfp.isa.registers`.

    A write is taken when address and data are there, and its response follows one cycle later; strobes count. A read
    is answered two cycles after its address. Addresses without a register read as 0. Every response is OKAY. What is
    written counts from the next cycle, also while a program runs.

    Members
    -------
    awaddr ... rready
        Of AXI4-Lite.
    program_low ... interrupt_enable : ``Out``
        What the host has written.
    start, stop : ``Out(1)``
        For one cycle: the host asks for it.
    busy, done, error, cause, error_pc : ``In``
        What ``status`` and so on show.
    ends, fails : ``In(1)``
        The program comes to its end, or to an error: they set the bits of ``interrupt_status``.
    interrupt : ``Out(1)``
    count_en, count_addr, count : ``Out``, ``Out``, ``In(32)``
        Read port of the counters, of which number 0 is ``cycles``.
    """
    kind, area, apart = "registers", "accelerator control", True

    @staticmethod
    def ports(params):
        return {**lite_members(), **{name: Out(NARROW.get(name, WORD)) for name in WRITTEN},
                "start": Out(1), "stop": Out(1), "busy": In(1), "done": In(1), "error": In(1),
                "cause": In(range(max(Cause) + 1)), "error_pc": In(NUMBER_BITS), "ends": In(1), "fails": In(1),
                "interrupt": Out(1), "count_en": Out(1), "count_addr": Out(range(len(COUNTERS))), "count": In(WORD)}

    def body(self, platform):
        m = Module()
        raised = Signal(2)    # interrupt_status
        written = self._write(m, raised)
        cleared = Mux(written["interrupt_status"], self.wdata[:2] & self.wstrb[0].replicate(2), 0)
        m.d.sync += raised.eq((raised & ~cleared) | Cat(self.ends, self.fails))
        act = Mux(written["control"] & self.wstrb[0], self.wdata[:2], 0)
        m.d.comb += [self.interrupt.eq((raised & self.interrupt_enable).any()), Cat(self.start, self.stop).eq(act)]
        for name in WRITTEN:
            value = getattr(self, name)
            for byte in range(-(-len(value) // 8)):
                part = slice(8 * byte, min(8 * byte + 8, len(value)))
                with m.If(written[name] & self.wstrb[byte]):
                    m.d.sync += value[part].eq(self.wdata[part])
        self._read(m, raised)
        return m

    def _write(self, m, raised):
        """The write channels; name -> whether that register is written in this cycle."""
        takes = Signal()
        m.d.comb += [takes.eq(self.awvalid & self.wvalid & ~self.bvalid), self.awready.eq(takes),
                     self.wready.eq(takes)]
        m.d.sync += self.bvalid.eq(takes | (self.bvalid & ~self.bready))
        return {register.name: takes & (self.awaddr[2:] == register.address >> 2) for register in REGISTERS}

    def _read(self, m, raised):
        """The read channels."""
        first = BY_NAME["cycles"].address >> 2
        address = Signal(ADDRESS - 2)
        takes = Signal()
        pending = Signal()
        counter = Signal()
        value = Signal(WORD)
        shown = {**parameters(self.params), **{name: getattr(self, name) for name in WRITTEN},
                 "status": Cat(self.busy, self.done, self.error), "cause": self.cause, "error_pc": self.error_pc,
                 "interrupt_status": raised}
        m.d.comb += [
            self.arready.eq(~pending & ~self.rvalid), takes.eq(self.arvalid & self.arready),
            self.count_en.eq(takes & (self.araddr[2:] >= first)), self.count_addr.eq(self.araddr[2:] - first),
            counter.eq((address >= first) & (address < first + len(COUNTERS))),
        ]
        with m.Switch(address):
            for name, what in shown.items():
                with m.Case(BY_NAME[name].address >> 2):
                    m.d.comb += value.eq(what)
            with m.Default():
                m.d.comb += value.eq(0)
        m.d.sync += pending.eq(takes)
        with m.If(takes):
            m.d.sync += address.eq(self.araddr[2:])
        with m.If(pending):
            m.d.sync += [self.rvalid.eq(1), self.rdata.eq(Mux(counter, self.count, value))]
        with m.Elif(self.rready):
            m.d.sync += self.rvalid.eq(0)
