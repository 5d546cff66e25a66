"""What a design is compared with keeps its shape and drops what only blocks have."""

import pytest

from hbfp.options import design_from_values
from synth.compare.baselines import BASELINES, baseline

SHAPE = {"rows": 8, "cols": 4, "group": (4, 2), "depth": 64}
BLOCKS = [{"block": (1, 4), "accumulate": "aligned", "guard": 5, "growth": 7}, {"block": (1, 16), "share": 2},
          {"block": (1, 4), "wide": 8},
          {"block": (8, 8), "exponent": 6, "rounding": "stochastic", "subnormals": "gradual"}]


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("arithmetic", BASELINES)
def test_shape_stays_and_blocks_go(arithmetic, blocks):
    width = {"mantissa": 6} if arithmetic == "int" else {}
    want = design_from_values(SHAPE | {"arithmetic": arithmetic} | width)
    assert baseline(design_from_values(SHAPE | blocks | {"mantissa": 6}), arithmetic) == want


def test_group_and_pipeline_of_its_own():
    found = baseline(design_from_values(SHAPE), "fp32", group=(1, 4), pipeline=2)
    assert found == design_from_values(SHAPE | {"arithmetic": "fp32", "group": (1, 4), "pipeline": 2})
