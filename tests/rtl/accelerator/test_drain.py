# amaranth: UnusedElaboratable=no
"""Drain writes results where its loops say, a row a cycle, and gives the core factors and biases in their order."""

from dataclasses import replace

import numpy as np
import pytest

from hbfp.isa.instructions import Opcode
from rtl.accelerator.drain import DrainToV
from tests.cases import cover, sweep

from ..drive import Pauses, bits
from .served import Memory, Served, word
from .test_multiply import SYSTEM, WIDE

ROW = 8 * 32
#: Side units of fewer lanes than columns, without registers and with some.
TURNS = [replace(SYSTEM, core=replace(SYSTEM.core, side_lanes=lanes, pipeline=pipeline))
         for lanes, pipeline in ((2, 0), (4, 2))]


def some(rng, wide=False):
    """A random instruction."""
    values = {name: int(rng.integers(1, 5)) for name in ("rows0", "columns")} | {"rows1": int(rng.integers(1, 11))}
    values |= {name: int(rng.integers(-40, 41)) for name in ("row0", "row1", "column")}
    values |= {name: int(rng.integers(2)) for name in ("scale", "bias")}
    return values | {name: int(rng.choice([0, 65535, rng.integers(65536)]))
                     for name in ("base", "scale_base", "bias_base")} | (
        {"wide": 1} if wide and rng.integers(2) else {"diagonal": int(rng.integers(2))})


def even(word, odd):
    """What even columns take of a word of operands, or of results, and where these go in it: even lanes or odd ones."""
    return [word >> 32 * lane + 32 * odd & 0xFFFFFFFF for lane in range(0, 8, 2)]


def play(instructions, pause=0.0, operand_pause=0.0, seed=0, system=SYSTEM):
    """Cycles of the writes and of ``done``; every write and operand is compared."""
    dut, turns = DrainToV.of(system), system.core.side_turns
    bench, rng = Served(dut), np.random.default_rng(seed)
    memory = Memory(ROW)
    bench.read(dut.read, memory, Pauses(operand_pause, seed), shared=True)
    writes = bench.write(dut.write, Pauses(pause, seed + 1))
    given = bench.instructions(Opcode.DRAIN)
    bench.send(given, [word(Opcode.DRAIN, **i) for i in instructions])
    want, commands = [], []
    for i in instructions:
        for j in range(i["columns"]):
            wide, diagonal = i.get("wide", 0), i.get("diagonal", 0)
            place, odd = (j >> 1, j & 1) if wide else (j, 0)
            operands = [memory[i[f"{name}_base"] + place] for name in ("scale", "bias") if i[name]]
            data = [int.from_bytes(rng.bytes(ROW // 8), "little") for _ in range(i["rows0"] * i["rows1"])]
            commands.append((operands, data, wide, odd))
            want += [((i["base"] + i0 * i["row0"] + i1 * i["row1"] + place * i["column"]) % 2 ** 18,
                      data[i1 * i["rows0"] + i0], wide, odd, 255 << i1 % 8 * diagonal & 255)
                     for i1, i0 in np.ndindex(i["rows1"], i["rows0"])]
    waited = []

    async def core(ctx):
        """As the core's way out: all operands of a command, then its rows."""
        pauses = Pauses(pause, seed + 2)
        for operands, rows, wide, odd in commands:
            cycles = 0
            for operand, part in ((operand, part) for operand in operands for part in range(turns)):
                if turns > 1:
                    ctx.set(dut.asks, 1)
                ctx.set(dut.o_v.ready, part == turns - 1)
                while True:
                    cycles += 1
                    *_, valid, payload = await ctx.tick().sample(dut.o_v.valid, bits(dut.o_v.payload))
                    if valid:
                        break
                assert payload == operand if not wide else even(payload, 0) == even(operand, odd)
            waited.append(cycles - len(operands) * turns)
            ctx.set(dut.o_v.ready, 0)
            if turns > 1:
                ctx.set(dut.asks, 0)
            for n, row in enumerate(rows):
                while pauses():
                    ctx.set(dut.i.valid, 0)
                    await ctx.tick()
                ctx.set(dut.i.valid, 1)
                ctx.set(bits(dut.i.payload), row | (n == len(rows) - 1) << ROW)
                while not (await ctx.tick().sample(dut.i.ready))[2]:
                    pass
            ctx.set(dut.i.valid, 0)
    bench.process(core)
    done = bench.until_done(len(instructions))
    bench.run()
    assert [write[1] for write in writes] == [address for address, *_ in want]
    for (*_, got, mask), (_, data, wide, odd, lanes) in zip(writes, want, strict=True):
        assert (even(got, odd), mask) == (even(data, 0), 0xAA if odd else 0x55) if wide else (
            got, mask) == (data, lanes)
    return [write[0] for write in writes], done, waited


@pytest.mark.parametrize("system, seed, pause", sweep(3, [
    (system, seed, pause) for system in (SYSTEM, WIDE) for seed in range(2) for pause in (0.0, 0.4)]))
def test_random_instructions(system, pause, seed):
    rng = np.random.default_rng(seed)
    play([some(rng, system is WIDE) for _ in range(12)], pause, pause, seed, system)


def test_a_row_a_cycle_without_pause():
    rng = np.random.default_rng(3)
    cycles, done, _ = play([dict(some(rng), scale=0, bias=0) for _ in range(8)])
    assert cycles == list(range(cycles[0], cycles[0] + len(cycles)))
    assert done[-1] == cycles[-1] + 1


@pytest.mark.parametrize("system", [SYSTEM, *TURNS])
def test_operands_cost_a_cycle(system):
    rng = np.random.default_rng(4)
    *_, waited = play([dict(some(rng), scale=1, bias=n % 2) for n in range(8)], system=system)
    assert set(waited[1:]) == {1}


@pytest.mark.parametrize("pause, system", cover([0.4, 0.0], TURNS, turns=1))
def test_operands_that_are_taken_in_parts(system, pause):
    """A part comes whenever its read is granted."""
    rng = np.random.default_rng(5)
    play([some(rng) for _ in range(12)], pause, pause, 6, system)


def test_a_wrong_last_is_a_fault():
    dut = DrainToV.of(SYSTEM)
    bench = Served(dut)
    bench.read(dut.read, Memory(1))
    bench.write(dut.write)
    given = bench.instructions(Opcode.DRAIN)
    bench.send(given, [word(Opcode.DRAIN, rows0=2, rows1=1, columns=1)])

    async def core(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload.last, 1)
        while not (await ctx.tick().sample(dut.i.ready))[2]:
            assert not ctx.get(dut.fault)
        assert ctx.get(dut.fault)
    bench.process(core)
    bench.run()
