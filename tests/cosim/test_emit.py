"""Emitted designs are kept, and not believed when they changed."""

import json

import pytest

from cosim.emit import EmitError, emit
from gen.units import CORE_UNITS, FREE_UNITS
from hbfp import generator
from hbfp.options import design_from_values

DESIGN = design_from_values({"rows": 2, "block": (1, 2), "depth": 2})


@pytest.fixture
def generated(tmp_path, monkeypatch):
    """Commands that were run, by a generator that writes two small files."""
    def run(words, folder):
        commands.append("gen")
        (folder / "top.v").write_text("module top; endmodule\n")
        (folder / "manifest.json").write_text(json.dumps({"top": "top", "verilog": "top.v"}))

    commands = []
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path))
    monkeypatch.setattr(generator, "run", run)
    return commands


def test_design_is_emitted_once_for_a_generator(generated, monkeypatch, capsys):
    first = emit(DESIGN)
    assert emit(DESIGN).path == first.path and generated == ["gen"]
    monkeypatch.setattr(generator, "key", lambda: "another")
    assert emit(DESIGN).path == first.path and generated == ["gen"] * 2
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["manifest.json", "top.v"])
@pytest.mark.parametrize("text", ["", "{}", "module top; wire more; endmodule\n"])
def test_changed_file_is_emitted_again(generated, capsys, name, text):
    manifest = emit(DESIGN)
    (manifest.path.parent / name).write_text(text)
    again = emit(DESIGN)
    assert again.top == "top" and again.verilog.read_text() == "module top; endmodule\n" and generated == ["gen"] * 2
    assert capsys.readouterr().err == f"{manifest.path.parent}: {name} is not as it was made; making it again\n"


def test_refusal_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path))
    with pytest.raises(EmitError) as caught:
        emit(DESIGN, unit="gate")
    words = " ".join([*DESIGN.words(), "--unit", "gate"])
    assert str(caught.value) == (f"python -m gen {words}: python -m gen: error: --unit gate: must be one of "
                                 f"{', '.join((*CORE_UNITS, *FREE_UNITS))}")
    assert not [path for path in (tmp_path / "designs").iterdir() if not path.name.endswith(".lock")]
