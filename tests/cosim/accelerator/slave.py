"""Programs on an accelerator at a slave of AXI4 that does whatever the standard allows: errors, stops, resets, pauses.

    python -m tests.cosim.accelerator.slave --count 1000        # plays of ten programs each, on accelerators by turns
    python -m tests.cosim.accelerator.slave --seed 17           # one of them, as it was

The slave is written from the standard alone (``slave.h``), and holds the accelerator to its rules. A play is of ten
programs one behind the other, most of which meet an error of the bus, a stop, a doorbell or a reset in any cycle. Each
word of DRAM is then one that the golden machine has there at some time, and nothing is under way on the bus; a program
that meets nothing leaves the golden machine's words, whatever was before it.
"""

import argparse
import ctypes
import random
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from cosim.accelerator import device
from cosim.accelerator.host import place, read, ring, room, write
from cosim.emit import emit_accelerator
from golden.machine.machine import Machine
from golden.machine.random_programs import random_program
from hbfp import files
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.isa.registers import Cause
from hbfp.system import Accelerator


def _system(side, mantissa, **sizes):
    """Of side x side elements, built quickly."""
    core = Design(rows=side, cols=side, depth=side, format=HBFPFormat(block=(1, min(side, 8)), mantissa=mantissa))
    return Accelerator(core=core, row_words=2, vector_rows=2, vector_lanes=1, function_lanes=1, x_words=64, w_words=64,
                       v_words=64, p_words=64, **sizes)


#: Four beats an instruction, and bursts of no power of two; more under way; beats that are a burst each.
SYSTEMS = [_system(4, 8, reads=3, burst=6), _system(8, 4, reads=8, burst=16), _system(16, 4, reads=2, burst=1)]
#: Programs of a play, those that are drawn from, and instructions of each before it brings all memories to DRAM.
EPISODES, PROGRAMS, INSTRUCTIONS = 10, 40, 12
LIMIT, PATIENCE = 200_000, 64
_COMMAND = "python -m tests.cosim.accelerator.slave"
EVENTS = "nothing", "stop", "doorbell", "reset"
BUSY, DONE, ERROR = 1, 2, 4

_ACCESS = """\
#include "driver.h"
extern "C" API void sim_set(Simulation* sim, const dram::Settings* settings) { sim->memory.set(*settings); }
extern "C" API uint64_t sim_failed(const Simulation* sim) { return sim->memory.failed; }
extern "C" API uint64_t sim_under_way(const Simulation* sim) { return sim->memory.under_way(); }
extern "C" API int sim_lite(Simulation* sim, int write, uint32_t address, uint32_t* data, uint8_t strobes,
                            uint8_t kind) {
    sim->top.s_axil_awaddr = sim->top.s_axil_araddr = address;
    sim->top.s_axil_awprot = sim->top.s_axil_arprot = kind;
    sim->top.s_axil_wdata = *data, sim->top.s_axil_wstrb = strobes;
    int code = sim->transfer({.aw = bool(write), .w = bool(write), .b = bool(write), .ar = !write, .r = !write}, 1000);
    *data = sim->host.data;
    return code;
}
"""


class Settings(ctypes.Structure):
    """``Settings`` of ``slave.h``."""
    _fields_ = [("pauses", ctypes.c_uint32 * 6), *((name, ctypes.c_uint32) for name in (
        "lag", "depth", "order", "sampled", "delayed")), ("errors", ctypes.c_uint32 * 2), ("reads", ctypes.c_uint32),
        ("seed", ctypes.c_uint64), ("windows", ctypes.c_uint64 * 2 * 2)]


class Slave(device.Device):
    """An accelerator at such a slave."""

    def _built(self, verilog, top, sources, **options):
        sources = device.with_more(sources, {"slave.cpp": _ACCESS,
                                             "dram.h": Path(__file__).with_name("slave.h").read_text()})
        return super()._built(verilog, top, sources, **options)

    def set(self, **settings):
        """Let the slave be another from the next cycle on."""
        functions, self.settings = self._library, Settings(**settings)
        functions.sim_set.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        functions.sim_set(self._handle, ctypes.byref(self.settings))

    def lite(self, write, address, data=0, strobes=15, kind=0, answers=(0,)):
        """A transfer of AXI4-Lite with any strobes, kind of access, and address within a word: what is read.

        Raises
        ------
        AssertionError
            If its response is none of ``answers``.
        """
        value, function = ctypes.c_uint32(data), self._library.sim_lite
        function.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p, *[ctypes.c_uint8] * 2]
        code = function(self._handle, write, address, ctypes.byref(value), strobes, kind)
        assert code in answers, f"register 0x{address:x} answers with {code}"
        return value.value

    def _count(self, name):
        function = getattr(self._library, f"sim_{name}")
        function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_uint64
        return function(self._handle)

    @property
    def failed(self):
        """Errors that the accelerator has taken since the last :meth:`set`."""
        return self._count("failed")

    @property
    def under_way(self):
        """Bursts and beats that are."""
        return self._count("under_way")


