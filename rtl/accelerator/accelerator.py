"""The accelerator: everything together, behind AXI."""

from functools import reduce
from operator import or_

from amaranth import Cat, ClockDomain, DomainRenamer, Module, Mux, Signal
from amaranth.lib.wiring import In, Out, connect, flipped

from hbfp.design import ConflictError
from hbfp.isa.instructions import ARGUMENTS, Opcode, Unit
from hbfp.isa.registers import Cause
from hbfp.system import Accelerator as Description

from ..lib.component import Component
from ..lib.skew import delay
from .arrays import Arrays
from .axi import lite_signature, read_signature, write_signature
from .control import Control, decode_signature, host_signature, start_signature
from .convert import Convert
from .counters import Counters
from .counters_apart import CountersApart
from .drain import DrainToV
from .fetch import Fetch
from .front import Front, answers_signature
from .issue import HOLDING, Issue
from .load import Load
from .memories import PMemory, VMemory, WMemory, XMemory
from .multiply import Multiply
from .reader import Reader
from .registers import COUNTERS, Registers
from .ring import Ring, front_signature
from .signatures import unit_signature, view
from .store import Store
from .vector import VectorOnV
from .weights import Weights
from .writer import Writer

#: Prefixes of the two buses.
LITE, FULL = "s_axil_", "m_axi_"


