"""The simulator of gates on netlists whose energies are added up by hand.

Covers: synth/power/tables.py, synth/power/netlist.py.
"""

import re
import subprocess

import numpy as np
import pytest

from hbfp.values import OptionError
from synth.power import engine, netlist, tables
from synth.power.liberty import read
from synth.tools.errors import SynthError

from .cells import CLOCK, DATA, DELAY, ENERGY, PINS, TEXT, VOLTS, library, run

#: fJ of a change at a net with one pin.
PIN = VOLTS ** 2 / 2
#: A static hazard: with a = b = 1 the output stays 1 when s falls, but for the time that the inverter takes.
HAZARD = """.subckt INV A=i__payload[2] Y=n
.subckt NAND2 A=i__payload[0] B=i__payload[2] Y=p
.subckt NAND2 A=i__payload[1] B=n Y=q
.subckt NAND2 A=p B=q Y=o__payload"""


def taken(result, settled=False):
    """Switching and internal energy of the first component, and its changes."""
    one = result.components[0]
    return (one.settled_switching, one.settled_internal, one.settled_toggles) if settled else \
        (one.switching, one.internal, one.toggles)


def test_a_gate_takes_what_its_tables_say(tmp_path):
    """An inverter before an inverter: 1, 0, 0, 1 at the input."""
    result = run(tmp_path, ".subckt INV A=i__payload Y=n\n.subckt INV A=n Y=o__payload", 1, [1, 0, 0, 1])
    rise, fall = ENERGY["INV"]
    assert result.sampled == 3 and result.wrong == 0
    # Two edges of each of two outputs, one of which drives a pin.
    assert taken(result) == taken(result, True) == (2 * PIN, 2 * rise + 2 * fall, 4)
    assert result.components[1].toggles == 3 - 1 and result.components[1].switching == 2 * PIN    # the input itself
    assert result.payloads["o"].ravel().tolist() == [1, 0, 0, 1]
    assert (result.components[0].cells, result.components[0].leakage) == (2, 2)


def test_wire_adds_to_each_pin(tmp_path):
    result = run(tmp_path, ".subckt INV A=i__payload Y=n\n.subckt INV A=n Y=o__payload\n.subckt INV A=n Y=x", 1, [0, 1],
                 wire=0.5)
    assert result.components[0].switching == pytest.approx(2 * 1.5 * PIN)


def test_a_hazard_glitches_with_delays_and_not_without(tmp_path):
    """s falls: p rises, and q falls only after the inverter; the output is low for as long."""
    rise, fall = ENERGY["NAND"]
    result = run(tmp_path, HAZARD, 3, [0b111, 0b011])
    # n rises, p rises, q falls, the output falls and rises.
    assert taken(result) == (PIN * 3, ENERGY["INV"][0] + rise + fall + fall + rise, 5)
    assert taken(result, True) == (PIN * 3, ENERGY["INV"][0] + rise + fall, 3)
    # A flip-flop's delay is none here: s falls at once, at the earliest time that there is.
    assert result.last == pytest.approx(DELAY["INV"] + 2 * DELAY["NAND"], abs=0.002)
    assert result.payloads["o"].ravel().tolist() == [1, 1] and result.wrong == 0


def test_a_pulse_that_is_shorter_than_a_delay_vanishes(tmp_path):
    """The hazard of two gates that are quick, before one that is slow."""
    body = """.subckt NAND2 A=i__payload B=i__payload Y=n
.subckt XOR A=i__payload B=n Y=p
.subckt INV A=p Y=o__payload"""
    result = run(tmp_path, body, 1, [0, 1])
    assert taken(result) == (2 * PIN / 2, ENERGY["NAND"][1], 1)    # p would fall for 0.01 ns, less than XOR takes
    slow = run(tmp_path, body.replace("NAND2 A=i__payload B=i__payload Y=n", "INV A=i__payload Y=n"), 1, [0, 1])
    # Behind the inverter it lasts 0.1 ns, no less than the last inverter takes: n, p and the output twice each.
    assert taken(slow)[2] == 5 and slow.wrong == 0


