"""Rows of X for the core in one cycle, from any state and for all inputs: their places, zeros beyond bounds, commands.

The promises are those of :class:`rtl.accelerator.multiply.Multiply`.
"""

import pytest
from z3 import UGE, UGT, And, BitVecVal, If, Implies, Not, Or

from hbfp.isa.instructions import Opcode
from rtl.accelerator.fields import held_layout, offered_layout
from rtl.accelerator.layouts import ADDRESS_BITS, x_row_layout
from rtl.accelerator.multiply import COORDINATE_BITS, Multiply
from rtl.core.sequencer import STEPS, command_of
from tests.cosim.accelerator.built import ACCELERATOR
from tests.formal.prove import Laws, Step
from tests.formal.views import Fields, Loops, number, signed

#: Registers that a reset leaves as they are: places of rows.
_PLACES = ("x__addr", *(f"address{n}" for n in range(1, 6)), "x0", "x3", "x5", "y1", "y4", "y5")


def laws(system, step):
    """Laws of an accelerator's multiply, without wide mantissas and sparse weights."""
    params, now, then = Multiply.of(system).params, step.now, step.then
    new, held = (Fields(value, layout(Opcode.MULTIPLY)) for value, layout in (
        (now.instruction__payload, offered_layout), (now.held, held_layout)))
    loops = Loops(now, [held.rows0, held.rows1, held.passes0, held.passes1, held.passes2, held.columns])
    there, goes = now.o_x__valid, now.step
    starts, ends = And(now.instruction__valid, now.instruction__ready), And(goes, loops.last)
    again = And(*loops.ends[:5], Not(loops.ends[5]))    # the next column tile
    free = Or(Not(now.o_cmd__valid), now.o_cmd__ready)
    room = And(now.active, Or(Not(there), now.o_x__ready), Or(free, Not(again)))
    outside = And(held.bounded, Or(*(UGE(at, number(most, COORDINATE_BITS)) for at, most in (
        (now.x0, held.width), (now.y1, held.height)))))
    rows = number(new.rows0, 24) * number(new.rows1, 24)
    refused = And(new.first, UGT(rows, params.depth))
    begins = And(starts, new.first, Not(refused))
    command = Fields(then.o_cmd__payload, command_of(params.depth, side=True))
    zeros, row = x_row_layout(params).const({"exponent": [-126] * params.segments}), now.o_x__payload

    def follows(name, begin, *strides):
        bits = vars(then)[f"{name}5"].size()
        strides = [None if stride is None else signed(stride, bits) if stride.size() > 8 else number(stride, bits)
                   for stride in strides]
        return loops.follows(then, name, begin, strides, starts, goes)
    return Laws({
        "a row is issued": goes == And(room, Or(outside, now.x__grant)),
        "a read of X, if it is not beyond the bounds": now.x__en == And(room, Not(outside)),
        "of a place": follows("address", number(new.base, ADDRESS_BITS), held.row0, held.row1, held.pass0, held.pass1,
                              held.pass2, None),
        "where it is read": now.x__addr == now.address0,
        "column": follows("x", signed(new.x, COORDINATE_BITS), held.x_row, None, None, held.x_pass, None, None),
        "line": follows("y", signed(new.y, COORDINATE_BITS), None, held.y_row, None, None, held.y_pass, None),
        "it is there until it is taken": then.o_x__valid == Or(goes, And(there, Not(now.o_x__ready))),
        "zeros for what is beyond": Implies(goes, And(then.zero == outside, then.ending == loops.last)),
        "and no others": Implies(Not(goes), And(then.zero == now.zero, then.ending == now.ending)),
        "the row": row == If(now.zero, BitVecVal(zeros.as_bits(), row.size()), now.x__data),
        "done when the core has taken the last": then.done == And(there, now.o_x__ready, now.ending),
        "an instruction is taken with the last row": now.instruction__ready == And(
            Or(Not(now.active), ends), free, Not(now.fault)),
        "it goes on to its last row": then.active == If(starts, Not(refused), And(now.active, Not(ends))),
        "too many rows are refused": then.fault == If(starts, refused, now.fault),
        "a command, and one for each column tile": then.o_cmd__valid == Or(
            begins, And(goes, again), And(now.o_cmd__valid, Not(now.o_cmd__ready))),
        "what it says": Implies(begins, And(number(command.rows, 24) == rows, command.tiles == new.tiles, *(
            getattr(command, name) == getattr(new, name) for name in STEPS))),
        "as long as it counts": Implies(Not(begins), then.o_cmd__payload == now.o_cmd__payload),
    } | loops.turns(then, starts, goes), kept=_PLACES)


@pytest.mark.parametrize("system", [ACCELERATOR], ids=["one context"])
def test_laws(system):
    step = Step.of(Multiply.of(system))
    assert step.broken(laws(system, step)) == []
