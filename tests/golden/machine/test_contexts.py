"""Programs that yield, and two of them on one machine: what begins anew, whose memory is whose, who goes first."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.golden.machine.errors import Fault, MachineError
from hbfp.golden.machine.machine import Machine, together
from hbfp.golden.machine.memories import Memories
from hbfp.golden.machine.random_programs import random_program
from hbfp.isa.instructions import Instruction, Opcode, Unit, Wait
from hbfp.isa.registers import Cause
from hbfp.program import Program, Region
from hbfp.system import Accelerator, Share
from tests.cases import sweep

from .plain import Plain

SYSTEM = Accelerator(core=Design(rows=8, depth=16, format=HBFPFormat(block=(1, 8))), x_words=256, w_words=256,
                     v_words=256, p_words=128, row_words=2, vector_rows=2, contexts=2)
ONE = {"count0": 1, "count1": 1, "count2": 1}
YIELD, HALT = Instruction(Opcode.YIELD, {}), Instruction(Opcode.HALT, {})


def step(opcode, *waits, **values):
    return Instruction(opcode, values, tuple(Wait(*wait) for wait in waits))


LOAD = step(Opcode.LOAD, **ONE)
STORE = step(Opcode.STORE, **ONE | {"offset": 1024})


def program(*instructions, of=SYSTEM):
    return Program(accelerator=of, limit=4096, memory=(Region(0, bytes(range(256)) * 4),),
                   instructions=(*instructions, HALT))


def test_counts_begin_anew():
    """A wait for what stands before a YIELD would never hold; a race is none behind it."""
    Machine(program(LOAD, YIELD, STORE), races=True).run()
    Machine(program(LOAD, LOAD, YIELD, LOAD, step(Opcode.STORE, (Unit.LOAD, 1), **ONE)), races=True).run()
    with pytest.raises(MachineError, match="^Instruction 1: V at 0 is read by it, and used by instruction 0 of LOAD"):
        Machine(program(LOAD, STORE), races=True).run()
    with pytest.raises(MachineError, match="^Instruction 2: A wait for 1 instructions of LOAD must be met by those "):
        Machine(program(LOAD, YIELD, step(Opcode.STORE, (Unit.LOAD, 1), **ONE))).run()
    with pytest.raises(MachineError, match="^Instruction 4: V at 0 is written by it, and used by instruction 3 of ST"):
        Machine(program(LOAD, LOAD, YIELD, STORE, LOAD), races=True).run()


def test_commands_do_not_go_on_behind_a_yield():
    with pytest.raises(MachineError, match="^Instruction 1: DRAIN must not be left uncompleted at a YIELD or HALT: "):
        Machine(program(step(Opcode.DRAIN, columns=1, rows0=1, rows1=1), YIELD)).run()


def test_the_vector_unit_forgets():
    """A program that reads a register which one before the YIELD has written."""
    made = random_program(SYSTEM, 1, yields=0.5)
    machine = Machine(made)
    machine.run()
    assert machine.vector.machine.length == machine.vector.unit.longest or YIELD not in made.instructions[-12:]
    machine.vector.known.scalars[1] = 0
    machine.step(0, YIELD)
    assert not machine.vector.known.scalars and machine.vector.machine.length == machine.vector.unit.longest


@pytest.mark.parametrize("seed", sweep(3, range(3)))
def test_pairs_compute_what_each_does_alone(seed):
    """In shares with nothing in common; each word of DRAM, in which all words of the memories are by then."""
    part = SYSTEM.share(4)
    programs = [random_program(part, 2 * seed + n, yields=0.3) for n in range(2)]
    shares = (Share((0, 3, 1, 9), (5, 4, 6, 7)), Share((5, 7, 9, 3), (8, 9, 4, 4)))
    for priority in (False, True):
        for each, found in zip(programs, together(SYSTEM, programs, shares, priority=priority), strict=True):
            plain = Plain(each)
            plain.run()
            assert found.dram.data.tobytes() == bytes(plain.dram)


def test_turns():
    """Both use one word of V: who stores last what the other has loaded says who went first."""
    first = program(LOAD, YIELD, STORE)
    second = program(step(Opcode.LOAD, **ONE | {"offset": 128}))
    for priority, offset in ((False, 128), (True, 0)):
        found = together(SYSTEM, (first, second), (Share(), Share()), priority=priority)[0]
        assert np.array_equal(found.dram.data[256:264], found.dram.data[offset // 4:offset // 4 + 8])


@pytest.mark.parametrize("instruction, memory", [
    (step(Opcode.LOAD, **ONE | {"base": 63, "count0": 2}), "V"), (step(Opcode.STORE, **ONE | {"base": 64}), "V"),
    (step(Opcode.CONVERT, words=1, rows=1, target=64), "X"), (step(Opcode.WEIGHTS, base=64, tiles=1, repeats=1), "W"),
    (step(Opcode.LOAD, **ONE | {"base": 8, "memory": 2}), "P")])
def test_addresses_beyond_the_share(instruction, memory):
    """Cause, instruction; and what lies there is another's."""
    faulty = program(LOAD, instruction, of=SYSTEM.share(4))
    line = f"^Instruction 1: address [0-9]+ must be below the (64|32) of {memory}$"
    with pytest.raises(Fault, match=line) as found:
        together(SYSTEM, (faulty,), (Share.of_all(4, 4),))
    assert (found.value.cause, found.value.pc) == (Cause.ADDRESS, 1)


def whole(memories):
    """Every array of the memories, and what is defined."""
    return [value for name, value in sorted(vars(memories).items()) if isinstance(value, np.ndarray)] + [
        each.defined for each in memories.all]


def mutated(made, pick):
    """A program of which one instruction has another address, stride or count; half of them are as they were."""
    number = pick.choice([n for n, each in enumerate(made.instructions) if each.unit and each.values])
    each, names = made.instructions[number], ("base", "target", "target_row", "row0", "buffer1", "i0_base", "o0_base",
                                              "count0", "program", "words")
    chosen = pick.choice([name for name in names if name in each.values] or [None])
    if chosen is None or pick.random() < 0.5:
        return made
    return made.rewritten({number: replace(each, values=dict(each.values) | {chosen: pick.randrange(1, 1 << 12)})})


def beside(made, filled):
    """What a program leaves in DRAM beside a share in which every bit is ``filled``; why it stopped; whether that share
    is as it was."""
    memories, part = Memories(SYSTEM), Share.of_all(4, 4)
    serving, training = (memories.share(SYSTEM, each) for each in (Share.of_all(0, 4), part))
    for array in whole(serving):
        array.view(np.uint8)[...] = 1 if array.dtype == bool else 0x55 * filled
    before = [array.copy() for array in whole(serving)]
    machine, why = Machine(made, memories=training), ""
    try:
        machine.run()
    except MachineError as error:
        why = str(error)
    kept = all(np.array_equal(one, other) for one, other in zip(whole(serving), before, strict=True))
    return machine.dram.data.tobytes(), machine.dram.defined.tobytes(), why, kept


@pytest.mark.parametrize("count", sweep(2, [10, 2000]))
def test_isolation(count):
    """Random programs, half of them with an address, stride or count that is wrong, beside another's share: no word of
    it is written, and none is read, as what it holds makes no difference."""
    stopped = 0
    for seed in range(count):
        made = mutated(random_program(SYSTEM.share(4), seed, yields=0.2), Random(seed))
        one, other = beside(made, 1), beside(made, 3)
        assert one == other and one[-1], f"seed {seed}: {one[2]}"
        stopped += bool(one[2])
    assert 0.1 * count < stopped < 0.7 * count