def test_flipflops_take_clock_and_data(tmp_path):
    """1, 0, 0 at D: Q follows a cycle later; every cycle has two edges of the clock."""
    result = run(tmp_path, ".subckt DFF CK=clk D=i__payload Q=o__payload", 1, [1, 0, 0])
    one = result.components[0]
    assert one.flipflops == 1
    assert one.clock == 2 * (sum(CLOCK) + VOLTS ** 2)
    assert one.internal == one.settled_internal == ENERGY["DFF"][0] + ENERGY["DFF"][1] + DATA
    assert result.payloads["o"].ravel().tolist() == [0, 1, 0]
    assert result.longest == pytest.approx(DELAY["DFF"], abs=1e-6) == pytest.approx(result.last, abs=0.002)


#: A register behind a gated clock, as rtl/lib/gated.py has it: bit 0 is what it holds, bit 1 opens.
FALLING = {"of its own": "DFFN CK=clk", "by an inverter": "DFF CK=c"}
GATED = """.subckt INV A=clk Y=c
.subckt {} D=i__payload[1] Q=open
.subckt NAND2 A={} B=open Y=n
.subckt INV A=n Y=g
.subckt DFF CK=g D=i__payload[0] Q=o__payload"""


@pytest.mark.parametrize("edge", FALLING)
def test_a_gated_clock_takes_its_energy_where_it_moves(tmp_path, edge):
    """The gate's own pins in every cycle; what is behind it in the cycles behind those whose bit 1 is high."""
    values = [0b01, 0b11, 0b00, 0b10, 0b01, 0b11, 0b11]
    result = run(tmp_path, GATED.format(FALLING[edge], "clk"), 2, values)
    assert result.payloads["o"].ravel().tolist() == [0, 0, 1, 1, 0, 0, 1] and result.wrong == 0
    one, square, (rise, fall) = result.components[0], VOLTS ** 2, ENERGY["INV"]
    assert (one.flipflops, result.sampled) == (2, 6)
    # Each cycle: pins of inverter and NAND, the inverter, and the flip-flop that opens, whose pin is one of the two.
    always = 2 * square + rise + fall + square + sum(CLOCK)
    opened = square + sum(ENERGY["NAND"]) + square + rise + fall + sum(CLOCK)
    assert one.clock == 6 * always + 3 * opened
    # Bit 0 changes twice and bit 1 5 times at a register; what opens follows bit 1, and the output changes 3 times.
    up, down = ENERGY["DFF"]
    assert one.internal == one.settled_internal == (2 + 5) * DATA + 3 * up + 2 * down + 2 * up + down
    assert one.switching == one.settled_switching == 5 * PIN
    opens = run(tmp_path, GATED.format(FALLING[edge], "clk"), 2, [0b00, 0b10])
    assert opens.last == pytest.approx(10 / 2 + DELAY["DFF"], abs=0.002)    # in the middle of the cycle


@pytest.mark.parametrize("body, why", [
    (GATED.format(FALLING["by an inverter"], "clk").replace("CK=g", "CK=n"),
     "a flip-flop of the falling edge has a gated clock"),
    (GATED.format(FALLING["by an inverter"], "c"), "a gate changes what it gives while the clock is low"),
    (GATED.format("DFF CK=clk", "clk"), "a gate of the clock opens while the clock is high"),
    (".subckt DFF CK=i__payload[0] D=i__payload[1] Q=o__payload", "a flip-flop's clock is not the core's"),
    (".subckt DFF CK=clk D=clk Q=o__payload", "the clock is the input of a flip-flop"),
    (".subckt XOR A=clk B=i__payload[0] Y=g\n.subckt DFF CK=g D=i__payload[1] Q=o__payload",
     "a gate changes what it gives while the clock is low")])
def test_clocks_that_are_refused(tmp_path, body, why):
    with pytest.raises(SynthError, match=f"^the simulation of gates failed: error: {why}$"):
        run(tmp_path, body, 2, [0])


