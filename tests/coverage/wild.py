"""Instructions whose fields are anything that is legal, what they make units refuse, and DRAM at far addresses.

Random programs keep to what memories have, and corners change one field at a time: here all fields move at once, in
programs of a few hundred cycles. Instructions that wait are stopped, and nothing of them is done; others have the
golden machine's fault. Called as those of :mod:`tests.coverage.runs`.
"""

from dataclasses import replace
from random import Random

import numpy as np

from cosim.accelerator.host import execute, finish, place, read, ring, room, write
from golden.machine.memories import Memories
from hbfp.golden.machine.errors import Fault, MachineError
from hbfp.golden.machine.machine import Machine
from hbfp.isa.instructions import COUNT_BITS, FIELDS, WAITS, Instruction, Memory, Opcode, Unit, Wait
from hbfp.isa.legal import RULES, Must, check, sizes
from hbfp.isa.registers import Cause
from hbfp.program import Program, Region
from tests.cosim.accelerator.corners import CORE, LONG, PROGRAMS, YIELD, Scene, around, scenes

from .runs import _ONE, HALT, _as_golden, _device

#: Programs of instructions that wait, faults of each opcode, and the most instructions that are drawn for these.
HELD, FAULTS, DRAWN = 60, 40, 400
#: Cycles without progress until what waits for ever is stopped; cycles in which queues are full.
WATCHDOG, FULL = 2000, 3000
#: What is wrong with an instruction: where several are, its unit has the one that it comes to first.
CAUSES = {Cause.ADDRESS, Cause.MISALIGNED, Cause.REFUSED}
#: Where DRAM begins: each bit of an address of a page is 1 in one, and 0 in another.
FAR = 0x5555_5555_5555_5000, 0xAAAA_AAAA_AAAA_A000, 0x7FFF_FFFF_0000_0000


