"""What runs on an accelerator or a dispatcher while it counts, beside tests; all is compared.

Each is called with the emitted design, its parameters, and how many programs or networks are asked for, and raises
RuntimeError or AssertionError if something is wrong.
"""

import random
from dataclasses import replace

import numpy as np

from cosim.accelerator import networks as of_networks
from cosim.accelerator import programs as of_programs
from cosim.accelerator.device import Device, Timing
from cosim.accelerator.host import execute, place, read, room
from cosim.dispatch.check import compare
from cosim.simulate.player import Player
from golden.vector.programs import length, vector
from hbfp.golden.machine.errors import Fault, MachineError
from hbfp.golden.machine.machine import Machine
from hbfp.isa.instructions import BYTES, Instruction, Memory, Opcode, Unit, Wait
from hbfp.isa.registers import Cause, parameters
from hbfp.program import Program, Region
from tests.cosim.accelerator import corner_runs, lite, slave, test_dispatched
from tests.cosim.dispatch.test_check import DEFAULT

#: Instructions of each unit in a program of very many, and the most turns of a loop.
MANY, TURNS = 1 << 16, (1 << 16) - 1
#: Plays of ten programs at a slave that does whatever it may, for so many random programs one, and at least so many.
PLAYS, LEAST = 25, 3
HALT = Instruction(Opcode.HALT, {})
_ONE = {"count0": 1, "count1": 1, "count2": 1}


def programs(manifest, system, count):
    """Random programs, with two contexts in pairs."""
    found = of_programs.run(manifest, system, range(count))
    if found.failures:
        raise RuntimeError(f"program {next(iter(found.failures))} fails")


