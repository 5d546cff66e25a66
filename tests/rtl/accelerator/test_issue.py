# amaranth: UnusedElaboratable=no
"""Decode takes what is legal, in order, into the queue of its unit; what is illegal stops it.

Covers: rtl/accelerator/fields.py, rtl/accelerator/issue.py, rtl/accelerator/legal.py, rtl/accelerator/sizes.py.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from golden.machine.random_programs import random_program
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import (
    ENDS,
    EXTRAS,
    FIELDS,
    HEADER,
    WORD,
    IllegalInstruction,
    Instruction,
    Opcode,
    Unit,
    Wait,
    decode,
    width,
)
from hbfp.isa.legal import check, sizes
from hbfp.system import Accelerator
from rtl.accelerator.fields import held_fields, offered_fields
from rtl.accelerator.issue import HOLDING, Issue
from rtl.accelerator.legal import illegal
from rtl.lib.component import Component
from tests.cases import sweep

from ..drive import bits

SYSTEM = Accelerator(core=Design(rows=8, format=HBFPFormat(block=(1, 16))))
DRAWING = Accelerator(core=Design(rows=8, format=HBFPFormat(block=(1, 16), rounding="stochastic")))
WIDE = Accelerator(core=Design(rows=8, wide=6, format=HBFPFormat(mantissa=4, block=(1, 16))))
UNITS = tuple(Unit)


def legal(word, system=SYSTEM):
    """By the instruction set."""
    try:
        check(decode(word), system)
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
        opcode = Opcode(rng.choice(list(Opcode)))
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


def turned(system, programs=4, bases=3):
    """Legal instructions with every bit turned round, and some with each field at its ends and about powers of two.

    They are those of random programs, and the simplest of each opcode with waits, and with any two flags.
    """
    found, words, rng = {}, [], np.random.default_rng(0)
    for seed in range(programs):
        for one in random_program(system, seed, 60).instructions:
            found.setdefault((one.opcode, bool(one.waits)), []).append(one)
    for every in found.values():
        for one in every[:1] + [every[n] for n in rng.permutation(len(every))[:bases]]:
            word, start = one.encode(), width(HEADER)
            words += [word ^ 1 << bit for bit in range(WORD)]
            for field in FIELDS[one.opcode]:
                edges = {value for k in range(field.width) for value in (1 << k, (1 << k) - 1)}
                mask = (1 << field.width) - 1
                words += [word & ~(mask << start) | (edge & mask) << start for edge in sorted(edges)]
                start += field.width
    for opcode in Opcode:
        flags = [field.name for field in FIELDS[opcode] if field.width <= 2]
        end = width(HEADER) + width(FIELDS[opcode])
        pairs = [(one, other) for one in ("", *flags) for other in ("", *flags) if one <= other]
        starts = [{}, {"elements": 0, "run": 0}] if opcode in (Opcode.LOAD, Opcode.STORE) else [{}]
        for start, (one, other) in product(starts, pairs):
            values = simple(opcode, rng) | start | {name: 1 for name in (one, other) if name}
            word = Instruction(opcode, values).encode()
            if legal(word, system):
                words += [word, *(word ^ 1 << bit for bit in range(end if one or other else WORD))]
                words += [Instruction(opcode, values, (Wait(unit, 1),) * 3).encode() for unit in (
                    Unit.LOAD, Unit.STORE, Unit.WEIGHTS)]    # a bit of a unit's number each
    return list(dict.fromkeys(words))


def packed(one, fields):
    """Some of an instruction's fields, one behind the other."""
    value = position = 0
    for field in fields(one.opcode):
        value |= (one[field.name] & (1 << field.width) - 1) << position
        position += field.width
    return value


def test_fields_are_offered_or_held():
    """Every field is one or both, but one that only the rules use."""
    for unit in UNITS:
        own = {field.name for field in FIELDS[Opcode(unit)]}
        now, later = ({field.name for field in fields(Opcode(unit), EXTRAS)}
                      for fields in (offered_fields, held_fields))
        assert now | later == {field.name for fields in (offered_fields, held_fields) for field in fields(
            Opcode(unit))} | own & {name for names in EXTRAS.values() for name in names}
        assert own - (now | later) == ({"last"} if unit == Unit.MULTIPLY else set())
        assert (later == set()) == (unit in HOLDING)


def simulate(bench, system=SYSTEM):
    issue = Issue.of(system)

    async def started(ctx):
        await bench(ctx, issue)
    sim = Simulator(issue)
    sim.add_clock(1e-6)
    sim.add_testbench(started)
    sim.run()