def anything(pick: Random, opcode: Opcode, system, kept=None) -> Instruction:
    """A legal instruction with fields that are anything, near 0, near an end, or as ``kept`` has them."""
    values, highs = {}, {field.name: field.range[1] for field in FIELDS[opcode]}
    for field in FIELDS[opcode]:
        low, high = field.range
        values[field.name] = pick.choice((
            pick.randint(low, high), pick.randint(low, high), pick.randint(max(low, -3), min(high, 9)),
            pick.choice((low, high)), pick.choice((low, 0)) + (1 << pick.randrange(field.width)) // 2))
        if kept is not None and pick.random() < 0.6:
            values[field.name] = kept[field.name]
    named = sizes(system)
    for _ in range(3):    # a rule may be broken by what was done for one behind it
        for rule in RULES[opcode]:
            if all(values[name] == value for name, value in rule.when.items()):
                bounds = rule.bounds(named)
                if rule.must is Must.SOME and not any(values[name] for name in rule.fields):
                    values[pick.choice(rule.fields)] = 1
                for name in rule.fields:
                    if rule.must is Must.ZERO:
                        values[name] = 0
                    elif rule.must is Must.RANGE and not bounds["low"] <= values[name] <= bounds["high"]:
                        values[name] = pick.randint(bounds["low"], bounds["high"])
                    elif rule.must is Must.MULTIPLE:
                        up = values[name] + -values[name] % bounds["step"]
                        values[name] = up if up <= highs[name] else up - bounds["step"]
    if opcode == Opcode.NOP:
        values["unit"] = values["unit"] or 1
    instruction = Instruction(opcode, values)
    check(instruction, system)
    return instruction


def _numbers(pick):
    return pick.choice((pick.randrange(1, 1 << COUNT_BITS), 1 << pick.randrange(COUNT_BITS)))


def held(manifest, system, _):
    """Queues full of instructions that wait for what never comes, until the host stops them: nothing is written."""
    pick = Random(3)
    with _device(manifest, system, 1 << 16) as device:
        for _ in range(HELD):
            every = []
            for _ in range(system.queue):
                for unit in pick.sample(list(Unit), len(Unit)):
                    opcode = pick.choice((Opcode(unit), Opcode(unit), Opcode.NOP))
                    one = anything(pick, opcode, system)
                    if opcode == Opcode.NOP:
                        one = Instruction(opcode, {"unit": unit})
                    every.append(replace(one, waits=tuple(Wait(pick.choice(list(Unit)), _numbers(pick))
                                                          for _ in range(pick.randint(1, WAITS)))))
            program = Program(accelerator=system, instructions=(*every, HALT), limit=4096,
                              arguments=[pick.getrandbits(32) for _ in range(8)])
            place(program, device.memory)
            before = device.memory.copy()
            ring(device, program, watchdog=0)
            assert not device.run(FULL), "what waits for ever has ended"
            write(device, "control", 2)
            finish(device)
            assert (read(device, "status"), read(device, "cause")) == (4, Cause.STOPPED)
            assert np.array_equal(device.memory, before), "something is written"
            write(device, "interrupt_status", 3)


def faults(manifest, system, _):
    """Legal instructions that reach beyond memories or break a rule of their unit, each alone in its program."""
    pick = Random(4)
    memories = Memories(system)
    for memory in memories.all:    # what is read decides no fault
        memory.defined[:] = True
    size = max(room(around(system, seed)[0])[0] for seed in range(PROGRAMS))
    with _device(manifest, system, size) as device:
        for opcode in (each for each in Opcode if each.value <= len(Unit)):
            found, several = 0, scenes(system)[opcode][:400]
            for _ in range(DRAWN):
                scene = pick.choice(several)
                kept = scene.instruction if pick.random() < 0.7 else None
                one = anything(pick, opcode, system, kept)
                if Scene(0, one).steps > LONG:
                    continue
                program, fault = _lean(system, scene, one, memories)
                if fault is None:
                    continue
                place(program, device.memory)
                found += 1
                result = execute(device, program, watchdog=WATCHDOG)
                assert fault.cause in CAUSES, fault.text
                right = CAUSES | {Cause.WATCHDOG} if opcode in CORE else CAUSES
                assert result.cause in right, f"{one}: {result.cause!r}, not {fault.cause!r}"
                assert result.cause == Cause.WATCHDOG or result.error_pc == fault.pc, f"{one}: at {result.error_pc}"
                if found == FAULTS:
                    break


def _lean(system, scene, one, memories):
    """A program of an instruction behind those of the vector unit, and its fault or None."""
    base = around(system, scene.seed)[0]
    before = [each for each in base.instructions if each.opcode == Opcode.LOAD and each["memory"] == Memory.P][:1]
    program = replace(base, instructions=(*before, YIELD, one, HALT))
    try:
        Machine(program, memories=memories).run()
    except Fault as fault:
        return program, fault if fault.cause != Cause.ILLEGAL else None
    except MachineError:
        pass
    return program, None


def far(manifest, system, _):
    """Loads of all memories and a store where DRAM begins far away."""
    lanes = system.lanes
    data = np.random.default_rng(5).integers(1, 1 << 30, 64 * lanes, np.uint32).tobytes()
    program = Program(accelerator=system, limit=-(-2 * len(data) // 4096) * 4096, memory=(Region(0, data),),
                      instructions=(
        Instruction(Opcode.LOAD, _ONE | {"count0": 64}),
        Instruction(Opcode.LOAD, _ONE | {"count0": 1, "memory": Memory.P}),
        Instruction(Opcode.LOAD, _ONE | {"count0": 1, "memory": Memory.W}),
        Instruction(Opcode.STORE, _ONE | {"count0": 64, "offset": len(data)}, (Wait(Unit.LOAD, 3),)), HALT))
    with _device(manifest, system, room(program)[0]) as device:
        for first in FAR:
            device.place(first)
            _as_golden(device, program)
