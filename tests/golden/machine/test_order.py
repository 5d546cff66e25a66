"""Order: waits that cannot hold, queues, races, and faults with their instruction and cause."""

import re

import pytest

from hbfp.design import Design
from hbfp.golden.machine.errors import Fault, MachineError
from hbfp.golden.machine.machine import Machine
from hbfp.isa.instructions import Instruction, Memory, Opcode, Unit, Wait
from hbfp.isa.registers import Cause
from hbfp.program import Program, Region
from hbfp.system import Accelerator

SYSTEM = Accelerator(core=Design(rows=8, depth=16), x_words=64, v_words=64, w_words=64, p_words=32, queue=2)
WIDE = Accelerator(core=Design(rows=8, depth=16, wide=10), x_words=64, v_words=64, w_words=64, p_words=32, queue=2)
ONE = {"count0": 1, "count1": 1, "count2": 1}
PASS = {"first": 1, "last": 1, "tiles": 1, "columns": 1, "rows0": 2, "rows1": 1, "row0": 1, "passes0": 1, "passes1": 1,
        "passes2": 1}
#: Fills V, 64 words, and W, whole segments; converts X.
FILL = [Instruction(Opcode.LOAD, ONE | {"count0": 64}),
        Instruction(Opcode.LOAD, ONE | {"memory": Memory.W, "count0": 8}),
        Instruction(Opcode.CONVERT, {"words": 1, "rows": 64, "stride": 1, "target_row": 1}, (Wait(Unit.LOAD, 1),))]
LEFT = "must not be left uncompleted at a YIELD or HALT: the core's queues do not agree about its commands"


def step(opcode, *waits, **values):
    return Instruction(opcode, values, tuple(Wait(*wait) for wait in waits))


WEIGHTS = step(Opcode.WEIGHTS, (Unit.LOAD, 2), tiles=1, repeats=1)
MULTIPLY = step(Opcode.MULTIPLY, (Unit.CONVERT, 1), **PASS)
DRAIN = step(Opcode.DRAIN, (Unit.CONVERT, 1), columns=1, rows0=2, rows1=1, row0=1, base=8)


def run(*instructions, fill=True, halt=True, system=SYSTEM, data=bytes(4096)):
    memory = (Region(0, data),)
    program = Program(accelerator=system, limit=4096, memory=memory, instructions=[
        *(FILL if fill else []), *instructions, *([Instruction(Opcode.HALT, {})] if halt else [])])
    Machine(program, races=True).run()


def test_what_is_in_order():
    run(WEIGHTS, MULTIPLY, DRAIN)
    run(DRAIN, WEIGHTS, MULTIPLY)
    run(MULTIPLY, MULTIPLY, WEIGHTS, WEIGHTS, DRAIN, DRAIN)
    run(WEIGHTS, MULTIPLY, DRAIN, step(Opcode.STORE, (Unit.DRAIN, 1), base=8, offset=2048, **ONE))
    run(step(Opcode.NOP, (Unit.CONVERT, 1), unit=Unit.LOAD), step(Opcode.LOAD, base=3, **ONE))


def portion(number, last=False):
    """A pass of three of a command, whose weights come to where those of the pass before were."""
    again = [step(Opcode.LOAD, (Unit.WEIGHTS, number), **ONE | {"memory": Memory.W})] if number else []
    fields = PASS | {"tiles": 3, "first": int(not number), "last": int(last)}
    return [*again, step(Opcode.WEIGHTS, (Unit.LOAD, 2 + number), tiles=1, repeats=1),
            step(Opcode.MULTIPLY, (Unit.CONVERT, 1), **fields)]


def test_weights_of_an_open_command_are_complete_with_their_passes():
    run(*portion(0), *portion(1), *portion(2, True), DRAIN)
    seen = step(Opcode.LOAD, (Unit.WEIGHTS, 2), (Unit.MULTIPLY, 2), (Unit.CONVERT, 1), **ONE)
    run(WEIGHTS, MULTIPLY, DRAIN, *portion(0), seen, *portion(1)[1:], WEIGHTS, portion(2, True)[2], DRAIN)


