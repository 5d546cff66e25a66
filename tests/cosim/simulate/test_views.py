"""Views of dumps: signals that they name are in the dump, ports of all units are shown, and states have names."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.accelerator.device import Device
from cosim.emit import emit, emit_accelerator
from cosim.simulate.views import groups, signals, write_views
from cosim.work.waves import write_waves
from hbfp.options import design_from_values
from rtl.accelerator.control import State as Control
from rtl.accelerator.walk import State as Walk
from tests.cosim.accelerator.built import ACCELERATOR

HEAD = """\
$timescale 1ps $end
$scope module TOP $end
 $var wire 1 ! clk $end
 $scope module hbfp_top $end
  $var wire 1 ! clk $end
  $var wire 4 " i__payload [3:0] $end
  $scope module one $end
   $var wire 5 # state [4:0] $end
  $upscope $end
 $upscope $end
$upscope $end
$enddefinitions $end
#0
b0000 "
"""


def core(folder):
    """A small core, and its dump."""
    manifest = emit(design_from_values({"rows": 2, "cols": 2, "block": (1, 2), "depth": 4}))
    return manifest, write_waves(manifest, folder / "core.vcd")


def accelerator(folder):
    """A small accelerator, and the dump of its reset."""
    small = replace(ACCELERATOR.core, rows=4, cols=4, group=None)
    system = replace(ACCELERATOR, core=small, vector_lanes=2, function_lanes=1)
    manifest, memory = emit_accelerator(system), np.zeros(1 << 12, np.uint8)
    with Device(manifest.verilog, manifest.top, beat=system.beat, memory=memory, burst=system.burst, level="-O0",
                waves=folder / "core.vcd"):
        pass
    return manifest, folder / "core.vcd"


def of_dump(path):
    """Names in the head of a VCD file, as GTKWave has them."""
    scope, found = [], set()
    for line in path.read_text().splitlines():
        words = line.split()
        if words[0] == "$scope":
            scope.append(words[2])
        elif words[0] == "$upscope":
            scope.pop()
        elif words[0] == "$var":
            found.add(".".join([*scope, "".join(words[4:-1])]))
        elif words[0] == "$enddefinitions":
            return found


@pytest.mark.cosim
@pytest.mark.parametrize("made, units", [
    (core, {"sequencer", "array", "encode", "accumulator0"}),
    (accelerator, {"control", "fetch", "issue", "load", "store", "core", "convert", "vector"})])
def test_what_the_views_name(made, units, tmp_path):
    manifest, dump = made(tmp_path)
    gtkwave, surfer = (path.read_text().splitlines() for path in write_views(manifest, dump))
    known = of_dump(dump)
    traces = [line for line in gtkwave if line.startswith("TOP.")]
    added = [line.removeprefix("variable_add ") for line in surfer if line.startswith("variable_add ")]
    assert set(traces) <= known and len(set(traces)) == len(traces) > 60
    assert added == [re.sub(r"\[.*", "", trace) for trace in traces]
    found = groups(manifest, dump)
    assert units <= set(found) and [line.split()[1] for line in surfer if line.startswith("divider_add")] == list(found)
    for name in found:
        assert gtkwave.count(f"-{name}") == 2    # its begin and its end
    ports = {f"TOP.{manifest.top}.{port}" for port in manifest.ports}
    assert ports <= set(added)
    for unit in units:    # all that Verilator has of a unit's own scope and the Verilog says is a port
        body = re.search(rf"^  (hbfp_\w+) {unit} \(", manifest.verilog.read_text(), re.M)[1]
        text = re.search(rf"^module {body}\(.*?^endmodule$", manifest.verilog.read_text(), re.M | re.S)[0]
        names = set(re.findall(r"^  (?:in|out)put (?:reg )?(?:\[\d+:0\] )?(\w+);", text, re.M)) - {"clk", "rst"}
        assert {f"TOP.{manifest.top}.{unit}.{name}" for name in names} <= set(added)


@pytest.mark.cosim
def test_states_have_names(tmp_path):
    manifest, dump = accelerator(tmp_path)
    gtkwave, surfer = (path.read_text().splitlines() for path in write_views(manifest, dump))
    shown = [line.split(maxsplit=1)[1] for line in surfer if re.match("divider|variable", line)]
    for path, states in (("control.state", Control), ("load.walk.state", Walk), ("store.walk.state", Walk)):
        file = tmp_path / ".surfer" / "mappings" / f"core_{path.replace('.', '_')}.txt"
        bits = max(states).bit_length()
        assert file.read_text().splitlines() == [f"Bits = {bits}", *(f"{int(each)} {each.name}" for each in states)]
        place = gtkwave.index(f"TOP.{manifest.top}.{path}[{bits - 1}:0]")
        assert re.fullmatch(rf"\^\d+ {re.escape(str(file))}", gtkwave[place - 1])
        focus = surfer.index(f"item_set_format {file.stem}") - 1
        letters, name = surfer[focus].removeprefix("item_focus ").split("_", 1)
        assert name == shown[int("".join(f"{'abcdefghijklmnop'.index(each):x}" for each in letters), 16)]
        assert name == f"TOP.{manifest.top}.{path}" and surfer[focus + 2] == "item_unfocus"


def test_the_head_of_a_dump(tmp_path):
    (tmp_path / "a.vcd").write_text(HEAD)
    assert signals(tmp_path / "a.vcd") == {
        ("TOP",): {"clk": ""}, ("TOP", "hbfp_top"): {"clk": "", "i__payload": "[3:0]"},
        ("TOP", "hbfp_top", "one"): {"state": "[4:0]"}}


def test_what_the_dump_lacks_is_left_out(tmp_path):
    """Verilator drops what it finds useless; a view that named it would be refused."""
    (tmp_path / "a.vcd").write_text(HEAD)
    (tmp_path / "a.v").write_text(
        "module hbfp_one(clk, gone);\n  input clk;\n  input gone;\n  // Values of state, lost: 0 IDLE, 16 RUN.\n"
        "endmodule\n\nmodule hbfp_top(clk, i__payload, o__payload);\n  input clk;\n  input [3:0] i__payload;\n"
        "  output [3:0] o__payload;\n  hbfp_one one (\n    .clk(clk)\n  );\nendmodule\n")

    class Manifest:
        verilog, top = Path(tmp_path / "a.v"), "hbfp_top"
    found = {name: [each.path + each.range for each in rows] for name, rows in
             groups(Manifest, tmp_path / "a.vcd").items()}
    assert found == {"top": ["TOP.hbfp_top.clk"], "i": ["TOP.hbfp_top.i__payload[3:0]"],
                     "one": ["TOP.hbfp_top.one.state[4:0]"]}
    write_views(Manifest, tmp_path / "a.vcd")
    assert (tmp_path / ".surfer/mappings/a_one_state.txt").read_text() == "Bits = 5\n0 IDLE\n16 RUN\n"
    assert (tmp_path / "a.sucl").read_text().splitlines()[-4:] == [
        "variable_add TOP.hbfp_top.one.state", "item_focus f_TOP.hbfp_top.one.state", "item_set_format a_one_state",
        "item_unfocus"]
