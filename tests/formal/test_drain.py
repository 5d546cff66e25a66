"""Results from the core in one cycle, from any state and for all inputs: rows to V, factors and biases from there.

The promises are those of :class:`rtl.accelerator.drain.DrainToV`, of a core without registers inside.
"""

import pytest
from z3 import UGE, And, BitVecVal, Extract, If, Implies, Not, Or

from hbfp.isa.instructions import Opcode
from rtl.accelerator.drain import DrainToV
from rtl.accelerator.fields import held_layout, offered_layout
from rtl.accelerator.layouts import ADDRESS_BITS
from tests.cosim.accelerator.built import ACCELERATOR
from tests.formal.prove import Laws, Step
from tests.formal.views import Fields, Loops, number, part, signed


def laws(system, step):
    """Laws of an accelerator's drain, whose core has as many side lanes as columns, and no wide mantissas."""
    lanes, now, then = DrainToV.of(system).params.lanes, step.now, step.then
    new, held = (Fields(value, layout(Opcode.DRAIN)) for value, layout in (
        (now.instruction__payload, offered_layout), (now.held, held_layout)))
    loops = Loops(now, [held.rows0, held.rows1, held.columns])
    last = Extract(32 * lanes, 32 * lanes, now.i__payload) == 1
    goes, starts = And(now.write__en, now.write__grant), And(now.instruction__valid, now.instruction__ready)
    ends = And(goes, loops.last)
    least = If(held.diagonal, number(loops.counters[1]) & lanes - 1, BitVecVal(0, 8))
    there, both = now.o_v__valid, And(held.scale, held.bias)
    taken, column = And(there, now.o_v__ready), number(loops.counters[2], ADDRESS_BITS)
    bias = Or(Not(held.scale), now.got, taken)
    return Laws({
        "a row is written as it is taken": And(now.write__en == And(now.active, now.i__valid), now.i__ready == goes),
        "to a place": loops.follows(then, "address", number(new.base, ADDRESS_BITS), [
            signed(stride, ADDRESS_BITS) for stride in (held.row0, held.row1, held.column)], starts, goes),
        "where it is written": now.write__addr == now.address0,
        "its numbers": now.write__data == Extract(32 * lanes - 1, 0, now.i__payload),
        "from a lane on": And(*((part(now.write__mask, 1, lane) == 1) == UGE(BitVecVal(lane, 8), least)
                                for lane in range(lanes))),
        "an instruction is taken with the last row": now.instruction__ready == Or(Not(now.active), ends),
        "it goes on to its last row": then.active == Or(starts, And(now.active, Not(ends))),
        "done": then.done == ends,
        "a last of the core with another row": then.fault == Or(
            now.fault, And(goes, And(*loops.ends[:2]) != last)),
        "an operand is asked for": now.read__en == And(now.active, now.o_v__ready, Or(
            Not(taken), And(both, Not(now.got)))),
        "factors, then biases": now.read__addr == column + If(
            bias, number(held.bias_base, ADDRESS_BITS), number(held.scale_base, ADDRESS_BITS)),
        "it comes in the next cycle": then.o_v__valid == And(now.read__en, now.read__grant),
        "it is the word of V": now.o_v__payload == now.read__data,
        "one of two is there": Implies(taken, then.got == And(both, Not(now.got))),
        "until the other is": Implies(Not(taken), then.got == now.got),
    } | loops.turns(then, starts, goes), kept=("write__addr", "address1", "address2"))


@pytest.mark.parametrize("system", [ACCELERATOR], ids=["one context"])
def test_laws(system):
    step = Step.of(DrainToV.of(system))
    assert step.broken(laws(system, step)) == []
