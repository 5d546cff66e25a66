# amaranth: UnusedElaboratable=no
"""Decode takes what is legal, in order, into the queue of its unit; what is illegal stops it.

Covers: rtl/accelerator/issue.py, rtl/accelerator/legal.py, rtl/accelerator/part.py.
"""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import FIELDS, WORD, IllegalInstruction, Instruction, Opcode, Unit, Wait, decode
from hbfp.isa.legal import check
from hbfp.system import Accelerator
from rtl.accelerator.issue import Issue, offered

SYSTEM = Accelerator(core=Design(rows=8, format=HBFPFormat(block=(1, 16))))
UNITS = tuple(Unit)


def legal(word):
    """By the instruction set."""
    try:
        check(decode(word), SYSTEM)
    except IllegalInstruction:
        return False
    return True


def simple(opcode, rng):
    """A legal instruction with few fields that are not 0."""
    values = {"run": 1, "elements": 1} if opcode in (Opcode.LOAD, Opcode.STORE) else {}
    for field in FIELDS[opcode]:
        if field.name.startswith("count") or field.name in (
                "words", "rows", "tiles", "repeats", "columns", "rows0", "rows1", "passes0", "passes1", "passes2",
                "body"):
            values[field.name] = 1
        if field.name in ("pass0", "row0", "offset", "i0_step"):
            values[field.name] = int(rng.integers(0, 100))
    if opcode == Opcode.CONVERT:
        values |= {"columns": 0, "stride": int(rng.integers(0, 100))}
    if opcode == Opcode.NOP:
        values = {"unit": int(rng.integers(1, 8))}
    return values


def words(rng, count):
    """Legal words, some with one field or bit changed, and random ones; about a half are legal."""
    found = []
    while len(found) < count:
        opcode = rng.choice(list(Opcode))
        values = simple(opcode, rng)
        instruction = Instruction(opcode, values)
        kind = rng.integers(0, 4)
        if kind == 1 and FIELDS[opcode]:
            field = FIELDS[opcode][rng.integers(0, len(FIELDS[opcode]))]
            edge = int(rng.choice([0, 1, 2, 3, 7, 8, 9, 16, 24, *field.range]))
            if field.range[0] <= edge <= field.range[1]:
                instruction = Instruction(opcode, values | {field.name: edge})
        word = instruction.encode()
        if kind == 2:
            word ^= 1 << int(rng.integers(0, WORD))
        if kind == 3 and rng.random() < 0.3:
            word = int.from_bytes(rng.bytes(64), "little")
        found.append(word)
    return found


def simulate(bench):
    issue = Issue.of(SYSTEM)

    async def started(ctx):
        await bench(ctx, issue)
    sim = Simulator(issue)
    sim.add_clock(1e-6)
    sim.add_testbench(started)
    sim.run()


def test_illegal_is_what_the_instruction_set_says():
    """Nothing is taken in the meantime, so that the same decoder sees all words."""
    rng = np.random.default_rng(1)

    async def bench(ctx, issue):
        ctx.set(issue.instructions, 100)
        ctx.set(issue.i.valid, 1)
        seen = set()
        for word in words(rng, 3000):
            ctx.set(issue.i.payload, word)
            good = legal(word)
            assert ctx.get(issue.illegal) == (not good), hex(word)
            assert ctx.get(issue.i.ready) == good
            seen.add((word & 15, good))
        assert seen >= {(int(opcode), good) for opcode in Opcode for good in (False, True)}
    simulate(bench)


@pytest.mark.parametrize("seed", range(3))
def test_units_get_theirs_in_order_and_no_sooner_than_their_waits_hold(seed):
    """Units of random speed; a program whose waits name what stands before them; HALT is last."""
    rng = np.random.default_rng(seed)
    program, given = [], dict.fromkeys(UNITS, 0)
    for _ in range(120):
        opcode = rng.choice([code for code in Opcode if code != Opcode.HALT])
        waits = []
        for unit in rng.choice(UNITS, int(rng.integers(0, 4))):
            waits.append(Wait(Unit(unit), max(0, given[Unit(unit)] - int(rng.integers(0, 2)))))
        program.append(Instruction(opcode, simple(opcode, rng), tuple(waits)))
        given[program[-1].unit] += 1
    program.append(Instruction(Opcode.HALT, {}))
    queued = {unit: [one for one in program if one.unit == unit] for unit in UNITS}
    program.append(Instruction(Opcode.HALT, {}))    # after HALT nothing is taken

    async def bench(ctx, issue):
        ctx.set(issue.instructions, len(program))
        counts, works, place = dict.fromkeys(UNITS, 0), dict.fromkeys(UNITS, 0), 0
        for _ in range(6000):
            give = rng.random() < 0.8 and place < len(program)
            ctx.set(issue.i.valid, int(give))
            ctx.set(issue.i.payload, program[min(place, len(program) - 1)].encode())
            done = 0
            for unit in UNITS:
                stream = getattr(issue, offered(unit))
                finishes = works[unit] and rng.random() < 0.2
                ctx.set(stream.ready, int(not works[unit]))
                if finishes:
                    works[unit] = 0
                    done |= 1 << unit - 1
            ctx.set(issue.done, done)
            assert not ctx.get(issue.illegal) and not ctx.get(issue.beyond)
            taken, completed = ctx.get(issue.taken), ctx.get(issue.completed)
            for unit in UNITS:
                if not taken >> unit - 1 & 1:
                    continue
                one, stream = queued[unit].pop(0), getattr(issue, offered(unit))
                assert all(counts[wait.unit] >= wait.count for wait in one.waits)
                assert (ctx.get(issue.nop) >> unit - 1 & 1) == (one.opcode == Opcode.NOP)
                if one.opcode != Opcode.NOP:
                    assert ctx.get(stream.payload) == one.encode() >> 85
                    works[unit] = 1
            if ctx.get(issue.halted):
                assert place == len(program) - 1 and not any(queued.values()) and not any(works.values())
                return
            place += ctx.get(issue.i.ready) and give
            assert ctx.get(issue.place) <= len(program)
            for unit in UNITS:
                counts[unit] += completed >> unit - 1 & 1
            await ctx.tick()
        raise AssertionError("the program does not end")
    simulate(bench)


def test_a_program_without_halt_runs_beyond_its_end():
    async def bench(ctx, issue):
        ctx.set(issue.instructions, 2)
        ctx.set(issue.i.valid, 1)
        ctx.set(issue.i.payload, Instruction(Opcode.NOP, {"unit": 1}).encode())
        seen = []
        for _ in range(4):
            seen.append((ctx.get(issue.place), ctx.get(issue.i.ready), ctx.get(issue.beyond)))
            await ctx.tick()
        assert seen == [(0, 1, 0), (1, 1, 0), (2, 0, 1), (2, 0, 1)]
    simulate(bench)