@pytest.mark.parametrize("instructions, number, line", [
    ([MULTIPLY, WEIGHTS, *portion(0), step(Opcode.LOAD, (Unit.WEIGHTS, 1), **ONE)], 7,
     "A wait for 1 instructions of WEIGHTS must be met by those before it: 2 are written, 0 are complete"),
    ([step(Opcode.LOAD, (Unit.VECTOR, 1), **ONE)], 3,
     "A wait for 1 instructions of VECTOR must be met by those before it: 0 are written, 0 are complete"),
    ([WEIGHTS, step(Opcode.LOAD, (Unit.WEIGHTS, 1), **ONE)], 4,
     "A wait for 1 instructions of WEIGHTS must be met by those before it: 1 are written, 0 are complete"),
    ([WEIGHTS, WEIGHTS, WEIGHTS], 5,
     "WEIGHTS must have at most 2 instructions uncompleted in written order, as many as its queue holds"),
    ([WEIGHTS, MULTIPLY], 5, f"WEIGHTS and MULTIPLY {LEFT}"), ([DRAIN], 4, f"DRAIN {LEFT}"),
    ([WEIGHTS, MULTIPLY, step(Opcode.DRAIN, columns=1, rows0=3, rows1=1, row0=1)], 5,
     ("DRAIN 5 and MULTIPLY 4 must have the same rows, steps and width, not 3 and 2 rows, steps (0, 0) and (0, 0), "
      "wide 0 and 0")),
    ([step(Opcode.MULTIPLY, **PASS | {"first": 0})], 3, "MULTIPLY must begin a command: none is open"),
    ([step(Opcode.MULTIPLY, (Unit.CONVERT, 1), **PASS | {"last": 0}), MULTIPLY], 4,
     "MULTIPLY must not begin a command before the last one has ended"),
    ([step(Opcode.MULTIPLY, (Unit.CONVERT, 1), **PASS | {"last": 0}),
      step(Opcode.MULTIPLY, **PASS | {"first": 0, "relu": 1})], 4,
     "MULTIPLY must have the rows, tiles, steps and widths of the command that is open"),
    ([step(Opcode.MULTIPLY, (Unit.CONVERT, 1), **PASS | {"tiles": 3})], 3,
     "MULTIPLY must have 3 passes, as many as tiles, not 1"),
    ([step(Opcode.DRAIN, (Unit.CONVERT, 1), columns=2, rows0=2, rows1=1, row0=1, column=2, base=8, bias=1,
           bias_base=7)], 3, "V at 8 must not be both a result of a DRAIN and its factors or biases"),
    ([step(Opcode.CONVERT, words=1, rows=2, stride=1)], 3, "X at 0 is written more than once by one instruction"),
    ([step(Opcode.LOAD, **ONE | {"count1": 2, "dram1": 32})], 3, "V at 0 is written more than once by one instruction"),
    ([step(Opcode.LOAD, **ONE | {"count0": 2, "elements": 1, "run": 3, "buffer0": 2})], 3,
     "V at 0 is written more than once by one instruction, in one lane")])
def test_what_cannot_go_on(instructions, number, line):
    with pytest.raises(MachineError, match=f"^Instruction {number}: {re.escape(line)}$"):
        run(*instructions)


@pytest.mark.parametrize("instructions, line", [
    ([step(Opcode.MULTIPLY, (Unit.CONVERT, 1), **PASS | {"last": 0}),
      step(Opcode.MULTIPLY, **PASS | {"first": 0, "wide_w": 1})],
     "Instruction 4: MULTIPLY must have the rows, tiles, steps and widths of the command that is open"),
    ([WEIGHTS, step(Opcode.MULTIPLY, (Unit.CONVERT, 1), **PASS | {"wide_w": 1}), DRAIN],
     ("Instruction 5: DRAIN 5 and MULTIPLY 4 must have the same rows, steps and width, not 2 and 2 rows, steps (0, 0) "
      "and (0, 0), wide 0 and 1")),
    ([step(Opcode.MULTIPLY, (Unit.CONVERT, 1), **PASS | {"wide_x": 1, "low": 1})],
     "Instruction 3: MULTIPLY must have digits of wide mantissas where it says so, not of other conversions")])
def test_widths_that_do_not_agree(instructions, line):
    """Rows that were converted to narrow mantissas are no digits of wide ones, unless they happen to be small."""
    with pytest.raises(MachineError, match=f"^{re.escape(line)}$"):
        run(*instructions, system=WIDE, data=bytes([0, 0, 0x80, 0x3F] * 1024))


