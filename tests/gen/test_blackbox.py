# amaranth: UnusedElaboratable=no
"""Memories without bodies: the ports stay, all else of the text does, and the manifest lists them."""

import json
import re
import subprocess

import pytest

from gen.__main__ import main
from gen.blackbox import without_bodies

from .emitted import modules

SMALL = ["--rows", "2", "--block", "1,2", "--depth", "2"]


def test_ports_alone_stay():
    text = ("// a\nmodule a(i, o);\n  input [1:0] i;\n  wire [1:0] i;\n  output o;\n  reg o = 1'h0;\nendmodule\n\n"
            "module b(i);\n  input i;\n  wire i;\nendmodule\n")
    assert without_bodies(text, {"a"}) == (
        "// a\n(* blackbox *)\nmodule a(i, o);\n  input [1:0] i;\n  output o;\nendmodule\n\n"
        "module b(i);\n  input i;\n  wire i;\nendmodule\n")
    assert without_bodies(text, set()) == text


def test_only_the_memories_lose_theirs(tmp_path):
    texts = {}
    for choice in ("inside", "blackbox"):
        folder = tmp_path / choice
        assert main([*SMALL, "--memories", choice, "--out", str(folder)]) == 0
        manifest = json.loads((folder / "manifest.json").read_text())
        texts[choice] = modules((folder / manifest["verilog"]).read_text())
    memories = manifest["memories"]
    assert memories and all(re.fullmatch(r"hbfp_ram_\w+", name) for name in memories)
    assert list(texts["inside"]) == list(texts["blackbox"])
    for name, text in texts["inside"].items():
        assert (texts["blackbox"][name] == text) == (name not in memories)
        assert name not in memories or "reg" not in texts["blackbox"][name]
    words, width = (memories[name][key] for key in ("words", "width") for name in [min(memories)])
    assert f"hbfp_ram_d{words}_w{width}" in min(memories)


@pytest.mark.cosim
def test_tools_take_them(tmp_path):
    from cosim.simulate.verilator import find_tool
    assert main([*SMALL, "--memories", "blackbox", "--out", str(tmp_path)]) == 0
    file, tool = next(tmp_path.glob("*.v")), find_tool()
    done = subprocess.run([str(tool.program), "--lint-only", "--top-module", file.stem, file.name], cwd=tmp_path,
                          capture_output=True, text=True, env=tool.environment())
    assert done.returncode == 0, done.stderr
