"""Layers of sequences in training: stacked products, norms, recurrent layers, losses, what a model writes by hand.

Covers: golden/lower/operations/products.py, golden/lower/operations/vector.py, golden/ops/norms.py.
"""

import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.errors import LoweringError
from tests.cases import sweep

from .steps import MACHINES, follow

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("costs")]


class Made(nn.Module):
    """Layers by name, and what forward does with them."""

    def __init__(self, forward, **layers):
        super().__init__()
        self.hidden, self.classes, self.does = nn.Linear(11, 12), nn.Linear(12, 10), forward
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, *given):
        return self.does(self, *given)


def encoder(layers=1, **options):
    layer = nn.TransformerEncoderLayer(12, 2, 20, dropout=0.0, batch_first=True, **options)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def pooled(layer):
    return Made(lambda own, x: own.classes(own.layer(own.hidden(x)).mean(1)), layer=layer)


def last(layer):
    def forward(own, x):
        y = own.layer(own.hidden(x))
        return own.classes((y[0] if isinstance(y, tuple) else y)[:, -1])
    return Made(forward, layer=layer)


def swiglu():
    return Made(lambda own, x: own.classes(F.silu(own.hidden(x)) * own.gate(x)).mean(1), gate=nn.Linear(11, 12))


def with_token():
    def forward(own, x):
        y = torch.cat([own.token.expand(len(x), -1, -1), own.hidden(x)], 1) + own.places
        return own.classes(own.layer(y)[:, 0])
    return Made(forward, token=nn.Parameter(torch.randn(1, 1, 12)), places=nn.Parameter(torch.randn(6, 12)),
                layer=nn.LayerNorm(12))


def two_of_one():
    """Two parameters of which only the sum is read have one gradient; one parameter is read twice."""
    def forward(own, x):
        return (torch.tanh(own.hidden(x) + (own.one + own.other)) @ own.hidden.weight).mean(1) @ own.classes.weight.t()
    made = Made(forward, one=nn.Parameter(torch.randn(12)), other=nn.Parameter(torch.randn(12)))
    made.classes = nn.Linear(11, 10, bias=False)
    return made


MODELS = {
    "encoder": lambda: pooled(encoder()), "two": lambda: pooled(encoder(2, norm_first=True, activation="gelu")),
    "norm first": lambda: Made(lambda own, x: own.classes(own.hidden(own.layer(x)).mean(1)), layer=nn.LayerNorm(11)),
    "layer norm": lambda: pooled(nn.LayerNorm(12)), "no bias": lambda: pooled(nn.LayerNorm(12, bias=False)),
    "plain norm": lambda: pooled(nn.LayerNorm(12, elementwise_affine=False)),
    "two dimensions": lambda: pooled(nn.LayerNorm((3, 12))), "rms norm": lambda: pooled(nn.RMSNorm(12)),
    "group norm": lambda: Made(lambda own, x: own.classes(own.layer(own.hidden(x).mT).mT.mean(1)),
                               layer=nn.GroupNorm(3, 12)),
    "gelu": lambda: pooled(nn.GELU("tanh")), "swiglu": swiglu, "token": with_token, "two of one": two_of_one,
    "softplus": lambda: pooled(nn.Softplus()), "mish": lambda: pooled(nn.Mish()), "glu": lambda: Made(
        lambda own, x: own.classes(F.glu(own.wide(own.hidden(x)))).mean(1), wide=nn.Linear(12, 24)),
    "log sigmoid": lambda: pooled(nn.LogSigmoid()), "in place": lambda: pooled(nn.ReLU(inplace=True)),
    "lstm": lambda: last(nn.LSTM(12, 12, batch_first=True)), "gru": lambda: last(nn.GRU(12, 12, batch_first=True)),
    "both ways": lambda: last(nn.LSTM(12, 6, 2, batch_first=True, bidirectional=True)),
    "rnn": lambda: last(nn.RNN(12, 12, batch_first=True)),
    "stack": lambda: Made(lambda own, x: own.classes(torch.stack([own.hidden(x), 2 * own.hidden(x)], 1)).sum((1, 2))),
    "slices": lambda: Made(lambda own, x: own.classes(own.hidden(x).unflatten(-1, (3, 4))[:, :, 1:].flatten(2).mean(1)),
                           classes=nn.Linear(8, 10)),
    "stack of columns": lambda: Made(lambda own, x: own.classes(torch.stack([own.hidden(x)] * 2, -1).sum((1, 3)))),
    "softmax of columns": lambda: pooled(nn.Softmax(1))}
