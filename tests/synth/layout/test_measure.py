"""A block laid out, read back: lengths, capacitances, the netlist; and laid out for real where there are the programs.

Covers: synth/layout/drawn.py, synth/layout/flow.py, synth/layout/netlist.py, synth/layout/picture.py,
synth/layout/tools.py, synth/command/layout.py.
"""

import json
import shutil

import pytest

from synth.__main__ import main
from synth.layout import netlist, tools
from synth.layout.drawn import Block, Technology, Wire
from synth.layout.measure import FILL, Layout
from synth.layout.picture import draw

LEF = """\
LAYER metal1
  TYPE ROUTING ;
  WIDTH 0.5 ;
  CAPACITANCE CPERSQDIST 2e-05 ;
  EDGECAPACITANCE 4e-05 ;
END metal1

LAYER via
  TYPE CUT ;
END via

MACRO INV
  SIZE 2.0 BY 10.0 ;
END INV

MACRO FILL
  SIZE 1.0 BY 10.0 ;
END FILL
"""
DEF = """\
UNITS DISTANCE MICRONS 100 ;
DIEAREA ( -100 0 ) ( 900 1000 ) ;
COMPONENTS 3 ;
- one INV + PLACED ( 0 0 ) N ;
- two INV + PLACED ( 300 0 ) FS ;
- FILL_0 FILL + PLACED ( 500 0 ) N ;
END COMPONENTS
NETS 3 ;
- a[0]
  ( PIN a[0] )
  ( one A )
+ ROUTED metal1 ( 0 0 ) ( 250 * )
  NEW metal1 ( 250 0 ) ( * 100 ) via12 ;
- n
  ( one Y )
  ( two A )
+ ROUTED metal1 ( 0 0 ) ( 100 0 ) ( * 300 ) ;
- y
  ( two Y )
  ( PIN y ) ;
END NETS
"""
DRIVES = {"INV": "Y"}


@pytest.fixture
def laid_out(tmp_path):
    (tmp_path / "a.lef").write_text(LEF)
    (tmp_path / "a.def").write_text(DEF)
    return Block.read(tmp_path / "a.def"), Technology.read(tmp_path / "a.lef")


def test_what_the_files_say(laid_out):
    block, technology = laid_out
    assert block.cells == {"one": ("INV", 0, 0), "two": ("INV", 3, 0), "FILL_0": ("FILL", 5, 0)}
    assert block.corners == ((-1, 0), (9, 10)) and technology.cells == {"INV": (2, 10), "FILL": (1, 10)}
    assert list(technology.layers) == ["metal1"]
    assert block.nets["a[0]"].pins == [("PIN", "a[0]"), ("one", "A")]
    assert block.nets["a[0]"].wires == [Wire("metal1", (0, 0), (2.5, 0)), Wire("metal1", (2.5, 0), (2.5, 1))]
    assert [each.length for each in block.nets["n"].wires] == [1, 3] and not block.nets["y"].wires


def test_what_wires_add(laid_out):
    block, technology = laid_out
    added = netlist.capacitances(block, technology)
    each = 0.5 * 2e-5 + 2 * 4e-5
    assert added == pytest.approx({"a[0]": 3.5 * each, "n": 4 * each, "y": 0})
    text = netlist.spef("block", block, added, DRIVES)
    assert f"*D_NET n {4 * each:.6g}\n*CONN\n*I one:Y O\n*I two:A I\n*CAP\n1 one:Y {4 * each:.6g}\n*RES\n" in text
    assert text.count("*D_NET") == 1    # a port drives the other
    figures = Layout("top", block, technology, added, 0.01, 1.0, 2.0).as_dict()
    assert figures["cells"] == 2 and figures["cells_um2"] == 40 and figures["block_um2"] == 100
    assert figures["area_added"] == pytest.approx(1.5) and figures["wire_um"] == 7.5 and figures["sinks"] == 3
    assert figures["capacitance_added"] == pytest.approx(7.5 * each / 0.01)


def test_netlist(laid_out):
    block, _ = laid_out
    text = netlist.verilog("block", block, frozenset({"y"}))
    assert text.splitlines()[0] == "module block(\\a[0] , y);"
    assert "  input \\a[0] ;" in text and "  output y;" in text and "  wire n;" in text
    assert "  INV one (.A(\\a[0] ), .Y(n));" in text and FILL not in text


def test_picture(laid_out, tmp_path):
    block, technology = laid_out
    draw(tmp_path / "a.png", Layout("top", block, technology, {}, 1.0, None, None), "title")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_what_is_lacking_is_named(monkeypatch):
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    monkeypatch.setattr(tools, "LEF", tools.TECHNOLOGY / "nothing")
    with pytest.raises(tools.SynthError, match=r"^Laying out needs the Debian packages graywolf qrouter qflow "
                       r"qflow-tech-osu018, of which graywolf qrouter .*qflow-tech-osu018 cannot be found: apt"):
        tools.check()


def test_generic_gates_have_no_geometry(capsys):
    with pytest.raises(SystemExit):
        main(["layout", "--recipe", "generic"])
    assert "--recipe generic: must be one of " in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("graywolf") and shutil.which("qrouter")), reason="needs GrayWolf and qrouter")
def test_a_group_is_laid_out(tmp_path):
    words = ["layout", "--rows", "4", "--block", "1,4", "--mantissa", "3", "--json", str(tmp_path / "a.json")]
    assert main(words) == 0
    found = json.loads((tmp_path / "a.json").read_text())
    assert 0 < found["area_added"] < 0.2 and found["wire_um"] > 10 * found["cells"]
