"""Short programs for what neither random programs nor instructions with fields that are anything come to.

Called as those of :mod:`tests.coverage.runs`.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosim.accelerator.host import execute, finish, place, prepare, read, room, write
from golden.spec.vector import scalar
from golden.vector.programs import length, load, vector
from hbfp.golden.machine.errors import Fault, MachineError
from hbfp.golden.machine.machine import Machine
from hbfp.isa.instructions import WAITS, Instruction, Memory, Opcode, Unit, Wait
from hbfp.isa.registers import Cause
from hbfp.program import Program, Region

from .runs import _ONE, HALT, _as_golden, _device, _word

#: Scalars of the vector unit.
SCALARS = 16
_DONE, _ERROR = 2, 4


def scalars(manifest, system, _):
    """Each scalar in each place of a pass."""
    data = np.random.default_rng(6).standard_normal(system.lanes).astype(np.float32).tobytes()
    with _device(manifest, system, 1 << 16) as device:
        for number in range(SCALARS):
            each = scalar(number)
            for operands in ({"a": each}, {"b": each}, {"c": each}):
                code = _word(system.lanes, length(system.lanes), load(number, number + 1.5), vector(
                    **operands, to="out"))
                program = Program(accelerator=system, limit=4096, memory=(
                    Region(0, data), Region(2048, code)), instructions=(
                        Instruction(Opcode.LOAD, _ONE),
                        Instruction(Opcode.LOAD, _ONE | {"memory": Memory.P, "offset": 2048}),
                        Instruction(Opcode.VECTOR, {"count0": 1, "count1": 1, "before": 2, "body": 1, "o0_base": 1},
                                    (Wait(Unit.LOAD, 2),)),
                        Instruction(Opcode.STORE, _ONE | {"base": 1, "offset": 1024}, (Wait(Unit.VECTOR, 1),)), HALT))
                assert _as_golden(device, program) >= 2 * system.lanes


def doorbells(manifest, system, _):
    """Stops while nothing runs, and programs that registers do not describe: each has its cause, and nothing runs."""
    program = Program(accelerator=system, instructions=(HALT,), limit=4096)
    with _device(manifest, system, room(program)[0]) as device:
        place(program, device.memory)
        for value in (2, 3, 2):
            write(device, "control", value)
            device.idle(20)
            assert read(device, "status") in (0, _DONE)
            write(device, "interrupt_status", 3)
        for name, number, cause in (("instructions", 1 << 24, Cause.END), ("instructions", 1 << 31 | 1, Cause.END),
                                    ("base_low", 64, Cause.MISALIGNED), ("program_low", 8, Cause.MISALIGNED)):
            prepare(device, program)
            write(device, name, number)
            write(device, "control", 1)
            finish(device)
            assert (read(device, "status"), read(device, "cause")) == (_ERROR, cause), name
            assert read(device, "load_completed") == 0
            write(device, "interrupt_status", 3)
        assert execute(device, program).cause is None


def drains(manifest, system, _):
    """Commands of the core whose DRAIN reads or writes beyond V, or has other rows than its MULTIPLY."""
    rows, each = system.core.rows, system.whole // system.piece
    tall = max(system.whole, system.core.format.terms, rows)
    data = np.random.default_rng(7).standard_normal((tall, system.lanes)).astype(np.float32).tobytes()
    passes = {name: 1 for name in ("first", "last", "tiles", "columns", "rows1", "passes0", "passes1", "passes2")}
    for steps, values, cause in (
            ({}, {}, None), ({}, {"base": system.v_words - 1}, Cause.ADDRESS), ({}, {"rows0": 1}, Cause.REFUSED),
            ({"scale": 1}, {"scale_base": system.v_words}, Cause.ADDRESS),
            ({"bias": 1}, {"bias_base": (1 << 16) - 1}, Cause.ADDRESS)):
        program = Program(accelerator=system, limit=-(-2 * len(data) // 4096) * 4096, memory=(Region(0, data),),
                          instructions=(
            Instruction(Opcode.LOAD, _ONE | {"count0": tall}),
            Instruction(Opcode.CONVERT, {"words": 1, "rows": 2, "stride": 1, "target_row": each,
                                         "target_word": system.word_pieces}, (Wait(Unit.LOAD, 1),)),
            Instruction(Opcode.CONVERT, {"to_w": 1, "columns": 1, "words": 1, "rows": tall, "stride": 1}),
            Instruction(Opcode.WEIGHTS, {"tiles": 1, "repeats": 1}, (Wait(Unit.CONVERT, 2),)),
            Instruction(Opcode.MULTIPLY, {**passes, "rows0": 2, "row0": each, **steps}, (Wait(Unit.CONVERT, 2),)),
            Instruction(Opcode.DRAIN, {"columns": 1, "rows0": 2, "rows1": 1, "row0": 1, **steps, **values},
                        (Wait(Unit.CONVERT, 2),)),
            Instruction(Opcode.STORE, _ONE | {"count0": 2, "offset": len(data)}, (Wait(Unit.DRAIN, 1),)), HALT))
        with _device(manifest, system, room(program)[0]) as device:
            if cause is None:
                _as_golden(device, program)
                continue
            with pytest.raises(Fault if cause == Cause.ADDRESS else MachineError) as found:
                Machine(program).run()
            place(program, device.memory)
            result = execute(device, program, watchdog=2000)
            assert (result.cause, result.error_pc) == (cause, found.value.pc), values


def waits(manifest, system, _):
    """An instruction of each unit that waits for three others: all come, or all but the last of them."""
    units = list(Unit)
    nops = [Instruction(Opcode.NOP, {"unit": unit}) for unit in units]

    def behind(number, last):
        others = [units[(number + by) % len(units)] for by in range(1, WAITS + 1)]
        return Instruction(Opcode.NOP, {"unit": units[number]}, tuple(
            Wait(other, last if other == others[-1] else 1) for other in others))
    program = Program(accelerator=system, limit=4096, instructions=(
        *nops, *(behind(number, 1) for number in range(len(units))), HALT))
    with _device(manifest, system, room(program)[0]) as device:
        _as_golden(device, program)
        assert {read(device, f"{unit.name.lower()}_completed") for unit in units} == {2}
        for number in range(len(units)):
            program = replace(program, instructions=(*nops, behind(number, 2), HALT))
            place(program, device.memory)
            assert execute(device, program, watchdog=2000).cause == Cause.WATCHDOG, units[number].name
