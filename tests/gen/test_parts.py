# amaranth: UnusedElaboratable=no
"""Parts that are emitted alone: which options they take, and what the manifest says of them.

Covers: gen/units.py.
"""

import json

import pytest

from gen.__main__ import main
from gen.units import CORE_UNITS, FREE_UNITS, NETWORKS, make_part
from hbfp.manifest import Manifest
from hbfp.system import FUNCTIONS
from tests.cases import sweep


@pytest.mark.parametrize("unit, options, top, latency", sweep(2, [
    ("fp32.add", ["--subnormals", "flush"], "hbfp_add_flush", {"result": 0}),
    ("fp32.fma", ["--pipeline", "3"], "hbfp_fma_gradual_p3", {"result": 3}),
    ("fp32.exp", ["--pipeline", "2"], "hbfp_function_flush_p2_exp", {"result": 2}),
    ("vector.lean", ["--lanes", "2", "--pipeline", "1", "--subnormals", "flush"],
     "hbfp_vector_l2_b16_r8_exp_recip_rsqrt_p1", {"pass": 6, "reduce": 2, "result": 5}),
    ("vector", ["--lanes", "4", "--functions", "rsqrt,exp", "--function-lanes", "2", "--pipeline", "1"],
     "hbfp_vector_l4_b16_r8_exp_rsqrt_p1_fl2", {"pass": 5, "reduce": 3, "result": 4, "function": 1, "turns": 2}),
    ("vector", ["--lanes", "1", "--functions", "none"], "hbfp_vector_l1_b16_r8_none",
     {"pass": 5, "reduce": 1, "result": 4}),
    ("butterfly", ["--pods", "8", "--copies", "4", "--width", "9"], "hbfp_butterfly_n8_w9_k4", {"result": 7}),
    ("crossbar", ["--pods", "2"], "hbfp_crossbar_n2_w32", {"result": 1}),
    ("benes", ["--pods", "4"], "hbfp_benes_n4_w32", {"result": 7}),
]))
def test_part_is_emitted_alone(tmp_path, capsys, unit, options, top, latency):
    assert main(["--unit", unit, *options, "--out", str(tmp_path)]) == 0
    data = json.loads((tmp_path / "manifest.json").read_text())
    assert (data["top"], data["unit"], data["latency"]) == (top, unit, latency)
    assert f"\nmodule {top}(" in (tmp_path / data["verilog"]).read_text()
    assert f"top {top}" in capsys.readouterr().out


@pytest.mark.parametrize("unit", [unit for unit in FREE_UNITS
                                  if unit not in ("dispatch", *NETWORKS)])    # those have sizes alone
def test_every_part_takes_the_common_options(unit):
    part = make_part(unit, {"pipeline": 1, "subnormals": "flush"})
    assert part.module != make_part(unit, {"pipeline": 0, "subnormals": "flush"}).module


@pytest.mark.parametrize("unit, fields", [
    ("butterfly", [("enable", 0, 1, 4), ("copy", 4, 1, 4), ("switch", 8, 1, 16)]),
    ("crossbar", [("enable", 0, 1, 4), ("source", 4, 2, 4)]),
    ("benes", [("enable", 0, 1, 4), ("switch", 4, 1, 28)]),
])
def test_manifest_has_the_settings_of_a_network(tmp_path, unit, fields):
    assert main(["--unit", unit, "--pods", "4", "--out", str(tmp_path)]) == 0
    found = Manifest.load(tmp_path)
    assert [(each.name, each.offset, each.width, each.count) for each in found.layouts["route"]] == fields
    assert found.ports["route"].width == sum(width * count for _, _, width, count in fields)
    assert Manifest.from_dict(json.loads(found.text())) == found


def test_names_differ():
    assert not set(FREE_UNITS) & set(CORE_UNITS)


@pytest.mark.parametrize("arguments, message", [
    (["--unit", "fp32.exp", "--pipeline", "9"], "--pipeline 9: Pipeline depth must be 0 to 6 cycles, not 9"),
    (["--unit", "fp32.exp", "--lanes", "2"], "--lanes 2: must not be given, fp32.exp has none"),
    (["--unit", "fp32.exp", "--subnormals", "gradual"],
     "--subnormals gradual: Subnormals must be one of flush, not 'gradual'"),
    (["--unit", "vector", "--subnormals", "gradual"], "--subnormals gradual: must not be given, vector has none"),
    (["--unit", "vector", "--lanes", "3"], "--lanes 3: Lanes must be a power of two, not 3"),
    (["--unit", "vector", "--lanes", "3", "--beats", "8"], "--unit vector: Lanes must be a power of two, not 3"),
    (["--unit", "vector", "--function-lanes", "3"], "--function-lanes 3: Function lanes must be a power of two, not 3"),
    (["--unit", "vector", "--function-lanes", "33"], "--function-lanes 33: must be 0 to 32"),
    (["--unit", "vector", "--lanes", "4", "--function-lanes", "8"],
     "--unit vector: Function lanes must be 0 to 4, not 8"),
    (["--unit", "vector", "--functions", "none", "--function-lanes", "2"],
     "--unit vector: Function lanes must be 0 where the unit has no function, not 2"),
    (["--unit", "vector", "--functions", "sin"],
     f"--functions sin: must be none, or of {', '.join(FUNCTIONS)}, each once"),
    (["--unit", "vector.lean", "--functions", "exp"], "--functions exp: must not be given, vector.lean has none"),
    (["--unit", "fp32.exp", "--functions", "exp"], "--functions exp: must not be given, fp32.exp has none"),
    (["--unit", "encode", "--function-lanes", "2"], "--function-lanes 2: must not be given, encode has none"),
    (["--unit", "fp32.fma", "--rows", "4"], "--rows 4: must not be given, fp32.fma has none"),
    (["--unit", "fp32.mul", "--ragged"], "--ragged: must not be given, fp32.mul has none"),
    (["--unit", "fp32.from_int", "--width", "30"], "--width 30: must not be given, fp32.from_int has none"),
    (["--unit", "fp32.add", "--preset", "tiny"], "--preset tiny: must not be given, fp32.add has none"),
    (["--unit", "fp32.add", "--multiplier", "plain"], "--multiplier plain: must not be given, fp32.add has none"),
    (["--unit", "fp32.mul", "--multiplier", "big"],
     "--multiplier big: Multiplier must be one of plain, recoded, not 'big'"),
    (["--unit", "array", "--pipeline", "8"], "--pipeline 8: must be 0 to 7 where arithmetic is hbfp"),
    (["--unit", "fp32.add", "--pipeline", "two"], "--pipeline two: must be a whole number"),
    (["--unit", "vector", "--lanes", "two"], "--lanes two: must be 1 to 64"),
    (["--unit", "butterfly", "--pods", "48"], "--pods 48: Ports must be a power of two, not 48"),
    (["--unit", "benes", "--pods", "48", "--width", "8"], "--unit benes: Ports must be a power of two, not 48"),
    (["--unit", "crossbar", "--pods", "1"], "--pods 1: must be 2 to 1024"),
    (["--unit", "butterfly", "--copies", "3"], "--copies 3: Copies must be one of 1, 2, 4, 8, 16, not 3"),
    (["--unit", "butterfly", "--width", "0"], "--width 0: must be 1 to 4096"),
    (["--unit", "crossbar", "--copies", "2"], "--copies 2: must not be given, crossbar has none"),
    (["--unit", "butterfly", "--ports", "8"], "unrecognized arguments: --ports 8"),
    (["--pods", "8"], "--pods 8: must not be given, core has none"),
])
def test_wrong_option(capsys, arguments, message):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m gen: error: {message}\n"
