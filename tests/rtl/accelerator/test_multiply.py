# amaranth: UnusedElaboratable=no
"""Multiply sends the rows and commands that its loops mean, a row a cycle.

Covers: rtl/accelerator/loops.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator
from rtl.accelerator.layouts import x_row_layout
from rtl.accelerator.multiply import Multiply
from rtl.core.sequencer import command_layout
from tests.cases import sweep

from ..drive import Pauses, pack
from .served import Memory, Served, word

SYSTEM = Accelerator(core=Design(rows=8, depth=64, format=HBFPFormat(mantissa=4, block=(1, 8))))
WIDE = replace(SYSTEM, core=replace(SYSTEM.core, wide=6))
SPARSE = Accelerator(core=Design(rows=8, depth=64, sparse=(2, 4), format=HBFPFormat(mantissa=4, block=(1, 16))))


def rows_of(system, i, memory):
    """The rows of X that an instruction means, one after the other."""
    core = system.core
    zeros = pack(x_row_layout(Multiply.Parameters.of(system)), mantissa=[0] * core.reach(core.rows),
                 exponent=[max(-126, core.format.exponent_range[0])] * core.segments, invalid=[0] * core.segments)
    for _ in range(i["columns"]):
        for p2, p1, p0 in np.ndindex(i["passes2"], i["passes1"], i["passes0"]):
            for i1, i0 in np.ndindex(i["rows1"], i["rows0"]):
                address = (i["base"] + i0 * i["row0"] + i1 * i["row1"] + p0 * i["pass0"] + p1 * i["pass1"]
                           + p2 * i["pass2"]) % 2 ** 18
                x = i["x"] + i0 * i["x_row"] + p1 * i["x_pass"]
                y = i["y"] + i1 * i["y_row"] + p2 * i["y_pass"]
                inside = 0 <= x < i["width"] and 0 <= y < i["height"]
                for low in (0, i["low"])[:1 + i.get("wide_x", 0)]:
                    yield memory[(address + low) % 2 ** 18] if inside or not i["bounded"] else zeros


def commands_of(system, i):
    """The commands that it begins."""
    names = ("tiles", "scale", "bias", "relu", *(("wide_x", "wide_w") if system.core.wide else ()),
             *(("sparse",) if system.core.takes_sparse else ()))
    return [pack(command_layout(system.core), rows=i["rows0"] * i["rows1"], **{n: i[n] for n in names})
            ] * (i["columns"] * i["first"])


def some(rng, wide=False, sparse=False):
    """A random instruction."""
    values = {name: int(rng.integers(1, 4)) for name in ("rows0", "rows1", "passes0", "passes1", "passes2", "columns")}
    values |= {name: int(rng.integers(-40, 41)) for name in ("row0", "row1", "pass0", "pass1", "pass2")}
    values |= {name: int(rng.integers(2)) for name in ("scale", "bias", "relu", "bounded")}
    values |= {"base": int(rng.choice([0, 3, 65535, rng.integers(65536)])), "tiles": int(rng.integers(1, 65536)),
               "x": int(rng.integers(-4, 3)), "y": int(rng.integers(-4, 3)), "width": int(rng.integers(1, 7)),
               "height": int(rng.integers(1, 7))}
    values |= {name: int(rng.integers(0, 3)) for name in ("x_row", "y_row", "x_pass", "y_pass")}
    if wide:
        values |= {name: int(rng.integers(2)) for name in ("wide_x", "wide_w")}
    if sparse:
        values["sparse"] = int(rng.integers(2))
    values |= {"low": int(rng.integers(-40, 41)) * values.get("wide_x", 0)}
    first, last = rng.integers(2, size=2).tolist() if rng.random() < .4 else (1, 1)
    return values | {"first": first, "last": last, "columns": values["columns"] if first and last else 1}


def play(system, instructions, pause=0.0, seed=0):
    """Rows, commands and cycles of ``done`` of a run."""
    dut = Multiply.of(system)
    bench = Served(dut)
    memory = Memory(len(dut.x.data.as_value()))
    bench.read(dut.x, memory, Pauses(pause, seed))
    want = [row for i in instructions for row in rows_of(system, i, memory)]
    commands = [command for i in instructions for command in commands_of(system, i)]
    done = bench.until_done(len(instructions))
    given = bench.instructions(Opcode.MULTIPLY)
    bench.send(given, [word(Opcode.MULTIPLY, **i) for i in instructions], Pauses(pause, seed + 1))
    rows = bench.receive(dut.o_x, len(want), Pauses(pause, seed + 2))
    got = bench.receive(dut.o_cmd, len(commands), Pauses(pause and 0.95, seed + 3))    # later than their rows
    bench.run()
    assert rows == want
    assert got == commands
    return done, len(want)


@pytest.mark.parametrize("system, seed, pause", sweep(5, [
    (system, seed, pause) for system in (SYSTEM, WIDE, SPARSE) for seed in range(3) for pause in (0.0, 0.4)]))
def test_random_instructions(system, pause, seed):
    rng = np.random.default_rng(seed)
    play(system, [some(rng, system is WIDE, system is SPARSE) for _ in range(12)], pause, seed)


def test_coordinates_do_not_wrap():
    """The largest coordinates stay outside."""
    play(SYSTEM, [dict(some(np.random.default_rng(n)), bounded=1, x=x, y=0, x_row=255, x_pass=255, y_row=0, y_pass=0,
                       width=4095, rows0=64, rows1=1, passes0=1, passes1=30, passes2=1, columns=1, first=1, last=1)
                  for n, x in enumerate((-4096, 4095))])


def test_a_row_a_cycle_without_pause():
    """The last ``done`` comes a cycle after the last row, which comes a cycle after its issue."""
    rng = np.random.default_rng(5)
    done, rows = play(SYSTEM, [some(rng) for _ in range(10)])
    assert done[-1] == rows + 2


def test_too_many_rows_are_refused():
    dut = Multiply.of(SYSTEM)
    bench = Served(dut)
    bench.read(dut.x, Memory(len(dut.x.data.as_value())))
    given = bench.instructions(Opcode.MULTIPLY)
    bench.send(given, [word(Opcode.MULTIPLY, **dict(some(np.random.default_rng(0)), first=1, rows0=65,
                                             rows1=1))])

    async def watch(ctx):
        for _ in range(10):
            *_, valid, command = await ctx.tick().sample(dut.o_x.valid, dut.o_cmd.valid)
            assert not valid and not command
        assert ctx.get(dut.fault)
    bench.process(watch)
    bench.run()
