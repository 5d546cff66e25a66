# amaranth: UnusedElaboratable=no
"""The vector unit's programs equal golden.vector.unit, element by element, and golden.vector.cycles, cycle by cycle.

Covers: rtl/vector/dropping.py, rtl/vector/fetches.py, rtl/vector/lane.py, rtl/vector/line.py, rtl/vector/several.py,
rtl/vector/totals.py, rtl/vector/waits.py.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from amaranth.back.verilog import convert
from amaranth.sim import Simulator

import golden.vector.programs as programs
from golden.spec.vector import (
    CONSTANTS,
    POSTS,
    SCALARS,
    STREAM,
    Kind,
    Op,
    Operand,
    Reduce,
    Source,
    Target,
    VectorInstruction,
    VectorUnit,
)
from golden.vector.cycles import cycles, schedule
from golden.vector.unit import Machine, ReservedInstruction, check
from rtl.vector.lane import VectorLane
from rtl.vector.unit import VECTOR_UNITS, Vector
from tests.cases import slow, sweep
from tests.golden.vector.test_unit import RESERVED
from tests.rtl.vector_model import VectorModel

SMALL = VectorUnit(lanes=2, beats=8, functions=("exp", "recip", "rsqrt"), pipeline=1)
BARE = VectorUnit(lanes=1, beats=9, registers=4, functions=())
#: With all functions.
FULL = [VectorUnit(lanes=lanes, beats=128 // lanes, pipeline=3) for lanes in (2, 4)]
#: Lanes that share evaluators, two each and all four.
SHARED = [VectorUnit(lanes=4, beats=4, registers=2, functions=("exp", "rsqrt"), pipeline=pipeline, function_lanes=few)
          for pipeline, few in ((2, 2), (0, 1))]
#: Registers of one port: rows of an odd number of beats, of one, and lanes that share evaluators.
SINGLE = [VectorUnit(lanes=2, beats=7, registers=3, functions=("exp", "rsqrt"), pipeline=1, single=True),
          VectorUnit(lanes=4, beats=1, registers=2, functions=("exp",), pipeline=0, single=True),
          VectorUnit(lanes=4, beats=4, registers=2, functions=("exp",), pipeline=2, function_lanes=2, single=True)]
#: One copy of the registers, in two banks or with two ports.
COPY_OF_ALL = [replace(SINGLE[0], register_copies=1), replace(SINGLE[2], registers=4, single=False, register_copies=1)]
#: Registers inside products and sums, and as many inside functions as fit: one copy of registers of one port, none of
#: functions, and evaluators that lanes share or do not.
DEEP = [VectorUnit(lanes=4, beats=4, registers=2, functions=("exp", "log", "gelu"), pipeline=12, function_lanes=2,
                   product=1, sum=2),
        VectorUnit(lanes=2, beats=7, registers=3, functions=("exp", "rsqrt"), pipeline=7, single=True,
                   register_copies=1, sum=1),
        VectorUnit(lanes=2, beats=8, registers=2, functions=("exp", "log", "gelu"), pipeline=12, product=2),
        VectorUnit(lanes=1, beats=7, registers=3, functions=(), product=5, sum=7)]
RNG = np.random.default_rng(11)


#: Zeros, subnormals, the smallest and largest numbers, infinities, NaN.
SPECIAL = np.array([0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000], np.uint32)


def rows(count, length, special=0.0, rng=RNG):
    """Ordinary numbers, a share of them replaced by special ones of either sign."""
    x = (rng.normal(size=(count, length)) * 2).astype(np.float32).view(np.uint32)
    other = rng.choice(SPECIAL, x.shape) | rng.choice(np.array([0, 1 << 31], np.uint32), x.shape)
    return list(np.where(rng.random(x.shape) < special, other, x))


def chance(share):
    return RNG.random() >= share


@lru_cache(4)
def simulator(unit):
    """A unit, its simulation, and a list of what it runs, once it has been used: to make one takes seconds."""
    dut, runs = Vector.made(unit), []

    async def bench(ctx):
        await runs[0](ctx)

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    return dut, sim, runs


def simulate(unit, program, data, length, idle=0.0, stall=0.0, arguments=(), seed=0):
    """Rows given, cycle of each instruction's acceptance, error flag; in Amaranth's simulator."""
    (dut, sim, runs), out, accepted = simulator(unit), [], []
    words = [item.encode() if isinstance(item, VectorInstruction) else item for item in program]
    padded = np.zeros((len(data), -(-length // unit.lanes) * unit.lanes), dtype=np.uint32)
    for target, row in zip(padded, data, strict=True):
        target[:length] = row
    beats = [int.from_bytes(beat.tobytes(), "little") for beat in padded.reshape(-1, unit.lanes)]
    error = False

    async def bench(ctx):
        nonlocal error
        taken, offered, wait = 0, False, 0
        for number, value in enumerate(arguments):
            ctx.set(dut.arguments[number], value)
        if unit.dropping:
            ctx.set(dut.seed, seed)
        for cycle in range(200 * (len(words) + len(beats))):
            ready = chance(stall)
            offered = taken < len(beats) and (offered or chance(idle))
            ctx.set(dut.i_program.valid, len(accepted) < len(words))
            ctx.set(dut.i_program.payload, words[min(len(accepted), len(words) - 1)])
            ctx.set(dut.i.valid, offered)
            ctx.set(dut.i.payload.as_value(), beats[taken] if offered else 0)
            ctx.set(dut.o.ready, ready)
            if ctx.get(dut.o.valid) and ready:
                value = ctx.get(dut.o.payload.as_value())
                out.extend(value >> 32 * lane & 0xFFFFFFFF for lane in range(unit.lanes))
            step = ctx.get(dut.i_program.ready) and len(accepted) < len(words)
            moved = offered and ctx.get(dut.i.ready)
            await ctx.tick()
            if step:
                accepted.append(cycle)
            if moved:
                taken, offered = taken + 1, False
            wait = 0 if ctx.get(dut.busy) else wait + 1
            error = error or bool(ctx.get(dut.error))
            if error or len(accepted) == len(words) and wait:
                break
        if not error:
            assert (len(accepted), taken) == (len(words), len(beats))

    if runs:
        sim.reset()
    runs[:] = [bench]
    sim.run()
    return list(np.array(out, dtype=np.uint32).reshape(-1, padded.shape[1])[:, :length]), accepted, error


def compare(got, want):
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


#: Name -> (program for a row length, rows that it reads).
PROGRAMS = {
    "bias": (lambda n: programs.load_row(0) + programs.bias_activation("relu"), 2),
    "softmax": (lambda n: programs.softmax(), 1),
    "relu gradient": (lambda n: programs.relu_gradient(), 2),
    "layer norm": (lambda n: programs.load_row(6) + programs.load_row(7) + programs.layer_norm(n), 3),
    "layer norm gradient": (lambda n: programs.load_row(1) + [     # all rows of one length here
        each for each in programs.layer_norm_gradient(n) if each.kind != Kind.LENGTH], 5),
    "log softmax gradient": (lambda n: programs.log_softmax_gradient(), 2),
    "sgd": (lambda n: programs.sgd(0.1, 0.9), 3),
    "adam's moments": (lambda n: programs.adam_moments(), 3),
    "adam": (lambda n: programs.adam_step(0.01, 3), 3),
}
FUNCTION_PROGRAMS = {
    "gelu gradient": (lambda n: programs.gelu_gradient(), 2),
    "activations": (lambda n: [programs.vector(to="out", post=post) for post in
                               ("gelu", "silu", "tanh", "sigmoid", "relu", "log", "exp", "none")], 8),
}


@pytest.mark.parametrize("name, length, idle, stall", sweep(3, [
    (name, *pace) for name in PROGRAMS for pace in ((16, 0, 0), (13, 0.5, 0.5))]))
def test_program_equals_golden(name, length, idle, stall):
    make, count = PROGRAMS[name]
    program, data = [programs.length(length), *make(length)], rows(count, length)
    got, _, error = simulate(SMALL, program, data, length, idle, stall)
    compare(got, Machine(SMALL).run(program, data))
    assert got and not error


def test_special_values_pass_every_step():
    program = [programs.length(9), *(programs.vector(to=n) for n in (0, 1))]
    for op in Op:
        for post in ("none", "relu"):
            program.append(programs.vector(programs.register(0), programs.register(1), op=op, post=post, to="out"))
    data = [row for source in (SPECIAL, SPECIAL | np.uint32(1 << 31)) for turn in range(9)
            for row in (SPECIAL, np.roll(source, turn))]
    program *= 18
    compare(simulate(BARE, program, data, 9)[0], Machine(BARE).run(program, data))


@pytest.mark.parametrize("unit", [SMALL, BARE])
def test_sum_of_negative_zeros_and_maximum_of_infinities(unit):
    program = [programs.length(5), programs.vector(sum=0), programs.vector(max=1),
               *(programs.vector(programs.scalar(n), to="out") for n in (0, 1))]
    for pattern in (0x80000000, 0xFF800000):
        data = [np.full(5, pattern, np.uint32)] * 2
        want = Machine(unit).run(program, data)
        assert [row[0] for row in want] == [pattern] * 2
        compare(simulate(unit, program, data, 5)[0], want)


def test_unit_without_functions():
    program, data = [programs.length(7), *programs.sgd(0.1, 0.9)], rows(3, 7)
    compare(simulate(BARE, program, data, 7)[0], Machine(BARE).run(program, data))


def check_distances(unit, beats, laws):
    """Cycles from the acceptance of a pass to that of another, which reads no stream; between them may be more.

    Each of the laws (first, second, between, cycles) begins when nothing is in flight.
    """
    idle = programs.length(beats * unit.lanes)
    program = [idle, *(programs.load(n, 1.0) for n in range(4))]
    found = []
    for first, second, between, law in laws:
        found.append((len(program) + 1, len(program) + 2 + len(between), law))
        program += [idle, first, *between, second]
    reads = sum(STREAM in (each.a, each.b, each.c) for each in program if each.kind == Kind.VECTOR)
    _, accepted, error = simulate(unit, program, rows(reads, beats * unit.lanes), beats * unit.lanes)
    assert not error and accepted == schedule(program, unit)[:-1]
    for one, other, law in found:
        assert accepted[other] - accepted[one] == law, (program[one], program[other])


OUT, TO_SCALAR = {"to": "out"}, programs.single(programs.scalar(0), to=1)
TOTAL, COPY, EXP = programs.vector(sum=1), programs.vector(to=1), programs.vector(to=1, post="exp")


@pytest.mark.parametrize("unit, beats", sweep(2, [(unit, beats) for unit in (SMALL, BARE) for beats in (1, 5, 6)]))
def test_a_pass_waits_for_what_it_needs(unit, beats):
    """Both sides of each rule: what waits, and the same without a reason."""
    result, levels = unit.pass_cycles - 1, unit.reduce_cycles - 1
    one, zero = programs.scalar(1), programs.scalar(0)
    laws = [(COPY, programs.vector(programs.register(1), **OUT), max(beats, result + 1)),
            (COPY, programs.vector(programs.register(0), **OUT), beats),
            (COPY, programs.vector(one, to=1), beats),
            (TOTAL, programs.vector(zero, **OUT), beats),
            (TOTAL, programs.vector(one, **OUT), beats + result + levels),
            (TOTAL, programs.vector(zero, sum=1), beats + result + levels),
            (TOTAL, programs.vector(zero, max=2), beats + levels + 1),
            (TOTAL, TO_SCALAR, beats + result + levels),
            (TOTAL, programs.single(zero, to=2), beats + levels + 1),
            (TO_SCALAR, programs.vector(zero, **OUT), 1),
            (TO_SCALAR, programs.vector(one, **OUT), result),
            (TO_SCALAR, programs.vector(zero, sum=1), result),
            (TO_SCALAR, TO_SCALAR, result),
            (TO_SCALAR, programs.single(zero, to=2), 1),
            (COPY, programs.load(2, 2.0), beats + result + 1),
            (TOTAL, programs.length(1), beats + result + levels + 2)]
    check_distances(unit, beats, [(first, second, (), law) for first, second, law in laws])


@pytest.mark.parametrize("unit, beats", sweep(3, [(unit, beats) for unit in SHARED for beats in (4, 1)]))
def test_passes_with_functions_that_lanes_share(unit, beats):
    """A pass without a function comes behind the results of one with; one with a function keeps its pace."""
    turns, levels, result, delay = unit.function_turns, unit.reduce_cycles - 1, 4, unit.function_delay
    assert delay == unit.pipeline + turns - 1 and unit.plain_cycles == result + 1
    last = (beats - 1) * turns + 1
    plain, copy = (programs.vector(programs.scalar(0), **OUT) for _ in range(2))
    more = replace(plain, post="exp")
    laws = [(EXP, plain, (), last), (EXP, copy, (plain,), last + delay + beats),
            (EXP, copy, (more,), last + turns - 1 + last),
            (EXP, programs.vector(programs.register(1), **OUT), (), max(last, last + result + delay + 1 - beats)),
            (replace(TOTAL, post="exp"), programs.vector(programs.scalar(0), sum=2), (), last + levels + 1 + delay),
            (replace(TOTAL, post="exp"), replace(TOTAL, a=programs.scalar(0), reduce_index=2, post="exp"), (),
             last + levels + 1),
            (TOTAL, replace(TOTAL, a=programs.scalar(0), reduce_index=2, post="exp"), (),
             beats + max(1, levels + 1 - delay))]
    check_distances(unit, beats, laws)


@pytest.mark.parametrize("beats", sweep(3, range(3, 8)))
def test_a_beat_waits_while_its_bank_of_registers_is_written(beats):
    """Rows that meet do once: beats of the same parity, in one cycle. A pass that reads no register waits for none."""
    unit, result = replace(SINGLE[0], registers=2), SINGLE[0].pass_cycles - 1
    read, other = programs.vector(programs.register(0)), programs.vector(programs.scalar(0))
    meets = result - beats < beats and (result - beats) % 2 == 0
    check_distances(unit, beats, [(COPY, other, (read,), 2 * beats + meets), (COPY, read, (other,), 2 * beats),
                                  (programs.vector(), other, (read,), 2 * beats)])


def check_drawn(unit, seed, count, length, idle, stall):
    """A random program has the golden unit's bits, and without pauses the cycles that it counts."""
    rng = np.random.default_rng(seed)
    program, reads, _ = random_program(rng, unit, count)
    program, data = [programs.length(length), *program], rows(reads, length, 0.1, rng)
    got, accepted, error = simulate(unit, program, data, length, idle, stall)
    compare(got, Machine(unit).run(program, data))
    assert not error
    if not idle and not stall:
        assert accepted == schedule(program, unit)[:-1]


