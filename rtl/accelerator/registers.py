"""The registers, on AXI4-Lite."""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hbfp.isa.descriptors import NUMBER
from hbfp.isa.registers import (
    BY_NAME,
    CONTEXT,
    IDENTITY,
    REGISTERS,
    SPAN,
    VERSION,
    WORD,
    Access,
    parameters,
    registers,
)

from ..lib.component import Component
from ..lib.names import parameter
from .axi import SLVERR, lite_signature
from .control import host_signature
from .front import answers_signature
from .ring import ring_layout

#: Registers that say what the machine is, but for the two that all machines share.
SIZES = tuple(one.name for one in REGISTERS if one.access is Access.READ and one.address < CONTEXT)[2:]
#: Counters, in the order of their addresses: ``cycles`` and what follows.
COUNTERS = tuple(each.name for each in REGISTERS
                 if BY_NAME["cycles"].address <= each.address < SPAN and each.access is Access.READ)


def written(contexts, stochastic=False, dispatched=False, ringed=False):
    """Registers that the host writes, those of a context but once: name -> bits that are written."""
    found = {one.name: one for one in registers(contexts, stochastic, dispatched, ringed)
             if one.access is Access.WRITE}
    return {name: max((field.low + field.width for field in one.fields), default=WORD) for name, one in found.items()
            if name in {each.name for each in REGISTERS}}


