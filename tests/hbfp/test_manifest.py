"""A manifest is the same before and after its file, and the file has what the manifest has, in its order."""

import json

from hbfp.design import Design
from hbfp.isa.registers import described
from hbfp.manifest import Field, Manifest, Module, Port, Stream
from hbfp.system import Accelerator

CORE = Manifest(
    top="core", verilog="core.v", ports={"x": Port("in", 8, True), "error": Port("out", 1)},
    streams={"i": Stream("in", 9, (Field("a", 0, 4, 2, True), Field("b", 8, 1, 1, False)))}, latency={"x": 3},
    modules={"core": Module("core", 1, "control", None, 4), "ram": Module("ram", 2, None, True, 4, (8, 8))},
    tools={"amaranth": "0.5"}, sha256="12", design=Design(),
    derived={"height": 32})
SYSTEM = Manifest(top="accelerator", verilog="a.v", accelerator=Accelerator(v_words=64), registers=described(),
                  memories={"ram_8x16": {"words": 8, "width": 16, "granularity": 4, "count": 2}})
PART = Manifest(top="fma", verilog="fma.v", unit="fp32.fma", parameters={"pipeline": 3})


def test_file_holds_the_manifest(tmp_path):
    for each in (CORE, SYSTEM, PART):
        (tmp_path / "manifest.json").write_text(each.text())
        assert Manifest.load(tmp_path) == Manifest.load(tmp_path / "manifest.json") == each
        assert Manifest.from_dict(each.as_dict()) == each


def test_file_has_one_order_and_leaves_out_what_is_not_there():
    assert list(json.loads(CORE.text())) == ["top", "verilog", "ports", "streams", "latency", "modules", "tools",
                                             "sha256", "design"]
    assert list(json.loads(PART.text()))[-2:] == ["unit", "parameters"]
    data = json.loads(CORE.text())
    assert data["ports"]["x"] == {"direction": "in", "width": 8, "signed": True}
    assert data["streams"]["i"]["fields"][1] == {"name": "b", "offset": 8, "width": 1, "count": 1, "signed": False}
    assert data["modules"] == {
        "core": {"kind": "core", "count": 1, "area": "control", "apart": None, "inline": 4},
        "ram": {"kind": "ram", "count": 2, "area": None, "apart": True, "inline": 4, "shape": [8, 8]}}
    assert data["design"].pop("derived") == {"height": 32}
    assert Design.from_dict(data["design"]) == CORE.design
