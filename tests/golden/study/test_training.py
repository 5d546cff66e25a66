"""Products of a training run: what goes in gives what comes out, at the width that the schedule says."""

import numpy as np
import pytest

from golden.core.core import matmul
from golden.core.device import Golden
from golden.schedule import MixedMantissa
from golden.study.training import products
from hbfp.design import Design
from hbfp.format import HBFPFormat


@pytest.mark.parametrize("block, accumulate", [((1, 16), "fp32"), ((8, 8), "fp32"), ((1, 16), "aligned")])
def test_products_of_every_layer_in_both_directions(block, accumulate):
    design = Design(format=HBFPFormat(mantissa=4, block=block), rows=8, cols=8, wide=6, accumulate=accumulate)
    schedule, golden = MixedMantissa(base=4, boosted=6, epochs=2), Golden(design)
    found = list(products(schedule, design.format, accumulate, steps=2))
    for each in found:
        wide = each.mantissa == 6
        x, w = golden.encode(each.x, wide=wide), golden.encode(each.w, -2, wide=wide)
        got = matmul(design, x, w, bias=each.bias)
        assert np.array_equal(got.view(np.uint32), np.ascontiguousarray(each.result).view(np.uint32)), each.name
    names = [f"epoch {epoch} step {step} layer {layer} {which}" for epoch in (1, 2) for step in (1, 2)
             for layer in (1, 2, 3) for which in ("y", "gx", "gw") if (layer, which) != (1, "gx")]
    assert [each.name for each in found] == names
    assert [each.mantissa for each in found if "step 1" in each.name] == [6] * 2 + [4] * 3 + [6] * 3 + [6] * 8
