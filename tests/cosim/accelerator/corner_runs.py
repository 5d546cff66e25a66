"""Corners of instructions on the Verilog against the golden machine: ``python -m tests.cosim.accelerator.corner_runs``.

    python -m tests.cosim.accelerator.corner_runs                 # all corners, on both accelerators
    python -m tests.cosim.accelerator.corner_runs --corner NAME   # one of them, as it was

A legal one leaves the golden machine's words in DRAM, where all memories are by then, or has its fault: cause and
number of the instruction. Where a part of a command of the core is wrong, what comes first counts: its own cause, that
the core refuses it, or the watch-dog, as the rest of the command never comes. One that is not legal has cause 1, its
number, and nothing is written; what has no word is refused by the encoder with the field, what it may be, and what it
is. Each cause of each unit that can have it is among them; what no corner meets is drawn.
"""

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from cosim.accelerator.host import place, read, ring, room, write
from hbfp import files
from hbfp.format import HBFPFormat
from hbfp.golden.machine.errors import Fault
from hbfp.isa.instructions import IllegalInstruction, Opcode, Unit
from hbfp.isa.ports import PORTS
from hbfp.isa.registers import Cause

from .built import ACCELERATOR, opened, renewed
from .corners import CORE, corners, drawn, expected, program_of

_COMMAND = "python -m tests.cosim.accelerator.corner_runs"
#: The same with all that a core may have.
EVERY = replace(ACCELERATOR, core=replace(ACCELERATOR.core, sparse=(2, 4), wide=6, format=HBFPFormat(
    mantissa=4, block=(1, 16), rounding="stochastic")), x_words=256, w_words=256)
SYSTEMS = {"plain": ACCELERATOR, "every": EVERY}
#: Cycles without progress until what waits for ever is stopped, and cycles in which everything ends.
WATCHDOG, PATIENCE = 2000, 5_000_000
#: Bytes of DRAM, for a program and all memories.
SIZE = 1 << 21
#: Instructions that are drawn for a cause.
DRAWN = 1000
_DONE, _ERROR = 2, 4
#: What a unit may do wrong: reach beyond each memory that it has a port of; transfers and the core have more.
CAUSES = {f"{unit.name}: ADDRESS, {port[0].upper()}" for port, units in PORTS.items() for unit in units} | {
    f"{unit.name}: {cause}" for unit in (Unit.LOAD, Unit.STORE) for cause in ("ADDRESS, DRAM", "MISALIGNED")} | {
    f"{unit.name}: REFUSED" for unit in (Unit.MULTIPLY, Unit.VECTOR)} | {
    f"{unit.name}: {cause}" for unit in Unit for cause in ("ILLEGAL", "WATCHDOG")}


def refused(corner):
    """What is wrong with how the encoder refuses a value that has no word, or None."""
    instruction, (name, value) = corner.scenes[0].instruction, corner.beyond
    try:
        corner.scenes[0].having(**{name: value})
    except IllegalInstruction as error:
        right = re.fullmatch(rf"{instruction.opcode.name} {name} must be -?\d+ to -?\d+, not {value}", str(error))
        return None if right else f"is refused with {str(error)!r}"
    return f"{value} is not refused"


def told(fault, program):
    """What a fault counts as: unit, cause, and the memory."""
    unit, where = program.instructions[fault.pc].unit, ""
    if fault.cause is Cause.ADDRESS:
        where = ", DRAM" if "DRAM" in fault.text else f", {fault.text[-1]}"
    return f"{unit.name if unit else 'none'}: {fault.cause.name}{where}"


