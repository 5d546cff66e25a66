# amaranth: UnusedElaboratable=no
"""Bursts of random transfers are those of a plain model, in order; faults come where it says."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth import ResetInserter, Signal, Value
from amaranth.sim import Simulator

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Instruction, Memory, Opcode
from hbfp.system import Accelerator
from rtl.accelerator.load import Load
from rtl.accelerator.store import Store
from rtl.accelerator.walk import Walk, piece_layout
from tests.cases import sweep

SYSTEM = Accelerator(core=Design(rows=8, format=HBFPFormat(block=(1, 16))), v_words=256, w_words=256, p_words=64,
                     burst=5)


def walk_of(load, registered=False):
    """The walker of loads, or of stores."""
    part, sizes = (Load, Walk.Parameters.load) if load else (Store, Walk.Parameters.store)
    return Walk.made(sizes(replace(part.Parameters.of(SYSTEM), registered=registered)))


ARGUMENTS = [int(value) for value in np.random.default_rng(8).integers(0, 2 ** 32, 8)]


def bursts(system, load, instruction, limit):
    """What a transfer is, beat addresses first; the last entry is a fault, or None."""
    beat, lanes, found = system.beat, system.lanes, []
    memory, elements = instruction["memory"] if load else 0, instruction["elements"]
    for i2 in range(instruction["count2"]):
        for i1 in range(instruction["count1"]):
            whole = not elements and memory != Memory.W
            for i0 in range(1 if whole else instruction["count0"]):
                offset = instruction["offset"] + i2 * instruction["dram2"] + i1 * instruction["dram1"]
                offset += ARGUMENTS[instruction["argument"] - 1] if instruction["argument"] else 0
                place = instruction["base"] + i2 * instruction["buffer2"] + i1 * instruction["buffer1"]
                height = system.core.height
                if whole:
                    beats = extent = instruction["count0"]
                elif elements:
                    offset, place = offset + i0 * instruction["dram0"], place + i0 * instruction["buffer0"]
                    beats = -(-(offset // 4 % lanes + instruction["run"]) // lanes)
                    extent = instruction["run"] if load else 1
                else:
                    beats, extent = system.record_beats, height
                    offset, place = offset + i0 * beats * beat, place + i0 * height
                offset, place = offset % 2 ** 32, place % 2 ** 22
                start = place if elements and load else place % 2 ** 18
                words = (system.v_words * (lanes if elements and load else 1), system.w_words,
                         2 * system.p_words // lanes)[memory]
                if offset % (4 if elements else beat):
                    return [*found, "misaligned"]
                if offset + (4 * instruction["run"] if elements else beats * beat) > limit or start + extent > words:
                    return [*found, "outside"]
                done, address = 0, offset // beat
                while done < beats:
                    now = min(beats - done, system.burst, (4096 - address * beat % 4096) // beat)
                    found.append((address, memory, elements, place + done if whole else place, offset // 4 % lanes,
                                  instruction["run"], 0 if whole else done, now, 0))
                    done, address = done + now, address + now
    return [*found[:-1], (*found[-1][:-1], 1), None]


def transfer(rng, load):
    """A random one; most stay within memory and limit."""
    elements = int(rng.random() < 0.5)
    memory = 0 if elements or not load else int(rng.integers(0, 3))
    counts = {f"count{n}": int(rng.integers(1, 4)) for n in range(3)}
    step = 32 if not elements else 4
    values = {"elements": elements, "offset": step * int(rng.integers(0, 4096)), **counts}
    for n in range(elements ^ 1, 3):
        values |= {f"dram{n}": step * int(rng.integers(-50, 400)), f"buffer{n}": int(rng.integers(-3, 20))}
    values["base"] = int(rng.integers(10, 120))
    if elements:
        values["run"] = int(rng.integers(1, 9))
    elif memory == Memory.W:
        values |= {"base": 16 * int(rng.integers(0, 8)), "buffer1": 16 * int(rng.integers(0, 3)),
                   "buffer2": 16 * int(rng.integers(-1, 2))}
    elif memory == Memory.P:
        values |= {"base": int(rng.integers(0, 5)), "buffer1": 1, "buffer2": 2, "count0": 2}
    elif rng.random() < 0.5:
        values["count0"] = int(rng.integers(4, 200))
    if rng.random() < 0.1:
        values["offset"] += int(rng.choice([1, 2, 4]))
    if load:
        values["memory"] = memory
    if number := int(rng.integers(0, 9)):
        values |= {"argument": number, "offset": values["offset"] - ARGUMENTS[number - 1] & 0xFFFFFFFF}
    return Instruction(Opcode.LOAD if load else Opcode.STORE, values)


@pytest.mark.parametrize("load, registered", sweep(3, [(True, False), (False, False), (True, True), (False, True)]))
def test_bursts_are_those_of_the_model(load, registered):
    rng = np.random.default_rng(load)
    walk = walk_of(load, registered)
    layout, limit = piece_layout(walk.params), 40_000
    names = list(layout.members)
    seen, kinds = set(), set()

    async def bench(ctx):
        ctx.set(walk.limit, limit)
        for number, value in enumerate(ARGUMENTS):
            ctx.set(walk.arguments[number], value)
        for _ in range(150):
            instruction = transfer(rng, load)
            expected = bursts(SYSTEM, load, instruction, limit)
            ctx.set(Value.cast(walk.instruction.payload), instruction.encode() >> 85)
            ctx.set(walk.instruction.valid, 1)
            assert ctx.get(walk.begins)
            ends = None
            cycles = 0
            while expected:
                cycles += 1
                assert cycles < 5000
                take = rng.random() < 0.8
                ctx.set(walk.o.ready, int(take))
                if ctx.get(walk.misaligned) or ctx.get(walk.outside):
                    assert not ctx.get(walk.o.valid)
                    ends = "misaligned" if ctx.get(walk.misaligned) else "outside"
                    assert expected == [ends]
                    break
                if ctx.get(walk.o.valid):
                    word = ctx.get(Value.cast(walk.o.payload))
                    got = tuple(word >> layout[name].offset & (1 << layout[name].width) - 1 for name in names)
                    assert (ctx.get(walk.address), *got) == expected[0], instruction
                    kinds.add((instruction["elements"], got[0], got[-1]))
                    assert ctx.get(walk.instruction.ready) == (take and got[-1])
                    if take:
                        expected.pop(0)
                        if expected == [None]:
                            ends = "done"
                            expected = []
                await ctx.tick()
            seen.add(ends)
            ctx.set(walk.instruction.valid, 0)
            ctx.set(walk.o.ready, 0)
            if ends != "done":
                ctx.set(reset, 1)
                await ctx.tick()
                ctx.set(reset, 0)
            await ctx.tick()
    reset = Signal()
    sim = Simulator(ResetInserter(reset)(walk))
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert seen == {"done", "misaligned", "outside"}
    assert kinds >= {(0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 0, 1), *([(0, 1, 1), (0, 2, 1)] if load else [])}


@pytest.mark.parametrize("registered", [0, 1])
def test_a_segment_takes_a_cycle_more_than_its_bursts(registered):
    """The cycles of a transfer that nobody holds up; with registers two more."""
    walk = walk_of(True, bool(registered))
    more = [0] * registered
    instruction = Instruction(Opcode.LOAD, {"count0": 12, "count1": 2, "count2": 1, "dram1": 1024, "buffer1": 12})

    async def bench(ctx):
        ctx.set(walk.limit, 40_000)
        ctx.set(Value.cast(walk.instruction.payload), instruction.encode() >> 85)
        ctx.set(walk.instruction.valid, 1)
        ctx.set(walk.o.ready, 1)
        valid = []
        for _ in range(9 + 2 * registered):
            valid.append(ctx.get(walk.o.valid))
            await ctx.tick()
        assert valid == [0, 0, *more, 1, 1, 1, 0, *more, 1, 1, 1]
    sim = Simulator(walk)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
