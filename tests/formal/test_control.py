"""Control in one cycle, from any state and for all inputs: the states of programs, their ends, errors and turns.

What docs/design/11-accelerator.md and the docstring of control promise, as laws of ports and registers.
"""


import pytest
from z3 import UGE, And, BitVecVal, BoolVal, Extract, If, Implies, Not, Or, Xor, ZeroExt

from hbfp.isa.registers import Cause
from hbfp.system import SHARES
from rtl.accelerator.control import PARK, PATIENCE, SETTLE, Control, State
from tests.cosim.accelerator.built import ACCELERATOR, DISPATCHED, TWO
from tests.formal.prove import Laws, Step
from tests.formal.views import first, inner

#: Bits of the number of an instruction, and of a cause.
NUMBER, CAUSE = 24, 4


class _Laws:
    """Laws of a :class:`~rtl.accelerator.control.Control` with these parameters, about a step of it.

    Attributes
    ----------
    always, laws, given
        See :class:`~tests.formal.prove.Laws`.
    """

    def __init__(self, params, step):
        self.params, self.now, self.then = params, step.now, step.then
        self.dispatched = params.dispatched
        self.several, self.contexts = params.contexts > 1, range(params.contexts)
        self.always = {"context 1 alone holds the machine, for a dispatcher": Or(
            Not(self.at(State.HOLD)), self.active if self.dispatched else False)}
        if not self.several:
            self.always["one program has nothing to wait for"] = Not(Or(self.now.waiting, self.at(State.PARK)))
        self.given = [Implies(self.now.fault, self.now.fault_cause != 0)]
        self.laws = self._outputs() | self._next() | (self._dispatched() if self.dispatched else {})
        for context in self.contexts:
            self.laws |= {f"{name}, context {context}": law for name, law in self._status(context).items()}

    def of(self, name, context, then=False):
        """A context's own of what ports have for each."""
        value = getattr(self.then if then else self.now, name)
        if not self.several:
            return value
        bits = value.size() // len(self.contexts)
        own = Extract(bits * context + bits - 1, bits * context, value)
        return own == 1 if bits == 1 else own

    def at(self, *states):
        """The program that has the machine is in one of these states."""
        return Or(*(self.now.state == int(state) for state in states))

    def has(self, context):
        """A context's program has the machine, or has not given it back."""
        return And(Not(self.at(State.IDLE, State.PARK)), self.active == bool(context) if self.several else True)

    @property
    def attached(self):
        return self.now.attached if self.dispatched else BoolVal(False)

    def quantum(self, state):
        """A quantum is started that the dispatcher does not know to be over, before or behind this cycle."""
        return inner(state, "quantum")

    @property
    def quiet(self):
        """Nothing is under way; where a dispatcher is, a program that begins looks for that once."""
        return Or(self.now.quiet, self.now.clean) if self.dispatched else self.now.quiet

    @property
    def active(self):
        return self.now.active if self.several else BoolVal(False)

    def chosen(self, values):
        """The active context's of a value for each."""
        return If(self.active, values[1], values[0]) if self.several else values[0]

    # What the host asks for.

    def rings(self, context):
        """Its doorbell is rung; where a dispatcher is attached that of context 0 is the dispatcher's."""
        rung = self.of("start", context)
        return And(rung, Not(self.attached)) if context == 0 else rung

    def starts(self, context):
        return Or(self.rings(0), self.now.batch) if context == 0 and self.dispatched else self.rings(context)

    def stops(self, context):
        return self.of("stop", context)

    def wants(self, context):
        """It would begin, or go on; not a program that waits and whose doorbell rings again; where a dispatcher is
        attached, that of context 1 only in a quantum."""
        may = Or(Not(self.attached), self.now.quantum, self.quantum(self.now)) if (
            context and self.dispatched) else BoolVal(True)
        return And(Xor(self.of("waiting", context), self.starts(context)), Not(self.stops(context)), may)

    def begins(self, context):
        """A program of the context begins or goes on: the other one's goes first, if both would."""
        if not self.several:
            return And(self.at(State.IDLE), self.wants(0))
        mine = self.active == bool(context)
        return And(self.at(State.IDLE), self.wants(context), Or(Not(mine), Not(self.wants(1 - context))))

    def gives(self):
        """The program that has the machine gives way at its YIELD."""
        if not self.several:
            return BoolVal(False)
        waits = If(self.active, self.of("waiting", 0), And(self.of("waiting", 1), Not(self.now.yielding)))
        return And(waits, Not(self.attached))

    # Errors, the first of which counts, with cause and instruction.

    def errors(self):
        now, number = self.now, self.chosen([self.place(context) for context in self.contexts])
        runs, starting = self.at(State.RUN), self.at(State.START)
        counts = self.at(State.START, State.RUN, State.TURN)
        overdue = And(self.now.overdue, self.active) if self.dispatched else BoolVal(False)
        beat = max(64, self.params.beat)
        beyond = Or(*(UGE(ZeroExt(2, Extract(4 * n + 3, 4 * n, now.share_first))
                          + ZeroExt(1, Extract(5 * n + 4, 5 * n, now.share_size)), SHARES + 1)
                      for n in range(4))) if self.several else BoolVal(False)
        return [(condition, BitVecVal(cause, CAUSE) if isinstance(cause, int) else cause, place) for
                condition, cause, place in (
            (And(self.fetches(), now.bus_error), int(Cause.BUS), now.bus_pc),
            (And(runs, now.fault), now.fault_cause, now.fault_pc),
            (And(runs, now.illegal), int(Cause.ILLEGAL), number), (And(runs, now.beyond), int(Cause.END), number),
            (And(starting, Or(now.origin & beat - 1 != 0, now.base & 4095 != 0)), int(Cause.MISALIGNED), number),
            (And(starting, UGE(now.instructions, 1 << NUMBER)), int(Cause.END), number),
            (And(starting, beyond), int(Cause.ADDRESS), number),
            (self.chosen([self.rings(context) for context in self.contexts]), int(Cause.BUSY), number),
            (self.chosen([self.stops(context) for context in self.contexts]), int(Cause.STOPPED), number),
            (And(counts, Not(now.progress), now.watchdog != 0, now.timer == now.watchdog), int(Cause.WATCHDOG),
             number), (And(counts, overdue), int(Cause.OVERDUE), number))]

    def fails(self):
        """An error ends the program that has the machine."""
        return And(self.at(State.START, State.RUN, State.TURN, State.END, State.HOLD),
                   Or(*(condition for condition, *_ in self.errors())))

    def place(self, context, then=False):
        return getattr(self.then if then else self.now, f"place{context}" if self.several else "place")

    def fetches(self):
        early = Or(self.at(State.HOLD), And(self.at(State.START), self.now.clean)) if self.dispatched else False
        return Or(self.at(State.RUN, State.TURN), early)

    def ready(self):
        """A program may run: nothing is under way, and the places of a batch are there."""
        return And(self.quiet, Or(self.active, self.now.loaded)) if self.dispatched else self.quiet

    def returns(self):
        """The program of context 1 gives the machine back: for a batch, or as the dispatcher has gone."""
        return And(self.at(State.HOLD), Or(self.now.batch, Not(self.attached)), Not(self.fails())
                   ) if self.dispatched else BoolVal(False)

    def stopped(self):
        """After an error nothing is under way any more, or that has lasted too long."""
        return And(self.at(State.STOP), UGE(self.now.timer, SETTLE),
                   Or(self.now.quiet, UGE(self.now.timer, PATIENCE)))

    def ended(self):
        """All events after HALT are counted; a dispatcher does not wait for that."""
        return And(self.at(State.END), Or(UGE(self.now.timer, SETTLE), self.attached), Not(self.fails()))

    def _outputs(self):
        now = self.now
        places = [self.place(context) for context in self.contexts]
        fresh = [Or(self.starts(context), places[context] == 0) for context in self.contexts]
        return {
            "a program runs": now.running == self.at(State.RUN),
            "instructions are fetched": now.fetches == self.fetches(),
            "a program has the machine": now.counts == self.at(State.START, State.RUN, State.TURN),
            "the next instruction": now.place == self.chosen(places),
            "counters are cleared": now.begins == Or(*(And(self.begins(context), fresh[context])
                                                       for context in self.contexts)),
        }

    def _next(self):
        now, then = self.now, self.then
        #: From a state, on a condition, to a state; whether cycles are counted anew.
        moves = [(self.at(here), condition, int(there), anew) for here, condition, there, anew in (
            (State.IDLE, Or(*map(self.begins, self.contexts)), State.START, True),
            (State.STOP, self.stopped(), State.IDLE, False),
            (State.PARK, UGE(now.timer, PARK), State.IDLE, False),
            *((state, self.fails(), State.STOP, True) for state in (
                State.START, State.RUN, State.TURN, State.END, State.HOLD)),
            (State.START, self.ready(), State.RUN, True),
            (State.RUN, now.halted, State.END, True), (State.RUN, now.paused, State.TURN, False),
            (State.TURN, self.gives(), State.PARK, True),
            (State.TURN, And(self.attached, self.active), State.HOLD, True),
            (State.TURN, BoolVal(True), State.RUN, True), (State.END, self.ended(), State.IDLE, False),
            *([(State.HOLD, self.returns(), State.IDLE, False), (State.HOLD, now.quantum, State.RUN, True)]
              if self.dispatched else []))]
        counted = If(And(now.counts, now.progress), BitVecVal(0, 32), now.timer + 1)
        found = {
            "states follow each other": then.state == first(
                [(And(here, condition), BitVecVal(there, 3)) for here, condition, there, _ in moves], now.state),
            "cycles without progress are counted": then.timer == first(
                [(And(here, condition), BitVecVal(0, 32) if anew else counted)
                 for here, condition, _, anew in moves], counted),
        }
        if self.several:
            found["who has the machine"] = then.active == first(
                [(self.begins(context), BoolVal(bool(context))) for context in self.contexts], now.active)
        return found

    def _dispatched(self):
        """What the dispatcher is told: of the two that it has started, batch and quantum, which is over."""
        now, then = self.now, self.then
        quantum, quantum_then = self.quantum(now), self.quantum(then)
        own = self.at(State.START, State.RUN)
        trained = And(quantum, Not(self.of("waiting", 1)), Not(And(own, self.active)))
        served = And(now.serves, Not(self.of("waiting", 0)), Not(And(Or(own, self.at(State.TURN)), Not(self.active))))
        fails = Or(*(condition for condition, *_ in self.errors()))
        return {
            "a quantum is over": now.over_training == trained, "something is over": now.over == Or(trained, served),
            "a batch has failed": now.failed == Or(self.of("error", 0), And(self.at(State.STOP), Not(self.active))),
            "something may be started": now.free == And(now.stop == 0, Or(
                And(self.at(State.IDLE), Not(self.of("waiting", 0))), And(self.at(State.HOLD), Not(fails)))),
            "there is something to train": now.trains == Or(self.of("waiting", 1), self.at(State.HOLD)),
            "a quantum until it is taken note of": quantum_then == Or(
                now.quantum, And(quantum, Not(And(now.taken, now.over_training)))),
            "a batch until it is taken note of": then.serves == Or(
                now.batch, And(now.serves, Not(And(now.taken, Not(now.over_training))))),
            "nothing is under way since": then.clean == And(self.at(State.START), self.quiet),
        }

    def _status(self, context):
        now = self.now
        status = "waiting", "done", "error", "cause", "error_pc"
        waits, done, error, cause, number = (self.of(name, context) for name in status)
        waits_then, done_then, error_then, cause_then, number_then = (
            self.of(name, context, True) for name in status)
        has, place = self.has(context), self.place(context)
        start, stop = self.starts(context), self.stops(context)
        asked = And(Not(has), Or(start, stop))    # the status is cleared, or that of a program that waited
        mine = self.active == bool(context) if self.several else BoolVal(True)
        over, failed = And(mine, self.ended()), And(mine, self.stopped())
        fails, nothing = And(has, self.fails()), BitVecVal(0, CAUSE)
        new = And(asked, start, Not(stop), Not(waits))
        turns = And(mine, self.at(State.TURN), self.gives(), Not(self.fails()))
        causes, places = ([(condition, row[place]) for condition, *row in self.errors()] for place in (0, 1))
        return {
            "busy": self.of("busy", context) == Or(waits, has),
            "ends": self.of("ends", context) == over,
            "fails": self.of("fails", context) == Or(failed, And(asked, waits)),
            "waits": waits_then == first([(asked, And(new, Not(self.begins(context)))) if self.several else (
                asked, BoolVal(False)), (self.begins(context), BoolVal(False)),
                (turns, BoolVal(True)), *([(self.returns(), BoolVal(True))] if context else [])], waits),
            "done": done_then == first([(asked, BoolVal(False)), (over, BoolVal(True))], done),
            "error": error_then == first([(asked, waits), (failed, BoolVal(True))], error),
            "cause": cause_then == first([
                (And(asked, waits), If(start, BitVecVal(Cause.BUSY, CAUSE), BitVecVal(Cause.STOPPED, CAUSE))),
                (asked, nothing), (fails, first(causes, nothing))], cause),
            "number of the instruction": number_then == first([
                (asked, If(waits, place, BitVecVal(0, NUMBER))), (fails, first(places, number))], number),
            "instructions are counted": self.place(context, True) == first([
                (new, BitVecVal(0, NUMBER)), (And(mine, now.running, now.takes), place + 1)], place),
        }


def laws(system, step):
    """Laws of an accelerator's control."""
    found = _Laws(Control.of(system).params, step)
    return Laws(found.laws, found.always, found.given)


@pytest.mark.parametrize("system", [ACCELERATOR, TWO, DISPATCHED], ids=["one context", "two contexts", "dispatched"])
def test_laws(system):
    step = Step.of(Control.of(system))
    assert step.broken(laws(system, step)) == []


def test_another_law_is_broken(monkeypatch):
    monkeypatch.setattr(f"{__name__}.PATIENCE", PATIENCE + 1)
    step = Step.of(Control.of(ACCELERATOR))
    assert step.broken(laws(ACCELERATOR, step)) == ["states follow each other", "fails, context 0", "error, context 0"]
