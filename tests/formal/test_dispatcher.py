"""The dispatcher in one cycle, from any state and for all inputs: its queue, its order of events, times and errors.

What docs/design/07-dispatcher.md promises beside its parts, which have laws of their own: ages, choice, report, tally.
"""

from dataclasses import replace

import pytest
from z3 import UGE, ULE, And, BitVecVal, BoolVal, Concat, Extract, If, Implies, Not, Or

from cosim.dispatch.check import SMALL, STAMPED
from golden.spec.dispatch import Cause, Counter
from rtl.dispatch.dispatcher import Dispatcher, State
from rtl.dispatch.shapes import policy_layout, start_layout, tally_layout
from tests.formal.prove import Laws, Step
from tests.formal.views import Fields, first, number

#: Bits of counts, and those in which times do not wrap.
WIDE = 64


class _Laws:
    """Laws of a :class:`~rtl.dispatch.dispatcher.Dispatcher`, by name, about a step of it."""

    def __init__(self, unit, step):
        self.unit, self.now, self.then = unit, step.now, step.then
        self.policy, self.clock = Fields(self.now.policy, policy_layout(unit)), self.now.clock
        stamped = bool(unit.stamped)
        self.push = And(self.now.i_request__valid, self.now.i_request__ready)
        self.told = self.now.told if stamped else BoolVal(False)
        #: From when on a request that comes counts, and one that waits is the oldest.
        self.when = If(self.told, self.now.arrived, self.clock) if stamped else self.clock
        self.oldest = Extract(self.of("requests.r_data").size() - 1, unit.address * 2 + unit.tag,
                              self.of("requests.r_data"))
        self.first = If(self.now.fresh, self.now.first, self.oldest) if stamped else self.oldest
        self.chooses = self.at(State.CHOOSE)
        self.batch, self.quantum = (And(self.chooses, self.of(f"choice.{name}")) for name in ("batch", "training"))
        self.counted = self.of("tally.i_first__ready")
        #: What the executor says: the end of what runs, or not.
        self.done = And(self.now.i_done__valid, self.now.i_done__ready)
        said = self.now.i_done__payload
        self.ends = And(self.at(State.RUN), self.done, said == self.now.training)
        self.since = self.clock - self.now.since
        self.long = Or(UGE(self.since, 1 << unit.time), self.now.halves == 3)
        self.overdue = And(self.at(State.RUN), self.now.training, Not(self.ends), self.policy.patience != 0, Or(
            self.long, UGE(number(self.since, WIDE), number(self.policy.patience, WIDE))))
        self.begins = Or(And(self.at(State.START), self.now.o_start__ready), self.ends, self.overdue, And(
            self.at(State.PAUSE), self.counted))
        self.moves = And(self.at(State.ITEM), self.now.o_item__ready)

    def of(self, name, then=False):
        """A port or register of a part."""
        return vars(self.then if then else self.now)[name]

    def at(self, state):
        return self.now.state == int(state)

    def one(self, condition, like):
        return If(condition, BitVecVal(1, like.size()), 0)

    def queue(self):
        """Requests that are held, in a ring: not yet reported, running, waiting."""
        now, then, unit, push = self.now, self.then, self.unit, self.push
        wanted = Or(And(self.chooses, self.of("choice.waiting") != 0, Not(now.known)), self.at(State.READ),
                    And(self.beside, now.waiting != 0, Not(now.known)))
        memories = {"requests": (now.i_request__payload, wanted, now.r_addr),
                    "arrivals": (Extract(unit.address * 2 + unit.tag - 1, unit.address * 2, now.i_request__payload),
                                 self.of("report.r_en"), self.of("report.r_addr"))}
        found = {
            "a request is taken": now.i_request__ready == (now.held != unit.depth),
            "held": then.held == now.held + self.one(push, now.held) - self.one(self.of("report.freed"), now.held),
            "waiting": then.waiting == now.waiting + self.one(push, now.waiting) - If(
                self.batch, self.of("choice.count"), 0),
            "where the next goes": then.w_addr == now.w_addr + self.one(push, now.w_addr),
            "which is the oldest": then.r_addr == now.r_addr + self.one(self.moves, now.r_addr),
            "a request is handed over": And(
                now.o_item__valid == self.at(State.ITEM),
                now.o_item__payload == Extract(now.o_item__payload.size() - 1, 0, self.of("requests.r_data"))),
            "ages": And(self.of("ages.turns") == (Extract(unit.time - 1, 0, self.clock) == unit.longest),
                        self.of("ages.waits") == Or(now.waiting != 0, push), self.of("ages.takes") == self.batch,
                        self.of("ages.tail") == then.w_addr, self.of("ages.head") == then.r_addr,
                        self.of("ages.moves") == self.moves, self.of("ages.early") == And(
                            push, self.told, Extract(unit.time, unit.time, self.when ^ self.clock) == 1)),
        }
        for name, (word, reads, place) in memories.items():
            word = Concat(self.when, word)
            words = [self.of(f"{name}.contents[{n}]") for n in range(unit.depth)]
            found |= {
                f"what comes, {name}": And(*(self.of(f"{name}.contents[{n}]", True) == If(
                    And(push, now.w_addr == n), word, before) for n, before in enumerate(words))),
                f"what is read, {name}": self.of(f"{name}.r_data", True) == first(
                    [(And(reads, place == n), before) for n, before in enumerate(words)], self.of(f"{name}.r_data"))}
        return found

    @property
    def beside(self):
        """A quantum is under way beside which batches close."""
        return And(self.policy.closes, self.now.training, Not(self.chooses))

    def order(self):
        """The order of events: states, what is offered in each, and what is counted."""
        now, then, unit, tally = self.now, self.then, self.unit, Fields(
            self.of("tally.i_first__payload"), tally_layout(self.unit))
        start = Fields(now.o_start__payload, start_layout(unit))
        counts = Or(*map(self.at, (State.IDLE, State.TIME, State.COUNT, State.PAUSE)))
        counted, address = And(counts, self.counted), number(tally.address, WIDE)
        fill = unit.fill(0) + number(now.count, WIDE)
        idles = Or(self.at(State.IDLE), self.at(State.PAUSE))
        chosen = Or(self.batch, self.quantum)
        rows = [(State.CHOOSE, chosen, State.START),
                (State.CHOOSE, And(self.of("choice.settled"), now.halves != 0), State.PAUSE),
                (State.START, now.o_start__ready, State.IDLE), (State.IDLE, And(counted, now.training), State.RUN),
                (State.IDLE, counted, State.READ), (State.READ, BoolVal(True), State.ITEM),
                (State.ITEM, And(self.moves, now.left == 1), State.RUN), (State.ITEM, self.moves, State.READ),
                (State.RUN, Or(self.ends, self.overdue), State.TIME),
                (State.TIME, And(counted, now.late), State.CHOOSE), (State.TIME, counted, State.COUNT),
                (State.COUNT, counted, State.CHOOSE), (State.PAUSE, counted, State.CHOOSE)]
        moves = [(And(self.at(here), condition), BitVecVal(int(there), 4)) for here, condition, there in rows]
        return {
            "states follow each other": then.state == first(moves, now.state),
            "a start is offered": And(now.o_start__valid == self.at(State.START), start.training == now.training,
                                      start.count == now.count),
            "an end is taken": now.i_done__ready == Or(self.chooses, And(self.at(State.RUN), Or(
                now.training, Not(self.of("report.busy"))))),
            "what is started": And(
                then.training == If(chosen, self.quantum, now.training),
                then.turn == If(chosen, self.batch, now.turn),
                then.count == If(chosen, If(self.batch, self.of("choice.count"), 0), now.count),
                Implies(self.batch, then.left == self.of("choice.count")),
                Implies(Not(chosen), then.left == now.left - self.one(self.moves, now.left))),
            "a quantum that was late": then.late == And(Not(chosen), Or(now.late, self.overdue)),
            "a counter changes": And(self.of("tally.i_first__valid") == counts, Not(tally.largest)),
            "which counter": Implies(counts, address == If(idles, int(Counter.IDLE), If(
                self.at(State.TIME), If(now.training, BitVecVal(Counter.TRAINING, WIDE), int(Counter.INFERENCE)),
                If(now.training, BitVecVal(Counter.QUANTA, WIDE), fill)))),
            "by how much": Implies(counts, tally.amount == If(self.at(State.COUNT), 1, If(
                self.at(State.PAUSE), Extract(unit.time - 1, 0, self.since), now.span))),
            "a batch is reported": And(
                self.of("report.begins") == And(self.ends, Not(now.training)), Implies(self.ends, And(
                    self.of("report.count") == now.count, self.of("report.finished") == self.clock,
                    self.of("report.started") == Extract(unit.time - 1, 0, now.since),
                    self.of("report.aged") == self.of("ages.running"),
                    self.of("report.border") == self.of("ages.border")))),
        }

    def choice(self):
        """What the choice goes by, and batches that close while a quantum runs."""
        now, then, policy = self.now, self.then, self.policy
        choice = {name: self.of(f"choice.{name}") for name in (
            "policy", "waiting", "old", "settled", "barred", "running", "turn")}
        timeout = number(policy.timeout, WIDE)
        old = Or(self.of("ages.waiting"), UGE(number(self.clock - self.oldest, WIDE), timeout))
        some = now.waiting != 0
        tells = And(self.push, self.told)
        due = Or(UGE(number(self.when - self.first, WIDE), timeout), And(self.of("ages.waiting"), Not(tells)))
        looks = And(policy.closes, now.training, If(tells, some, And(now.known, Not(self.chooses))))
        closes = And(looks, due, Not(now.closed))
        joins = And(looks, tells, now.closed, Not(due))
        wanted = choice["waiting"] != 0
        chosen = Or(self.batch, self.quantum)
        return {
            "the policy": And(choice["policy"] == now.policy, choice["turn"] == now.turn),
            "who waits": choice["waiting"] == If(now.closed, now.among, now.waiting),
            "how old": Implies(self.chooses, choice["old"] == old),
            "what is known": choice["settled"] == And(self.of("tally.cleared"), Or(now.known, Not(wanted))),
            "training must wait": choice["barred"] == Or(now.overdue, Extract(
                Cause.OVERDUE, Cause.OVERDUE, now.error) == 1),
            "training runs": choice["running"] == And(now.training, Or(self.at(State.IDLE), self.at(State.RUN))),
            "a batch closes": then.closed == Or(closes, And(now.closed, Not(self.batch))),
            "among how many": Implies(then.closed, then.among == If(
                closes, now.waiting, now.among + self.one(joins, now.among))),
            "the arrival of the oldest": then.known == If(self.beside, some, If(
                And(self.chooses, chosen), And(now.known, self.quantum), Or(now.known, And(self.chooses, wanted)))),
        }

    def times(self):
        """What has passed since the last start or end, up to 2^time cycles, and errors."""
        now, then, unit, clock = self.now, self.then, self.unit, self.clock
        half = Extract(unit.time - 2, 0, clock) == unit.longest >> 1
        anew = Or(self.begins, Not(self.of("tally.cleared")))
        late_end = And(now.overdue, now.i_done__payload)
        wrong = And(self.done, Not(self.ends))
        excess = And(self.of("report.freed"), self.of("report.excess"))
        causes = {Cause.OVERDUE: self.overdue, Cause.UNASKED: And(wrong, Not(late_end)),
                  Cause.POLICY: Not(self.of("choice.valid")), Cause.TIME: Or(And(self.begins, self.long), excess)}
        return {
            "the clock": And(then.clock == clock + 1, now.now == Extract(unit.time - 1, 0, clock)),
            "since when": then.since == If(anew, clock, now.since),
            "how long it was": Implies(self.begins, then.span == If(
                self.long, unit.longest, Extract(unit.time - 1, 0, self.since))),
            "it is kept": Implies(Not(anew), then.span == now.span),
            "ends of half a period": then.halves == If(anew, If(half, BitVecVal(1, 2), 0), If(
                And(half, now.halves != 3), now.halves + 1, now.halves)),
            "errors stay": And(*((Extract(cause, cause, then.error) == 1) == Or(happens, And(
                Extract(cause, cause, now.error) == 1, Not(now.clear))) for cause, happens in causes.items())),
            "overdue until its end": then.overdue == Or(self.overdue, And(now.overdue, Not(And(wrong, late_end)))),
        }

    def links(self):
        """Ports of parts that are the dispatcher's own."""
        now, completion, counter = self.now, "report.o_completion__", "tally.o_value__"
        pairs = [(f"{completion}valid", now.o_completion__valid), (f"{completion}payload", now.o_completion__payload),
                 (f"{completion}ready", now.o_completion__ready), ("tally.i_address__valid", now.i_counter__valid),
                 ("tally.i_address__payload", now.i_counter__payload), ("tally.i_address__ready", now.i_counter__ready),
                 (f"{counter}valid", now.o_counter__valid), (f"{counter}payload", now.o_counter__payload),
                 (f"{counter}ready", now.o_counter__ready), ("report.r_data", self.of("arrivals.r_data"))]
        pairs += [(f"tally.i_second__{name}", self.of(f"report.o_tally__{name}")) for name in (
            "valid", "ready", "payload")]
        return {f"link: {name}": self.of(name) == value for name, value in pairs}

    def stamps(self):
        """From when on the oldest counts that came while none waited, until it was read."""
        now, then, alone = self.now, self.then, And(self.push, self.now.waiting == 0)
        return {"the first of a queue": And(
            then.first == If(alone, self.when, now.first),
            then.fresh == And(Not(self.of("choice.batch")), Or(now.fresh, alone)))}


def laws(unit, step):
    """Laws of a dispatcher beside those of its parts."""
    found = _Laws(unit, step)
    every = found.queue() | found.order() | found.choice() | found.times() | found.links()
    if unit.stamped:
        every |= found.stamps()
    # Requests are told of while nothing is chosen.
    given = [Not(And(found.told, Or(found.of("choice.batch"), found.of("choice.training"))))]
    always = {"states": ULE(step.now.state, max(State))}
    # What parts keep through a reset is theirs to say.
    parts = tuple(name for name in vars(step.now) if name.startswith(("report.", "ages.", "tally.", "choice.")))
    return Laws(every, always, given, ("since", "halves", "span", "count", "left", "among", "first", *parts))


@pytest.mark.parametrize("unit", [SMALL, STAMPED], ids=["by itself", "told late"])
def test_laws(unit):
    unit = replace(unit, depth=4)
    step = Step.of(Dispatcher.made(unit))
    assert step.broken(laws(unit, step)) == []
