# amaranth: UnusedElaboratable=no
"""Every module of the text is told by a comment: what it is, its parameters, its latency, its page."""

import re

import pytest

from gen.emit import Emitter, verilog
from gen.heading import COLUMNS, PAGES, comment, ports
from gen.units import make_part, make_unit
from hbfp.files import ROOT
from hbfp.options import design_from_values

SMALL = {"rows": 2, "block": (1, 2), "depth": 8}


def test_lines_of_a_comment():
    text = comment(make_part("fp32.add", {"pipeline": 2}))
    assert text == (
        "// hbfp_add_gradual_p2: Sum o = a + b. Golden twin: golden.fp32.add.\n"
        "// Parameters: fmt = FloatFormat(exponent = 8, fraction = 23), subnormals = gradual, pipeline = 2, enable =\n"
        "//   True, underflow = signed.\n"
        "// Latency in cycles: result = 2.\n"
        "// Documented in docs/design/02-fp32-arithmetic.md.\n")


@pytest.mark.parametrize("make", [
    lambda: make_unit("core", design_from_values(SMALL)),
    pytest.param(lambda: make_unit("core", design_from_values(
        SMALL | {"accumulate": "aligned", "multiplier": "recoded"})), marks=pytest.mark.slow),
    lambda: make_part("vector.lean", {"lanes": 2}), lambda: make_part("dispatch", {"depth": 4}),
    lambda: make_part("butterfly", {"pods": 4}), lambda: make_part("crossbar", {"pods": 4})],
    ids=["core", "aligned", "vector", "dispatch", "butterfly", "crossbar"])
def test_every_module_has_its_comment(make):
    emitter = Emitter()
    emitter.convert(make())
    text = verilog(emitter)
    names = re.findall(r"^module (\w+)\(", text, re.MULTILINE)
    assert sorted(names) == sorted(emitter.cells)
    for name in names:
        head, = re.findall(rf"^module {name}\(([^)]*)\);$", text, re.MULTILINE)
        assert f"{comment(emitter.cells[name])}module {name}({head});" in text
        assert all(len(line) <= COLUMNS for line in f"module {name}({head});".split("\n"))
        named = re.split(r",\s+", head)
        assert named == ports(emitter.cells[name], named)
        body = re.search(rf"^module {name}\(.*?^endmodule$", text, re.MULTILINE | re.DOTALL)[0]
        assert sorted(named) == sorted(re.findall(r"^  (?:in|out)put (?:reg )?(?:\[.*?\] )?(\w+)\b.*;$", body,
                                                  re.MULTILINE))
    assert "``" not in text and ":func:" not in text
    assert "initial" not in re.sub(r"//.*|initial wakes <= 0;", "", text)


def test_ports_in_order():
    """Clock, reset, inputs, outputs; signals of a stream stay together, and what is not there is left out."""
    encode = make_unit("encode", design_from_values(SMALL))
    declared = {"o__ready", "clk", "i__valid", "rst", "o__valid", "i__payload", "o__payload", "i__ready"}
    order = ["clk", "rst", "i__payload", "i__valid", "i__ready", "o__payload", "o__valid", "o__ready"]
    assert ports(encode, declared) == order
    assert ports(encode, declared - {"rst", "i__payload"}) == [name for name in order
                                                              if name not in ("rst", "i__payload")]
    add = make_part("fp32.add", {"pipeline": 2})
    assert ports(add, {"o", "b", "a", "en", "clk"}) == ["clk", "en", "a", "b", "o"]


def test_pages_exist():
    for page in PAGES.values():
        assert (ROOT / page).is_file(), page