class Registers(Component):
    """Registers by the map of :mod:`hbfp.isa.registers`.

    A write is taken in the cycle after the first in which address and data are there and no response waits, and its
    response follows one cycle later; strobes count. A read is answered two cycles after its address. Addresses without
    a register read as 0. Every response is OKAY, but SLVERR to a request that the dispatcher's queue has no room for;
    others go there in the cycle of the response. What is written counts from the next cycle, also while a program runs.

    Parameters
    ----------
    sizes : tuple of int
        What the registers :data:`SIZES` say.
    stochastic : bool
        Whether there is a register ``seed``.
    dispatched : bool
        Whether there are those of a dispatcher.
    dispatch_ring : bool
        Whether there are those of its ring.

    Members
    -------
    awaddr ... rready
        The channels of AXI4-Lite.
    active : ``In``
        The context whose settings are wanted.
    program_low ... argument8 : ``Out``
        What the host has written, for that context.
    start, stop : ``Out``
        A bit for each context, for one cycle: the host asks for it.
    busy, waiting, done, error, cause, error_pc : ``In``
        What ``status`` and so on show, of each context.
    ends, fails : ``In``
        The program of a context comes to its end, or to an error: they set the bits of ``interrupt_status``.
    interrupt : ``Out(1)``
    count_en, count_addr, count, count_known : ``Out``, ``Out``, ``In(32)``, ``In(1)``
        Read port of the counters, of which number 0 is ``cycles``; the context stands above the number.
    settings ... tally_known : ``Out``, ``In``
        With a dispatcher: see :func:`~rtl.accelerator.front.answers_signature`.
    ring, head : ``Out``, ``In``
        With a ring: see :class:`~rtl.accelerator.ring.Ring`.
    """
    kind, area, apart = "registers", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters:
        sizes: tuple[int, ...] = parameter("v")
        stochastic: bool = parameter("sr", False)
        dispatched: bool = parameter("dp", False)
        dispatch_ring: bool = parameter("rg", False)

        @property
        def map(self):
            """What decides which registers there are."""
            return self.contexts, self.stochastic, self.dispatched, self.dispatch_ring

        @property
        def contexts(self):
            """Programs at a time."""
            return self.sizes[SIZES.index("contexts")]

        @classmethod
        def of(cls, system):
            """The parameters of an accelerator's registers."""
            known = parameters(system)
            return cls(tuple(known[name] for name in SIZES), system.stochastic, system.dispatched,
                       system.dispatch_ring)

    @staticmethod
    def ports(params):
        contexts, number = params.contexts, (len(COUNTERS) - 1).bit_length()
        own = {name: Out(size) for name, size in written(*params.map).items() if not BY_NAME[name].dispatched}
        several = answers_signature(params.dispatch_ring).members if params.dispatched else {}
        if params.dispatch_ring:
            several = {**several, "ring": Out(ring_layout()), "head": In(NUMBER)}
        return {**lite_signature(contexts + params.dispatched).members, **own, **several,
                **host_signature(contexts).members, "interrupt": Out(1), "count_en": Out(1),
                "count_addr": Out(number + contexts - 1), "count": In(WORD), "count_known": In(1)}

    def body(self, platform):
        m, contexts = Module(), self.params.contexts
        takes, raised = self._takes(m), []
        shown = {"id": IDENTITY, "version": VERSION, **dict(zip(SIZES, self.params.sizes, strict=True))}
        interrupt = 0
        for context in range(contexts):
            end = f"_{context}" if context else ""
            status = Signal(2, name=f"raised{end}")    # interrupt_status
            clears, acts = (takes[f"{name}{end}"] & self.wstrb[0] for name in ("interrupt_status", "control"))
            m.d.sync += status.eq((status & ~Mux(clears, self.wdata[:2], 0))
                                  | Cat(self.ends[context], self.fails[context]))
            m.d.comb += Cat(self.start[context], self.stop[context]).eq(Mux(acts, self.wdata[:2], 0))
            shown |= {f"status{end}": Cat(*(getattr(self, name)[context]
                                            for name in ("busy", "done", "error", "waiting"))),
                      f"cause{end}": self.cause[context], f"error_pc{end}": self.error_pc[context],
                      f"interrupt_status{end}": status}
            raised.append(status)
        for name, size in written(*self.params.map).items():
            kept = self._kept(m, takes, name, size)
            shown |= kept
            if BY_NAME[name].dispatched:
                continue
            values = list(kept.values())
            m.d.comb += getattr(self, name).eq(Mux(self.active, values[1], values[0]) if len(values) > 1 else values[0])
            if name == "interrupt_enable":
                interrupt = Cat(status & value for status, value in zip(raised, values, strict=True)).any()
        if self.params.dispatched:
            interrupt |= self._dispatcher(m, takes, shown)
        m.d.comb += self.interrupt.eq(interrupt)
        self._read(m, shown)
        return m

    def _takes(self, m):
        """The write channels; name -> whether that register is written in this cycle."""
        takes = Signal()    # a register: what is offered stays until it is taken
        m.d.comb += [self.awready.eq(takes), self.wready.eq(takes)]
        m.d.sync += [takes.eq(self.awvalid & self.wvalid & ~takes & ~self.bvalid),
                     self.bvalid.eq(takes | (self.bvalid & ~self.bready))]
        return {register.name: takes & (self.awaddr[2:] == register.address >> 2)
                for register in registers(*self.params.map)}

    def _dispatcher(self, m, takes, shown):
        """Its registers, as they are shown; whether it raises the interrupt."""
        full = Signal()
        refused = Signal(WORD)
        settings, asks = self.settings, takes["request_tag"]
        m.d.comb += [*(settings[name].eq(shown[name]) for name in settings.shape().members), full.eq(asks & self.full),
                     self.takes.eq(takes["completion"] & self.wstrb[0] & self.wdata[0]),
                     self.clears.eq(takes["dispatch_error"] & self.wstrb[0] & self.wdata[:4].any())]
        m.d.sync += [self.push.eq(asks & ~self.full), self.selects.eq(takes["count_select"]),
                     refused.eq(refused + full)]
        with m.If(self.awready):
            m.d.sync += self.bresp.eq(Mux(full, SLVERR, 0))
        shown |= {"refused": refused, "dispatch_status": self.status, "dispatch_error": self.dispatch_error,
                  "now": self.now, "completion": self.completion, "count_low": self.tally[:WORD],
                  "count_high": Cat(self.tally[WORD:], Const(0, 15), self.tally_known),
                  **self._ring(m, shown),
                  **{f"completion_{name}": self.completed[name] for name in ("tag", "arrived", "started", "finished")}}
        return (shown["dispatch_enable"] & self.status[:2]).any()

    def _ring(self, m, shown):
        """Its registers, as they are shown, and why a descriptor was refused."""
        if not self.params.dispatch_ring:
            return {}
        m.d.comb += [getattr(self.ring, name).eq(shown[name]) for name in self.ring.shape().members]
        return {"completion": Cat(self.completion, Const(0, 2), self.reason), "ring_head": self.head}

    def _kept(self, m, takes, name, size):
        """What the host has written into a register, of each context that has it: name -> value."""
        contexts = self.params.contexts if CONTEXT <= BY_NAME[name].address < SPAN else 1
        found = {}
        for own in [name, *(f"{name}_{context}" for context in range(1, contexts))]:
            fields = BY_NAME[own].fields
            known = sum((1 << field.width) - 1 << field.low for field in fields) if fields else (1 << size) - 1
            found[own] = value = Signal(size, name=f"{own}_value", init=BY_NAME[own].reset)
            for byte in range(-(-size // 8)):
                part = slice(8 * byte, min(8 * byte + 8, size))
                with m.If(takes[own] & self.wstrb[byte]):
                    m.d.sync += value[part].eq(self.wdata[part] & (known >> part.start))
        return found

    def _read(self, m, shown):
        """The read channels."""
        first, contexts = BY_NAME["cycles"].address >> 2, self.params.contexts
        low = (SPAN - 1).bit_length() - 2    # of an address in one context's block, in words
        address = Signal(len(self.araddr) - 2)
        takes = Signal()
        pending = Signal()
        counter = Signal()    # one that is not known is 0, as addresses without a register are
        value = Signal(WORD)
        asked, place = self.araddr[2:], (len(COUNTERS) - 1).bit_length()
        known = self.count_known & ~address[-1] if self.params.dispatched else self.count_known    # those of contexts
        m.d.comb += [
            self.arready.eq(~pending & ~self.rvalid), takes.eq(self.arvalid & self.arready),
            self.count_en.eq(takes & (asked[:low] >= first)),
            self.count_addr.eq(Cat((asked[:low] - first)[:place], asked[low:]) if contexts > 1 else asked - first),
            counter.eq((address[:low] >= first) & (address[:low] < first + len(COUNTERS)) & known),
        ]
        with m.Switch(address):
            for name, what in shown.items():
                with m.Case(BY_NAME[name].address >> 2):
                    m.d.comb += value.eq(what)
            with m.Default():
                m.d.comb += value.eq(0)
        m.d.sync += pending.eq(takes)
        with m.If(takes):
            m.d.sync += address.eq(asked)
        with m.If(pending):
            m.d.sync += [self.rvalid.eq(1), self.rdata.eq(Mux(counter, self.count, value))]
        with m.Elif(self.rready):
            m.d.sync += self.rvalid.eq(0)
