"""Corners of instructions: they are those of the table, a decoder by the page says the same, and so does the Verilog.
"""

import pytest

from hbfp.isa.instructions import FIELDS, Opcode
from hbfp.isa.legal import RULES
from tests.cosim.accelerator import corner_runs
from tests.cosim.accelerator.corner_runs import CAUSES, EVERY, SYSTEMS, run
from tests.cosim.accelerator.corners import corners
from tests.hbfp.isa.plain_decode import plain

#: Those of a default run; most have few fields.
SOME = Opcode.NOP, Opcode.WEIGHTS, Opcode.DRAIN


def decoded(system, *opcodes):
    """Names of corners; each word is what a second decoder says, and has its field at that end."""
    names = []
    for corner in corners(system, *opcodes):
        names.append(corner.name)
        for word in map(corner.word, corner.scenes[:3]):
            assert word is None or (plain(word, system) is not None) == corner.legal, corner.name
    return names


@pytest.mark.parametrize("opcodes", [SOME, pytest.param((), marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_decoder_by_the_page_says_the_same(opcodes):
    """Every field has both ends, and one beyond each; with all options every rule is asked for."""
    names = decoded(EVERY, *opcodes)
    assert len(names) == len(set(names))
    for opcode in opcodes or Opcode:
        for field in FIELDS[opcode]:
            whens = [rule.when for rule in RULES[opcode] if field.name in rule.fields and rule.when]
            for when in [{}, *whens]:
                name = f"{opcode.name} {field.name}" + "".join(f", {one} {value}" for one, value in when.items())
                assert {f"{name}: {end}{more}" for end in ("least", "greatest")
                        for more in ("", ", and one beyond")} <= set(names)


@pytest.mark.cosim
def test_some_on_the_verilog():
    met = set()
    found = run(SYSTEMS["plain"], met, *SOME, step=3)
    assert len(found) > 20 and [line for _, line in found if line] == []
    assert met and met <= CAUSES


@pytest.mark.cosim
@pytest.mark.slow
def test_all_on_the_verilog():
    assert corner_runs.main([]) == 0 and SYSTEMS.keys() == {"plain", "every"}


@pytest.mark.cosim
def test_a_failure_says_how_to_repeat_it(monkeypatch, capsys):
    """Here the golden machine has another cause."""
    monkeypatch.setattr(corner_runs, "SYSTEMS", {"plain": SYSTEMS["plain"]})
    monkeypatch.setattr(corner_runs, "corners", lambda system: corners(system, Opcode.NOP))
    expected = corner_runs.expected

    def other(*scene):
        fault = expected(*scene)
        fault.cause = corner_runs.Cause.BUS
        return fault
    monkeypatch.setattr(corner_runs, "expected", other)
    assert corner_runs.main(["--corner", "NOP unit: least, and one beyond"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("plain: NOP unit: least, and one beyond: status 4, cause 1 at ")
    assert lines[1] == "python -m tests.cosim.accelerator.corner_runs --corner 'NOP unit: least, and one beyond'"
