"""The dispatcher's Verilog equals its twin in every port and cycle; changed operators are seen.

Covers: cosim/command/dispatch.py, cosim/simulate/player.py, rtl/dispatch/choice.py, rtl/dispatch/dispatcher.py,
rtl/dispatch/report.py, rtl/dispatch/shapes.py, rtl/dispatch/tally.py.
"""

from dataclasses import replace

import pytest

from cosim.command.dispatch import build, main
from cosim.dispatch.check import SMALL, STAMPED, cases, compare, differences, ports_in, ports_out, record, words
from cosim.manifest import Manifest
from cosim.simulate.player import Player
from hbfp import files, generator
from hbfp.manifest import Port
from tests import yosys
from tests.cases import sweep

#: Every policy under two loads, faults under every policy, and times that wrap.
SELECTION = [case for case in cases(30) if case.faults or any(
    word in case.name for word in ("load 0.5", "load 0.9", "pairs"))]
SELECTION += [case for case in cases(8) if "wrap" in case.name and any(
    word in case.name for word in ("1022", "priority", "closing, told"))]
#: Those that run by default: every third, and what sees changes that the others do not (``python -m tests.mutate``).
SWEPT = sweep(3, SELECTION, [case for case in SELECTION if case.name in (
    "training, faults", "priority, wrap 1022", "closing, told late, load 0.5", "closing, told late, wrap 0.1",
    "alternate, told late, load 0.9", "closing, told late, pairs")])
DEFAULT = [case for case in SWEPT if case in SELECTION]
MUTANTS = 200


@pytest.fixture(scope="module")
def players():
    return {unit: build(unit) for unit in (SMALL, STAMPED)}


@pytest.mark.cosim
@pytest.mark.parametrize("case", SWEPT, ids=lambda case: case.name)
def test_verilog_equals_the_twin(players, case):
    result, cycles, twin = compare(players[case.unit], case)
    assert not result.mismatches, result.first
    assert result.compared > 9 * cycles


@pytest.mark.cosim
def test_a_wrong_value_is_seen(players):
    """One output changed in one cycle."""
    inputs, outputs, _ = record(SELECTION[0])
    outputs[len(outputs) // 2].now ^= 1
    found = differences(players[SMALL].play(ports_in(SMALL, inputs)), ports_out(SMALL, outputs))
    assert [(cycle, name) for cycle, name, *_ in found] == [(len(outputs) // 2, "now")]


@pytest.mark.cosim
def test_command(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("cosim.command.dispatch.cases", lambda *drawn: cases(*drawn)[::20])
    assert main(["--requests", "1", "--json", str(tmp_path / "d.json")]) == 0
    assert "passed" in capsys.readouterr().out
    assert '"mismatches": 0' in (tmp_path / "d.json").read_text()


@pytest.mark.parametrize("given, message", [
    (["--requests", "0"], "--requests 0: must be 1 to 100000"),
    (["--seed", "-1"], "--seed -1: must be 0 to 4294967295")])
def test_wrong_values(given, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(given)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m cosim dispatch: error: {message}\n"


@pytest.mark.slow
@pytest.mark.cosim
def test_changed_operators_are_seen(tmp_path):
    """Of 200 changes that Yosys makes at random a few survive: those that change nothing are among them."""
    manifest = Manifest.load(generator.emitted("dispatch", words(SMALL)))
    changed = _mutants(manifest, tmp_path)
    player = Player(changed, ("-Wno-UNOPTFLAT",))
    survivors = set(range(2, MUTANTS + 2))    # 1 changes nothing
    every = [*cases(60), *(case for case in cases(1500, seed=100) if case.faults)]
    for case in (case for case in every if case.unit == SMALL):
        inputs, outputs, _ = record(case)
        given, wanted = ports_in(SMALL, inputs), ports_out(SMALL, outputs)
        for mutant in (1, *sorted(survivors)):
            seen = bool(differences(player.play(given | {"mutsel": [mutant] * len(inputs)}), wanted))
            assert not (seen and mutant == 1), "the unchanged netlist differs"
            survivors -= {mutant} if seen else set()
    print(f"{MUTANTS - len(survivors)} of {MUTANTS} seen; not: {sorted(survivors)}")
    assert len(survivors) <= MUTANTS // 10


def _mutants(manifest, folder):
    """A manifest whose Verilog has an input ``mutsel`` that chooses one of the changes; 0 is none.

    Ports of memories stay as they are, since Yosys cannot write one whose enable was changed.
    """
    with files.scratch() as place:
        (place / "in.v").write_bytes(manifest.verilog.read_bytes())
        script = (f"read_verilog in.v; hierarchy -top {manifest.top}; proc; flatten; memory_collect; opt -full; "
                  f"opt_clean; mutate -list {MUTANTS} -ctrl mutsel 8 1 -none -o list.txt t:$mem* %n; "
                  f"script list.txt; write_verilog -noattr out.v")
        yosys.run(place, script)
        (folder / "out.v").write_bytes((place / "out.v").read_bytes())
    ports = manifest.ports | {"mutsel": Port("in", 8)}
    return Manifest(folder / "manifest.json", replace(manifest.data, verilog="out.v", ports=ports))
