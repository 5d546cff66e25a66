# amaranth: UnusedElaboratable=no
"""The manifest says of the Verilog what is true."""

import hashlib
import json
import math
import re

import pytest

from gen.manifest import TOOLS
from hbfp.design import Design
from rtl.core.core import latencies
from tests.cases import sweep

from .emitted import DESIGNS, emitted, modules, ports

NAMES = sweep(3, DESIGNS)


@pytest.mark.parametrize("name", NAMES)
def test_ports_are_those_of_the_text(name):
    data = emitted(name).manifest
    got = ports(modules(emitted(name).text)[data["top"]])
    want = {port: (row["direction"], row["width"]) for port, row in data["ports"].items()}
    assert got == want | {"clk": ("in", 1), "rst": ("in", 1)}


@pytest.mark.parametrize("unit", ["align", "encode_lane", "group", "encode", "side"])
def test_ports_of_a_unit(unit):
    data = emitted("aligned", unit).manifest
    got = ports(modules(emitted("aligned", unit).text)[data["top"]])
    want = {port: (row["direction"], row["width"]) for port, row in data["ports"].items()}
    clock = {} if unit in ("align", "encode_lane") else {"clk": ("in", 1), "rst": ("in", 1)}
    assert got in (want | clock, want | {k: v for k, v in clock.items() if k == "clk"})


@pytest.mark.parametrize("name", NAMES)
def test_fields_cover_the_payload(name):
    """From bit 0 to the last, no gap, no overlap; widths and directions are the ports'."""
    data = emitted(name).manifest
    handshakes = set()
    for stream, row in data["streams"].items():
        offset = 0
        for field in row["fields"]:
            assert field["offset"] == offset
            offset += field["width"] * field["count"]
        assert offset == row["width"] == data["ports"][f"{stream}__payload"]["width"]
        against = {"in": "out", "out": "in"}[row["direction"]]
        assert [data["ports"][f"{stream}__{p}"]["direction"] for p in ("payload", "valid", "ready")] == [
            row["direction"], row["direction"], against]
        handshakes |= {f"{stream}__{p}" for p in ("payload", "valid", "ready")}
    assert set(data["ports"]) == handshakes | {"error"}


def field(data, stream, name):
    return next(row for row in data["streams"][stream]["fields"] if row["name"] == name)


@pytest.mark.parametrize("name", sweep(3, [name for name, values in DESIGNS.items() if "arithmetic" not in values]))
def test_fields_of_blocks(name):
    """The table of docs/design/01-core.md."""
    data, design = emitted(name).manifest, emitted(name).design
    fmt = design.format
    shapes = {(stream, row["name"]): (row["count"], row["width"], row["signed"])
              for stream, part in data["streams"].items() for row in part["fields"]}
    rows = design.depth.bit_length()
    want = {("i_cmd", "rows"): (1, rows, False), ("i_cmd", "tiles"): (1, 16, False)}
    want |= {("i_cmd", step): (1, 1, False) for step in ("scale", "bias", "relu")}
    for stream, lanes, scales in (("i_x", design.rows, design.segments), ("i_w", design.cols, design.cols),
                                  ("o_q", design.encode_lanes, 1)):
        want |= {(stream, "mantissa"): (lanes, fmt.mantissa, True), (stream, "exponent"): (scales, fmt.exponent, True),
                 (stream, "invalid"): (scales, 1, False)}
    want |= {("i_v", "value"): (design.cols, 32, False), ("o", "value"): (design.cols, 32, False),
             ("o", "last"): (1, 1, False), ("i_q", "value"): (design.encode_lanes, 32, False)}
    if fmt.rounding == "stochastic":
        want["i_seed", "value"] = (1, 32, False)
    if design.wide:    # docs/design/08-wide.md
        want |= dict.fromkeys([("i_cmd", "wide_x"), ("i_cmd", "wide_w"), ("i_q", "wide")], (1, 1, False))
        want["o_q", "mantissa"] = (design.encode_lanes, design.wide, True)
    assert shapes == want


def test_fields_of_baselines():
    for name, width in (("fp32", 32), ("bf16", 16), ("int", 4)):
        data = emitted(name).manifest
        assert [row["name"] for row in data["streams"]["i_x"]["fields"]] == ["mantissa"]
        assert field(data, "i_x", "mantissa")["width"] == width
        assert not {"i_q", "o_q"} & set(data["streams"])
    data, design = emitted("int").manifest, emitted("int").design
    assert "i_v" not in data["streams"]
    assert [row["name"] for row in data["streams"]["i_cmd"]["fields"]] == ["rows", "tiles"]
    assert field(data, "o", "value") == {"name": "value", "offset": 0, "width": design.accumulator_width,
                                         "count": design.cols, "signed": True}


@pytest.mark.parametrize("name", NAMES)
def test_design_and_derived_numbers(name):
    data, design = emitted(name).manifest, emitted(name).design
    stored = json.loads(json.dumps(data["design"]))
    derived = stored.pop("derived")
    assert stored == json.loads(json.dumps(design.as_dict()))
    assert derived["max_tiles"] == design.max_tiles
    assert derived == {key: getattr(design, key) for key in derived} and len(derived) == 13
    assert data["latency"] == latencies(design)


def test_memories_have_their_bits():
    data = emitted("tiny").manifest
    bits = {name: math.prod(row["shape"]) for name, row in data["modules"].items() if "shape" in row}
    sizes = {tuple(map(int, re.fullmatch(r"hbfp_ram_d(\d+)_w(\d+)(?:_g\d+)?", name).groups())) for name in bits}
    assert sorted(bits.values()) == sorted(depth * width for depth, width in sizes)
    assert (Design().depth, 4 * 32) not in sizes and (32, 4 * 32) in sizes    # an accumulator bank of this depth


def test_hash_and_tools():
    data = emitted("tiny").manifest
    assert data["sha256"] == hashlib.sha256(emitted("tiny").text.encode()).hexdigest()
    assert list(data["tools"]) == list(TOOLS) and all(re.match(r"\d", v) for v in data["tools"].values())
    assert data["verilog"] == f"{data['top']}.v"
