"""How a program begins and ends: doorbell, faults, watch-dog."""

from enum import IntEnum

from amaranth import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hbfp.isa.instructions import BYTES
from hbfp.isa.registers import Cause

from .axi import BUS_BITS
from .part import Part
from .queue import NUMBER_BITS

#: Cycles after the end until all events are counted, and those after an error for which the bus is waited for.
SETTLE, PATIENCE = 64, 4096


class State(IntEnum):
    """How the program stands."""
    IDLE, START, RUN, END, STOP = range(5)


class Control(Part):
    """States of a program.

    *IDLE*: nothing runs. A doorbell leads to *START*, which checks the registers and lasts until nothing is under way
    on the bus, at least one cycle; then the program *runs*. With HALT comes *END*, of :data:`SETTLE` cycles, in which
    the last events are counted, and then IDLE and ``done``. An error, or the host's stop, leads from START, RUN and END
    to *STOP*, which lasts until nothing is under way on the bus but :data:`SETTLE` cycles at least, and
    :data:`PATIENCE` cycles at most; then IDLE and ``error``. Units and queues are reset in all states but RUN, so that
    none of them changes anything from the second cycle after an error on.

    Of several errors in one cycle the first of these counts: bus, units (:attr:`fault`), decode (:attr:`illegal`,
    :attr:`beyond`), doorbell, stop, watch-dog. The watch-dog counts cycles of START and RUN in a row without progress.

    Members
    -------
    start, stop : ``In(1)``
        From the host. ``stop`` in IDLE clears the status.
    origin, base, watchdog, instructions : ``In``
        Registers; ``origin`` is where the program starts.
    bus_error, bus_pc : ``In(1)``, ``In(24)``
        An error response, and the instruction that it belongs to.
    fault, fault_cause, fault_pc : ``In``
        A unit is at fault.
    illegal, beyond, halted, place : ``In``
        As of :class:`~rtl.accelerator.issue.Issue`.
    progress, quiet : ``In(1)``
        Something happens; nothing is under way on the bus.
    running : ``Out(1)``
        RUN.
    begins : ``Out(1)``
        The doorbell is taken: counters are cleared.
    counts : ``Out(1)``
        START and RUN: a cycle from the doorbell to the end.
    busy, done, error, cause, error_pc, ends, fails
        As of :class:`~rtl.accelerator.registers.Registers`.
    """
    kind, area, apart = "control", "accelerator control", True

    @staticmethod
    def ports(params):
        cause, number = range(max(Cause) + 1), NUMBER_BITS
        return {"start": In(1), "stop": In(1), "origin": In(BUS_BITS), "base": In(BUS_BITS), "watchdog": In(32),
                "instructions": In(32), "bus_error": In(1), "bus_pc": In(number), "fault": In(1),
                "fault_cause": In(cause), "fault_pc": In(number), "illegal": In(1), "beyond": In(1), "halted": In(1),
                "place": In(number), "progress": In(1), "quiet": In(1), "running": Out(1), "begins": Out(1),
                "counts": Out(1), "busy": Out(1), "done": Out(1), "error": Out(1), "cause": Out(cause),
                "error_pc": Out(number), "ends": Out(1), "fails": Out(1)}

    def body(self, platform):
        m = Module()
        state = Signal(State)
        timer = Signal(32)
        found = Signal.like(self.cause)
        pc = Signal(NUMBER_BITS)
        starting = Signal()
        wrong = Signal()
        aligned = max(BYTES, self.params.beat)
        m.d.comb += [
            self.running.eq(state == State.RUN), starting.eq(state == State.START),
            self.counts.eq(self.running | starting), self.busy.eq(state != State.IDLE),
            self.begins.eq((state == State.IDLE) & self.start & ~self.stop), pc.eq(self.place),
            wrong.eq((self.origin & aligned - 1).any() | self.base[:12].any()),
        ]
        # The last that holds counts.
        with m.If((timer == self.watchdog) & self.watchdog.any() & self.counts & ~self.progress):
            m.d.comb += found.eq(Cause.WATCHDOG)
        with m.If(self.stop):
            m.d.comb += found.eq(Cause.STOPPED)
        with m.If(self.start):
            m.d.comb += found.eq(Cause.BUSY)
        with m.If(starting):
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
            with m.If(self.bus_error):
                m.d.comb += [found.eq(Cause.BUS), pc.eq(self.bus_pc)]

        m.d.sync += timer.eq(Mux(self.counts & self.progress, 0, timer + 1))
        settled = (timer >= SETTLE) & (self.quiet | (timer >= PATIENCE))
        with m.If(state == State.IDLE):
            with m.If(self.begins):
                m.d.sync += [state.eq(State.START), timer.eq(0)]
            with m.If(self.start | self.stop):
                m.d.sync += [self.done.eq(0), self.error.eq(0), self.cause.eq(0), self.error_pc.eq(0)]
        with m.Elif(state == State.STOP):
            with m.If(settled):
                m.d.comb += self.fails.eq(1)
                m.d.sync += [state.eq(State.IDLE), self.error.eq(1)]
        with m.Elif(found.any()):
            m.d.sync += [state.eq(State.STOP), timer.eq(0), self.cause.eq(found), self.error_pc.eq(pc)]
        with m.Elif(starting & self.quiet):
            m.d.sync += [state.eq(State.RUN), timer.eq(0)]
        with m.Elif(self.running & self.halted):
            m.d.sync += [state.eq(State.END), timer.eq(0)]
        with m.Elif((state == State.END) & (timer >= SETTLE)):
            m.d.comb += self.ends.eq(1)
            m.d.sync += [state.eq(State.IDLE), self.done.eq(1)]
        return m
