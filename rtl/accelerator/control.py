"""How programs begin and end, and take turns: doorbells, yields, faults, watch-dog."""

from dataclasses import dataclass
from enum import IntEnum

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out, Signature

from hbfp.isa.instructions import BYTES
from hbfp.isa.registers import Cause
from hbfp.system import SHARES

from ..lib.component import Component
from ..lib.layout import ArrayLayout
from ..lib.names import parameter
from .axi import BUS_BITS
from .queue import NUMBER_BITS
from .sizes import Sizes

#: Cycles after the end until all events are counted, and those after an error for which the bus is waited for.
SETTLE, PATIENCE = 64, 4096
#: Cycles before another context may go on, in which all events of the one before are counted; in half of them at most
#: the host reads counters.
PARK = 40
#: Bits of the place of a share, and of its size, in sixteenths.
FIRST_BITS, SIZE_BITS = (SHARES - 1).bit_length(), SHARES.bit_length()


class State(IntEnum):
    """How the program that has the machine stands; in IDLE and PARK none has it."""
    IDLE, START, RUN, END, STOP, TURN, PARK, HOLD = range(8)


def _of(bits, context):
    """The bit of a context, a signal; the only one where there is one context."""
    return Mux(context, bits[1], bits[0]) if len(bits) > 1 else bits[0]


def host_signature(contexts):
    """What registers and control tell each other, as the registers see it: :class:`Control` has what it means."""
    several = {"yielding": Out(1), "active": In(1)} if contexts > 1 else {}
    return Signature({
        "start": Out(contexts), "stop": Out(contexts), "watchdog": Out(32), "instructions": Out(32), **several,
        "busy": In(contexts), "waiting": In(contexts), "done": In(contexts), "error": In(contexts),
        "cause": In(ArrayLayout(max(Cause).bit_length(), contexts)), "error_pc": In(ArrayLayout(NUMBER_BITS, contexts)),
        "ends": In(contexts), "fails": In(contexts)})


def start_signature():
    """What dispatcher and control tell each other, as control sees it: :class:`Control` has what it means."""
    return Signature({
        "attached": In(1), "batch": In(1), "quantum": In(1), "loaded": In(1), "overdue": In(1), "taken": In(1),
        "free": Out(1), "trains": Out(1), "over": Out(1), "over_training": Out(1), "failed": Out(1)})


def decode_signature():
    """What decode and control tell each other, as decode sees it: :class:`~rtl.accelerator.issue.Issue` has it."""
    return Signature({"illegal": Out(1), "beyond": Out(1), "halted": Out(1), "paused": Out(1), "takes": Out(1),
                      "place": In(NUMBER_BITS)})