class Run:
    """A program, and the words that DRAM has on the golden machine: at first, and behind each STORE."""

    def __init__(self, system, seed):
        self.program = random_program(system, seed, INSTRUCTIONS)
        self.end, self.base = room(self.program)
        self.memory = np.empty(self.end, np.uint8)
        place(self.program, self.memory)
        machine = Machine(self.program)
        self.states = [self.memory[self.base:].view(np.uint32).copy()]
        for number, each in enumerate(self.program.instructions):
            machine.step(number, each)
            if each.opcode == Opcode.STORE:
                known = machine.dram.defined[:, 0]
                self.states.append(np.where(known, machine.dram.data, self.states[-1]))

    def windows(self):
        """What may be read, and what may be written: begin and end."""
        return (0, 64 * len(self.program.instructions)), (self.base, self.end)


made = cache(Run)


emitted = cache(emit_accelerator)


def opened(system, level):
    """An accelerator, which knows of nothing before."""
    manifest = emitted(system)
    return Slave(manifest.verilog, manifest.top, beat=system.beat, burst=system.burst,
                 memory=np.zeros(2 * made(system, 0).end, np.uint8), contexts=system.contexts, level=level,
                 timing=device.Timing(0, 0))


def drawn(pick, errors):
    """A slave: how slow each channel is, and which of the orders it keeps to."""
    slow, often = pick.choice((0, 0, 60, 200)), pick.choice((20, 300, 3000))
    return {"pauses": (ctypes.c_uint32 * 6)(*(pick.choice((0, slow, pick.randrange(230))) for _ in range(6))),
            "lag": pick.choice((0, 3, 60)), "depth": pick.choice((1, 2, 5, 16)), "order": pick.randrange(3),
            "sampled": pick.randrange(2), "delayed": pick.randrange(2), "seed": pick.getrandbits(64),
            "errors": pick.choice(((often, 0), (0, 8 * often), (often, often))) if errors else (0, 0)}


def settled(held):
    """The status behind an end: a doorbell may come as a program ends, which begins once more."""
    assert held.run(LIMIT), "it does not end"
    for _ in range(LIMIT // PATIENCE):
        if not (status := read(held, "status")) & BUSY:
            return status
        held.idle(PATIENCE)
    raise AssertionError("it does not end behind its doorbell")


def episode(held, system, run, pick, hazards=True):
    """A program from its doorbell to its end; counts of what it met.

    Raises
    ------
    AssertionError
        If it does not end as it should.
    BusError
        If a rule of the bus is broken.
    """
    event = pick.choice(EVENTS) if hazards else "nothing"
    held.set(reads=system.reads, windows=run.windows(), **drawn(pick, hazards and pick.random() < 0.4))
    held.memory[:run.end] = run.memory
    ring(held, run.program, watchdog=0)
    if event != "nothing" and held.run(pick.randrange(pick.choice((60, 600, 3000)))):
        event = "nothing"    # it has ended before
    if event == "reset":
        held.reset(pick.randrange(1, 5))
        status = read(held, "status")
    else:
        if event != "nothing":
            write(held, "control", {"stop": 2, "doorbell": 1}[event])
        status = settled(held)
    failed, moved = held.failed, held.counts[:2]
    held.idle(PATIENCE)
    assert not held.under_way and held.counts[:2] == moved, "something is under way behind the end"
    if status == ERROR:
        cause, causes = read(held, "cause"), [{"stop": Cause.STOPPED, "doorbell": Cause.BUSY}.get(event)]
        assert cause in causes + [Cause.BUS] * (failed > 0), f"cause {cause}, with {failed} errors, {event}"
    else:    # a stop or a doorbell may come behind the end, whose status it clears
        ends = {"reset": (0,), "stop": (0,) if failed else (0, DONE)}.get(event, (DONE,))
        assert status in ends and not (failed and event == "nothing"), f"status {status}, with {failed} errors, {event}"
    words = held.memory[run.base:run.end].view(np.uint32)
    there = np.logical_or.reduce([words == each for each in (run.states[-1:] if status == DONE else run.states)])
    assert there.all(), f"word {there.argmin()} of DRAM is none that was to be there"
    assert np.array_equal(held.memory[:run.base], run.memory[:run.base]), "the program's text has changed"
    write(held, "interrupt_status", 3)
    return Counter({"programs": 1, event: 1, "errors": int(failed > 0)})


def play(seed, level="-O3", system=None):
    """Ten programs one behind the other, the last of which meets nothing, on one of :data:`SYSTEMS` unless said; counts
    of what they met."""
    pick, system = random.Random(seed), system or SYSTEMS[seed % len(SYSTEMS)]
    with opened(system, level) as held:
        return sum((episode(held, system, made(system, pick.randrange(PROGRAMS)), pick, each < EPISODES - 1)
                    for each in range(EPISODES)), Counter())


def main(argv=None, level="-O3", step=1):
    """Play every ``step``-th seed; the exit status is 1 if something goes wrong."""
    parser = argparse.ArgumentParser(prog=_COMMAND, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1, metavar="N", help="plays (default 1)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first of them (default 0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write there what they met")
    args, met = parser.parse_args(argv), Counter()
    seeds = range(args.seed, args.seed + args.count, step)
    for seed in track(seeds, "plays", console=Console(stderr=True), transient=True):
        try:
            met += play(seed, level)
        except (AssertionError, device.BusError) as error:
            print(f"{error}\n{_COMMAND} --seed {seed}")
            return 1
    print(", ".join(f"{count} {name}" for name, count in met.items()))
    if args.json:
        files.write_json(args.json, {"met": met})
    return 0


if __name__ == "__main__":
    sys.exit(main())
