"""What a design is compared with keeps its shape and drops what only blocks have."""

import pytest

from hbfp import describe
from hbfp.arithmetic import KINDS
from hbfp.design import Design
from hbfp.options import design_from_values
from synth.compare.baselines import BASELINES, baseline
from tests.hbfp.other_values import OTHER

SHAPE = {"rows": 8, "cols": 4, "group": (4, 2), "depth": 64}
BLOCKS = [{"block": (1, 4), "accumulate": "aligned", "guard": 5, "growth": 7}, {"block": (1, 16), "share": 2},
          {"block": (1, 4), "wide": 8},
          {"block": (8, 8), "exponent": 6, "rounding": "stochastic", "subnormals": "gradual"}]


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("arithmetic", BASELINES)
def test_shape_stays_and_blocks_go(arithmetic, blocks):
    width = {"mantissa": 6, "growth": blocks.get("growth")} if arithmetic == "int" else {}
    want = design_from_values(SHAPE | {"arithmetic": arithmetic} | width)
    assert baseline(design_from_values(SHAPE | blocks | {"mantissa": 6}), arithmetic) == want


def test_group_and_pipeline_of_its_own():
    found = baseline(design_from_values(SHAPE), "fp32", group=(1, 4), pipeline=2)
    assert found == design_from_values(SHAPE | {"arithmetic": "fp32", "group": (1, 4), "pipeline": 2})


@pytest.mark.parametrize("option", OTHER)
@pytest.mark.parametrize("arithmetic", BASELINES)
def test_every_option_has_a_baseline(arithmetic, option):
    """What serves the other numbers stays as it is, the rest has its default."""
    mine = design_from_values({"rows": 8, "cols": 8} | OTHER[option])
    found = baseline(mine, arithmetic)
    unserved = describe.unserved(Design, KINDS[arithmetic].use)
    apart = {"arithmetic": arithmetic, "pipeline": 0, "fabric": "gates"}
    assert describe.flat(found) == describe.flat(mine) | {
        name: default for name, (_, default) in unserved.items()} | apart
    with_registers = baseline(mine, "fp32", (1, 2), 2)
    assert (with_registers.pipeline, with_registers.fabric) == (2, mine.fabric)
