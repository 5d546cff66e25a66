"""The accelerator at its buses: transfers against the golden machine, registers, faults, the watch-dog.

Covers: rtl/accelerator/control.py, rtl/accelerator/registers.py, rtl/accelerator/reader.py, rtl/accelerator/writer.py,
rtl/accelerator/fetch.py, rtl/accelerator/load.py, rtl/accelerator/store.py, rtl/accelerator/axi.py,
rtl/accelerator/rotate.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosim.accelerator.device import Device, Timing
from cosim.accelerator.host import halves
from cosim.emit import emit_accelerator
from golden.machine.errors import Fault, MachineError
from golden.machine.machine import Machine
from golden.machine.random_programs import random_program
from hbfp.isa.instructions import Instruction, Opcode, Unit, Wait
from hbfp.isa.registers import BY_NAME, Access, Cause, parameters, registers
from hbfp.program import Program, Region
from tests.cases import sweep
from tests.cosim.accelerator.built import ACCELERATOR, FPGA, LEVEL

pytestmark = pytest.mark.cosim
SYSTEM = ACCELERATOR
SIZE, CODE, BASE, LIMIT = 1 << 17, 0x400, 0x8000, 0x10000
HALT = Instruction(Opcode.HALT, {})


def held(system):
    """An accelerator's Verilog, simulated."""
    manifest, memory = emit_accelerator(system), np.zeros(SIZE, np.uint8)
    return Device(manifest.verilog, manifest.top, beat=system.beat, memory=memory, burst=system.burst, level=LEVEL)


def fresh(device):
    """The same one, as each test begins with it."""
    device.heal()
    device.place(0)
    device.reset()
    device.set_pauses(0)
    device.set_timing(Timing(10, SYSTEM.beat))
    device.memory[:] = np.random.default_rng(0).integers(0, 256, SIZE)
    return device


@pytest.fixture(scope="module")
def opened():
    with held(SYSTEM) as device:
        yield device


@pytest.fixture
def device(opened):
    return fresh(opened)


def write(device, **values):
    for name, value in values.items():
        assert device.write(BY_NAME[name].address, value) == 0


def read(device, *names):
    values = tuple(device.read(BY_NAME[name].address) for name in names)
    return values if len(values) > 1 else values[0]


