"""Weights for the core in one cycle, from any state and for all inputs: rows of W, one behind the other.

The promises are those of :class:`rtl.accelerator.weights.Weights`.
"""

import pytest
from z3 import And, BitVecVal, Concat, Extract, If, Implies, Not, Or

from hbfp.isa.instructions import Opcode
from rtl.accelerator.fields import held_layout, offered_layout
from rtl.accelerator.layouts import ADDRESS_BITS, w_scales_layout, weights_layout
from rtl.accelerator.weights import Weights
from tests.cosim.accelerator.built import ACCELERATOR
from tests.formal.prove import Laws, Step
from tests.formal.views import Fields, Loops, number


def laws(system, step):
    """Laws of an accelerator's weights, whose words of W are rows of the core."""
    params, now, then = Weights.of(system).params, step.now, step.then
    new, held = (Fields(value, layout(Opcode.WEIGHTS)) for value, layout in (
        (now.instruction__payload, offered_layout), (now.held, held_layout)))
    side = (params.lanes - 1).bit_length()
    loops = Loops(now, [Concat(held.tiles, BitVecVal(0, side)), held.repeats])
    there, row = now.o_w__valid, Fields(now.o_w__payload, weights_layout(params))
    goes, starts = And(now.w__en, now.w__grant), And(now.instruction__valid, now.instruction__ready)
    refused, ends = Extract(side - 1, 0, new.base) != 0, And(goes, loops.last)
    found = {
        "a row is asked for": now.w__en == And(now.active, Or(Not(there), now.o_w__ready)),
        "of a place": loops.follows(then, "address", number(new.base, ADDRESS_BITS),
                                    [BitVecVal(1, ADDRESS_BITS), None], starts, goes),
        "that is asked for": now.w__addr == now.address0,
        "its word comes, and stays": then.o_w__valid == Or(goes, And(there, Not(now.o_w__ready))),
        "it is the word of W": row.mantissa == now.w__data,
        "an instruction is taken with the last row": now.instruction__ready == And(
            Or(Not(now.active), ends), Not(now.fault)),
        "it goes on to its last row": then.active == If(starts, Not(refused), And(now.active, Not(ends))),
        "a base between tiles is refused": then.fault == Or(And(starts, refused), And(now.fault, Not(starts))),
        "the last row": Implies(goes, then.ending == loops.last),
        "which is there": Implies(Not(goes), then.ending == now.ending),
        "done when the core has taken it": then.done == And(there, now.o_w__ready, now.ending),
    } | loops.turns(then, starts, goes)
    if params.exponent:
        scales = Fields(now.w__scales, w_scales_layout(params))
        found["and its exponents"] = And(row.exponent == scales.exponent, row.invalid == scales.invalid)
    return Laws(found, kept=("w__addr", "address1"))


@pytest.mark.parametrize("system", [ACCELERATOR], ids=["one context"])
def test_laws(system):
    step = Step.of(Weights.of(system))
    assert step.broken(laws(system, step)) == []
