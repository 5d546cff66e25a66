"""Random designs: drawn over every option, judged rightly whole and broken, and remembered."""

import dataclasses
import json
import random

import pytest

from cosim.__main__ import main
from cosim.command import random as random_command
from cosim.work.random_designs import check, draw, parts, plant
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.options import design_from_values

TEXT = """\
module top(input [3:0] a, output [3:0] o, output p);
  assign o = a + 4'h1;
  assign p = a == 4'h2;
endmodule
"""
ENTRY = {"verdict": "passed", "compared": 10, "mismatches": 0, "problems": [], "asked": 3, "seen": 3, "sha256": []}


def test_draws_vary_every_option():
    designs = [draw(1, number) for number in range(300)]
    assert designs == [draw(1, number) for number in range(300)]
    assert designs != [draw(2, number) for number in range(300)]
    for part, holds in ((Design, designs), (HBFPFormat, [design.format for design in designs])):
        for field in dataclasses.fields(part):
            assert len({getattr(item, field.name) for item in holds}) > 1, field.name
    assert {design.format.rounding for design in designs} == {"rne", "stochastic", "truncate"}
    assert {design.arithmetic for design in designs} == {"hbfp", "int", "fp32", "fma", "bf16"}
    assert {min(design.segments, 2) for design in designs} == {min(design.block_tiles, 2) for design in designs} == {
        1, 2}


def test_parts_of_gradual_designs_are_the_converter():
    design = Design(format=HBFPFormat(subnormals="gradual"))
    assert parts(design) == ("encode", "encode_lane") and parts(Design()) == ("core",)


def test_a_fault_is_one_operator():
    found = {plant(TEXT, random.Random(seed)) for seed in range(20)}
    assert {fault.after for _, fault in found} == {"assign o = a - 4'h1;", "assign p = a != 4'h2;"}
    for text, fault in found:
        lines = zip(TEXT.splitlines(), text.splitlines(), strict=True)
        changed = [(number, was.strip(), now.strip()) for number, (was, now) in enumerate(lines, 1) if was != now]
        assert changed == [(fault.line, fault.before, fault.after)]


@pytest.mark.cosim
def test_verdicts():
    """One design passes whole and fails with a changed operator."""
    design = design_from_values({"rows": 2, "cols": 1, "block": (1, 3), "ragged": True, "mantissa": 3, "depth": 2,
                                 "rounding": "truncate", "growth": 3, "accumulate": "aligned"})
    assert check(design)["verdict"] == "passed"
    entry = check(design, fault=random.Random(10))
    assert entry["verdict"] == "FAILED" and entry["problems"], entry


def run(words, tmp_path, monkeypatch, verdict="passed"):
    """The command with a check that takes no time; names of designs that it judged."""
    judged = []

    def judge(design, seed, fault, **_):
        judged.append(design.name)
        planted = {"fault": {"line": 7, "before": "a + b", "after": "a - b"}} if fault else {}
        return ENTRY | planted | {"verdict": verdict, "problems": [] if verdict == "passed" else ["core: bits"]}

    monkeypatch.setattr(random_command, "check", judge)
    monkeypatch.setattr(random_command, "parts", lambda design: ())
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "build"))
    return main(["random", "--jobs", "1", *words]), judged


def test_a_run_goes_on_where_the_last_one_ended(tmp_path, monkeypatch, capsys):
    names = [draw(7, number).name for number in range(4)]
    assert run(["--count", "2", "--seed", "7"], tmp_path, monkeypatch) == (0, names[:2])
    out = tmp_path / "out.json"
    assert run(["--count", "4", "--seed", "7", "--json", str(out)], tmp_path, monkeypatch) == (0, names[2:])
    data = json.loads(out.read_text())
    assert (data["right"], data["count"], len(data["results"])) == (4, 4, 4)
    assert "4 of 4 designs passed; 40 outputs compared; " in capsys.readouterr().out
    monkeypatch.setattr(random_command, "benches", lambda: "other benches")
    assert run(["--count", "2", "--seed", "7"], tmp_path, monkeypatch) == (0, names[:2])


def test_wrong_verdicts_are_told(tmp_path, monkeypatch, capsys):
    assert run(["--count", "1", "--seed", "3"], tmp_path, monkeypatch, "FAILED")[0] == 1
    name = draw(3, 0).name
    assert f"whole seed 3 number 0, {name}: core: bits\n" in capsys.readouterr().out
    assert run(["--count", "1", "--seed", "3", "--broken"], tmp_path, monkeypatch, "FAILED")[0] == 0
    assert run(["--count", "1", "--seed", "4", "--broken"], tmp_path, monkeypatch, "passed")[0] == 1
    assert f"broken seed 4 number 0, {draw(4, 0).name}: line 7, a + b -> a - b\n" in capsys.readouterr().out


@pytest.mark.parametrize("words, message", [
    (["--count", "0"], "--count 0: must be 1 to 100000"),
    (["--seed", "-1"], "--seed -1: must be 0 to 4294967295"),
    (["--jobs", "x"], "--jobs x: must be 1 to 4096"),
    (["--json", "/no/such/file"], "--json /no/such/file: cannot be written (No such file or directory)")])
def test_wrong_option(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["random", *words])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m cosim random: error: {message}\n"
