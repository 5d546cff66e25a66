# amaranth: UnusedElaboratable=no
"""Every module of the text is told by a comment: what it is, its parameters, its latency, its page."""

import re

import pytest

from gen.emit import Emitter, verilog
from gen.heading import PAGES, comment
from gen.units import make_part, make_unit
from hbfp.files import ROOT
from hbfp.options import design_from_values

SMALL = {"rows": 4, "block": (1, 4), "depth": 8}


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
    lambda: make_unit("core", design_from_values(SMALL | {"accumulate": "aligned", "multiplier": "recoded"})),
    lambda: make_part("vector.lean", {"lanes": 2}), lambda: make_part("dispatch", {"depth": 4})],
    ids=["core", "aligned", "vector", "dispatch"])
def test_every_module_has_its_comment(make):
    emitter = Emitter()
    emitter.convert(make())
    text = verilog(emitter)
    names = re.findall(r"^module (\w+)\(", text, re.MULTILINE)
    assert sorted(names) == sorted(emitter.cells)
    for name in names:
        assert f"{comment(emitter.cells[name])}module {name}(" in text
    assert "``" not in text and ":func:" not in text and "initial" not in re.sub(r"//.*", "", text)


def test_pages_exist():
    for page in PAGES.values():
        assert (ROOT / page).is_file(), page