def wrong(device, system, corner, met):
    """What is wrong with a corner, one line; None if it is as it should be. What units had is added to ``met``."""
    if not corner.scenes:
        return "no instruction of the random programs has it"
    word = corner.word(corner.scenes[0])
    if word is None:
        return refused(corner)
    for scene in corner.scenes:
        golden = expected(system, corner, scene)
        if golden is not None:
            break
    else:
        return "what it does is defined nowhere"
    program, at = program_of(system, scene)
    if isinstance(golden, Fault):
        met.add(told(golden, program))
    place(program, device.memory)
    device.memory[64 * at:64 * at + 64] = np.frombuffer(corner.word(scene).to_bytes(64, "little"), np.uint8)
    before, base = device.memory.copy(), room(program)[1]
    part = corner.legal and isinstance(golden, Fault) and scene.instruction.opcode in CORE
    ring(device, program, watchdog=WATCHDOG if corner.never or part else 0)
    if not device.run(PATIENCE):
        write(device, "control", 2)
        device.run(PATIENCE)
        return "does not end"
    status, cause, number = (read(device, name) for name in ("status", "cause", "error_pc"))
    if isinstance(golden, Fault):
        right = {golden.cause, Cause.REFUSED, Cause.WATCHDOG} if part else {golden.cause}
        if status != _ERROR or cause not in right or not (cause == Cause.WATCHDOG or number == golden.pc):
            return f"status {status}, cause {cause} at {number}, not {golden.cause.name} at {golden.pc}"
        if not corner.legal and not np.array_equal(device.memory, before):
            return "something is written"
        return None
    found, known = device.memory[base:base + program.limit].view(np.uint32), golden.dram.defined[:, 0]
    differ = int(((found != golden.dram.data) & known).sum())
    return f"status {status}, cause {cause} at {number}" if status != _DONE else (
        f"{differ} words differ" if differ else None)


def run(system, met, *opcodes, chosen=lambda corner: True, step=1):
    """Corners of an accelerator, or every ``step``-th of some opcodes: (corner, what is wrong or None)."""
    found = []
    with opened(system, SIZE)[1] as device:
        every = [corner for corner in corners(system, *opcodes) if chosen(corner)][::step]
        for corner in track(every, "corners", console=Console(stderr=True), transient=True):
            renewed(device, 20, system.beat)
            found.append((corner, wrong(device, system, corner, met)))
    return found


def more(system, met):
    """As :func:`run`, for causes that no corner has met."""
    found = []
    with opened(system, SIZE)[1] as device:
        for unit in {cause.split(":")[0] for cause in CAUSES - met}:
            for corner in drawn(system, Opcode[unit], DRAWN):
                fault = expected(system, corner, corner.scenes[0])
                if isinstance(fault, Fault) and told(fault, program_of(system, corner.scenes[0])[0]) in CAUSES - met:
                    renewed(device, 20, system.beat)
                    found.append((corner, wrong(device, system, corner, met)))
    return found


def main(argv=None):
    """Run the command; the exit status is 1 if something is wrong or not reached."""
    parser = argparse.ArgumentParser(prog=_COMMAND, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corner", metavar="NAME", help="this one alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the counts there")
    args, met, rows, status = parser.parse_args(argv), set(), {}, 0
    found = {name: run(system, met, chosen=lambda corner: args.corner in (None, corner.name))
             for name, system in SYSTEMS.items()}
    if not args.corner:
        found["drawn"] = more(ACCELERATOR, met)
    for name, each in found.items():
        for corner, line in each:
            if line:
                print(f"{name}: {corner.name}: {line}\n{_COMMAND} --corner '{corner.name}'")
                status = 1
    for name in SYSTEMS:
        for legal, what in ((True, "legal"), (False, "illegal")):
            lines = [line for corner, line in found[name] if corner.legal is legal]
            rows[f"{name}_{what}"] = {"corners": len(lines), "met": lines.count(None)}
    rows["causes"] = {"corners": len(CAUSES), "met": len(CAUSES & met)}
    for name, row in rows.items():
        print(f"{name}: {row['met']} of {row['corners']}")
    if not args.corner and not CAUSES <= met:
        print("no instruction has", "; ".join(sorted(CAUSES - met)))
        status = 1
    if args.json:
        files.write_json(args.json, {"rows": rows})
    return status


if __name__ == "__main__":
    sys.exit(main())