class Accelerator(Component):
    """A core, or several, with memories, converter, vector unit, DMA and instructions, behind AXI4-Lite and AXI4.

    What it does: docs/design/11-accelerator.md; its parts say what each does in which cycle. All is clocked by
    ``aclk``. Units, queues and memories' controls are reset while no program runs, and at a YIELD, fetch while none
    runs; what the memories hold stays. A context's share of the memories is added to addresses at their ports.

    Members
    -------
    aclk, aresetn : ``In(1)``
        Clock; reset, low for at least one cycle.
    s_axil_awaddr ... s_axil_rready
        Registers, AXI4-Lite.
    m_axi_awid ... m_axi_rready
        DRAM, AXI4.
    interrupt : ``Out(1)``
    trace_started, trace_completed, trace_waiting : ``Out(7)``
        For benches; bit u - 1 belongs to unit u. It begins an instruction (or a NOP is completed); it, or a NOP, is
        completed; the head of its queue waits for others.
    trace_running : ``Out(1)``
        A program has the machine: cycles that ``cycles`` counts.
    trace_context : ``Out(1)``
        The context of that program; there is no such port where there is one context.
    """
    kind, area = "accelerator", "accelerator control"
    Parameters = Description

    @classmethod
    def of(cls, system):
        """The accelerator of a description; ConflictError if it cannot be built."""
        if system.dispatched and system.contexts < 2:
            raise ConflictError("dispatch", system.dispatch, "must be 0 without two contexts where it is built")
        return cls.made(system)

    @property
    def module(self):
        """Name of the Verilog module: the accelerator's."""
        return f"hbfp_{self.params.name}"

    @property
    def latencies(self):
        """Cycles of its core's parts, without ``encode``; docstrings of the units say what each of them takes."""
        return Arrays.of(self.params).latencies

    @staticmethod
    def ports(params):
        buses = (LITE, lite_signature(params.contexts + params.dispatched)), (FULL, read_signature(params.beat)), (
            FULL, write_signature(params.beat))
        return {"aclk": In(1), "aresetn": In(1),
                **{prefix + name: member for prefix, bus in buses for name, member in bus.members.items()},
                "interrupt": Out(1), "trace_started": Out(len(Unit)), "trace_completed": Out(len(Unit)),
                "trace_waiting": Out(len(Unit)), "trace_running": Out(1),
                **({"trace_context": Out(1)} if params.contexts > 1 else {})}

    def body(self, platform):
        m, system = Module(), self.params
        sync, units, ahead = ClockDomain("sync"), ClockDomain("units"), ClockDomain("ahead")
        sync.clk = units.clk = ahead.clk = self.aclk
        m.domains += sync, units, ahead
        parts = {"registers": Registers, "control": Control, "reader": Reader, "writer": Writer}
        for name, kind in parts.items():
            parts[name] = m.submodules[name] = kind.of(system)
        counters = CountersApart(len(COUNTERS)) if system.dispatched else Counters(len(COUNTERS), system.contexts)
        m.submodules.counters = counters
        inside = {"fetch": Fetch, "issue": Issue, "load": Load, "store": Store, "convert": Convert, "weights": Weights,
                  "multiply": Multiply, "drain": DrainToV, "vector": VectorOnV, "v_memory": VMemory,
                  "x_memory": XMemory, "w_memory": WMemory, "p_memory": PMemory}
        for name, kind in inside.items():
            inside[name] = kind.of(system)
        inside["core"] = Arrays.of(system)
        for name, part in inside.items():
            m.submodules[name] = DomainRenamer("ahead" if name == "fetch" else "units")(part)
        control = parts["control"]
        clears = self._clear(m, inside) if system.parity else 0
        resets = ~self.aresetn | clears if system.parity else ~self.aresetn
        m.d.comb += [sync.rst.eq(resets), units.rst.eq(resets | ~control.running),
                     ahead.rst.eq(resets | ~control.fetches)]
        self._bus(m, parts, inside, clears)
        ports = self._memories(m, inside)
        self._units(m, parts, inside, ports, counters)
        if system.contexts > 1:
            self._contexts(m, parts, inside, counters)
        if system.dispatched:
            m.submodules.front = front = Front.of(system)
            answers = answers_signature(system.dispatch_ring)
            for other, signature in ((parts["registers"], answers), (control, start_signature())):
                connect(m, view(other, signature), view(front, signature.flip()))
            if system.dispatch_ring:
                self._ring(m, parts, front)
            m.d.comb += [inside["load"].places.eq(front.inputs), inside["store"].places.eq(front.outputs)]
        return m

    def _clear(self, m, inside):
        """Clear all memories, a word of each a cycle, behind a reset; whether that goes on, a register.

        A word that nobody has written would be wrong in half of its granules.
        """
        system, begin = self.params, ClockDomain("begin")
        m.domains += begin
        longest = max(system.v_words, system.x_pieces, system.w_words, system.p_words)
        place = Signal(range(longest))
        clears = Signal(init=1)
        m.d.comb += [begin.clk.eq(self.aclk), begin.rst.eq(~self.aresetn)]
        m.d.begin += [place.eq(place + clears), clears.eq(clears & (place != longest - 1))]
        for name in "vxwp":
            m.d.comb += [inside[f"{name}_memory"].clears.eq(clears), inside[f"{name}_memory"].place.eq(place)]
        return clears

    def _bus(self, m, parts, inside, clears):
        """Registers, fetch, load and store at their buses; while memories are cleared, nothing is taken."""
        registers, reader, writer = parts["registers"], parts["reader"], parts["writer"]
        fetch, load, store = inside["fetch"], inside["load"], inside["store"]
        beat = self.params.beat
        lite = lite_signature(self.params.contexts + self.params.dispatched)
        for part, prefix, bus in ((registers, LITE, lite),
                                  (reader, FULL, read_signature(beat)), (writer, FULL, write_signature(beat))):
            outer = view(self, bus, prefix)
            if part is registers and self.params.parity:
                outer.arready = Signal(name="arready")
                m.d.comb += self.s_axil_arready.eq(outer.arready & ~clears)
            connect(m, flipped(outer), view(part, bus))
        connect(m, fetch.request, reader.fetch)
        connect(m, load.request, reader.load)
        connect(m, store.request, writer.request)
        connect(m, store.beat, writer.beat)
        base = Cat(registers.base_low, registers.base_high)
        abort = ~parts["control"].fetches
        arguments = Cat(getattr(registers, f"argument{number}") for number in range(1, ARGUMENTS + 1))
        m.d.comb += [
            self.interrupt.eq(registers.interrupt), fetch.origin.eq(Cat(registers.program_low,
                                                                         registers.program_high)),
            fetch.instructions.eq(registers.instructions), fetch.valid.eq(reader.fetched), fetch.data.eq(reader.rdata),
            load.beat.valid.eq(reader.loaded), load.beat.payload.eq(reader.rdata), reader.ready.eq(load.beat.ready),
            load.limit.eq(registers.limit), store.limit.eq(registers.limit), store.room.eq(writer.room),
            *(inside[name].arguments.eq(arguments) for name in ("load", "store", "vector")),
            store.written.eq(writer.written), reader.base.eq(base[12:]), writer.base.eq(base[12:]),
            reader.abort.eq(abort), writer.abort.eq(abort),
        ]
        if self.params.stochastic:
            m.d.comb += [inside[name].seed.eq(registers.seed) for name in ("convert", "vector")]

    def _memories(self, m, inside):
        """Units at their memories; unit -> its ports."""
        v, x, w, p = (inside[f"{name}_memory"] for name in "vxwp")
        load, store, convert, vector = inside["load"], inside["store"], inside["convert"], inside["vector"]
        weights, multiply, drain = inside["weights"], inside["multiply"], inside["drain"]
        wires = {
            Unit.LOAD: [(load.v, v.write_load), (load.w, w.write_load), (load.p, p.write)],
            Unit.STORE: [(store.v, v.read_store)],
            Unit.CONVERT: [(convert.read, v.read_convert), (convert.x, x.write), (convert.w, w.write_convert)],
            Unit.WEIGHTS: [(weights.w, w.read)],
            Unit.MULTIPLY: [(multiply.x, x.read)],
            Unit.DRAIN: [(drain.read, v.read_drain), (drain.write, v.write_drain)],
            Unit.VECTOR: [(vector.read, v.read_vector), (vector.write, v.write_vector), (vector.p, p.read)],
        }
        if self.params.exponent:
            wires[Unit.LOAD].insert(2, (load.w_scales, w.scales_load))
            wires[Unit.CONVERT].append((convert.scales, w.scales_convert))
        if self.params.index:
            wires[Unit.CONVERT].append((convert.index, w.index_convert))
        for pairs in wires.values():
            for unit, memory in pairs:
                connect(m, unit, memory)
        core = inside["core"]
        connect(m, multiply.o_cmd, core.i_cmd)
        connect(m, multiply.o_x, core.i_x)
        connect(m, weights.o_w, core.i_w)
        connect(m, core.o, drain.i)
        connect(m, drain.o_v, core.i_v)
        if hasattr(drain, "asks"):
            m.d.comb += drain.asks.eq(core.asks)
        return {unit: [port for port, _ in pairs] for unit, pairs in wires.items()}

    def _units(self, m, parts, inside, ports, counters):
        """Instructions, faults, progress, counters."""
        control, registers, issue = parts["control"], parts["registers"], inside["issue"]
        reader, writer, fetch = parts["reader"], parts["writer"], inside["fetch"]
        if self.params.dispatched:    # between quanta fetch has instructions that nobody takes
            m.d.comb += [issue.i.valid.eq(fetch.o.valid & control.running), issue.i.payload.eq(fetch.o.payload),
                         fetch.o.ready.eq(issue.i.ready & control.running)]
        else:
            connect(m, fetch.o, issue.i)
        for one, other, signature in ((issue, control, decode_signature()),
                                      (registers, control, host_signature(self.params.contexts))):
            connect(m, view(one, signature), view(other, signature.flip()))
        started = Signal(len(Unit))
        busy = Signal(len(Unit))
        fault = Signal(len(Unit))
        causes, broken = [], self._broken(inside) if self.params.parity else {}
        for unit in Unit:
            part, place, offers = inside[unit.name.lower()], unit - 1, issue.to(unit).instruction.valid
            connect(m, issue.to(unit), view(part, unit_signature(Opcode(unit), self.params.extras).flip()))
            outside = reduce(or_, (port.fault for port in ports[unit]))
            misaligned = part.misaligned if unit in HOLDING else 0
            refused = part.fault | (inside["core"].error if unit == Unit.MULTIPLY else 0)
            if unit in HOLDING:
                outside = outside | part.outside
            kind = Mux(misaligned, Cause.MISALIGNED, Mux(outside, Cause.ADDRESS, Cause.REFUSED))
            wrong = outside | misaligned | refused
            if unit in broken:
                kind, wrong = Mux(broken[unit], Cause.PARITY, kind), wrong | broken[unit]
            cause = Signal.like(control.fault_cause, name=f"cause_{unit.name.lower()}")
            m.d.comb += [
                fault[place].eq(wrong), cause.eq(kind),
                started[place].eq(part.begins | issue.nop[place] if unit in HOLDING else issue.taken[place]),
                busy[place].eq(issue.busy[place] | (offers if unit in HOLDING else 0)),
            ]
            causes.append(cause)
        told = wrong, kind, number = control.fault, control.fault_cause, control.fault_pc
        if self.params.registered:    # HALT and YIELD come later than the unit's last instruction is completed
            wrong, kind, number = (Signal.like(each, name=f"{each.name}_now") for each in told)
            m.d.comb += [into.eq(delay(m, each, 1, into.name, reset_less=False))
                         for into, each in zip(told, (wrong, kind, number), strict=True)]
        for place in reversed(range(len(Unit))):
            with m.If(fault[place]):
                m.d.comb += [kind.eq(causes[place]), number.eq(issue.number[place])]
        grants = [port.en & port.grant for each in ports.values() for port in each]
        moves = [self.m_axi_arvalid & self.m_axi_arready, self.m_axi_rvalid & self.m_axi_rready,
                 self.m_axi_awvalid & self.m_axi_awready, self.m_axi_wvalid & self.m_axi_wready, self.m_axi_bvalid]
        of_load = reader.error & reader.of_load
        running = control.running
        m.d.comb += [
            issue.instructions.eq(registers.instructions), wrong.eq(fault.any()),
            control.bus_error.eq(reader.error | writer.error),
            control.bus_pc.eq(Mux(of_load, issue.number[Unit.LOAD - 1],
                                  Mux(reader.error, control.place, issue.number[Unit.STORE - 1]))),
            control.progress.eq(delay(m, Cat(grants, moves, issue.taken, issue.completed).any(),
                                      int(self.params.registered), "progress", reset_less=False)),
            control.quiet.eq(reader.idle & writer.idle),
            control.origin.eq(fetch.origin), control.base.eq(Cat(registers.base_low, registers.base_high)),
            registers.count.eq(counters.r_data), registers.count_known.eq(counters.r_known),
            counters.r_en.eq(registers.count_en), counters.r_addr.eq(registers.count_addr),
            counters.clear.eq(control.begins), self.trace_started.eq(started), self.trace_completed.eq(issue.completed),
            self.trace_waiting.eq(issue.waiting), self.trace_running.eq(control.counts),
        ]
        events = {"cycles": control.counts, "words_loaded": running & reader.loaded & reader.ready,
                  "words_stored": running & self.m_axi_wvalid & self.m_axi_wready}
        for unit in Unit:
            for what, signal in (("completed", issue.completed), ("busy", busy), ("waiting", issue.waiting)):
                events[f"{unit.name.lower()}_{what}"] = running & signal[unit - 1]
        m.d.comb += counters.events.eq(Cat(events[name] for name in COUNTERS))

    def _broken(self, inside):
        """Unit -> whether what it has read last of a memory is not what was written."""
        v, x, w, p = (inside[f"{name}_memory"].broken for name in "vxwp")
        found = {Unit[name.upper()]: bit for name, bit in zip(VMemory.READERS, v, strict=True)}
        return found | {Unit.VECTOR: found[Unit.VECTOR] | p, Unit.WEIGHTS: w, Unit.MULTIPLY: x}

    def _ring(self, m, parts, front):
        """Descriptors: from the bus to the front of the dispatcher."""
        registers, reader = parts["registers"], parts["reader"]
        m.submodules.ring = ring = Ring.of(self.params)
        signature = front_signature(self.params.dispatch)
        connect(m, view(ring, signature), view(front, signature.flip()))
        connect(m, ring.request, reader.ring)
        m.d.comb += [
            ring.ring.eq(registers.ring), registers.head.eq(ring.head), ring.attached.eq(front.attached),
            ring.free.eq(parts["control"].free), ring.valid.eq(reader.described), ring.data.eq(reader.rdata),
            ring.failed.eq(reader.rresp[1]),
        ]

    def _contexts(self, m, parts, inside, counters):
        """Connect what says which context has the machine, and where its shares of the memories lie."""
        control, registers = parts["control"], parts["registers"]
        m.d.comb += [counters.owner.eq(control.active), self.trace_context.eq(control.active),
                     inside["fetch"].place.eq(control.place)]
        for place, name in enumerate("vxwp"):
            memory = inside[f"{name}_memory"]
            for share, register, own in ((control.share_first[place], registers.share_first, memory.share_first),
                                         (control.share_size[place], registers.share_size, memory.share_size)):
                m.d.comb += [share.eq(register[8 * place:]), own.eq(share)]