class Control(Component):
    """States of programs, one for each context, of which one has the machine.

    *IDLE*: nothing runs. A doorbell, or a program that waits, leads to *START*, which checks the registers and lasts
    until nothing is under way on the bus, at least one cycle; then the program *runs*. With HALT comes *END*, of
    :data:`SETTLE` cycles, in which the last events are counted, and then IDLE and ``done``. An error, or the host's
    stop, leads from START, RUN, TURN and END to *STOP*, which lasts until nothing is under way on the bus but
    :data:`SETTLE` cycles at least, and :data:`PATIENCE` cycles at most; then IDLE and ``error``. With YIELD comes
    *TURN*, of one cycle, and then RUN again; or, if another program waits, *PARK*, of :data:`PARK` cycles, and IDLE,
    which begins with that one. Units and queues are reset in all states but RUN, so that none of them changes anything
    from the second cycle after an error on.

    Where a dispatcher is attached, the program of context 0 begins with each ``batch``, and has the machine to its end;
    that of context 1 has it from a ``quantum`` to its next YIELD. Behind that comes *HOLD*, until the dispatcher has
    started something: RUN again, or IDLE, which begins with the batch. START lasts until the places of the batch are
    there, too, while instructions are fetched; END is one cycle.

    Of several errors in one cycle the first of these counts: bus, units (:attr:`fault`), decode (:attr:`illegal`,
    :attr:`beyond`), doorbell, stop, watch-dog, dispatcher. The watch-dog counts cycles of START, RUN and TURN in a
    row without progress. A program that waits ends at once when its doorbell is rung again, or it is stopped.

    Members
    -------
    start, stop : ``In``
        From the host, a bit for each context. ``stop`` of one without a program clears its status.
    origin, base, watchdog, instructions, share_first, share_size : ``In``
        Registers of the active context; ``origin`` is where the program starts.
    yielding : ``In(1)``
        Context 0 goes on at its YIELDs.
    bus_error, bus_pc : ``In(1)``, ``In(24)``
        An error response, and the instruction that it belongs to.
    fault, fault_cause, fault_pc : ``In``
        A unit is at fault.
    illegal, beyond, halted, paused, takes : ``In``
        See :class:`~rtl.accelerator.issue.Issue`.
    progress, quiet : ``In(1)``
        Something happens; nothing is under way on the bus.
    active : ``Out(1)``
        The context that has the machine, or had it last.
    place : ``Out(24)``
        Number of the next instruction of its program.
    running, fetches : ``Out(1)``
        RUN; RUN and TURN.
    begins : ``Out(1)``
        A program begins: its counters are cleared.
    counts : ``Out(1)``
        START, RUN and TURN: the program has the machine.
    busy, waiting, done, error, cause, error_pc, ends, fails
        See :class:`~rtl.accelerator.registers.Registers`.
    attached, batch, quantum, loaded, overdue, taken : ``In(1)``
        With a dispatcher: it has the contexts; it starts a batch, or a quantum, only while ``free``; the places of the
        batch are there; the quantum is overdue; it takes note of what is over.
    free, trains, over, over_training, failed : ``Out(1)``
        Something may be started; context 1 has a program; a batch, or a quantum, is over, until ``taken``; the batch
        ended with an error.
    """
    kind, area, apart = "control", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        lanes: int = parameter("l")
        contexts: int = parameter("cx", 1)
        dispatched: bool = parameter("dp", False)

    @staticmethod
    def ports(params):
        cause, number, contexts = range(max(Cause) + 1), NUMBER_BITS, params.contexts
        several = {"share_first": In(ArrayLayout(FIRST_BITS, 4)), "share_size": In(ArrayLayout(SIZE_BITS, 4))
                   } if contexts > 1 else {}
        if params.dispatched:
            several |= start_signature().members
        return {**host_signature(contexts).flip().members, **decode_signature().flip().members, **several,
                "origin": In(BUS_BITS), "base": In(BUS_BITS), "bus_error": In(1), "bus_pc": In(number),
                "fault": In(1), "fault_cause": In(cause), "fault_pc": In(number), "progress": In(1), "quiet": In(1),
                "running": Out(1), "fetches": Out(1), "begins": Out(1), "counts": Out(1)}

    def body(self, platform):
        m, contexts = Module(), self.params.contexts
        state = Signal(State)
        timer = Signal(32)
        found = Signal(range(max(Cause) + 1))
        pc = Signal(NUMBER_BITS)
        places = Array([Signal(NUMBER_BITS, name=f"place{context}") for context in range(contexts)])
        waits = Signal(contexts)     # a program waits for the machine
        asks = Signal(contexts)      # it would begin or go on in this cycle
        ends = Signal()
        fails = Signal()
        turns = Signal()
        active = chosen = attached = 0
        start = rung = self.start
        may, holds, loaded = None, 0, 1
        if contexts > 1:
            active = self.active
            chosen = Signal()
        if self.params.dispatched:
            attached, loaded = self.attached, active | self.loaded
            # Nothing is under way for whom the machine was before: fetch may begin.
            clean = Signal()
            quiet = self.quiet | clean
            m.d.sync += clean.eq((state == State.START) & quiet)
            holds = (state == State.HOLD) | (state == State.START) & clean
            rung = Cat(rung[0] & ~attached, rung[1])
            start = Cat(rung[0] | self.batch, rung[1])
            may = self._dispatched(m, state, waits, found, active)
        owned = Signal()
        goes = self.running | (state == State.TURN)
        asking = (waits ^ start) & ~self.stop
        m.d.comb += [
            self.running.eq(state == State.RUN), self.fetches.eq(goes | holds if self.params.dispatched else goes),
            self.counts.eq((goes if self.params.dispatched else self.fetches) | (state == State.START)),
            owned.eq((state != State.IDLE) & (state != State.PARK)), self.waiting.eq(waits),
            asks.eq(asking if may is None else asking & may), self.place.eq(places[active]), pc.eq(self.place),
        ]
        if contexts > 1:
            gives = _of(waits, ~active) & ~(self.yielding & ~active)
            m.d.comb += [chosen.eq(active ^ _of(asks, ~active)),
                         turns.eq(gives & ~attached if self.params.dispatched else gives)]
        begins = (state == State.IDLE) & asks.any()
        settles = timer >= SETTLE
        if self.params.dispatched:    # what has ended is over at once: its counters are counted apart from the other's
            settles |= attached
        ready = quiet & loaded if self.params.dispatched else self.quiet
        self._errors(m, state, timer, found, pc, active, rung)

        m.d.sync += timer.eq(Mux(self.counts & self.progress, 0, timer + 1))
        settled = (timer >= SETTLE) & (self.quiet | (timer >= PATIENCE))
        with m.If(self.takes & self.running):
            m.d.sync += places[active].eq(self.place + 1)
        for context in range(contexts):
            self._context(m, context, start[context], waits, begins & (chosen == context), owned & (active == context),
                          places[context])
            with m.If(active == context):
                m.d.comb += self.ends[context].eq(ends)
                with m.If(fails):
                    m.d.comb += self.fails[context].eq(1)
                    m.d.sync += self.error[context].eq(1)
                with m.If(ends):
                    m.d.sync += self.done[context].eq(1)

        with m.If(state == State.IDLE):
            with m.If(begins):
                m.d.comb += self.begins.eq(_of(start, chosen) | (places[chosen] == 0))
                m.d.sync += [state.eq(State.START), timer.eq(0)]
                if contexts > 1:
                    m.d.sync += active.eq(chosen)
        with m.Elif(state == State.STOP):
            with m.If(settled):
                m.d.comb += fails.eq(1)
                m.d.sync += state.eq(State.IDLE)
        with m.Elif(state == State.PARK):
            with m.If(timer >= PARK):
                m.d.sync += state.eq(State.IDLE)
        with m.Elif(found.any()):
            m.d.sync += [state.eq(State.STOP), timer.eq(0)]
            for context in range(contexts):
                with m.If(active == context):
                    m.d.sync += [self.cause[context].eq(found), self.error_pc[context].eq(pc)]
        with m.Elif((state == State.START) & ready):
            m.d.sync += [state.eq(State.RUN), timer.eq(0)]
        with m.Elif(self.running & self.halted):
            m.d.sync += [state.eq(State.END), timer.eq(0)]
        with m.Elif(self.running & self.paused):
            m.d.sync += state.eq(State.TURN)
        with m.Elif(state == State.TURN):
            on = Mux(attached & active, State.HOLD, State.RUN) if self.params.dispatched else State.RUN
            m.d.sync += [state.eq(Mux(turns, State.PARK, on)), timer.eq(0)]
            for context in range(contexts if contexts > 1 else 0):
                with m.If(turns & (active == context)):
                    m.d.sync += waits[context].eq(1)
        with m.Elif((state == State.END) & settles):
            m.d.comb += ends.eq(1)
            m.d.sync += state.eq(State.IDLE)
        if self.params.dispatched:
            with m.Elif((state == State.HOLD) & (self.batch | ~attached)):
                m.d.sync += [state.eq(State.IDLE), waits[1].eq(1)]
            with m.Elif((state == State.HOLD) & self.quantum):
                m.d.sync += [state.eq(State.RUN), timer.eq(0)]
        return m

    def _dispatched(self, m, state, waits, found, active):
        """What the dispatcher has started, and what of it is over; the contexts that may have the machine."""
        serves = Signal()     # it has started a batch, or a quantum, which it does not know to be over
        quantum = Signal()
        own = Signal()        # a program begins or runs
        m.d.comb += [
            own.eq((state == State.START) | (state == State.RUN)),
            self.over_training.eq(quantum & ~(waits[1] | own & active)),
            self.over.eq(self.over_training | serves & ~(waits[0] | (own | (state == State.TURN)) & ~active)),
            self.failed.eq(self.error[0] | (state == State.STOP) & ~active),
            self.free.eq(((state == State.IDLE) & ~waits[0] | (state == State.HOLD) & ~found.any()) & ~self.stop.any()),
            self.trains.eq(waits[1] | (state == State.HOLD)),
        ]
        m.d.sync += [quantum.eq(self.quantum | quantum & ~(self.taken & self.over_training)),
                     serves.eq(self.batch | serves & ~(self.taken & ~self.over_training))]
        return Cat(1, ~self.attached | self.quantum | quantum)

    def _errors(self, m, state, timer, found, pc, active, rung):
        """What ends the program that has the machine, and its instruction. The last that holds counts."""
        aligned = max(BYTES, self.params.beat)
        starting = Signal()
        wrong = Signal()
        m.d.comb += [starting.eq(state == State.START),
                     wrong.eq((self.origin & aligned - 1).any() | self.base[:12].any())]
        if self.params.dispatched:
            with m.If(self.overdue & active & self.counts):
                m.d.comb += found.eq(Cause.OVERDUE)
        with m.If((timer == self.watchdog) & self.watchdog.any() & self.counts & ~self.progress):
            m.d.comb += found.eq(Cause.WATCHDOG)
        with m.If(_of(self.stop, active)):
            m.d.comb += found.eq(Cause.STOPPED)
        with m.If(_of(rung, active)):
            m.d.comb += found.eq(Cause.BUSY)
        with m.If(starting):
            if self.params.contexts > 1:
                beyond = Cat(self.share_first[n] + self.share_size[n] > SHARES for n in range(4))
                with m.If(beyond.any()):
                    m.d.comb += found.eq(Cause.ADDRESS)
            with m.If(self.instructions[NUMBER_BITS:].any()):
                m.d.comb += found.eq(Cause.END)
            with m.If(wrong):
                m.d.comb += found.eq(Cause.MISALIGNED)
        with m.If(self.running):
            with m.If(self.beyond):
                m.d.comb += found.eq(Cause.END)
            with m.If(self.illegal):
                m.d.comb += found.eq(Cause.ILLEGAL)
            with m.If(self.fault):
                m.d.comb += [found.eq(self.fault_cause), pc.eq(self.fault_pc)]
        with m.If(self.fetches & self.bus_error):
            m.d.comb += [found.eq(Cause.BUS), pc.eq(self.bus_pc)]

    def _context(self, m, context, start, waits, begins, owner, place):
        """A context's program while it has not the machine, and its status."""
        stop, waits = self.stop[context], waits[context]
        done, error = self.done[context], self.error[context]
        m.d.comb += self.busy[context].eq(waits | owner)
        with m.If(begins):
            m.d.sync += waits.eq(0)
        with m.If(~owner & (start | stop)):
            m.d.sync += [done.eq(0), error.eq(waits), self.error_pc[context].eq(Mux(waits, place, 0)), waits.eq(0),
                         self.cause[context].eq(Mux(waits, Mux(start, Cause.BUSY, Cause.STOPPED), 0))]
            m.d.comb += self.fails[context].eq(waits)
            with m.If(start & ~stop & ~waits):
                m.d.sync += place.eq(0)
                if self.params.contexts > 1:
                    m.d.sync += waits.eq(~begins)