QUICK = {"encoder", "layer norm", "two dimensions", "token", "two of one", "lstm"}


def check(name, machine, steps=2):
    torch.manual_seed(1)
    batches = [((torch.randn(4, 6 if name == "token" else 3, 11)[:, :5],), (torch.randint(10, (4,)),))
               for _ in range(steps)]
    return follow(MODELS[name](), F.cross_entropy, batches, MACHINES[machine])


@pytest.mark.parametrize("name", sweep(2, sorted(QUICK)))
def test_layers(name):
    check(name, "8")


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", MODELS)
def test_layers_on_all_machines(name, machine):
    check(name, machine, 3)


def of_rows(output, classes):
    return F.cross_entropy(output.transpose(1, 2), classes)


def numbers():
    return torch.rand(2, 5, 10)


def classes():
    return torch.randint(10, (2, 5))


LOSSES = {"sequences": (of_rows, classes), "smoothed": (lambda y, t: F.cross_entropy(
              y.flatten(0, 1), t.flatten().where(t.flatten() > 1, -100), label_smoothing=0.1), classes),
          "squared": (F.mse_loss, numbers), "absolute": (F.l1_loss, numbers), "smooth": (F.smooth_l1_loss, numbers),
          "huber": (lambda y, t: F.huber_loss(y, t, delta=0.5), numbers),
          "binary": (F.binary_cross_entropy_with_logits, numbers), "positive": (lambda y, t: (
              F.binary_cross_entropy_with_logits(y, t, pos_weight=torch.arange(1.0, 11), reduction="sum")), numbers),
          "of numbers": (lambda y, t: y.logsumexp(-1).mean() - (y * t).sum(-1).mean(), numbers),
          "two": (lambda y, t: F.mse_loss(y, t) + 0.5 * F.cross_entropy(y.flatten(0, 1), t.argmax(-1).flatten()),
                  lambda: F.one_hot(classes(), 10))}


@pytest.mark.parametrize("name", ["sequences", "smooth", "binary", *(
    pytest.param(each, marks=pytest.mark.slow) for each in LOSSES if each not in ("sequences", "smooth", "binary"))])
def test_losses(name):
    loss, draw = LOSSES[name]
    torch.manual_seed(1)
    follow(nn.Linear(11, 10), loss, [((torch.randn(2, 5, 11),), (draw(),)) for _ in range(2)])


def test_one_sequence():
    """Sums of rows that one batch has alone are looked at for each reader, whatever operands it has."""
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(12, 2, 20, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(72, 3))
    follow(model, F.smooth_l1_loss, [((torch.randn(1, 6, 12),), (torch.randn(1, 3),))])


def test_parts_of_a_step():
    """Both products of a stacked product's gradients are named after it, as a layer's are."""
    step, expected = check("encoder", "8", 1)
    layers = [layer.name for layer in step.lowered.program.layers]
    for name in ("layer.layers.0.linear1", "hidden"):
        assert f"forward {name}" in layers and f"gw {name}" in layers
    assert sum(name.startswith("gx layer.layers.0.self_attn") for name in layers) >= 2
    assert {layer.split()[0] for layer in layers} == {"forward", "backward", "gx", "gw", "update"}
    assert "layer.layers.0.norm1.weight gradient" in expected


@pytest.mark.parametrize(("model", "line"), [
    (Made(lambda own, x: own.classes(own.hidden(x).atan()).mean(1)), "Layer 'forward atan' (atan) cannot be"),
    (pooled(nn.Dropout(0.5)), "Layer 'forward layer' (dropout) cannot be lowered: it drops elements at random")])
def test_refusals(model, line):
    with pytest.raises(LoweringError, match="^" + re.escape(line)):
        follow(model, F.cross_entropy, [((torch.randn(4, 3, 11),), (torch.randint(10, (4,)),))])
