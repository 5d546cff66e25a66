"""Errors of sparsity with quantisation are what their definition says, of every layer."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden.bfp import decode, encode  # noqa: E402
from golden.formats import names  # noqa: E402
from golden.formats.coded import rounded  # noqa: E402
from golden.study.interplay import CASES, Row, errors, measure, picture, values  # noqa: E402


def test_hand_made():
    """INT8 with scale 1 rounds 2.5 and 1.5 to 2: of the tie the first stays, so that the orders differ."""
    w, x = np.float32([[127], [1.5], [2.5], [0]]), np.float32([[127, 1, 1, 0]])
    weights, outputs = errors(x, w, "int8")
    size, total = (127 ** 2 + 1.5 ** 2 + 2.5 ** 2) ** 0.5, 127 ** 2 + 4
    assert weights == pytest.approx(
        {"sparsity": 1.5 / size, "quantisation": 0.5 ** 0.5 / size,
         "sparsify-quantise": (1.5 ** 2 + 0.5 ** 2) ** 0.5 / size,
         "quantise-sparsify": (0.5 ** 2 + 2.5 ** 2) ** 0.5 / size})
    assert outputs == pytest.approx({"sparsity": 1.5 / total, "quantisation": 0,
                                     "sparsify-quantise": 2 / total, "quantise-sparsify": 2 / total})
    row = Row("", "int8", weights, outputs)
    assert tuple(weights) == CASES and row.beyond("sparsify-quantise") == pytest.approx(4 / 3)
    assert Row("", "", {}, {"sparsity": 1, "quantisation": 3, "sparsify-quantise": 5}).beyond(CASES[2]) == 1.25


def test_values():
    x = np.random.default_rng(0).standard_normal((40, 70)).astype(np.float32)
    for axis in (0, -1):
        np.testing.assert_array_equal(values(x, "hbfp5", axis), decode(encode(x, names.read("hbfp5"), axis=axis)))
        np.testing.assert_array_equal(values(x, "mxfp6-e2m3", axis),
                                      rounded(x, names.read("mxfp6-e2m3"), axis=axis))


def test_inputs_are_quantised_with_the_weights():
    x = np.float32([[1, 0.4]])
    outputs = errors(x, np.float32([[1], [1]]), "hbfp2", 2, 2)[1]
    assert outputs["sparsity"] == 0 and outputs["quantisation"] > 0.1


def test_every_layer(tmp_path):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
    x = torch.randn(50, 32)
    rows = measure(net, x, ["hbfp4", "mxfp8-e4m3"])
    assert [(row.layer, row.format) for row in rows] == [(a, b) for a in "02" for b in ("hbfp4", "mxfp8-e4m3")]
    inside = net[:2](x).detach().numpy()
    assert rows[2].outputs == errors(inside, np.ascontiguousarray(net[2].weight.detach().numpy().T), "hbfp4")[1]
    assert not any(layer._forward_hooks for layer in net)
    picture(rows, tmp_path / "errors.png")
    assert (tmp_path / "errors.png").read_bytes()[:4] == b"\x89PNG"
