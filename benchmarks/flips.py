"""Single bits that turn round in a running accelerator: what comes of them, by the part that they are in.

    python -m benchmarks.flips --count 250                  # bits of each part; --json flips.json
    python -m benchmarks.flips --parity                     # the same machine, memories with parity

A small accelerator runs random programs on Verilator. In a cycle of each run one bit of a register or a memory turns
round: every part has as many runs, and in it every bit and every cycle has the same chance. *Masked*: the program ends,
and every word of DRAM is right, after the same program has run once more behind it, too. *Seen*: an error with its
cause, a rule of the bus that is broken, or no end. *Silent*: a word of DRAM is wrong, and nothing says so. ``all`` is
a bit that is drawn from all of them, each part counting by its bits.
"""

import argparse
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from cosim.accelerator.device import BusError, Timing
from cosim.accelerator.host import place, read, ring, room
from cosim.accelerator.state import StateDevice
from cosim.emit import emit_accelerator
from golden.machine.machine import Machine
from golden.machine.random_programs import random_program
from hbfp import files
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator

#: 8 x 8 with small memories.
SYSTEM = Accelerator(core=Design(rows=8, cols=8, depth=32, format=HBFPFormat(mantissa=8, block=(1, 8))), x_words=128,
                     w_words=128, v_words=256, p_words=64, row_words=4, vector_rows=4)
#: Programs, and instructions of each before it brings all memories to DRAM.
PROGRAMS, INSTRUCTIONS = 16, 24
#: Cycles without progress after which the watch-dog ends a program.
WATCHDOG = 2000
MASKED, SEEN, SILENT = VERDICTS = "masked", "seen", "silent"
_DONE = 2


class Run:
    """A program, how many cycles it takes, and what it leaves in DRAM."""

    def __init__(self, device, system, seed):
        self.device, self.program = device, random_program(system, seed, INSTRUCTIONS)
        machine = Machine(self.program)
        machine.run()
        self.known, self.data = machine.dram.defined[:, 0], machine.dram.data
        start = self._begin()
        if not device.run(1_000_000) or self._verdict() != MASKED:
            raise RuntimeError(f"program {seed} goes wrong without a change")
        self.cycles = device.cycle - start

    def _begin(self):
        place(self.program, self.device.memory)
        ring(self.device, self.program, watchdog=WATCHDOG)
        return self.device.cycle

    def _verdict(self):
        if read(self.device, "status") != _DONE:
            return SEEN
        base = room(self.program)[1]
        found = self.device.memory[base:base + self.program.limit].view(np.uint32)
        return MASKED if np.array_equal(found[self.known], self.data[self.known]) else SILENT

    def turned(self, state, pick):
        """What comes of a random bit of a state that turns round in a random cycle."""
        device, end = self.device, 3 * self.cycles + 3 * WATCHDOG
        device.reset()
        try:
            self._begin()
            device.idle(pick.randrange(self.cycles))
            state.flip(pick.randrange(state.places), pick.randrange(state.bits))
            verdict = self._verdict() if device.run(end) else SEEN
            if verdict == MASKED:
                self._begin()
                verdict = self._verdict() if device.run(end) else SEEN
        except BusError:
            verdict = SEEN
        return verdict


def measured(system, count, seed, console):
    """A row for each part, and one for all."""
    manifest, memory = emit_accelerator(system), np.zeros(1 << 18, np.uint8)
    pick, rows = random.Random(seed), {}
    with StateDevice(manifest.verilog, manifest.top, beat=system.beat, memory=memory, burst=system.burst) as device:
        device.set_timing(Timing(10, system.beat))
        runs = [Run(device, system, seed) for seed in range(PROGRAMS)]
        for part in track(sorted({each.part for each in device.states}), "parts", console=console, transient=True):
            states = [each for each in device.states if each.part == part]
            sizes = [each.bits * each.places for each in states]
            counts = Counter(pick.choice(runs).turned(state, pick)
                             for state in pick.choices(states, sizes, k=count))
            rows[part] = {"title": part.replace("_", " "), "bits": sum(sizes), "runs": count,
                          **{name: 100 * counts[name] / count for name in VERDICTS}}
    bits = sum(row["bits"] for row in rows.values())
    rows["all"] = {"title": "all", "bits": bits, "runs": count * len(rows), **{
        name: sum(row[name] * row["bits"] for row in rows.values()) / bits for name in VERDICTS}}
    return rows


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flips", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=250, help="bits of each part (default 250)")
    parser.add_argument("--seed", type=int, default=0, help="which of them (default 0)")
    parser.add_argument("--parity", action="store_true", help="of the machine whose memories have parity")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    args, console = parser.parse_args(), Console()
    rows = measured(replace(SYSTEM, parity=args.parity), args.count, args.seed, console)
    table = Table("part", "bits", *(f"{name}, %" for name in VERDICTS))
    for row in rows.values():
        table.add_row(row["title"], f"{row['bits']:,}", *(f"{row[name]:.1f}" for name in VERDICTS))
    console.print(table)
    if args.json:
        files.write_json(args.json, {"parts": rows})


if __name__ == "__main__":
    main()