def start(device, program, place=CODE, first=0, **registers):
    """Put a program into DRAM, among words that nobody understands, and ring the doorbell; words may be numbers.

    The DRAM begins at the address ``first``.
    """
    code = b"".join((one if isinstance(one, int) else one.encode()).to_bytes(64, "little") for one in program)
    device.memory[:BASE // 2] = 0xFF
    device.memory[place:place + len(code)] = np.frombuffer(code, np.uint8)
    device.place(first)
    write(device, **halves(program=first + place, base=first + BASE) | {
        "limit": LIMIT, "instructions": len(program), "watchdog": 3000, "interrupt_enable": 3,
        "interrupt_status": 3} | registers)
    write(device, control=1)


def finish(device, limit=50_000):
    """The status after the interrupt, (done, cause, error_pc)."""
    assert device.run(limit)
    status, cause, number = read(device, "status", "cause", "error_pc")
    assert status in (2, 4) and read(device, "interrupt_status") == status >> 1
    return status == 2, cause, number


def transfer(opcode, waits=(), **values):
    counts = {f"count{n}": 1 for n in range(3)}
    return Instruction(opcode, counts | values, tuple(Wait(*wait) for wait in waits))


def load(waits=(), **values):
    return transfer(Opcode.LOAD, waits, **values)


def store(waits=(), **values):
    return transfer(Opcode.STORE, waits, **values)


def strides(rng, least, counts, unit, spread):
    """Strides of three loops, multiples of a unit, that keep pieces of ``least`` apart; and what all of it reaches."""
    found = []
    for count in counts:
        found.append(least + unit * int(rng.integers(0, spread)))
        least = found[-1] * (count - 1) + least
    return found, least


def copies(rng, count):
    """Loads and stores of words and runs, each after all before it; reads below 0x8000, writes above."""
    words, lanes = SYSTEM.v_words, SYSTEM.lanes
    found = [load(offset=32 * int(rng.integers(0, 500)), count0=words)]
    given = {Unit.LOAD: 1, Unit.STORE: 0}
    for _ in range(count):
        waits = [(unit, done) for unit, done in given.items() if done]
        elements, loads = (int(value) for value in rng.integers(0, 2, 2))
        counts = [int(rng.integers(1, 4)) for _ in range(3)]
        run = int(rng.integers(1, lanes + 1))
        if not elements:
            counts[0] = int(rng.integers(1, 12))
        size, room = (run, words * lanes) if elements and loads else (1, words)
        buffer, far = strides(rng, size, counts, 1, 5 if elements else 1)
        dram, end = strides(rng, 4 * run if elements else 32, counts, 4 if elements else 32, 9 if elements else 1)
        if not elements:    # rows of words lie together
            (buffer[1:], far), (dram[1:], end) = strides(rng, counts[0], counts[1:], 1, 5), strides(
                rng, 32 * counts[0], counts[1:], 32, 30)
        if loads and rng.random() < 0.3:    # backwards, in other words the same
            dram[2] = -dram[2]
        low = (0 if loads else 0x8000) - min(0, dram[2] * (counts[2] - 1))
        values = {"elements": elements, "run": elements * run, "base": int(rng.integers(0, room - far + 1)),
                  "offset": low + (4 if elements else 32) * int(rng.integers(0, (0x7800 - end) // 32))}
        for n in range(3):
            values |= {f"count{n}": counts[n]}
            if elements or n:
                values |= {f"dram{n}": dram[n], f"buffer{n}": buffer[n]}
        unit = Unit.LOAD if loads else Unit.STORE
        found.append((load if loads else store)(waits, **values))
        given[unit] += 1
    return [*found, store([(Unit.LOAD, given[Unit.LOAD])], offset=LIMIT - 32 * words, count0=words), HALT]


@pytest.mark.parametrize("seed, timing, pauses", [
    (0, Timing(1, 64), 0), (1, Timing(40, 24), 0.4), (2, Timing(9, 32), 0), (3, Timing(3, 16), 0.1)])
def test_transfers_are_those_of_the_golden_machine(device, seed, timing, pauses):
    """Every byte of DRAM, and what V holds at the end."""
    rng = np.random.default_rng(seed)
    device.set_timing(timing)
    device.set_pauses(pauses, seed + 1)
    for _ in range(3):
        instructions = copies(rng, 40)
        machine = Machine(Program(accelerator=SYSTEM, instructions=instructions, limit=LIMIT,
                                  memory=[Region(0, device.memory[BASE:BASE + LIMIT].tobytes())]))
        start(device, instructions)
        before = device.memory.copy()
        machine.run()
        assert finish(device) == (True, 0, 0)
        expected = np.frombuffer(machine.dram.get(0, LIMIT), np.uint8)
        assert np.array_equal(device.memory[BASE:BASE + LIMIT], expected)
        assert np.array_equal(np.delete(device.memory, range(BASE, BASE + LIMIT)),
                              np.delete(before, range(BASE, BASE + LIMIT)))
        for unit in (Unit.LOAD, Unit.STORE):
            given = sum(one.unit == unit for one in instructions)
            assert read(device, f"{unit.name.lower()}_completed") == given
        assert read(device, "words_loaded", "words_stored") == moved(instructions)


@pytest.mark.parametrize("first", [
    (1 << 64) - SIZE, 0x5555_5555_5555_5000, 0xAAAA_AAAA_AAAA_A000, (1 << 32) - BASE - 0x1000, 1 << 31])
def test_memory_may_lie_at_any_address(device, first):
    """Programs, loads and stores: each bit of an address is 0 and 1, and some carry into the upper word."""
    instructions = copies(np.random.default_rng(7), 20)
    machine = Machine(Program(accelerator=SYSTEM, instructions=instructions, limit=LIMIT,
                              memory=[Region(0, device.memory[BASE:BASE + LIMIT].tobytes())]))
    start(device, instructions, first=first)
    machine.run()
    assert finish(device) == (True, 0, 0)
    assert np.array_equal(device.memory[BASE:BASE + LIMIT], np.frombuffer(machine.dram.get(0, LIMIT), np.uint8))


@pytest.mark.parametrize("far", [0x5555_5000, 0xAAAA_A000, 0x7FFF_F000, 0xFFFE_F000])
def test_offsets_may_have_any_bits(device, far):
    """What begins far behind the base, up to the limit and not beyond."""
    instructions = copies(np.random.default_rng(8), 20)
    machine = Machine(Program(accelerator=SYSTEM, instructions=instructions, limit=LIMIT,
                              memory=[Region(0, device.memory[BASE:BASE + LIMIT].tobytes())]))
    machine.run()
    there = halves(base=(BASE - far) % (1 << 64)) | {"limit": far + LIMIT}
    start(device, [replace(one, values=one.values | {"offset": one["offset"] + far}) if one.values else one
                   for one in instructions], **there)
    assert finish(device) == (True, 0, 0)
    assert np.array_equal(device.memory[BASE:BASE + LIMIT], np.frombuffer(machine.dram.get(0, LIMIT), np.uint8))
    last = load(offset=far + LIMIT - 32)
    for wrong in (store(offset=far + LIMIT - 32, count0=2), load(offset=far, count1=2, dram1=LIMIT),
                  load(elements=1, run=2, offset=far + LIMIT - 4)):
        assert settled(device, [last, wrong, HALT], **there) == (Cause.ADDRESS, 1)


@pytest.mark.parametrize("bit", range(7, 22))
def test_places_and_strides_may_have_any_bits(device, bit):
    """Where words and elements are, in V, W and P, and how far apart: right, or beyond, as on the golden machine."""
    far, height = 1 << bit, SYSTEM.core.height
    loads = [load(memory=memory, **values) for memory in (0, 2) for values in (
        {"base": far}, {"base": far - 1, "count0": 2}, {"count1": 2, "buffer1": far - (far == 1 << 21)},
        {"count2": 2, "buffer2": -far}, {"base": 7, "count1": 2, "buffer1": 3 - far, "count2": 2, "buffer2": far - 2})]
    loads += [load(memory=1, **values) for values in (
        {"base": far * height % (1 << 22)}, {"count1": 2, "buffer1": -far}, {"count0": 2, "base": far - height})]
    runs = [transfer(opcode, elements=1, run=3, count0=2, dram0=12, **values) for opcode in (Opcode.LOAD, Opcode.STORE)
            for values in ({"base": far, "buffer0": 9}, {"buffer0": -far}, {"buffer0": far // 2 + 5},
                           {"base": 6, "buffer0": far // 2, "count1": 2, "dram1": 64, "buffer1": -far // 2 + 1})]
    for one in [*loads, *runs, store(base=far % (1 << 22)), store(count1=2, buffer1=-far, dram1=32)]:
        one = replace(one, waits=(Wait(Unit.LOAD, 1),), values=one.values | {"offset": 0x1000})
        code = [load(count0=SYSTEM.v_words), one, store([(Unit.LOAD, 1 + (one.unit == Unit.LOAD)),
                                                         (Unit.STORE, int(one.unit == Unit.STORE))],
                                                        offset=0x4000, count0=SYSTEM.v_words), HALT]
        machine = Machine(Program(accelerator=SYSTEM, instructions=code, limit=LIMIT,
                                  memory=[Region(0, device.memory[BASE:BASE + LIMIT].tobytes())]))
        expected = True, 0, 0
        try:
            machine.run()
        except Fault as fault:
            expected = False, fault.cause, fault.pc
        except MachineError:    # modulo 2^18 it would write a word twice
            continue
        start(device, code)
        assert finish(device) == expected, one
        if expected[0]:
            assert np.array_equal(device.memory[BASE:BASE + LIMIT],
                                  np.frombuffer(machine.dram.get(0, LIMIT), np.uint8)), one


@pytest.mark.parametrize("count", [0x155, 0x2AA])
def test_loops_of_any_count(device, count):
    """Each loop of a store and of a load by itself, over one place: beats are counted."""
    for number in range(3):
        once = {f"count{number}": count} | ({"elements": 1, "run": 1} if number == 0 else {})
        start(device, [load(), store([(Unit.LOAD, 1)], **once, offset=0x8000), load(**once), HALT])
        assert finish(device) == (True, 0, 0)
        assert read(device, "words_loaded", "words_stored") == (1 + count, count)


@pytest.mark.parametrize("count", [0x155, 0x2AA, 0x555])
def test_the_number_of_an_instruction_is_told(device, count):
    """Of one that is illegal, and of one that the bus has an error for."""
    nops = [Instruction(Opcode.NOP, {"unit": Unit.VECTOR})] * count
    assert settled(device, [*nops, 10, HALT]) == (Cause.ILLEGAL, count)
    start(device, [*nops, load(), HALT], place=0, base_low=0x1F000)
    device.poison(0x1F000, 0x1F020)
    assert finish(device) == (False, Cause.BUS, count)


def moved(instructions):
    """Beats read and written."""
    beats = {Opcode.LOAD: 0, Opcode.STORE: 0}
    for one in instructions[:-1]:
        for i2, i1, i0 in np.ndindex(*(one[f"count{n}"] for n in (2, 1, 0))):
            first = one["offset"] + i2 * one["dram2"] + i1 * one["dram1"] + i0 * one["dram0"]
            beats[one.opcode] += -(-(first % 32 // 4 + one["run"]) // 8) if one["elements"] else 1
    return tuple(beats.values())


def test_registers_are_those_of_the_map(device):
    """Values, what can be written, what cannot; addresses without a register read as 0."""
    expected = parameters(SYSTEM)
    assert {name: read(device, name) for name in expected} == expected
    rng = np.random.default_rng(0)
    known = {one.address: one for one in registers()}
    written = {one.name: int(rng.integers(0, 2 ** 32)) for one in known.values() if one.access is Access.WRITE}
    write(device, **written)
    for one in known.values():
        if one.access is Access.READ:
            write(device, **{one.name: 0xFFFFFFFF})
    written["interrupt_enable"] &= 3
    assert {name: read(device, name) for name in written} == written
    assert {name: read(device, name) for name in expected} == expected
    assert not any(device.read(address) for address in range(0, 256, 4) if address not in known)
    assert read(device, "status", "control", "cause", "interrupt_status") == (0, 0, 0, 0)


def good(device):
    """A program that copies runs right: the next one after whatever went before."""
    device.heal()
    device.idle(300)
    start(device, [load(count0=20), store([(Unit.LOAD, 1)], offset=0xC000, count0=20), HALT])
    assert finish(device) == (True, 0, 0)
    assert np.array_equal(device.memory[BASE + 0xC000:][:640], device.memory[BASE:][:640])


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("unit", Unit)
def test_a_queue_waits_for_all_that_is_waited_for(device, unit, place):
    """A NOP of every unit waits for three: one of these is a slow load, whose last words the store behind it takes."""
    device.set_timing(Timing(40, 4))
    device.memory[BASE:] = np.random.default_rng(10 * unit + place).integers(0, 256, SIZE - BASE)    # not what V has
    waits = [Wait(Unit.LOAD, 1), Wait(Unit.LOAD, 1)]
    waits.insert(place, Wait(Unit.LOAD, 2))
    start(device, [load(count0=1), load(offset=0x400, base=8, count0=100),
                   Instruction(Opcode.NOP, {"unit": unit}, tuple(waits)),
                   store([(unit, 3 if unit == Unit.LOAD else 1)], offset=0x9000, base=100, count0=8), HALT])
    assert finish(device) == (True, 0, 0)
    assert np.array_equal(device.memory[BASE + 0x9000:][:256], device.memory[BASE + 0x400 + 92 * 32:][:256])


def settled(device, program, **registers):
    """An error's (cause, pc), after which nothing in DRAM changes; and the next program runs right."""
    start(device, program, **registers)
    done, cause, number = finish(device)
    assert not done
    before = device.memory.copy()
    device.idle(2000)
    assert np.array_equal(device.memory, before)
    good(device)
    return cause, number


def multiply(rows, base=0, **values):
    """A product of one pass: rows of X from ``base`` on."""
    ones = ("first", "last", "tiles", "columns", "rows1", "passes0", "passes1", "passes2")
    return Instruction(Opcode.MULTIPLY, dict.fromkeys(ones, 1) | {
        "rows0": rows, "row0": 1, "base": base} | values)


def drain(rows, base=0, **values):
    """Their results."""
    return Instruction(Opcode.DRAIN, {"columns": 1, "rows0": rows, "rows1": 1, "row0": 1, "base": base} | values)


#: Eight rows times a tile.
PRODUCT = [Instruction(Opcode.WEIGHTS, {"base": 0, "tiles": 1, "repeats": 1}), multiply(8)]
FIRST = [load(count0=8), store([(Unit.LOAD, 1)], offset=0x9000, count0=8)]
#: What goes wrong: cause, number of the instruction, what comes after :data:`FIRST`.
WRONG = {
    "opcode": (Cause.ILLEGAL, 2, [10]),
    "bit": (Cause.ILLEGAL, 2, [HALT.encode() | 1 << 500]),
    "count": (Cause.ILLEGAL, 2, [load(count1=0)]),
    "deep": (Cause.REFUSED, 2, [multiply(SYSTEM.core.depth + 1)]),
    "part": (Cause.ILLEGAL, 2, [Instruction(Opcode.WEIGHTS, {"base": 1, "tiles": 1, "repeats": 1})]),
    "few results": (Cause.REFUSED, 4, [*PRODUCT, drain(4)]),
    "many results": (Cause.REFUSED, 4, [*PRODUCT, drain(12)]),
    "word": (Cause.REFUSED, 3, [load(memory=2, base=0, offset=0x9000), Instruction(
        Opcode.VECTOR, {"body": 1, "count0": 1, "count1": 1}, (Wait(Unit.LOAD, 2),))]),
    "conversion": (Cause.ADDRESS, 2, [Instruction(Opcode.CONVERT, {
        "columns": 0, "base": SYSTEM.v_words - 4, "words": 1, "rows": 8, "stride": 1})]),
    "rows": (Cause.ADDRESS, 3, [PRODUCT[0], multiply(8, SYSTEM.x_pieces - 4)]),
    "results": (Cause.ADDRESS, 4, [*PRODUCT, drain(8, SYSTEM.v_words - 4)]),
    "factors": (Cause.ADDRESS, 4, [PRODUCT[0], multiply(8, scale=1), drain(8, scale=1, scale_base=SYSTEM.v_words)]),
    "memory": (Cause.ADDRESS, 2, [load(base=SYSTEM.v_words - 8, count0=9)]),
    "negative": (Cause.ADDRESS, 3, [load(), load(base=1, count1=3, buffer1=-1)]),
    "elements": (Cause.ADDRESS, 2, [load(elements=1, run=2, base=SYSTEM.v_words * SYSTEM.lanes - 1)]),
    "words": (Cause.ADDRESS, 2, [store(elements=1, run=2, base=SYSTEM.v_words)]),
    "weights": (Cause.ADDRESS, 2, [load(memory=1, base=SYSTEM.w_words)]),
    "records": (Cause.ADDRESS, 2, [load(memory=1, base=SYSTEM.w_words - 2 * SYSTEM.core.height, count0=3)]),
    "programs": (Cause.ADDRESS, 2, [load(memory=2, base=15, count0=2)]),
    "tiles": (Cause.ADDRESS, 2, [Instruction(Opcode.WEIGHTS, {"base": SYSTEM.w_words, "tiles": 1, "repeats": 1})]),
    "limit": (Cause.ADDRESS, 2, [store(offset=LIMIT - 32, count0=2)]),
    "run": (Cause.ADDRESS, 2, [load(elements=1, run=2, offset=LIMIT - 4)]),
    "wrap": (Cause.ADDRESS, 2, [load(offset=0xFFFFFFE0, count0=2)]),
    "beat": (Cause.MISALIGNED, 2, [load(offset=16)]),
    "number": (Cause.MISALIGNED, 2, [store(elements=1, run=1, offset=2)]),
    "end": (Cause.END, 2, []),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_has_its_cause_and_number(device, name):
    cause, number, more = WRONG[name]
    filler = [HALT] if cause is not Cause.END else []
    assert settled(device, [*FIRST, *more, *filler]) == (cause, number)


@pytest.mark.slow
def test_what_is_wrong_is_told_a_cycle_later_on_an_fpga():
    """The causes, numbers and traces are the same."""
    with held(FPGA) as device:
        for name in WRONG:
            test_what_is_wrong_has_its_cause_and_number(fresh(device), name)
        test_what_an_error_cuts_short_leaves_no_trace(fresh(device), "memory")


@pytest.mark.parametrize("name", ["memory", "run", "opcode"])
def test_what_an_error_cuts_short_leaves_no_trace(device, name):
    """A store is under way in front of a slow DRAM: each beat is written rightly or not at all."""
    cause, _, more = WRONG[name]
    device.set_timing(Timing(5, 4))
    device.set_pauses(0.3)
    old = device.memory[BASE + 0xA000:][:4096].reshape(128, 32).copy()
    start(device, [load(count0=128), store([(Unit.LOAD, 1)], offset=0xA000, count0=128),
                   Instruction(Opcode.NOP, {"unit": Unit.VECTOR}, (Wait(Unit.LOAD, 1),)), *more, HALT])
    assert finish(device)[:2] == (False, cause)
    new, right = (device.memory[BASE + place:][:4096].reshape(128, 32) for place in (0xA000, 0))
    written = (new == right).all(1)
    assert (written | (new == old).all(1)).all() and not written[-20:].any()
    good(device)


def test_an_error_is_told_when_nothing_is_under_way(device):
    """Behind an error a DRAM is busy for long with writes, and with reads that nobody takes."""
    bad = Instruction(Opcode.LOAD, {"offset": 4, **{f"count{n}": 1 for n in range(3)}}, (Wait(Unit.LOAD, 1),))
    for delay in (1, 20, 60):
        device.set_timing(Timing(20, 32))
        start(device, [load(count0=96), *[Instruction(Opcode.NOP, {"unit": Unit.LOAD}, (Wait(Unit.LOAD, 1),))] * delay,
                       bad, store([(Unit.LOAD, 1)], offset=0xA000, count0=96), HALT])
        device.idle(200)
        device.set_timing(Timing(20, 1))
        assert finish(device)[:2] == (False, Cause.MISALIGNED)
        before = device.memory.copy()
        device.idle(3000)
        assert np.array_equal(device.memory, before)
        device.set_timing(Timing(10, 32))
        good(device)


@pytest.mark.parametrize("pauses", sweep(2, [0.3, 0.95, 0.7]))
def test_what_is_offered_stays_when_a_program_is_stopped(device, pauses):
    """At any cycle of loads and stores, in front of channels that stand still: the bench looks at every cycle."""
    rng = np.random.default_rng(int(100 * pauses))
    copy = [load(count0=64), store([(Unit.LOAD, 1)], offset=0xA000, count0=64),
            load(offset=0x4000, count0=64, base=64),
            store(elements=1, run=3, offset=0xC000, count0=40, dram0=36, buffer0=1), HALT]
    caught, some = 0, 0
    target, right = (device.memory[BASE + place:][:2048].reshape(64, 32) for place in (0xA000, 0))
    for turn in range(40):
        device.set_pauses(pauses, turn + 1)
        target[:] = turn
        start(device, copy)
        device.idle(int(rng.integers(0, 400 / (1 - pauses))))
        write(device, control=2)
        assert device.run(20_000)
        caught += read(device, "status") == 4
        assert read(device, "cause") in (0, Cause.STOPPED)
        written = (target == right).all(1)
        assert (written | (target == turn).all(1)).all()    # a beat is there as a whole, or it is not
        some += 0 < written.sum() < 64
    assert caught > 20 and some > 3
    device.set_pauses(0)
    good(device)


@pytest.mark.parametrize("offset, argument, fault", [
    (0x8000, LIMIT - 0x8000 - 32, None), (0x8000, LIMIT - 0x8000, Cause.ADDRESS), (32, LIMIT - 64, None),
    (0x9000, -0x9000 % 2 ** 32, None), (0x9000, -0x9020 % 2 ** 32, Cause.ADDRESS), (0, 4, Cause.MISALIGNED)])
def test_arguments_cannot_lead_out_of_the_limit(device, offset, argument, fault):
    """What counts is the sum, modulo 2^32; each instruction takes the register that it names."""
    more = [store([(Unit.LOAD, 1)], offset=offset, argument=7), HALT]
    others = {f"argument{number}": 0xFFFFFFFF for number in range(1, 9)}
    if fault:
        assert settled(device, [*FIRST, *more], **others | {"argument7": argument}) == (fault, 2)
        return
    start(device, [*FIRST, *more], **others | {"argument7": argument})
    assert finish(device) == (True, 0, 0)
    end = BASE + (offset + argument) % 2 ** 32
    assert np.array_equal(device.memory[end:end + 32], device.memory[BASE:BASE + 32])


def test_bus_errors(device):
    """Of loads, fetch and stores."""
    for begin, cause in ((0x4000, (Cause.BUS, 2)), (0x6000, (Cause.BUS, 3))):
        device.poison(BASE + begin, BASE + begin + 32)
        assert settled(device, [*FIRST, load(offset=0x4000, count0=30), store(offset=0x5000 + 0x1000, count0=4),
                                HALT]) == cause
    device.poison(CODE, CODE + 64)
    assert settled(device, [*FIRST, HALT]) == (Cause.BUS, 0)


def test_the_watch_dog_ends_what_never_ends(device):
    """Data that never come; a wait that never holds. A program that goes on is left alone."""
    assert settled(device, [*FIRST, load([(Unit.LOAD, 9)]), HALT], watchdog=500) == (Cause.WATCHDOG, 4)
    device.set_timing(Timing(400, 1))
    start(device, [load(count0=20), HALT], watchdog=500)
    assert finish(device) == (True, 0, 0)
    device.set_timing(Timing(4, 32))
    device.silence(BASE + 0x4000, BASE + 0x4020)
    start(device, [*FIRST, load(offset=0x4000, count0=30), HALT], watchdog=500)
    assert finish(device) == (False, Cause.WATCHDOG, 4)
    write(device, interrupt_status=2, control=1)    # the bus still owes its answer: the next one cannot begin
    assert finish(device) == (False, Cause.WATCHDOG, 0)
    device.reset()
    good(device)


def test_doorbell_stop_and_reset(device):
    """While busy; when idle, stop clears the status; reset in the midst of a program."""
    long = [load(count0=128), store([(Unit.LOAD, 1)], offset=0x9000, count0=128), HALT]
    device.set_timing(Timing(50, 2))
    for value, cause in ((1, Cause.BUSY), (2, Cause.STOPPED)):
        start(device, long)
        device.idle(500)
        assert read(device, "status") == 1
        write(device, control=value)
        assert finish(device)[:2] == (False, cause)
        write(device, control=2)
        assert read(device, "status", "cause", "error_pc") == (0, 0, 0)
        good(device)
    start(device, long)
    device.idle(500)
    device.reset()
    assert read(device, "status", "interrupt_status", "limit") == (0, 0, 0)
    good(device)


@pytest.mark.parametrize("cause, registers", [
    (Cause.MISALIGNED, {"program_low": CODE + 32}), (Cause.MISALIGNED, {"base_low": BASE + 2048}),
    (Cause.END, {"instructions": 1 << 24}), (Cause.END, {"instructions": 0})])
def test_registers_that_no_program_can_have(device, cause, registers):
    assert settled(device, [HALT], **registers) == (cause, 0)


def test_interrupts_are_those_that_are_enabled(device):
    start(device, [HALT], interrupt_enable=2)
    assert not device.run(1000) and read(device, "status", "interrupt_status") == (2, 1)
    write(device, interrupt_enable=1)
    assert device.run(10)
    write(device, interrupt_status=2)
    assert device.run(10)
    write(device, interrupt_status=1)
    assert not device.run(10)


def test_bursts_of_any_start(device):
    """Programs that start in the midst of a chunk and end in one."""
    for first in range(0, 9):
        for count in (1, 7, 20):
            nops = [Instruction(Opcode.NOP, {"unit": 1 + n % 7}) for n in range(count)]
            start(device, [*nops, HALT], CODE + 64 * first)
            assert finish(device) == (True, 0, 0)
            given = [sum(one["unit"] == unit for one in nops) for unit in Unit]
            assert [read(device, f"{unit.name.lower()}_completed") for unit in Unit] == given


@pytest.mark.parametrize("seed", sweep(3, range(30)))
def test_random_programs_are_those_of_the_golden_machine(device, seed):
    """All units at once, some with YIELDs, behind which counts begin anew: every byte of DRAM."""
    program = random_program(SYSTEM, seed, yields=(0, 0.2)[seed % 20 == 10])
    machine = Machine(program)
    device.set_timing(Timing(1 + 7 * (seed % 5), 32 // (1 + seed % 3)))
    device.set_pauses((0, 0.3)[seed % 2], seed + 1)
    assert program.limit <= SIZE - BASE
    device.memory[BASE:] = 0
    for region in program.memory:
        device.memory[BASE + region.address:][:len(region.data)] = np.frombuffer(region.data, np.uint8)
    start(device, program.instructions, limit=program.limit, **program.registers())
    machine.run()
    assert finish(device) == (True, 0, 0)
    expected = np.frombuffer(machine.dram.get(0, program.limit), np.uint8)
    assert np.array_equal(device.memory[BASE:BASE + program.limit], expected)
