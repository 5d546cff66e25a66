"""What holds beside the rule that an offer stays (:mod:`tests.formal.test_streams`), component by component.

What always holds is proved by induction; what inputs and parts keep to is from their pages, and assumed.
"""

from z3 import ULE, ULT, And, Implies, Not, Or

from hbfp.isa.instructions import COUNT_BITS, Unit
from hbfp.rtl.accelerator.arrays import Arrays
from hbfp.rtl.accelerator.drain import DrainToV
from hbfp.rtl.accelerator.fetch import AHEAD, Fetch
from hbfp.rtl.accelerator.load import Load
from hbfp.rtl.accelerator.multiply import Multiply
from hbfp.rtl.accelerator.queue import Queue
from hbfp.rtl.accelerator.registers import Registers
from hbfp.rtl.accelerator.ring import Ring
from hbfp.rtl.accelerator.store import Store
from hbfp.rtl.accelerator.walk import State as WalkState
from hbfp.rtl.accelerator.walk import Walk
from hbfp.rtl.accelerator.weights import Weights
from hbfp.rtl.accelerator.writer import Writer
from hbfp.rtl.dispatch.dispatcher import Dispatcher
from hbfp.rtl.dispatch.dispatcher import State as DispatcherState
from hbfp.rtl.dispatch.report import Report
from hbfp.rtl.dispatch.report import State as ReportState
from hbfp.rtl.dispatch.tally import Tally
from hbfp.rtl.vector.hbfp import VectorHBFP
from tests.formal.views import number, part

#: Streams of components that keep to another rule, and which.
OTHERS = {
    (DrainToV, "o_v__"): "an operand is there in the cycle in which the core asked to take it, and V keeps no word",
    (Store, "beat__"): "it comes where the writer has room, which takes it at once",
    (Writer, "w"): "what its queues hold decides: tests.formal.test_writer has this law",
}


def _memory(name):
    """The port of a memory with one reader keeps its word until the port's next grant."""
    def beside(cut):
        now = vars(cut.step.now)
        return {}, [Or(And(now[f"{name}__en"], now[f"{name}__grant"]), cut.stays(*(
            port for port in now if port.startswith(f"{name}__") and cut.step.is_input(port)
            and port not in (f"{name}__grant", f"{name}__fault"))))]
    return beside


def _counts_rise(cut):
    """Of a queue: what units have completed does not become less, so that a wait that holds holds for good; the unit
    completes what it has taken."""
    now, then = cut.step.now, cut.step.then
    counts = [[part(state.counts, COUNT_BITS, unit) for unit in range(len(Unit))] for state in (now, then)]
    return {}, [Implies(now.done, now.busy), *(ULE(before, after) for before, after in zip(*counts, strict=True))]


def _in_step(cut):
    """Of arrays: when a core has results depends on nothing but when it is given what."""
    now = vars(cut.step.now)
    return {}, [now[f"{place}o__valid"] == now["core0.o__valid"] for place in cut.parts]


def _fetches(cut):
    """Of fetch: it asks for what it has room for, and what comes was asked for."""
    now, params = cut.step.now, cut.cell.params
    parts = max(1, 64 // params.beat)
    most = AHEAD // max(1, params.beat // 64) * parts
    held = number(now.behind) * parts + number(now.part) + number(now.free)
    return {"room": And(ULT(number(now.part), parts), ULE(number(now.free), most), ULE(number(now.behind), most),
                        ULE(held, most))}, [Implies(now.valid, ULT(held, most))]


def _room(cut):
    """Of loads and stores: a queue that has room, and is given nothing, has room in the next cycle."""
    now, then = vars(cut.step.now), vars(cut.step.then)
    return {}, [Implies(And(now["pieces.i__ready"], Not(now["pieces.i__valid"])), then["pieces.i__ready"])]


def _walks(cut):
    """Of a walk: the instruction that it is about stays until its end."""
    now = cut.step.now
    return {"there is an instruction": Or(*(now.state == int(each) for each in (WalkState.START, WalkState.FAULT)),
                                          now.instruction__valid)}, []


def _answers(cut):
    """Of registers: nothing is taken before what was answered is."""
    now = cut.step.now
    return {"one write at a time": Not(And(now.awready, now.bvalid)),
            "one read at a time": Not(And(now.pending, now.rvalid))}, []


def _descriptors(cut):
    """Of a ring: what comes was asked for, and the host leaves its place alone while a burst is asked for."""
    now = cut.step.now
    to_ask, to_come = number(now.to_ask), number(now.to_come)
    return {"what is asked for is to come": ULE(to_ask, to_come)}, [
        Implies(now.valid, ULT(to_ask, to_come)), Implies(to_ask != 0, cut.stays("ring"))]


def _reports(cut):
    """Of a report: a batch has requests, and begins while none is reported; its memory keeps what it has read."""
    now = cut.step.now
    return {"one is reported": Or(now.state == int(ReportState.READ), now.left != 0)}, [
        Implies(now.begins, And(now.left == 0, now.count != 0)), Or(now.r_en, cut.stays("r_data"))]


def _counts(cut):
    """Of a tally: a value is read while none is offered."""
    return {"one value at a time": Not(And(cut.step.now.reading, cut.step.now.offered))}, []


def _hands_over(cut):
    """Of a dispatcher: requests are handed over while no quantum runs."""
    now = cut.step.now
    return {"no quantum": Or(Not(now.training), And(*(now.state != int(each) for each in (
        DispatcherState.READ, DispatcherState.ITEM))))}, []


def _pins(cut):
    """Of a vector unit with blocks: the pins change only while it is not busy."""
    now = vars(cut.step.now)
    return {}, [Or(Not(now["vector.o__valid"]), cut.stays("to_blocks"))]


#: What holds beside the rule, by component: what always does, which is proved, and what inputs and parts keep to.
BESIDE = {Arrays: _in_step, Queue: _counts_rise, Multiply: _memory("x"), Weights: _memory("w"), Fetch: _fetches,
          Load: _room, Store: _room, Walk: _walks, Registers: _answers, Ring: _descriptors, Report: _reports,
          Tally: _counts, Dispatcher: _hands_over, VectorHBFP: _pins}
#: Streams of which components need that what they are offered stays, which is a law of whoever offers it.
NEEDED = (Walk, "instruction__"), (Load, "instruction__"), (Store, "instruction__")
