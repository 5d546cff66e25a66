"""Random programs on the Verilated accelerator: a few pass, one that is changed is seen, bad options are refused.

Covers: cosim/accelerator/programs.py.
"""

import json
from dataclasses import replace
from functools import partial

import pytest

from cosim.__main__ import main
from cosim.accelerator import programs
from hbfp.isa.instructions import Instruction, Opcode
from hbfp.system import NUMBERS

from ..accelerator.built import ACCELERATOR, LEVEL

SMALL = [*ACCELERATOR.words(), "--quiet"]


@pytest.mark.cosim
def test_programs(tmp_path, monkeypatch, capsys):
    """The golden machine is shown a last load from elsewhere in the second run, as if the Verilog had read that."""
    monkeypatch.setattr(programs, "run", partial(programs.run, level=LEVEL))
    words = ["programs", *SMALL, "--count", "2", "--seed", "3", "--json", str(tmp_path / "a.json")]
    assert main(words) == 0
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["programs"] == 2 and not found["failures"] and found["words"] > 2000
    assert capsys.readouterr().out == (f"2 of 2 programs equal the golden machine; {found['words']:,} words compared\n")

    def other(program):
        place, = [number for number, each in enumerate(program.instructions)
                  if each.opcode == Opcode.LOAD and not each["memory"]][:1]
        load = program.instructions[place]
        changed = Instruction(load.opcode, load.values | {"offset": load["offset"] + program.accelerator.beat},
                              load.waits)
        return machine(replace(program, instructions=[
            changed if number == place else each for number, each in enumerate(program.instructions)]))

    machine = programs.Machine
    monkeypatch.setattr(programs, "Machine", other)
    assert main(words) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 of 2 programs equal the golden machine; ")


@pytest.mark.cosim
@pytest.mark.slow
def test_drawn(capsys):
    """A line of options and a line of results for each."""
    assert main(["programs", "--draw", "12", "--count", "10", "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 24 and all(line.startswith("--mantissa ") for line in lines[::2])
    assert all(line.startswith("10 of 10 programs equal the golden machine; ") for line in lines[1::2])


@pytest.mark.cosim
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NUMBERS if name != "hbfp"])
def test_other_numbers(name, capsys):
    """Every word of V, W and X, and every cycle."""
    small = [word for memory in "xwvp" for word in (f"--{memory}-words", "64")]
    assert main(["programs", "--arithmetic", name, "--rows", "8", *small, "--row-words", "3", "--depth", "32",
                 "--count", "10", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("10 of 10 programs equal the golden machine; ")


@pytest.mark.parametrize("words, message", [
    (["--count", "0"], "--count 0: must be 1 to 100000"), (["--seed", "-1"], "--seed -1: must be 0 to 2147483647"),
    (["--x-words", "65"], "--x-words 65: must be a power of two"), (["--draw", "0"], "--draw 0: must be 1 to 1000"),
    (["--draw", "2", "--rows", "8"], "--draw 2: draws all options of an accelerator; leave out --rows"),
    (["--json", "/no/such/folder/file"],
     "--json /no/such/folder/file: cannot be written (No such file or directory)")])
def test_wrong_option(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["programs", *words])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m cosim programs: error: {message}\n"