@pytest.mark.parametrize("unit", [COPY_OF_ALL[0], pytest.param(COPY_OF_ALL[1], marks=pytest.mark.slow)])
def test_a_beat_takes_a_cycle_for_each_register_of_one_copy(unit):
    """Each register counts once; with a function that lanes share, words come while its lanes have theirs."""
    unit = replace(unit, registers=3)
    beats, other = 5 if unit.single else 4, programs.vector(programs.scalar(0))
    zero, one, two = map(programs.register, range(3))
    check_distances(unit, beats, [
        (programs.vector(*operands), other, (), cycles) for operands, cycles in (
            ((zero, zero, zero), beats), ((STREAM, zero, one), 2 * beats), ((zero, one, one), 2 * beats),
            ((zero, one, zero), 2 * beats), ((zero, one, two), 3 * beats), ((two, STREAM, one), 2 * beats))])
    check_distances(unit, beats, [(programs.vector(zero, one, post="exp"), other, (),
                                   2 + (beats - 1) * max(2, unit.function_turns))])


@pytest.mark.parametrize("idle, stall, unit", [
    *sweep(3, ((pace, pace, unit) for unit in SINGLE for pace in (0, 0.4))), (0, 0, COPY_OF_ALL[1]),
    *map(slow, ((0, 0, COPY_OF_ALL[0]), (0.4, 0.4, COPY_OF_ALL[0]), (0.4, 0.4, COPY_OF_ALL[1])))])
