"""Products that a model's forward pass multiplies: operands by which its results can be computed again."""

import numpy as np
import pytest
import torch
from torch import nn

from golden.lower import operands


def found(monkeypatch, model, *inputs):
    monkeypatch.setattr(operands, "source", lambda text: (model.eval(), inputs))
    return operands.recorded("any")


def test_a_linear_layer(monkeypatch):
    model, x = nn.Linear(5, 3), torch.randn(7, 5)
    (rows, a, w), = found(monkeypatch, model, x)
    assert rows == 7
    np.testing.assert_allclose(a @ w + model.bias.detach().numpy(), model(x).detach(), atol=1e-6)


def test_rows_of_the_middle_are_kept(monkeypatch):
    x = torch.randn(operands.ROWS + 11, 2)
    (rows, a, _), = found(monkeypatch, nn.Linear(2, 3, bias=False), x)
    assert rows == operands.ROWS + 11
    np.testing.assert_array_equal(a, x[5:5 + operands.ROWS])


def test_a_convolution(monkeypatch):
    """Its terms are taps and channels, its rows the pixels of the first image; all images count."""
    model, x = nn.Conv2d(3, 4, (2, 3), stride=2, padding=1, bias=False), torch.randn(2, 3, 6, 7)
    (rows, a, w), = found(monkeypatch, model, x)
    y = model(x).detach().numpy()
    assert rows == 2 * y[0, 0].size
    np.testing.assert_allclose(a @ w, y[0].reshape(4, -1).T, atol=1e-5)
    np.testing.assert_array_equal(w[:3, 0], model.weight[0, :, 0, 0].detach())    # channels of the first tap


def test_attention_multiplies_activations(monkeypatch):
    """Two heads: scores and sums of each, between the projections."""
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    shapes = [(rows, a.shape, w.shape) for rows, a, w in found(monkeypatch, model, torch.randn(1, 5, 8))]
    assert shapes == [(5, (5, 8), (8, 24)), *[(5, (5, 4), (4, 5))] * 2, *[(5, (5, 5), (5, 4))] * 2,
                      (5, (5, 8), (8, 8)), (5, (5, 8), (8, 16)), (5, (5, 16), (16, 8))]


def test_depthwise_convolutions_are_no_products(monkeypatch):
    with pytest.raises(ValueError, match="^Model any has no matrix product$"):
        found(monkeypatch, nn.Conv2d(4, 4, 3, groups=4), torch.randn(1, 4, 5, 5))


def test_a_job_gives_its_first_model(monkeypatch):
    models = [nn.Linear(2, 3), nn.Linear(2, 4)]
    monkeypatch.setattr(operands, "source", lambda text: (models, [(torch.ones(1, 2),)] * 2))
    (_, _, w), = operands.recorded("job")
    assert w.shape == (2, 3)
