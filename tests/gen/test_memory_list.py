"""The list of memories beside the Verilog has those that Yosys finds there, where it finds them.

Covers: hbfp/hierarchy.py.
"""

import json
import re

import pytest

from gen.__main__ import main
from gen.memory_list import JSON, TEXT
from hbfp.hierarchy import modules, places
from synth.tools import yosys

ACCELERATOR = ["--top", "accelerator", "--rows", "4", "--block", "1,4"]


def written(folder, words):
    """The folder's manifest, Verilog and list of memories."""
    assert main([*words, "--out", str(folder)]) == 0
    manifest = json.loads((folder / "manifest.json").read_text())
    return manifest, (folder / manifest["verilog"]).read_text(), json.loads((folder / JSON).read_text())["memories"]


@pytest.mark.synth
@pytest.mark.parametrize("words", [
    ["--preset", "tiny"], ACCELERATOR,
    [*ACCELERATOR, "--memory-banks", "2", "--text", "plain"]], ids=lambda w: w[-1])
def test_those_of_yosys_where_they_are(words, tmp_path):
    manifest, _, rows = written(tmp_path, words)
    top, name = manifest["top"], manifest["verilog"]
    yosys.run(f"read_verilog {name}; hierarchy -top {top}; proc -norom; memory_collect; flatten; "
              "select -write found.txt t:$mem_v2; tee -o cells.txt dump t:$mem_v2", tmp_path)
    found = [line.removeprefix(f"{top}/").removesuffix(".contents")
             for line in (tmp_path / "found.txt").read_text().splitlines()]
    assert sorted(path for row in rows for path in row["places"]) == sorted(found) != []
    sizes = {}
    for cell in (tmp_path / "cells.txt").read_text().split("cell $mem_v2 ")[1:]:
        path = re.match(r"\\(\S+)\.contents", cell)[1]
        numbers = {key: int(value) for key, value in re.findall(r"parameter (?:signed )?\\(\w+) (\d+)$", cell, re.M)}
        sizes[path] = numbers["SIZE"], numbers["WIDTH"], numbers["RD_PORTS"]
    for row in rows:
        assert row["count"] == len(row["places"]) == len(set(row["places"]))
        for path in row["places"]:
            assert sizes[path] == (row["words"], row["bits"], 1)
    assert ({row["ports"]["read_or_write"] for row in rows} == {0}) == ("--memory-banks" not in words)


def test_enables_and_ports_are_those_of_the_text(tmp_path):
    manifest, text, rows = written(tmp_path, [*ACCELERATOR, "--memory-banks", "2"])
    found = modules(text)
    assert {row["name"]: row["count"] for row in rows} == {
        name: row["count"] for name, row in manifest["modules"].items() if row["kind"] == "ram"}
    for row in rows:
        body = re.search(rf"^module {row['name']}\(.*?^endmodule$", text, re.M | re.S)[0]
        width = re.search(r"^  input (?:\[(\d+):0\] )?w_en;$", body, re.M)[1]
        assert row["enables"] == int(width or 0) + 1 and row["enables"] * row["bits_per_enable"] == row["bits"]
        assert row["bytes"] == (row["bits_per_enable"] == 8)
        one = row["ports"] == {"read": 0, "write": 0, "read_or_write": 1}
        assert one == ("addr" in found[row["name"]].ports)


def test_the_text_has_a_line_for_each(tmp_path):
    _, _, rows = written(tmp_path, ["--preset", "tiny"])
    lines = (tmp_path / TEXT).read_text().splitlines()
    for row in rows:
        line, = (line.split() for line in lines if line.startswith(f"{row['name']} "))
        assert line[1:] == [str(row["words"]), str(row["bits"]), "1r1w", str(row["enables"]),
                            str(row["bits_per_enable"]), str(row["count"]),
                            str(row["words"] * row["bits"] * row["count"])]
    assert re.search(rf": {sum(row['count'] for row in rows)}, "
                     rf"{sum(row['words'] * row['bits'] * row['count'] for row in rows)} bits\.$", lines[0])


def test_a_part_without_memories_has_no_list(tmp_path, capsys):
    assert main(["--unit", "side", "--rows", "4", "--block", "1,4", "--out", str(tmp_path)]) == 0
    assert {path.suffix for path in tmp_path.iterdir()} == {".v", ".json"} and not (tmp_path / JSON).exists()
    assert JSON not in capsys.readouterr().out


def test_a_module_that_stands_twice_has_two_paths():
    text = ("module hbfp_ram(a);\n  input a;\nendmodule\n\nmodule hbfp_pair(a);\n  input a;\n"
            "  hbfp_ram one (\n    .a(a)\n  );\n  hbfp_ram two (\n    .a(a)\n  );\nendmodule\n\n"
            "module hbfp_top(a);\n  input a;\n  hbfp_pair left (\n    .a(a)\n  );\n"
            "  hbfp_pair right (\n    .a(a)\n  );\n"
            "  hbfp_ram mine (\n    .a(a)\n  );\nendmodule\n")
    assert places(modules(text), "hbfp_top", {"hbfp_ram", "hbfp_top"}) == {
        "hbfp_top": [""], "hbfp_ram": ["left.one", "left.two", "right.one", "right.two", "mine"]}


def test_states_that_go_on_in_the_next_line():
    text = ("module hbfp_top(clk);\n  input clk;\n  // Values of state, a_rather_long_name,\n  //   other: 0 IDLE, 1\n"
            "  //   RUN, 12 END.\n  // Bits of x: a 0.\nendmodule\n")
    meant = {0: "IDLE", 1: "RUN", 12: "END"}
    assert modules(text)["hbfp_top"].states == {"state": meant, "a_rather_long_name": meant, "other": meant}
