"""A network on a device: every result in order, as the core computes it."""

import numpy as np
import pytest

from golden.bfp import Blocks
from golden.core import core
from golden.core.device import Golden, Layer, forward, quantise
from hbfp.design import Design
from hbfp.format import HBFPFormat


def network(seed=0):
    rng = np.random.default_rng(seed)
    sizes = (9, 6, 3)
    layers = [Layer(rng.standard_normal(pair).astype(np.float32), rng.standard_normal(pair[1]).astype(np.float32), relu)
              for pair, relu in zip(zip(sizes, sizes[1:], strict=False), (True, False), strict=True)]
    return rng.standard_normal((5, 9)).astype(np.float32), layers


def test_blocks_are_encoded_before_every_product():
    design = Design(format=HBFPFormat(mantissa=4, block=(1, 4)), rows=4)
    x, layers = network()
    results = list(forward(Golden(design), x, layers))
    assert [name for name, _ in results] == [f"layer {number} {what}" for number in (1, 2)
                                             for what in ("weight", "input", "output")]
    assert all(isinstance(value, Blocks) for name, value in results if "output" not in name)
    for layer in layers:
        x = core.matmul(design, x, layer.weight, bias=layer.bias, relu=layer.relu)
    np.testing.assert_array_equal(results[-1][1], x)
    assert (results[2][1] >= 0).all() and (x < 0).any()


@pytest.mark.parametrize("arithmetic", ["fp32", "bf16"])
def test_floats_go_in_as_they_are(arithmetic):
    design = Design(arithmetic=arithmetic, rows=4)
    x, layers = network()
    results = dict(forward(Golden(design), x, layers))
    assert list(results) == ["layer 1 output", "layer 2 output"]
    hidden = core.matmul(design, x, layers[0].weight, bias=layers[0].bias, relu=True)
    np.testing.assert_array_equal(results["layer 2 output"],
                                  core.matmul(design, hidden, layers[1].weight, bias=layers[1].bias))


def test_integers_leave_scale_bias_and_relu_to_the_host():
    x, layers = network()
    results = dict(forward(Golden(Design(arithmetic="int", format=HBFPFormat(mantissa=8), rows=4)), x, layers))
    assert list(results) == ["layer 1 sums", "layer 2 sums", "scores"]
    exact = np.maximum(x @ layers[0].weight + layers[0].bias, 0) @ layers[1].weight + layers[1].bias
    assert np.abs(results["scores"] - exact).max() < 0.2
    assert results["layer 1 sums"].dtype == np.int64


def test_int8_has_its_scales_in_the_side_unit():
    x, layers = network()
    results = dict(forward(Golden(Design(arithmetic="int8", rows=4)), x, layers))
    exact = np.maximum(x @ layers[0].weight + layers[0].bias, 0) @ layers[1].weight + layers[1].bias
    assert list(results) == ["layer 1 output", "layer 2 output"]
    assert 0 < np.abs(results["layer 2 output"] - exact).max() < 0.2


@pytest.mark.parametrize("values, mantissa, want, step", [
    ([1.0, -2.0, 0.5], 3, [2, -3, 1], 2 / 3), ([3.0, 1.5, -0.5], 3, [3, 2, 0], 1.0), ([0.0, 0.0], 8, [0, 0], 1.0)])
def test_one_scale_a_tensor_and_ties_to_even(values, mantissa, want, step):
    integers, got = quantise(np.array(values, np.float32), mantissa)
    assert integers.tolist() == want and got == pytest.approx(step)
