"""Published formulas with published primitives give the published ratios."""

import pytest

from hbfp.figures import figure
from synth.compare.published import FIXED, block_dot, block_element, float_dot, float_element


@pytest.mark.parametrize("width, accumulate, ratio", [
    *((width, "bf16", figure(f"prices.areas.fp32_over_hbfp{width}.value")) for width in (4, 6, 8)),
    (4, "fp32", 16.68), (6, "fp32", 10.87), (8, "fp32", 7.48),
])
def test_element_of_a_tile_of_16(width, accumulate, ratio):
    """Accuracy Boosters (arXiv 2211.10737 v3), FP32 over HBFP."""
    assert float_element("fp32") / block_element(width, 16, accumulate) == pytest.approx(ratio, abs=0.006)


def test_bf16_over_hbfp4():
    assert round(float_element("bf16") / block_element(4, 16), 2) == 4.41


def test_hbfp8_over_hbfp6():
    assert round(sum(FIXED[8].values()) / sum(FIXED[6].values()), 2) == 1.65


@pytest.mark.parametrize("terms, ratios", [
    (128, {width: figure(f"dot_product.one.hbfp{width}.published") for width in (4, 6, 8)}),
    (576, {4: 17.69, 6: 10.81, 8: 7.23})])
def test_dot_product_with_converters(terms, ratios):
    """Accuracy Boosters (arXiv 2211.10737 v1), FP32 over HBFP."""
    for width, ratio in ratios.items():
        assert round(float_dot("fp32", terms) / block_dot(width, terms), 2) == ratio
