# amaranth: UnusedElaboratable=no
"""Parts that are emitted alone: which options they take, and what the manifest says of them.

Covers: gen/units.py.
"""

import json

import pytest

from gen.__main__ import main
from gen.units import CORE_UNITS, FREE_UNITS, make_part


@pytest.mark.parametrize("unit, options, top, latency", [
    ("fp32.fma", ["--pipeline", "3"], "hbfp_fma_gradual_p3", {"result": 3}),
    ("fp32.exp", ["--pipeline", "2"], "hbfp_function_flush_p2_exp", {"result": 2}),
    ("fp32.add", ["--subnormals", "flush"], "hbfp_add_flush", {"result": 0}),
    ("vector.lean", ["--lanes", "2", "--pipeline", "1", "--subnormals", "flush"],
     "hbfp_vector_l2_b16_r8_exp_recip_rsqrt_p1", {"pass": 6, "reduce": 2, "result": 5}),
])
def test_part_is_emitted_alone(tmp_path, capsys, unit, options, top, latency):
    assert main(["--unit", unit, *options, "--out", str(tmp_path)]) == 0
    data = json.loads((tmp_path / "manifest.json").read_text())
    assert (data["top"], data["unit"], data["latency"]) == (top, unit, latency)
    assert f"\nmodule {top}(" in (tmp_path / data["verilog"]).read_text()
    assert f"top {top}" in capsys.readouterr().out


@pytest.mark.parametrize("unit", [unit for unit in FREE_UNITS if unit != "dispatch"])    # that has sizes alone
def test_every_part_takes_the_common_options(unit):
    part = make_part(unit, {"pipeline": 1, "subnormals": "flush"})
    assert part.module != make_part(unit, {"pipeline": 0, "subnormals": "flush"}).module


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
    (["--unit", "fp32.fma", "--rows", "4"], "--rows 4: must not be given, fp32.fma has none"),
    (["--unit", "fp32.mul", "--ragged"], "--ragged: must not be given, fp32.mul has none"),
    (["--unit", "fp32.add", "--preset", "tiny"], "--preset tiny: must not be given, fp32.add has none"),
    (["--unit", "fp32.add", "--multiplier", "plain"], "--multiplier plain: must not be given, fp32.add has none"),
    (["--unit", "fp32.mul", "--multiplier", "big"],
     "--multiplier big: Multiplier must be one of plain, recoded, not 'big'"),
    (["--unit", "array", "--pipeline", "6"], "--pipeline 6: must be 0 to 5 where arithmetic is hbfp"),
    (["--unit", "fp32.add", "--pipeline", "two"], "--pipeline two: must be a whole number"),
    (["--unit", "vector", "--lanes", "two"], "--lanes two: must be 1 to 64"),
])
def test_wrong_option(capsys, arguments, message):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m gen: error: {message}\n"