def test_registers_of_one_port(unit, idle, stall):
    """Bits are those of any unit, and cycles those that the golden unit counts."""
    check_drawn(unit, 6, 20, unit.longest - 1, idle, stall)


def test_reserved_instructions_raise_error_and_change_nothing():
    """After each error is cleared, registers, scalars and length are those of before."""
    unit = VectorUnit(lanes=2, beats=64, functions=("exp",), pipeline=0)
    dut, seen = Vector.made(unit), []
    data = np.arange(1, 129).astype(np.float32).view(np.uint32)
    before = [programs.load(5, 2.5), programs.vector(to=7, sum=3)]
    after = [programs.vector(programs.register(7), to="out"), programs.vector(programs.scalar(5), to="out"),
             programs.vector(programs.scalar(3), to="out")]
    want = Machine(unit).run([*before, *after], [data])

    async def send(ctx, word):
        ctx.set(dut.i_program.payload, word)
        ctx.set(dut.i_program.valid, 1)
        while not ctx.get(dut.i_program.ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(dut.i_program.valid, 0)

    async def bench(ctx):
        for item in before:
            await send(ctx, item.encode())
        ctx.set(dut.i.valid, 1)
        for beat in data.reshape(-1, 2):
            ctx.set(dut.i.payload.as_value(), int.from_bytes(beat.tobytes(), "little"))
            while not ctx.get(dut.i.ready):
                await ctx.tick()
            await ctx.tick()
        while ctx.get(dut.busy):
            await ctx.tick()
        for word, what in RESERVED:
            assert not ctx.get(dut.error)
            await send(ctx, word)
            for _ in range(10):
                assert ctx.get(dut.error) and not ctx.get(dut.busy), what
                assert not ctx.get(dut.i_program.ready) and not ctx.get(dut.i.ready) and not ctx.get(dut.o.valid)
                await ctx.tick()
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
        ctx.set(dut.o.ready, 1)
        for item in after:
            await send(ctx, item.encode())
            while ctx.get(dut.busy):
                if ctx.get(dut.o.valid):
                    seen.append(ctx.get(dut.o.payload.as_value()))
                await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    got = [value >> 32 * lane & 0xFFFFFFFF for value in seen for lane in range(2)]
    assert got == np.concatenate(want).tolist()


@pytest.mark.parametrize("lanes, shared, idle, stall", sweep(2, [
    (4, 2, 0, 0), (8, 2, 0, 0), (2, 2, 0.4, 0.4), (4, 4, 0.3, 0), (1, 1, 0, 0)]))
def test_passes_drop_elements_by_their_place(lanes, shared, idle, stall):
    """Places go on from pass to pass by the step, modulo all of them, whatever waits; passes between that drop nothing
    leave them. So dropping takes no cycle.
    """
    unit = VectorUnit(lanes=lanes, beats=5, registers=2, functions=("exp",), pipeline=1, dropping=True,
                      function_lanes=lanes // shared)
    length, seed, last = 5 * lanes - (lanes > 1), 0x12345678, (1 << 32) // lanes - 1
    drop = programs.vector(b=programs.scalar(0), drop=True, to="out")
    gate = replace(drop, a=programs.register(0), b=STREAM, op=Op.GATE)

    def program(drop, gate):
        return [programs.length(length), programs.load(0, 4 / 3), programs.dropping(0xC0FFEE, 1 << 14),
                programs.place(last - 2, 7), drop, replace(drop, post="exp"), replace(drop, drop=False), drop,
                programs.vector(to=0), gate, programs.place(77, 3), drop, drop, programs.dropping(1, 1 << 16), drop,
                programs.dropping(2, 0), drop, programs.dropping(3, (1 << 16) - 1), drop]
    data = rows(11, length, special=0.1)
    machine = Machine(unit)
    machine.seed = seed
    want = machine.run(program(drop, gate), data)
    got, accepted, error = simulate(unit, program(drop, gate), data, length, idle, stall, seed=seed)
    assert not error and (np.array(want) != np.array(data)[[*range(4), *range(5, 11)]]).any()
    compare(got, want)
    if not idle and not stall:
        keeps = [replace(each, drop=False) for each in program(drop, gate)]
        assert accepted == simulate(unit, keeps, data, length)[1]


def test_a_unit_without_dropout_refuses_its_words():
    drops = VectorUnit(lanes=2, beats=2, functions=(), dropping=True)
    words = [Kind.KEY << 60, Kind.PLACE << 60, programs.vector(drop=True).encode()]
    for word in words:
        assert simulate(replace(drops, dropping=False), [word], [], 2)[2]
        with pytest.raises(ReservedInstruction, match="^VectorInstruction 0x[0-9A-F]* is reserved: (kind|unused "
                                                               "bits)$"):
            check(word, replace(drops, dropping=False))
        assert not simulate(drops, [word], rows(1, 2) if word == words[2] else [], 2)[2]
    for word in (Kind.KEY << 60 | 1 << 49, Kind.KEY << 60 | 1 << 59, words[2] | 1 << 40,
                 replace(programs.single(programs.scalar(0), to=0), drop=True).encode()):
        assert simulate(drops, [word], [], 2)[2]
        with pytest.raises(ReservedInstruction, match="^VectorInstruction 0x[0-9A-F]* is reserved: unused bits$"):
            check(word, drops)


def test_scalars_from_outside():
    """What is there when a word is taken, which takes a cycle; words of no meaning are errors."""
    unit = VectorUnit(lanes=2, beats=2, functions=(), arguments=5)
    program = [programs.length(2), programs.argument(3, 5), programs.argument(4, 1),
               programs.vector(programs.scalar(3), b=programs.scalar(4), to="out")]
    values = [0x40000000, 1, 2, 3, 0x40400000]
    got, accepted, error = simulate(unit, program, [], 2, arguments=values)
    assert not error and [each.tolist() for each in got] == [[0x40C00000] * 2] and accepted == [0, 1, 2, 3]
    for bits in (0, 6, 15, 1 << 4 | 1, 1 << 31 | 1, 1 << 36 | 1, 1 << 59 | 1):
        assert simulate(unit, [Kind.ARGUMENT << 60 | bits], [], 2)[2]


def test_missing_function_is_reserved_in_hardware():
    for name, error in (("exp", False), ("tanh", True)):
        assert simulate(SMALL, [programs.length(2), *programs.activation(name)], rows(1, 2), 2)[2] == error


@pytest.fixture(scope="module", params=sweep(2, FULL), ids=["2 lanes", "4 lanes"])
def model(request):
    return VectorModel(request.param)


@pytest.mark.cosim
@pytest.mark.parametrize("name", [*PROGRAMS, *FUNCTION_PROGRAMS])
def test_verilog_equals_golden(model, name):
    make, count = (PROGRAMS | FUNCTION_PROGRAMS)[name]
    for length, idle, stall in ((128, 0, 0), (61, 0.4, 0.4), (3, 0, 0.7), (64, 0.7, 0)):
        program, data = [programs.length(length), *make(length)], rows(count, length)
        want = Machine(model.unit).run(program, data)
        got, taken, error = model(program, data, len(want), length, idle, stall)
        compare(got, want)
        assert not error
        if not idle and not stall:
            assert taken == cycles(program, model.unit)
        else:
            assert taken >= cycles(program, model.unit)


def random_program(rng, unit, steps, few=SCALARS):
    """Any legal instructions, and how many rows they read and give; all passes but the first have ``few`` scalars."""
    program = [VectorInstruction(kind=Kind.SET, target_index=n, immediate=int(bits)) for n, bits in
               enumerate((rng.normal(size=SCALARS) * 3).astype(np.float32).view(np.uint32))]
    program += [programs.vector(to=n) for n in range(unit.registers)]
    for _ in range(steps):
        once = rng.random() < 0.2
        sources = (Source.CONSTANT, Source.SCALAR) if once else tuple(Source)
        count = {Source.CONSTANT: len(CONSTANTS), Source.REGISTER: min(few, unit.registers), Source.SCALAR: few,
                 Source.STREAM: 1}
        a, b, c = (Operand(source, int(rng.integers(count[source]))) for source in rng.choice(sources, 3))
        target = Target.SCALAR if once else rng.choice([Target.NONE, Target.REGISTER, Target.STREAM])
        program.append(VectorInstruction(
            kind=Kind.SCALAR if once else Kind.VECTOR, a=a, b=b, c=c, op=Op(rng.integers(len(Op))),
            negate_a=bool(rng.integers(2)), negate_c=bool(rng.integers(2)), post=POSTS[rng.choice(unit.posts)],
            target=Target(target), target_index=int(rng.integers(min(few, unit.registers))),
            reduce=Reduce.NONE if once else Reduce(rng.integers(len(Reduce))), reduce_index=int(rng.integers(few))))
    program += [programs.vector(programs.register(n), to="out") for n in range(unit.registers)]
    program += [programs.vector(programs.scalar(n), to="out") for n in range(SCALARS)]
    reads = sum(Source.STREAM in (i.a.source, i.b.source, i.c.source) for i in program
                if i.kind == Kind.VECTOR)
    return program, reads, sum(i.kind == Kind.VECTOR and i.target == Target.STREAM for i in program)


@pytest.mark.parametrize("unit, idle, stall", sweep(3, [(unit, pace, pace) for unit in SHARED for pace in (0, 0.4)]))
def test_lanes_that_share_evaluators(unit, idle, stall):
    """Bits are those of the golden unit, which knows of no evaluators, and cycles those that it counts."""
    check_drawn(unit, 5, 10, 13, idle, stall)
    if not idle and not stall:
        latencies = Vector.made(unit).latencies
        assert (latencies["pass"], latencies["reduce"]) == (unit.plain_cycles, unit.reduce_cycles)
        assert latencies["pass"] + latencies["function"] == unit.pass_cycles
        assert latencies["turns"] == unit.function_turns


@pytest.mark.parametrize("unit, idle, stall", sweep(3, [(unit, pace, pace) for unit in DEEP for pace in (0, 0.4)]))
def test_registers_inside_all_steps(unit, idle, stall):
    check_drawn(unit, 7, 10, min(13, unit.longest), idle, stall)


def test_a_beat_that_is_added_up_takes_the_cycles_of_an_adder():
    """So does each level of the tree, and what is not added up none of them."""
    unit, beats = replace(DEEP[1], single=False, register_copies=3, functions=(), sum=2), 5
    zero, one = programs.vector(programs.scalar(0), **OUT), programs.vector(programs.scalar(1), **OUT)
    total, result, turns = programs.vector(sum=1), 7 - 1, 3
    last = (beats - 1) * turns + 1
    assert (unit.pass_cycles, unit.reduce_turns, unit.reduce_cycles) == (result + 1, turns, 2 * turns)
    check_distances(unit, beats, [
        (total, zero, (), last), (replace(total, reduce=Reduce.MAX), zero, (), last),
        (programs.vector(**OUT), zero, (), beats), (total, one, (), last - 1 + result + 2 * turns),
        (total, programs.vector(programs.scalar(0), sum=2), (), last + 2 * turns)])


def check_random(model, seeds):
    """Short and long rows, few and many scalars and registers; cycles, where nothing pauses."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        program, reads, gives = random_program(rng, model.unit, 40, (2, 4, SCALARS)[seed % 3])
        length = int(rng.integers(1, model.unit.longest // (1, 2, 8)[seed // 3 % 3] + 1))
        program, data = [programs.length(length), *program], rows(reads, length, 0.1 * (seed % 3), rng)
        want = Machine(model.unit).run(program, data)
        assert len(want) == gives
        pauses = rng.choice([0, 0.5], 2)
        got, taken, _ = model(program, data, gives, length, *pauses, seed + 1)
        compare(got, want)
        assert taken == cycles(program, model.unit) or pauses.any()


@pytest.mark.cosim
def test_random_programs_equal_golden(model):
    check_random(model, range(20))


@pytest.mark.slow
@pytest.mark.cosim
def test_many_random_programs_equal_golden(model):
    check_random(model, range(1000, 2000))


def test_units_by_name():
    assert set(VECTOR_UNITS) == {"vector", "vector.lean"}
    assert VECTOR_UNITS["vector"](lanes=2).params.lanes == 2
    assert VECTOR_UNITS["vector.lean"]().params.functions == ("exp", "recip", "rsqrt")
    assert Vector.made(SMALL).module == "hbfp_vector_l2_b8_r8_exp_recip_rsqrt_p1"
    assert VectorLane.Parameters(BARE.functions, BARE.pipeline).latency == 2


def test_lanes_multiply_as_they_are_told():
    for multiplier in ("plain", "recoded"):
        text = convert(VectorLane(multiplier=multiplier, functions=()), name="lane")
        assert (" * " in text) == (multiplier == "plain")


@pytest.mark.slow    # that the units have the same bits: tests/rtl/fp32/test_units.py
def test_recoded_products_change_no_bit():
    """Of lanes, and of the evaluator that they share."""
    unit = VectorUnit(lanes=2, beats=4, functions=("exp", "recip"), pipeline=1, function_lanes=1, multiplier="recoded")
    program, data = [programs.length(7), *programs.softmax()], rows(1, 7, 0.1)
    compare(simulate(unit, program, data, 7)[0], Machine(unit).run(program, data))


#: Units that take several rows of one beat in a pass; a pass over as many as fit, and one of two.
SEVERAL = [VectorUnit(lanes=4, beats=8, functions=("exp", "log", "rsqrt"), pipeline=2, short_rows=7),
           VectorUnit(lanes=4, beats=8, functions=("exp", "log", "rsqrt"), pipeline=1, function_lanes=2, short_rows=8),
           VectorUnit(lanes=2, beats=4, functions=("exp", "log", "rsqrt"), pipeline=1, short_rows=3),
           VectorUnit(lanes=4, beats=8, functions=("exp", "log", "rsqrt"), pipeline=7, short_rows=7, product=1, sum=2)]


@pytest.mark.parametrize("unit, few", sweep(5, [(unit, few) for unit in SEVERAL for few in (False, True)]))
def test_several_rows_equal_golden_and_the_model(unit, few):
    """Sums and maxima of each row, steps on scalars of each, and those that are set; then one row of a pass again."""
    count, length = (2, unit.lanes) if few else (unit.short_rows, unit.lanes - 1)
    program, data = [programs.load(8, 1 / length), programs.load(9, 1e-5), programs.length(length, count)], []
    for made, taken in ((programs.log_softmax(), 1), (programs.log_softmax_gradient(), 2),
                        (programs.layer_norm_plain(length), 1)):
        program += [each for each in made if not each.immediate]
        data += rows(taken, count * unit.lanes, 0.1)
    got, accepted, error = simulate(unit, program, data, count * unit.lanes, *((0, 0) if few else (0.3, 0.3)))
    within = np.tile(np.arange(unit.lanes) < length, count)
    compare([each[within] for each in got], [each[within] for each in Machine(unit).run(program, data)])
    assert len(got) == 3 and not error
    if few:
        want = schedule(program, unit)[:-1]
        assert [each - accepted[0] for each in accepted] == [each - want[0] for each in want]


def test_a_scalar_of_rows_is_one_number_again():
    """Set, or put by a pass over one row: kept by no row, also where it was put for several in between."""
    unit, one, two = SEVERAL[0], programs.length(4), programs.length(4, 2)
    give = [programs.vector(programs.scalar(0), c=programs.scalar(1), to="out")]
    program = [programs.load(0, 1.0), programs.load(1, 2.0), two, *give, programs.vector(sum=0), *give,
               programs.load(0, 5.0), *give, programs.vector(sum=0), one,
               programs.vector(programs.scalar(1), sum=0), two,
               *give,
               programs.single(programs.scalar(0), c=programs.scalar(1), to=0), *give]
    data = rows(2, 8)
    got, _, error = simulate(unit, program, data, 8)
    compare(got, Machine(unit).run(program, data))
    assert len(got) == 5 and not error


@pytest.mark.parametrize("word", [programs.length(5, 2), programs.length(4, 1), programs.length(4, 8),
                                  programs.length(0, 2)])
def test_reserved_lengths_of_several_rows(word):
    unit = replace(SEVERAL[0], functions=())
    assert simulate(unit, [word], [], 4)[2]
    with pytest.raises(ReservedInstruction):
        check(word.encode(), unit)