@pytest.mark.parametrize("system", sweep(3, [DRAWING, SYSTEM, WIDE]))
def test_illegal_is_what_the_instruction_set_says(system):
    """Nothing is taken in the meantime, so that the same decoder sees all words."""
    rng = np.random.default_rng(1)

    async def bench(ctx, issue):
        ctx.set(issue.instructions, 100)
        ctx.set(issue.i.valid, 1)
        seen = set()
        for word in words(rng, 2000):
            ctx.set(issue.i.payload, word)
            good = legal(word, system)
            assert ctx.get(issue.illegal) == (not good), hex(word)
            assert ctx.get(issue.i.ready) == good
            seen.add((word & 15, good))
        assert seen >= {(int(opcode), good) for opcode in Opcode for good in (False, True)}
    simulate(bench, system)


class Decode(Component):
    """What is said of a word, without queues."""
    kind = module = "decode"

    @dataclass(frozen=True)
    class Parameters:
        system: Accelerator

    @staticmethod
    def ports(params):
        return {"word": In(WORD), "wrong": Out(1)}

    def body(self, platform):
        m = Module()
        m.d.comb += self.wrong.eq(illegal(m, self.word, sizes(self.params.system)))
        return m


@pytest.mark.parametrize("system", [DRAWING, SYSTEM, WIDE])
def test_every_bit_of_every_instruction_is_looked_at(system):
    decoder = Decode(system)

    async def bench(ctx):
        seen = set()
        for word in turned(system):
            ctx.set(decoder.word, word)
            good = legal(word, system)
            assert ctx.get(decoder.wrong) == (not good), hex(word)
            seen.add((word & 15, good))
        assert seen >= {(int(opcode), good) for opcode in Opcode for good in (False, True)}
    sim = Simulator(decoder)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("seed", sweep(3, range(3)))
def test_units_get_theirs_in_order_and_no_sooner_than_their_waits_hold(seed):
    """Units of random speed; a program whose waits name what stands before them; HALT or YIELD is last."""
    end = ENDS[seed % 2]
    rng = np.random.default_rng(seed)
    program, given = [], dict.fromkeys(UNITS, 0)
    for _ in range(120):
        opcode = Opcode(rng.choice([code for code in Opcode if code not in ENDS]))
        waits = []
        for unit in rng.choice(UNITS, int(rng.integers(0, 4))):
            waits.append(Wait(Unit(unit), max(0, given[Unit(unit)] - int(rng.integers(0, 2)))))
        program.append(Instruction(opcode, simple(opcode, rng), tuple(waits)))
        given[program[-1].unit] += 1
    program.append(Instruction(end, {}))
    queued = {unit: [one for one in program if one.unit == unit] for unit in UNITS}
    program.append(Instruction(Opcode.HALT, {}))    # after that nothing is taken

    async def bench(ctx, issue):
        ctx.set(issue.instructions, len(program))
        counts, works, last, place = dict.fromkeys(UNITS, 0), dict.fromkeys(UNITS), {}, 0
        for _ in range(6000):
            give = rng.random() < 0.8 and place < len(program)
            ctx.set(issue.place, place)
            ctx.set(issue.i.valid, int(give))
            ctx.set(issue.i.payload, program[min(place, len(program) - 1)].encode())
            for unit in UNITS:
                stream = issue.to(unit).instruction
                finishes = works[unit] is not None and rng.random() < 0.2
                ctx.set(stream.ready, int(works[unit] is None))
                ctx.set(issue.to(unit).done, int(finishes))
                if finishes:
                    works[unit] = None
            assert not ctx.get(issue.illegal) and not ctx.get(issue.beyond)
            taken, completed = ctx.get(issue.taken), ctx.get(issue.completed)
            for unit in UNITS:
                if not taken >> unit - 1 & 1:
                    continue
                one, stream = queued[unit].pop(0), issue.to(unit).instruction
                assert all(counts[wait.unit] >= wait.count for wait in one.waits)
                assert (ctx.get(issue.nop) >> unit - 1 & 1) == (one.opcode == Opcode.NOP)
                if one.opcode != Opcode.NOP:
                    assert ctx.get(bits(stream.payload)) == packed(one, offered_fields)
                    works[unit] = last[unit] = one
            for unit, one in last.items():    # taken in this cycle: held from the next one on
                if not taken >> unit - 1 & 1 and unit not in HOLDING:
                    assert ctx.get(bits(issue.to(unit).held)) == packed(one, held_fields)
            assert not ctx.get(issue.paused if end == Opcode.HALT else issue.halted)
            if ctx.get(issue.halted) or ctx.get(issue.paused):
                assert place == len(program) - 1 and not any(queued.values()) and not any(works.values())
                return
            place += ctx.get(issue.takes)
            assert ctx.get(issue.takes) == (ctx.get(issue.i.ready) and give)
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
            ctx.set(issue.place, len([each for each in seen if each[1]]))
            seen.append((ctx.get(issue.place), ctx.get(issue.i.ready), ctx.get(issue.beyond)))
            await ctx.tick()
        assert seen == [(0, 1, 0), (1, 1, 0), (2, 0, 1), (2, 0, 1)]
    simulate(bench)