def test_what_opens_a_gate_has_half_a_cycle(tmp_path):
    """An inverter before the flip-flop of the falling edge counts twice."""
    body = GATED.format("DFFN CK=clk", "clk").replace("i__payload[1]", "x") + "\n.subckt INV A=i__payload[1] Y=x"
    assert run(tmp_path, body, 2, [0, 1]).longest == pytest.approx(2 * (DELAY["DFF"] + DELAY["INV"]), abs=1e-6)


def test_a_period_that_is_too_short_is_not_run(tmp_path):
    slow = run(tmp_path, ".subckt INV A=i__payload Y=n\n.subckt INV A=n Y=o__payload", 1, [0, 1], period=0.15)
    assert slow.longest == pytest.approx(0.2) and slow.cycles == 0
    assert run(tmp_path, ".subckt INV A=i__payload Y=n\n.subckt INV A=n Y=o__payload", 1, [0, 1], period=0.21).complete


def netlist_of(rng, bits, gates):
    """Random gates on earlier nets: (lines of BLIF, [(kind, nets)]); the last one is the output."""
    nets, made = [f"i__payload[{n}]" for n in range(bits)], []
    for number in range(gates):
        kind = ["INV", "NAND2", "XOR"][rng.integers(3)]
        ins = [nets[rng.integers(len(nets))] for _ in PINS[kind][:-1]]
        nets.append("o__payload" if number == gates - 1 else f"n{number}")
        made.append((kind, [*ins, nets[-1]]))
    lines = [f".subckt {kind} " + " ".join(f"{pin}={net}" for pin, net in zip(PINS[kind], ends, strict=True))
             for kind, ends in made]
    return "\n".join(rng.permutation(lines)), made


@pytest.mark.parametrize("seed", range(3))
def test_settled_changes_are_those_of_a_plain_evaluation(tmp_path, seed):
    """Conservation: whatever glitches there are, each net ends where Boolean algebra says."""
    rng = np.random.default_rng(seed)
    text, made = netlist_of(rng, 6, 60)
    values = rng.integers(0, 64, 40).tolist()
    result = run(tmp_path, text, 6, values)
    changes, energy, last, right = 0, 0, {}, []
    for cycle, value in enumerate(values):
        state = {f"i__payload[{n}]": value >> n & 1 for n in range(6)}
        for kind, (*ins, out) in made:
            a, b = state[ins[0]], state[ins[-1]]
            state[out] = {"INV": 1 - a, "NAND2": 1 - (a & b), "XOR": a ^ b}[kind]
            if cycle and last[out] != state[out]:
                changes += 1
                energy += ENERGY[kind.rstrip("2")][1 - state[out]]
        last = state
        right.append(state["o__payload"])
    assert result.wrong == 0
    assert result.payloads["o"].ravel().tolist() == right
    assert result.components[0].settled_toggles == changes
    assert result.components[0].settled_internal == pytest.approx(energy)
    assert result.components[0].toggles > changes and (result.components[0].toggles - changes) % 2 == 0


def test_parts_and_components(tmp_path):
    """A part's nets are those of its user, also where a port leads through it; it counts to its own component."""
    text = ".model part\n.inputs a b\n.outputs y z\n.subckt XOR A=a B=b Y=y\n.names b z\n1 1\n"
    part = netlist.read_blif(text, set())
    body = """.subckt part a=i__payload[0] b=i__payload[1] y=n z=m
.subckt part a=n b=m y=o__payload"""
    result = run(tmp_path, body, 2, [0, 1, 2, 3], modules=[part], components={"top": 0, "part": 1})
    assert [one.cells for one in result.components] == [0, 2, 0]
    assert result.payloads["o"].ravel().tolist() == [0, 1, 0, 1]    # a ^ b ^ b