def networks(manifest, system, count):
    """Random networks, one for every ten programs."""
    found = of_networks.run(manifest, system, range(count // 10))
    if found.failures:
        raise RuntimeError(f"network {next(iter(found.failures))} fails")


def corners(manifest, system, _):
    """Each field of each instruction at its ends, and one beyond."""
    lines = [f"{corner.name}: {line}" for corner, line in corner_runs.run(system, set()) if line]
    if lines:
        raise RuntimeError(lines[0])


def slaves(manifest, system, count):
    """Programs that meet errors, stops, doorbells and resets; the host's bytes."""
    for seed in range(max(LEAST, -(-count // PLAYS))):
        slave.play(seed, system=system)
    with slave.opened(system, "-O1") as held:
        lite.check(held, system, random.Random(1))


def _device(manifest, system, size):
    return Device(manifest.verilog, manifest.top, beat=system.beat, memory=np.zeros(size, np.uint8), level="-O1",
                  burst=system.burst, contexts=system.contexts, timing=Timing(10, system.beat))


def _as_golden(device, program, **options):
    """Runs a program that ends without an error; all words of DRAM that the golden machine knows are there, so many."""
    machine = Machine(program)
    machine.run()
    place(program, device.memory)
    assert execute(device, program, **options).cause is None
    base, known = room(program)[1], machine.dram.defined[:, 0]
    assert np.array_equal(device.memory[base:base + program.limit].view(np.uint32)[known], machine.dram.data[known])
    return known.sum()


def _word(lanes, *instructions):
    """A word of P with instructions of the vector unit."""
    code = [each.encode() for each in instructions]
    return np.array(code + [length(1).encode()] * (lanes // 2 - len(code)), np.uint64).tobytes()


def numbers(manifest, system, _):
    """So many instructions that their numbers and counts have upper bits; the last is illegal, and told by its number.

    NOPs of all units by turns, each behind the one of the unit before.
    """
    words = np.zeros((len(Unit) * MANY + 1, BYTES // 8), np.uint64)
    number = np.arange(len(Unit) * MANY, dtype=np.uint64)
    unit = number % len(Unit)
    wait = (np.uint64(Opcode.NOP) | (unit + (unit == 0) * len(Unit)).astype(np.uint64) << np.uint64(4)
            | (number // len(Unit) + (unit != 0)).astype(np.uint64) << np.uint64(7))
    words[:-1, 0], words[:-1, 1] = wait, unit + np.uint64(1) << np.uint64(21)
    example = Instruction(Opcode.NOP, {"unit": Unit(3)}, (Wait(Unit(2), 1),)).encode()
    assert int.from_bytes(words[2].tobytes(), "little") == example
    program = Program(accelerator=system, instructions=(HALT,) * len(words), limit=4096)
    with _device(manifest, system, room(program)[0]) as device:
        device.memory[:words.nbytes] = words.view(np.uint8).ravel()
        found = execute(device, program)
        assert (found.cause, found.error_pc) == (Cause.ILLEGAL, len(words) - 1)
        device.memory[:64] = np.frombuffer(HALT.encode().to_bytes(64, "little"), np.uint8)
        assert execute(device, program).cause is None and read(device, "status") == 2


def loops(manifest, system, _):
    """Loops of transfers and of the vector unit of as many turns as they may have, and runs across pages of DRAM."""
    lanes = system.lanes
    data = np.random.default_rng(0).integers(1, 1 << 30, 4096, np.uint32)
    at = 4 * data.size
    region = Region(0, data.tobytes()), Region(at, _word(lanes, length(lanes), vector(to="out")))
    every = [Instruction(Opcode.LOAD, _ONE | {"count0": 64}),
             Instruction(Opcode.LOAD, _ONE | {"memory": Memory.P, "offset": at})]
    waits, far = (Wait(Unit.LOAD, 2),), -(-(4 * at + 8192 * (lanes + 1)) // 4096) * 4096
    for loop in range(3):
        every.append(Instruction(Opcode.STORE, _ONE | {"elements": 1, "run": 1, "offset": far + 4 * TURNS * loop,
                                                       f"count{loop}": TURNS, f"dram{loop}": 4}, waits))
    every += [Instruction(Opcode.VECTOR, {"before": 1, "body": 1, "o0_base": 64, "count0": 1, "count1": 1,
                                            f"count{loop}": TURNS},
                          waits) for loop in range(2)]
    for words in range(1, lanes):    # before and behind the end of a page
        edge = 4096 - 4 * words
        done = len([each for each in every if each.unit == Unit.LOAD]), len([
            each for each in every if each.unit == Unit.STORE])
        run = {"elements": 1, "run": lanes, "count0": 2, "dram0": 4096}
        every += [Instruction(Opcode.LOAD, _ONE | run | {"offset": edge, "buffer0": lanes},
                              (Wait(Unit.STORE, done[1]),)),
                  Instruction(Opcode.STORE, _ONE | run | {"offset": 4 * at + edge + 8192 * words, "buffer0": 1},
                              (Wait(Unit.LOAD, done[0] + 1),))]
    limit = far + -(-12 * TURNS // 4096) * 4096
    program = Program(accelerator=system, instructions=(*every, HALT), limit=limit, memory=region)
    with _device(manifest, system, room(program)[0]) as device:
        _as_golden(device, program, watchdog=0)


def vectors(manifest, system, count):
    """Anything as a program of the vector unit: it is refused, or does what the golden machine does."""
    numbers, beat = np.random.default_rng(1), system.beat
    with _device(manifest, system, 1 << 16) as device:
        for _ in range(count):
            data = numbers.integers(0, 256, 65 * beat, np.uint8).tobytes()
            program = Program(accelerator=system, limit=-(-len(data) // 4096) * 4096, memory=(Region(0, data),),
                              instructions=(
                Instruction(Opcode.LOAD, _ONE | {"count0": 64}),
                Instruction(Opcode.LOAD, _ONE | {"memory": Memory.P, "offset": 64 * beat}),
                Instruction(Opcode.VECTOR, {"count0": 1, "count1": 1, "body": 1}, (Wait(Unit.LOAD, 2),)), HALT))
            cause = None
            try:
                Machine(program).run()
            except Fault as fault:
                cause = fault.cause
            except MachineError:    # it reads what nobody has written
                continue
            place(program, device.memory)
            assert execute(device, program).cause == cause


def told(manifest, system, _):
    """What the registers say that the machine is."""
    with _device(manifest, system, 4096) as device:
        assert {name: read(device, name) for name in parameters(system)} == parameters(system)


def functions(manifest, system, _):
    """Each function of arguments of all powers of two, in each segment of each table."""
    numbers, lanes, words = np.random.default_rng(2), system.lanes, 64
    powers, tops, signs = np.meshgrid(np.r_[0:2, 96:160, 253:256], np.arange(64), np.arange(2), indexing="ij")
    every = (signs << 31 | powers << 23 | tops << 17 | numbers.integers(0, 1 << 17, signs.shape)).astype(np.uint32)
    every = np.resize(every, -(-every.size // (words * lanes)) * words * lanes)
    with _device(manifest, system, 1 << 20) as device:
        for post in system.functions:
            code = _word(lanes, length(lanes), vector(to="out", post=post))
            for data in every.reshape(-1, words * lanes):
                at = data.nbytes + len(code)
                program = Program(accelerator=system, limit=-(-2 * at // 4096) * 4096, memory=(
                    Region(0, data.tobytes()), Region(data.nbytes, code)), instructions=(
                        Instruction(Opcode.LOAD, _ONE | {"count0": words}),
                        Instruction(Opcode.LOAD, _ONE | {"memory": Memory.P, "offset": data.nbytes}),
                        Instruction(Opcode.VECTOR, {"count0": words, "count1": 1, "before": 1, "body": 1,
                                                    "i0_stride0": 1, "o0_base": words, "o0_stride0": 1},
                                    (Wait(Unit.LOAD, 2),)),
                        Instruction(Opcode.STORE, _ONE | {"count0": words, "base": words, "offset": at},
                                    (Wait(Unit.VECTOR, 1),)), HALT))
                assert _as_golden(device, program) >= 2 * data.size


def late(manifest, system, _):
    """Requests over two million cycles: times have bits that come late."""
    serving, pick = test_dispatched.copies(1), random.Random(0)
    with _device(manifest, system, 1 << 18) as device:
        test_dispatched.begin(device, serving)
        for number in range(32):
            device.idle(pick.randrange(1 << 17) if number else 1 << 19)
            test_dispatched.serves(device, serving, [number])


def dispatched(manifest, unit, _):
    """A dispatcher beside its twin, in the cases of its test that are of its kind."""
    player = Player(manifest)
    for case in DEFAULT:
        if case.unit.stamped == unit.stamped:
            result, *_ = compare(player, replace(case, unit=unit))
            assert not result.mismatches, result.first
