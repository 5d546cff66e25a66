"""The dispatcher: a queue of requests, batches and quanta of training for one executor, completions."""

from dataclasses import replace
from enum import IntEnum

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from hbfp.golden.spec.dispatch import Cause, Counter, DispatchUnit

from ..lib.component import Component
from ..lib.layout import StructLayout, index
from ..lib.memory import Ram
from .ages import Ages
from .choice import Choice
from .report import Report
from .shapes import (
    arrival_layout,
    clock_bits,
    completion_layout,
    policy_layout,
    queue_layout,
    request_layout,
    start_layout,
)
from .tally import Tally


class State(IntEnum):
    """What the executor's part of the dispatcher does."""
    CHOOSE, START, IDLE, READ, ITEM, RUN, TIME, COUNT, PAUSE = range(9)


class Dispatcher(Component):
    """Starts batches of inference requests and quanta of training on an executor that does one thing at a time.

    Contract, order of events and bound of the latency: docs/design/07-dispatcher.md. Golden twin:
    :class:`golden.perf.dispatch.twin.Twin`.

    Parameters
    ----------
    depth, address, tag, time, counter, stamped
        See :class:`golden.spec.dispatch.DispatchUnit`.

    Members
    -------
    i_request : ``In(stream.Signature(request_layout))``
        Requests; not ready while ``depth`` of them wait, run or are not yet reported.
    o_start : ``Out(stream.Signature(start_layout))``
        To the executor: begin.
    o_item : ``Out(stream.Signature(request_layout))``
        The requests of the batch, oldest first.
    i_done : ``In(stream.Signature(training))``
        From the executor: the batch is done, or the training program has yielded.
    o_completion : ``Out(stream.Signature(completion_layout))``
        Requests that are done, in the order in which they came.
    i_counter, o_counter : ``In(stream)``, ``Out(stream)``
        Address and value of a counter.
    policy : ``In(policy_layout)``
        Looked at whenever the executor is free.
    now : ``Out``
        The time: cycles since reset.
    told, arrived, clock : ``In(1)``, ``In``, ``Out``
        Where ``stamped``: the request of this cycle counts from ``arrived``, a time of ``clock``. Such requests come
        while the executor is free and nothing is chosen, in the order of their times, which are less than 2^time ago.
    overdue : ``Out(1)``
        The training program is overdue; stays until its ``i_done``.
    error, clear : ``Out``, ``In(1)``
        Causes, :class:`golden.spec.dispatch.Cause`; they stay until ``clear``.
    """
    kind = "dispatch"
    Parameters = DispatchUnit

    @staticmethod
    def ports(unit):
        clock = clock_bits(unit)
        return {
            **({"told": In(1), "arrived": In(clock), "clock": Out(clock)} if unit.stamped else {}),
            "i_request": In(stream.Signature(request_layout(unit))),
            "o_start": Out(stream.Signature(start_layout(unit))),
            "o_item": Out(stream.Signature(request_layout(unit))),
            "i_done": In(stream.Signature(StructLayout({"training": 1}))),
            "o_completion": Out(stream.Signature(completion_layout(unit))),
            "i_counter": In(stream.Signature(range(unit.counters))),
            "o_counter": Out(stream.Signature(unit.counter)),
            "policy": In(policy_layout(unit)), "now": Out(unit.time), "overdue": Out(1),
            "error": Out(len(Cause)), "clear": In(1),
        }

    def body(self, platform):
        m, unit = Module(), replace(self.params, stamped=0)    # which is nothing to its parts
        m.submodules.choice = choice = Choice.made(unit)
        m.submodules.report = report = Report.made(unit)
        m.submodules.tally = tally = Tally.made(unit)
        m.submodules.ages = ages = Ages.made(unit)
        clock = Signal(clock_bits(unit))
        told = self.told if self.params.stamped else Const(0)
        when = Mux(told, self.arrived, clock) if self.params.stamped else clock
        connect(m, report.o_tally, tally.i_second)
        connect(m, wiring.flipped(self.i_counter), tally.i_address)
        connect(m, wiring.flipped(self.o_counter), tally.o_value)
        connect(m, wiring.flipped(self.o_completion), report.o_completion)
        m.d.comb += [choice.policy.eq(self.policy), self.now.eq(clock)]
        m.d.sync += clock.eq(clock + 1)
        if self.params.stamped:
            m.d.comb += self.clock.eq(clock)
        queue = self._queue(m, choice, report, ages, clock, told, when)
        self._executor(m, choice, report, tally, ages, queue, clock, told, when)
        return m

    def _queue(self, m, choice, report, ages, clock, told, when):
        """A ring of requests: those not yet reported, those that run, those that wait.

        Returns
        -------
        (Ram, Signal, Signal)
            Its ``r_en`` reads the request that runs next, and its arrival; how many wait; whether one comes.
        """
        unit = self.params
        m.submodules.requests = requests = Ram(unit.depth, queue_layout(unit).size)
        m.submodules.arrivals = arrivals = Ram(unit.depth, arrival_layout(unit).size)
        held = Signal(unit.batch_bits)
        waiting = Signal(unit.batch_bits)
        free = Signal(index(unit.depth))
        place = Signal(index(unit.depth))
        push = Signal()
        request = self.i_request.payload
        m.d.comb += [
            self.i_request.ready.eq(held != unit.depth), push.eq(self.i_request.valid & self.i_request.ready),
            requests.w_en.eq(push), requests.w_addr.eq(free), requests.w_data.eq(Cat(request, when)),
            requests.r_addr.eq(place), Cat(self.o_item.payload).eq(requests.r_data),
            arrivals.w_en.eq(push), arrivals.w_addr.eq(free), arrivals.w_data.eq(Cat(request.tag, when)),
            arrivals.r_en.eq(report.r_en), arrivals.r_addr.eq(report.r_addr), Cat(report.r_data).eq(arrivals.r_data),
            ages.turns.eq(self.now.all()), ages.waits.eq(waiting.any() | push),
            ages.moves.eq(self.o_item.valid & self.o_item.ready), ages.tail.eq(free + push),
            ages.head.eq(place + ages.moves), ages.early.eq(push & told & (when[-1] != clock[-1])),
        ]
        m.d.sync += [free.eq(ages.tail), held.eq(held + push - report.freed), place.eq(ages.head),
                     waiting.eq(waiting + push - Mux(ages.takes, choice.count, 0))]
        return requests, waiting, push

    def _first(self, m, choice, push, waiting, when, oldest):
        """From when on the oldest request counts: ``oldest`` once it was read, or, of one that came while none waited
        and is told behind its time, from its coming on."""
        if not self.params.stamped:
            return oldest
        first = Signal.like(when, reset_less=True)
        fresh = Signal()
        with m.If(push & ~waiting.any()):
            m.d.sync += [first.eq(when), fresh.eq(1)]
        with m.If(choice.batch):
            m.d.sync += fresh.eq(0)
        return Mux(fresh, first, oldest)

    def _executor(self, m, choice, report, tally, ages, queue, clock, told, when):
        """One thing at a time: choose, start, hand over the batch, wait until it is done, count."""
        unit, (requests, waiting, push) = self.params, queue
        training = Signal()
        late = Signal()
        turn = Signal()
        abandoned = Signal()
        count = Signal(unit.batch_bits, reset_less=True)
        left = Signal(unit.batch_bits, reset_less=True)
        since = Signal(len(clock), reset_less=True)    # set while counters are cleared
        halves = Signal(2, reset_less=True)    # ends of half a period since then, 3 is "or more"
        span = Signal(unit.time, reset_less=True)
        elapsed = Signal(len(clock))
        excess = Signal()
        begins = Signal()
        ends = Signal()
        overdue = Signal()
        unasked = Signal()
        choosing = Signal()
        passed = Signal()
        known = Signal()
        closed = Signal()    # the oldest requests, ``among`` of them, became due while a quantum ran
        among = Signal.like(waiting, reset_less=True)
        age = Signal(len(clock))
        oldest = requests.r_data[-len(clock):]    # once it is known
        tells = push & told
        first = self._first(m, choice, push, waiting, when, oldest)
        done = self.i_done.valid & self.i_done.ready
        m.d.comb += [
            choice.turn.eq(turn), choice.barred.eq(abandoned | self.error[Cause.OVERDUE]), self.overdue.eq(abandoned),
            # One clock for both waits: of the oldest request while the executor is free, of training while it runs.
            elapsed.eq(clock - Mux(choosing, oldest, since)), choice.old.eq(passed),
            passed.eq((elapsed >= Mux(choosing, self.policy.timeout, self.policy.patience))
                      | Mux(choosing, ages.waiting, excess)),
            excess.eq(elapsed[-1] | halves.all()),
            choice.waiting.eq(Mux(closed, among, waiting)), age.eq(when - first),
            choice.settled.eq(tally.cleared & (known | ~choice.waiting.any())),
            report.count.eq(count), report.started.eq(since), report.finished.eq(clock),
            report.begins.eq(ends & ~training), report.aged.eq(ages.running), report.border.eq(ages.border),
            self.o_start.payload.training.eq(training), self.o_start.payload.count.eq(count),
        ]
        # What is done and does not run: the late end of an overdue quantum, or a mistake.
        with m.If(done & ~ends):
            with m.If(abandoned & self.i_done.payload.training):
                m.d.sync += abandoned.eq(0)
            with m.Else():
                m.d.comb += unasked.eq(1)
        faults = {Cause.OVERDUE: overdue, Cause.UNASKED: unasked, Cause.POLICY: ~choice.valid,
                  Cause.TIME: (begins & excess) | (report.freed & report.excess)}
        m.d.sync += self.error.eq(Mux(self.clear, 0, self.error) | Cat(faults[cause] for cause in Cause))
        address = Signal(range(unit.counters))
        amount = Signal(unit.time)
        m.d.comb += Cat(tally.i_first.payload).eq(Cat(address, Const(0, 1), amount))
        # The time since the last start or end: is kept, to be counted, and starts again.
        half = self.now[:-1].all()
        with m.If(begins | ~tally.cleared):
            m.d.sync += [span.eq(elapsed | excess.replicate(unit.time)), since.eq(clock), halves.eq(half)]
        with m.Elif(half & ~halves.all()):
            m.d.sync += halves.eq(halves + 1)
        with m.If(self.policy.closes & training):
            with m.If(~choosing):
                m.d.comb += requests.r_en.eq(waiting.any() & ~known)
                m.d.sync += known.eq(waiting.any())
            due = (age >= self.policy.timeout) | ages.waiting & ~tells
            with m.If(Mux(tells, waiting.any(), known & ~choosing)):
                with m.If(due & ~closed):
                    m.d.sync += [closed.eq(1), among.eq(waiting)]
                with m.Elif(tells & closed & ~due):    # it came before that, and is told behind it
                    m.d.sync += among.eq(among + 1)
        state = Signal(State)
        with m.If(state == State.CHOOSE):
            m.d.comb += [choosing.eq(1), self.i_done.ready.eq(1), ages.takes.eq(choice.batch)]
            with m.If(choice.waiting.any() & ~known):
                m.d.comb += requests.r_en.eq(1)
                m.d.sync += known.eq(1)
            with m.If(choice.batch | choice.training):
                m.d.sync += [known.eq(known & choice.training), late.eq(0), training.eq(choice.training),
                             turn.eq(choice.batch), closed.eq(closed & choice.training),
                             count.eq(Mux(choice.batch, choice.count, 0)), left.eq(choice.count)]
                m.d.sync += state.eq(State.START)
            with m.Elif(choice.settled & halves.any()):
                m.d.sync += state.eq(State.PAUSE)
        with m.Elif(state == State.START):
            m.d.comb += [self.o_start.valid.eq(1), begins.eq(self.o_start.ready)]
            with m.If(self.o_start.ready):
                m.d.sync += state.eq(State.IDLE)
        with m.Elif(state == State.IDLE):
            m.d.comb += [tally.i_first.valid.eq(1), address.eq(Counter.IDLE), amount.eq(span),
                         choice.running.eq(training)]
            with m.If(tally.i_first.ready):
                with m.If(training):
                    m.d.sync += state.eq(State.RUN)
                with m.Else():
                    m.d.sync += state.eq(State.READ)
        with m.Elif(state == State.READ):
            m.d.comb += requests.r_en.eq(1)
            m.d.sync += state.eq(State.ITEM)
        with m.Elif(state == State.ITEM):
            m.d.comb += self.o_item.valid.eq(1)
            with m.If(self.o_item.ready):
                m.d.sync += left.eq(left - 1)
                m.d.sync += state.eq(State.READ)
                with m.If(left == 1):
                    m.d.sync += state.eq(State.RUN)
        with m.Elif(state == State.RUN):
            m.d.comb += [
                self.i_done.ready.eq(training | ~report.busy), choice.running.eq(training),
                ends.eq(done & (self.i_done.payload.training == training)),
                overdue.eq(training & ~ends & self.policy.patience.any() & passed),
            ]
            with m.If(overdue):
                m.d.sync += [abandoned.eq(1), late.eq(1)]
            m.d.comb += begins.eq(ends | overdue)
            with m.If(begins):
                m.d.sync += state.eq(State.TIME)
        with m.Elif(state == State.TIME):
            m.d.comb += [tally.i_first.valid.eq(1), amount.eq(span),
                         address.eq(Mux(training, Counter.TRAINING, Counter.INFERENCE))]
            with m.If(tally.i_first.ready):
                m.d.sync += state.eq(State.COUNT)
                with m.If(late):
                    m.d.sync += state.eq(State.CHOOSE)
        # Long idleness is counted in parts, before their time wraps; a part ends when it is counted.
        with m.Elif(state == State.PAUSE):
            m.d.comb += [tally.i_first.valid.eq(1), address.eq(Counter.IDLE), amount.eq(elapsed),
                         begins.eq(tally.i_first.ready)]
            with m.If(begins):
                m.d.sync += state.eq(State.CHOOSE)
        with m.Elif(state == State.COUNT):
            m.d.comb += [tally.i_first.valid.eq(1), amount.eq(1),
                         address.eq(Mux(training, Counter.QUANTA, unit.fill(0) + count))]
            with m.If(tally.i_first.ready):
                m.d.sync += state.eq(State.CHOOSE)