def test_memories_keep_words_and_count_bits(tmp_path):
    """Bit 0 is written to the word of bit 1 while bit 2 is set, and word of bit 3 is read while bit 4 is set."""
    ram = netlist.Module("ram", ["w_en", "w_addr", "w_data", "r_en", "r_addr", "r_data"], memory=(2, 1, 1))
    body = (".subckt ram w_en=i__payload[2] w_addr=i__payload[1] w_data=i__payload[0] r_en=i__payload[4] "
            "r_addr=i__payload[3] r_data=o__payload")
    write, read_it = 0b00100, 0b10000
    values = [write | 1, read_it, read_it, write | 2 | 1 | read_it, read_it | 8, read_it | 8 | write | 2,
              read_it | 8, 0]
    result = run(tmp_path, body, 5, values, modules=[ram], window=(0, len(values)))
    assert result.payloads["o"].ravel().tolist() == [0, 0, 1, 1, 1, 1, 1, 0]
    memory, = result.memories
    # Reads of word 0 three times, which is read out once; of word 1 three times, which was written after the second.
    assert (memory.written, memory.read) == (3, 3)


@pytest.mark.parametrize("cell, why", [
    ("(LATCH) { latch (IQ, IQN) { } pin (Y) { direction : output; function : \"IQ\"; } }", "it is a latch"),
    ("(LATCH) { pin (Y) { direction : output; } }", "it has no output with a function"),
    ("(OTHER) { }", "it is not in the file"),
    ("(LATCH) { pin (A) { direction : input; } pin (Y) { direction : output; function : \"A\"; } }",
     "it has no delays")])
def test_cells_that_cannot_be_simulated(tmp_path, cell, why):
    path = tmp_path / "easy.lib"
    path.write_text(TEXT.rstrip().removesuffix("}") + f"cell {cell} }}\n")
    with pytest.raises(OptionError, match=f"^--liberty {re.escape(str(path))}: cannot be simulated with its cell "
                                          f"LATCH: {why}$"):
        tables.text(read(path), ["INV", "LATCH"], path)


def test_conditions_choose_tables(tmp_path):
    """Of several arcs of a pin that holds whose condition does, before one that has none, whatever their order."""
    arcs = [('when : "!B"; ', 1), ("", 2), ('when : "B & C"; ', 3)]
    power = "".join(f'internal_power () {{ related_pin : "A"; {when}rise_power (scalar) {{ values ("{value}"); }} }}'
                    for when, value in arcs)
    path = tmp_path / "one.lib"
    path.write_text("library (one) { capacitive_load_unit (1, ff); cell (X) {"
                    + "".join(f"pin ({pin}) {{ direction : input; }}" for pin in "ABC")
                    + 'pin (Y) { direction : output; function : "A"; timing () { related_pin : "A"; }'
                    + f"{power} }} }} }}")
    lines = tables.text(read(path), ["X"], path).splitlines()
    chosen = np.array(lines[-2].split(), int).reshape(3, 8)
    assert chosen[0].tolist() == [0, 0, 1, 1, 0, 0, 2, 2]    # by C, B, A
    assert (chosen[1:] == -1).all()


def test_what_is_no_cell_is_refused():
    with pytest.raises(ValueError, match=r"^top: \.names a b c is no cell of the library$"):
        netlist.read_blif(".model top\n.names a b c\n11 1\n", set())


def test_a_ring_of_gates_is_refused(tmp_path):
    with pytest.raises(SynthError, match="^the simulation of gates failed: error: gates drive each other in a ring$"):
        run(tmp_path, ".subckt INV A=n Y=m\n.subckt INV A=m Y=n\n.subckt NAND2 A=n B=i__payload Y=o__payload", 1, [0])


def test_no_compiler(monkeypatch):
    monkeypatch.setattr(engine.shutil, "which", lambda command: None)
    with pytest.raises(SynthError, match=r"^energies need a C\+\+ compiler: g\+\+ or clang\+\+$"):
        engine.program()


def test_a_compiler_that_fails(monkeypatch, tmp_path):
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path))
    real = subprocess.run
    monkeypatch.setattr(engine, "_FLAGS", ("--no-such-flag",))
    monkeypatch.setattr(engine.subprocess, "run", lambda *args, **kwargs: real(*args, **kwargs))
    with pytest.raises(SynthError, match=r"cannot build .*main\.cpp: .*no-such-flag"):
        engine.program()


def test_the_library_text_has_every_cell(tmp_path):
    assert library(tmp_path).count("\nDFF 2 1 0 0 4") == library(tmp_path).count("\nDFFN 2 1 0 1 0") == 1
