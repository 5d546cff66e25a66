# amaranth: UnusedElaboratable=no
"""Vector runs its programs on rows of V as the golden vector unit does, and loses no cycle to memory.

Covers: rtl/accelerator/slots.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from golden.spec.vector import STREAM as ROW
from golden.spec.vector import (
    Kind,
    Op,
    Reduce,
    Source,
    Target,
    VectorInstruction,
    VectorUnit,
    constant,
    field_values,
    register,
    scalar,
)
from golden.vector import programs
from golden.vector.unit import Machine
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator
from rtl.accelerator.vector import VectorOnV
from rtl.vector.unit import Vector
from tests.cases import slow, sweep

from ..drive import Pauses, pack
from .served import Memory, Served, word

LANES, WORDS, REGISTERS = 8, 4, 3
SYSTEM = Accelerator(core=Design(rows=LANES, format=HBFPFormat(block=(1, LANES))), row_words=WORDS,
                     vector_rows=REGISTERS)


#: What makes units have registers.
FPGA = replace(SYSTEM.core, pipeline=4, fabric="fpga")


class Plain(VectorOnV):
    """Around a unit without functions, which simulates quickly."""

    def unit(self):
        return Vector.made(plain(self.params.unit))


def plain(unit):
    """A vector unit without functions."""
    return replace(unit, functions=())


class Rows(Memory):
    """Words of V: finite numbers."""

    def __init__(self):
        super().__init__(32 * LANES)

    def __missing__(self, address):
        bits = np.random.default_rng(address).normal(size=LANES).astype(np.float32).view(np.uint32)
        self[address] = sum(int(value) << 32 * lane for lane, value in enumerate(bits))
        return self[address]


def walk(base, inner, step, words):
    """Addresses of the words of a row."""
    inner = inner or 256
    return [(base + w % inner + w // inner * step) % 2 ** 18 for w in range(words)]


def execute(i, program, machine, memory):
    """Writes of an instruction: (address, word), in their order; the machine's state goes on."""
    writes = []
    iterations = [(program[:i["before"]], 0, 0)] if i["before"] else []
    iterations += [(program[i["before"]:], i1, i0) for i1, i0 in np.ndindex(i["count1"], i["count0"]) if i["body"]]
    for words, i1, i0 in iterations:
        reads = given = 0
        for instruction in words:
            f = field_values(instruction)
            length = machine.rows or -(-machine.length // LANES)
            inputs = []
            if f["kind"] == Kind.VECTOR and Source.STREAM in (f["a_source"], f["b_source"], f["c_source"]):
                slot = "i0" if i["taps"] else f"i{min(reads, 2)}"
                base = i[f"{slot}_base"] + i0 * i[f"{slot}_stride0"] + i1 * i[f"{slot}_stride1"]
                if i["taps"]:
                    inner = i["i1_inner"] or 256
                    base += reads % inner * i["i1_step"] + reads // inner * i["i1_stride0"]
                row = [memory[a] >> 32 * lane & 2 ** 32 - 1
                       for a in walk(base, i[f"{slot}_inner"], i[f"{slot}_step"], length) for lane in range(LANES)]
                inputs.append(np.array(row[:machine.span], np.uint32))
                reads += 1
            for result in machine.run([instruction], inputs):
                slot = f"o{min(given, 1)}"
                given += 1
                base = i[f"{slot}_base"] + i0 * i[f"{slot}_stride0"] + i1 * i[f"{slot}_stride1"]
                whole = np.zeros(length * LANES, np.uint32)
                whole[:len(result)] = result
                if machine.rows:
                    whole.reshape(-1, LANES)[:, machine.length:] = 0
                for n, address in enumerate(walk(base, i[f"{slot}_inner"], i[f"{slot}_step"], length)):
                    writes.append((address, pack(SHAPE, value=whole[n * LANES:(n + 1) * LANES])))
    return writes


SHAPE = Plain.of(SYSTEM).read.data.shape()
SET_UP = [VectorInstruction(kind=Kind.LENGTH, immediate=LANES * WORDS).encode(),
          *(VectorInstruction(a=constant(1), target=Target.REGISTER, target_index=n).encode()
            for n in range(REGISTERS)),
          *(VectorInstruction(kind=Kind.SET, target_index=n, immediate=0x3F000000 + n).encode() for n in range(16))]


def a_length(rng, whole):
    """A random length; of whole words where registers are written, since a pass spoils what its last word has more."""
    length = LANES * int(rng.integers(1, WORDS + 1))
    return VectorInstruction(kind=Kind.LENGTH, immediate=length if whole else int(rng.integers(1, length + 1))).encode()


def a_word(rng, whole):
    """A random instruction of the unit."""
    if rng.random() < 0.15:
        return a_length(rng, whole)
    kind = Kind.SCALAR if rng.random() < 0.15 else Kind.VECTOR

    def operand():
        choices = [constant(int(rng.integers(3))), scalar(int(rng.integers(16)))]
        if kind == Kind.VECTOR:
            choices += [register(int(rng.integers(REGISTERS))), ROW, ROW]
        return choices[rng.integers(len(choices))]
    if kind == Kind.SCALAR:
        return VectorInstruction(kind=kind, a=operand(), b=operand(), c=operand(), op=Op(int(rng.integers(3))),
                                 target=Target.SCALAR, target_index=int(rng.integers(16))).encode()
    target = Target(int(rng.choice([0, 1, 3, 3] if whole else [0, 3])))
    return VectorInstruction(a=operand(), b=operand(), c=operand(), op=Op(int(rng.integers(3))), target=target,
                             target_index=int(rng.integers(REGISTERS)) if target == Target.REGISTER else 0,
                             reduce=Reduce(int(rng.integers(3))), reduce_index=int(rng.integers(16))).encode()


def some(rng):
    """A random instruction and its program."""
    before, body = int(rng.integers(0, 4)), int(rng.integers(0, 7))
    before = before or not body
    i = {"before": int(before), "body": body, "count0": int(rng.integers(1, 4)), "count1": int(rng.integers(1, 4)),
         "taps": int(rng.random() < 0.3)}
    for slot in ("i0", "i1", "i2", "o0", "o1"):
        i |= {f"{slot}_base": int(rng.choice([0, 65535, rng.integers(65536)])), f"{slot}_inner": int(rng.integers(4)),
              **{f"{slot}_{name}": int(rng.integers(-50, 51)) for name in ("step", "stride0", "stride1")}}
    if i["taps"]:
        i |= {"i1_base": 0, "i1_stride1": 0}
    whole = rng.random() < 0.5
    program = [a_word(rng, whole) for _ in range(int(before) + body)]
    program[0] = program[i["before"] % len(program)] = a_length(rng, whole)
    return i, program


def play(instructions, pause=0.0, seed=0, lanes=LANES, **options):
    """Run instructions; asserts every write; cycles of ``done`` and of the writes."""
    system = replace(SYSTEM, vector_lanes=lanes, **options)
    dut = Plain.of(system)
    bench, memory, machine = Served(dut, 60000), Rows(), Machine(plain(VectorUnit.of(system)))
    programs, want, words, at = {}, [], [], 0
    for i, program in instructions:
        programs |= {at + n: instruction for n, instruction in enumerate(program)}
        words.append(word(Opcode.VECTOR, **i, program=at))
        want += execute(i, program, machine, memory)
        at += len(program)
    bench.read(dut.p, programs, Pauses(pause, seed))
    bench.read(dut.read, memory, Pauses(pause, seed + 1), shared=True)
    writes = bench.write(dut.write)
    given = bench.instructions(Opcode.VECTOR)
    bench.send(given, words)
    done = bench.until_done(len(words))
    bench.run()
    assert [write[1:] for write in writes] == [(address, data, 2 ** LANES - 1) for address, data in want]
    return done, [write[0] for write in writes]


SET_UP_ALL = ({"before": len(SET_UP), "body": 0, "count0": 1, "count1": 1, "taps": 0, **{
    f"{slot}_{name}": 0 for slot in ("i0", "i1", "i2", "o0", "o1")
    for name in ("base", "inner", "step", "stride0", "stride1")}}, SET_UP)


@pytest.mark.parametrize("pause, seed, lanes, options", [
    (0.4, 4, 2, {"memory_banks": 1}), (0.4, 8, 2, {"core": FPGA}), *map(slow, (
        (0.4, 4, 2, {}), (0.2, 6, LANES, {"memory_banks": 1}), (0.0, 0, LANES, {}), (0.0, 1, LANES, {}),
        (0.4, 2, LANES, {}), (0.0, 3, 4, {}), (0.1, 5, 1, {}), (0.0, 7, 2, {"memory_banks": 2}),
        (0.0, 9, LANES, {"core": FPGA}), (0.2, 10, 2, {"core": FPGA}), (0.0, 11, 4, {"core": FPGA})))])
def test_random_programs(pause, seed, lanes, options):
    rng = np.random.default_rng(seed)
    play([SET_UP_ALL, *(some(rng) for _ in range(8))], pause, seed, lanes, **options)


def test_further_passes_take_the_last_slot():
    copy = VectorInstruction(target=Target.STREAM).encode()
    bases = {f"{slot}_base": 100 * n for n, slot in enumerate(("i0", "i1", "i2", "o0", "o1"))}
    play([(dict(SET_UP_ALL[0], before=6, body=6, count0=2, **bases), [copy] * 12)], lanes=2)


@pytest.mark.parametrize("lanes", sweep(2, [2, LANES]))
def test_passes_take_a_beat_a_cycle(lanes):
    """A row of n beats follows the one before in n cycles; the last one leaves the unit ``pass`` cycles later."""
    copy = VectorInstruction(target=Target.STREAM).encode()
    i = dict(SET_UP_ALL[0], before=0, body=1, count0=5, i0_stride0=WORDS, o0_base=1000, o0_stride0=WORDS)
    done, writes = play([(i, [copy])], lanes=lanes)
    each = WORDS * LANES // lanes
    assert [b - a for a, b in zip(writes, writes[WORDS:], strict=False)] == [each] * (4 * WORDS)
    assert done[0] == 2 + 5 * each + 5    # the word of the program, and ``done`` when the unit is idle


def test_passes_with_registers_take_a_cycle_more():
    """A row is asked for a cycle after its pass is taken; the first word of the program comes a cycle later, too."""
    copy = VectorInstruction(target=Target.STREAM).encode()
    i = dict(SET_UP_ALL[0], before=0, body=1, count0=5, i0_stride0=WORDS, o0_base=1000, o0_stride0=WORDS)
    (plain_done, *_), _ = play([(i, [copy])])
    (done, *_), writes = play([(i, [copy])], core=FPGA)
    assert [b - a for a, b in zip(writes, writes[WORDS:], strict=False)] == [WORDS + 1] * (4 * WORDS)
    assert done == plain_done + 1 + 5 + sum(replace(SYSTEM, core=FPGA).vector_registers)


@pytest.mark.parametrize("pause", sweep(2, [0.4, 0.0]))
def test_several_rows_are_a_word_each(pause):
    """Each is filled up with zeros behind its length, and has its own sums; then one row has all its words again."""
    body = [programs.vector(to=0, max=0), programs.vector(register(0), c=scalar(0), negate_c=True, to="out", sum=1),
            programs.single(scalar(1), c=scalar(0), to=2), programs.vector(register(0), scalar(2), to="out")]
    bases = {f"{slot}_base": 100 * n for n, slot in enumerate(("i0", "i1", "i2", "o0", "o1"))}
    bases |= {"i0_step": 5, "i0_inner": 1, "i0_stride0": 40, "o0_inner": 4, "o0_stride0": 4, "o1_stride0": 4}
    instructions = [(dict(SET_UP_ALL[0], before=1, body=4, count0=3, **bases),
                     [each.encode() for each in (before, *body)])
                    for before in (programs.length(5, 3), programs.length(8, 4), programs.length(19),
                                   programs.length(1, 2))]
    play([SET_UP_ALL, *instructions], pause, short_rows=4)


def test_rows_in_flight():
    """Three that are given may be in flight: the next one is taken two cycles after the first of them is written."""
    give = VectorInstruction(a=constant(1), target=Target.STREAM).encode()
    short = VectorInstruction(kind=Kind.LENGTH, immediate=1).encode()
    i = dict(SET_UP_ALL[0], before=1, body=1, count0=6, o0_stride0=1)
    _, writes = play([(i, [short, give])])
    assert [write - writes[0] for write in writes] == [0, 1, 2, 2 + 5, 2 + 5 + 1, 2 + 5 + 2]


def test_a_reserved_word_is_a_fault():
    dut = Plain.of(replace(SYSTEM, vector_lanes=2))
    bench = Served(dut)
    bench.read(dut.p, {0: 0})
    bench.read(dut.read, Memory(1))
    bench.write(dut.write)
    given = bench.instructions(Opcode.VECTOR)
    bench.send(given, [word(Opcode.VECTOR, body=1, count0=1, count1=1)])

    async def watch(ctx):
        for _ in range(10):
            *_, done = await ctx.tick().sample(dut.done)
        assert ctx.get(dut.fault)
    bench.process(watch)
    bench.run()
