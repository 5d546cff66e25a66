# amaranth: UnusedElaboratable=no
"""The dispatcher's bound of the latency, for every arrival and every duration, step by step up to beyond the bound."""

import pytest
from amaranth import Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out

from golden.perf.dispatch.bound import OVERHEAD, bound
from golden.spec.dispatch import SHARE_WHOLE
from rtl.dispatch.dispatcher import Dispatcher
from tests.formal.prove import reachable

BATCH, TIMEOUT, QUANTUM = 1, 3, 4
#: Timeout and quantum are longer than a period of the shortest times; a batch of two, so that one request has to wait.
WRAPPING = {"time": 5, "batch": 2, "timeout": 20, "quantum": 28}


class Watched(Component):
    """A dispatcher with an executor of free durations up to ``service`` and ``quantum``; one request is watched.

    Members
    -------
    push, watch : ``In(1)``
        A request is offered; it is to be watched, if none is.
    trains : ``In(1)``
        The policy allows training in this cycle.
    inference, training : ``In(6)``
        Durations of what is started now, cut off at their limits.
    late : ``Out(1)``
        A watched request has been there for longer than ``limit`` cycles.
    """

    def __init__(self, depth, service, limit, priority=True, time=8, batch=BATCH, timeout=TIMEOUT, quantum=QUANTUM,
                 closes=False):
        self.depth, self.service, self.limit, self.priority, self.closes = depth, service, limit, priority, closes
        self.time, self.batch, self.timeout, self.most = time, batch, timeout, quantum
        super().__init__({"push": In(1), "watch": In(1), "trains": In(1), "inference": In(6), "training": In(6),
                          "late": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.part = part = Dispatcher(depth=self.depth, address=8, tag=1, time=self.time, counter=4)
        m.d.comb += [
            part.i_request.valid.eq(self.push), part.o_start.ready.eq(1), part.o_item.ready.eq(1),
            part.o_completion.ready.eq(1), part.policy.inference.eq(1), part.policy.training.eq(self.trains),
            part.policy.priority.eq(int(self.priority)), part.policy.batch.eq(self.batch),
            part.policy.timeout.eq(self.timeout), part.policy.share.eq(SHARE_WHOLE),
            part.policy.closes.eq(int(self.closes)),
        ]
        self._executor(m, part)
        watched, age = Signal(), Signal(8)
        m.d.comb += [part.i_request.payload.tag.eq(self.watch & ~watched), self.late.eq(watched & (age > self.limit))]
        with m.If(watched):
            m.d.sync += age.eq(age + 1)
            with m.If(part.o_completion.valid & part.o_completion.payload.tag):
                m.d.sync += watched.eq(0)
        with m.Elif(part.i_request.valid & part.i_request.ready & self.watch):
            m.d.sync += [watched.eq(1), age.eq(0)]
        return m

    def _executor(self, m, part):
        busy, training, left = Signal(), Signal(), Signal(6)
        m.d.comb += [part.i_done.valid.eq(busy & (left == 0)), part.i_done.payload.training.eq(training)]
        wanted, most = Signal(6), Signal(6)
        m.d.comb += [wanted.eq(Mux(part.o_start.payload.training, self.training, self.inference)),
                     most.eq(Mux(part.o_start.payload.training, self.most - 1, self.service - 1))]
        with m.If(part.o_start.valid):
            m.d.sync += [busy.eq(1), training.eq(part.o_start.payload.training),
                         left.eq(Mux(wanted < most, wanted, most))]
        with m.Elif(part.i_done.valid & part.i_done.ready):
            m.d.sync += busy.eq(0)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)


def limit(depth, service, batch=BATCH, timeout=TIMEOUT, quantum=QUANTUM):
    """Cycles from acceptance to completion: one request runs while the others wait; the report adds two."""
    return bound(batch, timeout, quantum, service, depth - 1, OVERHEAD) + 2


@pytest.mark.slow
@pytest.mark.parametrize("closes", [False, True])
def test_latency_keeps_its_bound(closes):
    most = limit(2, 18)
    assert not reachable(Watched(2, 18, most, closes=closes), "the bound of the latency", "late", most + 20)


@pytest.mark.slow
@pytest.mark.parametrize("closes", [False, True])
def test_latency_keeps_its_bound_where_ages_exceed_a_period(closes):
    most = limit(2, 28, **{name: value for name, value in WRAPPING.items() if name != "time"})
    assert not reachable(Watched(2, 28, most, closes=closes, **WRAPPING), "the bound where times wrap", "late",
                         most + 20, 3000)


@pytest.mark.slow
def test_bound_is_nearly_reached():
    """Ten cycles less are too few: the check can fail. Nine are enough, since nothing starts before counters are 0."""
    less = limit(2, 18) - 10
    assert reachable(Watched(2, 18, less), "a bound that is too low", "late", less + 22)


@pytest.mark.slow
def test_without_priority_the_bound_is_exceeded():
    """A quantum may then stand between two batches."""
    most = limit(2, 18)
    assert reachable(Watched(2, 18, most, priority=False), "turns", "late", most + 20)