@pytest.mark.parametrize("instructions, number, line", [
    ([step(Opcode.LOAD, **ONE)], 3, "V at 0 is written by it, and used by instruction 2 of CONVERT"),
    ([step(Opcode.STORE, base=5, **ONE)], 3,
     "V at 5 is read by it, and used by instruction 0 of LOAD"),
    ([step(Opcode.STORE, (Unit.LOAD, 1), offset=2048, **ONE),
      step(Opcode.LOAD, (Unit.CONVERT, 1), offset=2048, **ONE)], 4,
     "DRAM at 2048 is read by it, and used by instruction 3 of STORE"),
    ([WEIGHTS, MULTIPLY, DRAIN, step(Opcode.LOAD, (Unit.DRAIN, 1), memory=Memory.W, **ONE)], 6,
     "W at 0 is written by it, and used by instruction 3 of WEIGHTS"),
    ([WEIGHTS, MULTIPLY, DRAIN, step(Opcode.CONVERT, words=1, rows=1)], 6,
     "X at 0 is written by it, and used by instruction 4 of MULTIPLY"),
    ([WEIGHTS, MULTIPLY, DRAIN, step(Opcode.STORE, (Unit.LOAD, 1), base=9, **ONE)], 6,
     "V at 9 is read by it, and used by instruction 5 of DRAIN")])
def test_races(instructions, number, line):
    with pytest.raises(MachineError, match=f"^Instruction {number}: {re.escape(line)}: no wait orders them$"):
        run(*instructions)


def test_order_goes_on_through_others():
    """STORE waits for CONVERT alone, which has waited for LOAD."""
    run(step(Opcode.STORE, (Unit.CONVERT, 1), offset=2048, **ONE))


@pytest.mark.parametrize("instruction, line", [
    (step(Opcode.STORE, **ONE), "V at 0 is read, which nothing has written"),
    (WEIGHTS.__class__(Opcode.WEIGHTS, {"tiles": 1, "repeats": 1}), "W at 0 is read, which nothing has written"),
    (step(Opcode.MULTIPLY, **PASS), "X at 0 is read, which nothing has written")])
def test_what_is_undefined(instruction, line):
    with pytest.raises(MachineError, match=f"^Instruction 0: {re.escape(line)}$"):
        run(instruction, fill=False)


@pytest.mark.parametrize("instruction, cause, line", [
    (step(Opcode.LOAD, **ONE | {"count2": 0}), Cause.ILLEGAL, "LOAD count2 must be other than 0, not 0"),
    (step(Opcode.LOAD, base=63, **ONE | {"count0": 2}), Cause.ADDRESS, "address 64 must be below the 64 of V"),
    (step(Opcode.LOAD, offset=4096, **ONE), Cause.ADDRESS,
     "DRAM address 4096 and the 32 bytes from it must lie below the limit of 4096"),
    (step(Opcode.LOAD, offset=4, **ONE), Cause.MISALIGNED, "DRAM address 4 must be a multiple of 32"),
    (step(Opcode.STORE, (Unit.CONVERT, 1), offset=6, elements=1, run=1, **ONE), Cause.MISALIGNED,
     "DRAM address 6 must be a multiple of 4"),
    (step(Opcode.STORE, (Unit.CONVERT, 1), offset=4092, elements=1, run=2, **ONE), Cause.ADDRESS,
     "DRAM address 4092 and the 8 bytes from it must lie below the limit of 4096"),
    (step(Opcode.CONVERT, words=1, rows=1, target=64), Cause.ADDRESS, "address 64 must be below the 64 of X"),
    (step(Opcode.MULTIPLY, **PASS | {"rows0": 17}), Cause.REFUSED, "rows of a command must be 1 to 16, not 17")])
def test_faults(instruction, cause, line):
    with pytest.raises(Fault, match=f"^Instruction 3: {re.escape(line)}$") as caught:
        run(instruction)
    assert (caught.value.cause, caught.value.pc) == (cause, 3)


def test_addresses_wrap():
    """Down from 0 lies beyond the memory; 2^18 is 0."""
    with pytest.raises(Fault, match="^Instruction 3: address 262143 must be below the 64 of V$"):
        run(step(Opcode.LOAD, **ONE | {"count1": 2, "buffer1": -1, "dram1": 32}))
    run(step(Opcode.LOAD, (Unit.CONVERT, 1), **ONE | {"count1": 2, "base": 1 << 18, "buffer1": 1, "dram1": 32}))
    for base in (8, 1 << 16, 1 << 17, (1 << 18) - 1):    # words of P, each several instructions: these count to 2^18
        with pytest.raises(Fault, match="^Instruction 3: address [0-9]+ must be below the 32 of P$"):
            run(step(Opcode.LOAD, **ONE | {"memory": Memory.P, "base": base}))


def test_program_without_an_end():
    with pytest.raises(Fault, match="^Instruction 3: a program must end with HALT$") as caught:
        run(halt=False)
    assert caught.value.cause == Cause.END
