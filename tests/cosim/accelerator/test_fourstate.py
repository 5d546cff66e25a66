"""Four-state simulation of accelerators: nothing undefined reaches an output from reset on, and DRAM is golden's."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.accelerator.host import room, settings
from cosim.emit import emit_accelerator
from golden.machine.machine import Machine
from golden.machine.random_programs import random_program
from hbfp.isa.instructions import Instruction, Opcode, Unit, Wait
from hbfp.isa.registers import BY_NAME, Cause, parameters, registers
from hbfp.program import Program, Region
from tests.cosim.fourstate import build, run

from .built import ACCELERATOR, DISPATCHED

pytestmark = pytest.mark.cosim
BENCH = Path(__file__).with_name("fourstate.v")
#: What the host does in a step.
WRITE, READ, AWAIT, IDLE = range(4)
DONE, ERROR = 2, 4
ONE = {"count0": 1, "count1": 1, "count2": 1}
#: A program that does nothing, in a context of all.
NOTHING = Program(accelerator=DISPATCHED, limit=4096, instructions=[
    *(Instruction(Opcode.NOP, {"unit": unit}) for unit in Unit), Instruction(Opcode.HALT, {})])


def image(program):
    """DRAM in lines of hexadecimal, a beat each, with x where nothing of the program is."""
    size, base = room(program)
    memory, known = np.zeros(size, np.uint8), np.zeros(size, bool)
    for start, data in ((0, program.words()), *((base + region.address, region.data) for region in program.memory)):
        memory[start:start + len(data)], known[start:start + len(data)] = np.frombuffer(data, np.uint8), True
    bytes_ = [f"{value:02x}" if there else "xx" for value, there in zip(memory, known, strict=True)]
    beat = program.accelerator.beat
    return ["".join(reversed(bytes_[start:start + beat])) for start in range(0, size, beat)]


def simulate(system, program, steps, folder, *, pauses, change=lambda text: text, bench=None):
    """Run the bench.

    Returns
    -------
    (list of int, ndarray of uint32, ndarray of uint32)
        What the host read; the words of DRAM from the program's base on, and which of their bits are defined.

    Raises
    ------
    AssertionError
        With what the bench says is undefined or has changed.
    """
    manifest, lines = emit_accelerator(system), image(program)
    (folder / "dram.hex").write_text("\n".join(lines))
    (folder / "steps.hex").write_text("\n".join(f"{what:02x}{address:08x}{data:08x}" for what, address, data in steps))
    build(folder, change(manifest.verilog.read_text()), bench or BENCH.read_text(), TOP=manifest.top, BEAT=system.beat,
          BEATS=len(lines), STEPS=len(steps), PAUSES=pauses, ADDRESS=manifest.ports["s_axil_awaddr"].width)
    said = run(folder)
    wrong = [line for line in said if not re.fullmatch("done|[0-9a-f]{8} [0-9a-f]{8}", line)]
    assert not wrong and said[-1] == "done", wrong[0]
    after = [line for line in (folder / "after.hex").read_text().split("\n") if line and "//" not in line]
    text = "".join(reversed(after))
    words, known = (np.frombuffer(bytes.fromhex(changed)[::-1], np.uint32)[room(program)[1] // 4:] for changed in (
        re.sub("[xX]", "0", text), re.sub("[xX]", "g", re.sub("[0-9a-f]", "f", text)).replace("g", "0")))
    return [int(line.split()[1], 16) for line in said[:-1]], words, known


def own(system, context):
    """The registers of a context, and in the first those that all have, too."""
    return [one for one in registers(system.contexts) if one.name.endswith("_1") == bool(context)]


def begins(program, system, context):
    """Read all registers, and write those of a program; what writes a register of its context."""
    def write(name, value):
        return WRITE, BY_NAME[f"{name}_{context}" if context else name].address, value
    return [*((READ, one.address, 0) for one in registers(system.contexts)),
            *(write(*pair) for pair in settings(program).items())], write


def runs(program, system, context=0):
    """Steps: all registers, the program, and the registers of its context."""
    steps, write = begins(program, system, context)
    return [*steps, write("control", 1), (AWAIT, 0, 0), *((READ, one.address, 0) for one in own(system, context))]


def named(values, found):
    """Registers by name, of whichever context."""
    return dict(zip((one.name.removesuffix("_1") for one in found), values, strict=True))


CASES = {
    "one": (ACCELERATOR, 0, 40, lambda: random_program(ACCELERATOR, 7)),
    "two": (DISPATCHED, 1, 0, lambda: NOTHING),
    "two at work": (DISPATCHED, 1, 0, lambda: random_program(DISPATCHED, 7)),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * name.endswith("work"))
                                  for name in CASES])
def test_nothing_is_undefined_and_dram_is_golden(name, tmp_path):
    """Before the first program all registers are what they are at reset, those of counters are 0."""
    system, context, pauses, make = CASES[name]
    program, every, mine = make(), registers(system.contexts), own(system, context)
    values, words, known = simulate(system, program, runs(program, system, context), tmp_path, pauses=pauses)
    machine = Machine(program)
    machine.run()
    defined = machine.dram.defined[:, 0]
    assert (known[defined] == 0xFFFFFFFF).all() and np.array_equal(words[defined], machine.dram.data[defined])
    assert values[:len(every)] == [parameters(system).get(one.name, one.reset) for one in every]
    last = named(values[-len(mine):], mine)
    assert (last["status"], last["cause"]) == (DONE, 0) and last["load_completed"] == sum(
        one.unit == Unit.LOAD for one in program.instructions)


def test_nothing_is_undefined_when_programs_are_stopped(tmp_path):
    program = random_program(ACCELERATOR, 7)
    steps, write = begins(program, ACCELERATOR, 0)
    for cycles in (100, 400, 700, 1500):
        steps += [write("control", 1), (IDLE, 0, cycles), write("control", 2), (AWAIT, 0, 0),
                  (READ, BY_NAME["status"].address, 0), (READ, BY_NAME["cause"].address, 0),
                  write("interrupt_status", 3)]
    values, *_ = simulate(ACCELERATOR, program, steps, tmp_path, pauses=70)
    assert values[-8:] == [ERROR, Cause.STOPPED] * 4


#: Words of V of which a part is written, and read as a whole.
PARTLY = Program(accelerator=ACCELERATOR, limit=4096, memory=[Region(0, bytes(range(64)))], instructions=[
    Instruction(Opcode.LOAD, ONE | {"elements": 1, "count0": 4, "dram0": 12, "buffer0": 8, "run": 3}),
    Instruction(Opcode.STORE, ONE | {"elements": 1, "count0": 4, "dram0": 12, "buffer0": 1, "run": 3, "offset": 1024},
                (Wait(Unit.LOAD, 1),)), Instruction(Opcode.HALT, {})])


def watched(text):
    """The Verilog with a look at what its memories say of parity, which a condition would take for no."""
    told = ", ".join(re.findall(r"\.broken\((\w+)\)", text))
    head, top, tail = text.partition("module hbfp_accelerator")
    return head + top + tail.replace("endmodule", f"always @(posedge aclk) if (aresetn && ^{{{told}}} === 1'bx)\n"
                                     "$display(\"broken is undefined\");\nendmodule", 1)


def uncleared(text):
    """Without the clearing of memories behind a reset."""
    assert text.count("clears = 1'h1") == text.count("clears <= 1'h1") == 1
    return watched(text.replace("clears = 1'h1", "clears = 1'h0").replace("clears <= 1'h1", "clears <= 1'h0"))


def test_what_nobody_wrote_has_parity(tmp_path):
    """Words are read of which a part was written: they are no error, and nothing is undefined, as memories are cleared.
    """
    values, words, _ = simulate(ACCELERATOR, PARTLY, runs(PARTLY, ACCELERATOR), tmp_path, pauses=40, change=watched)
    last = named(values[-len(own(ACCELERATOR, 0)):], own(ACCELERATOR, 0))
    assert (last["status"], last["cause"]) == (DONE, 0)
    assert words[256:].tobytes()[:48] == bytes(range(48))
    with pytest.raises(AssertionError, match="^broken is undefined"):
        simulate(ACCELERATOR, PARTLY, runs(PARTLY, ACCELERATOR), tmp_path, pauses=40, change=uncleared)


def planted(value):
    """The bench with something else in the place of data that are written."""
    text = BENCH.read_text()
    for old, new in ((".m_axi_wdata(m_axi_wdata)", ".m_axi_wdata(right)"),
                     ("  `TOP dut (", "  wire [8*BEAT-1:0] right;\n  `TOP dut ("),
                     ("  task fail(", f"  assign m_axi_wdata = {value};\n  task fail(")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("value, message", [
    ("right ^ cycle", r"m_axi_w changed while it waited in cycle \d+"),
    ("1'bx", r"m_axi_wdata is undefined in cycle \d+")])
def test_what_is_wrong_on_the_bus_is_seen(value, message, tmp_path):
    store = Instruction(Opcode.STORE, ONE | {"count0": 16}, (Wait(Unit.LOAD, 1),))
    program = replace(NOTHING, instructions=[Instruction(Opcode.LOAD, ONE | {"count0": 16}), store,
                                             NOTHING.instructions[-1]], memory=[Region(0, bytes(16 * DISPATCHED.beat))])
    with pytest.raises(AssertionError) as raised:
        simulate(DISPATCHED, program, runs(program, DISPATCHED), tmp_path, pauses=70, bench=planted(value))
    assert re.match(rf"{message}$", str(raised.value), re.MULTILINE)


def test_a_register_without_reset_is_seen(tmp_path):
    def change(text):
        changed = text.replace("if (rst) ", "if (1'h0) ")
        assert changed != text
        return changed
    with pytest.raises(AssertionError) as raised:
        simulate(DISPATCHED, NOTHING, runs(NOTHING, DISPATCHED), tmp_path, pauses=0, change=change)
    assert re.match(r"\w+ is undefined in cycle 0$", str(raised.value), re.MULTILINE)
