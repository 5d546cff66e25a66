"""Dropout in training: the golden machine drops what PyTorch with golden.nn drops, forward and backward.

Covers: golden/lower/operations/dropout.py, golden/ops/drops.py.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.errors import LoweringError
from golden.lower.training.step import lower_step
from tests.cases import sweep

from .steps import accelerator, follow, sgd
from .test_sequences import Made, last, pooled

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("costs")]
BLOCKS, TILES, FEW, SMALL = (accelerator(rounding="stochastic"), accelerator(block=(8, 8), rounding="stochastic"),
                             accelerator(rounding="stochastic", vector_lanes=2, function_lanes=1),
                             accelerator(rounding="stochastic", row_words=2, v_words=128))


def layers(*made):
    return nn.Sequential(nn.Linear(11, 24), *made, nn.Linear(24, 10))


def encoder(count=1, **options):
    layer = nn.TransformerEncoderLayer(12, 2, 20, dropout=0.3, batch_first=True, **options)
    return pooled(nn.TransformerEncoder(layer, count, enable_nested_tensor=False))


def attended():
    def forward(own, x):
        q, k, v = own.heads(own.hidden(x)).unflatten(-1, (3, 2, 6)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.25, is_causal=True)
        return own.classes(F.dropout(y.transpose(1, 2).flatten(2), 0.1).mean(1))
    return Made(forward, heads=nn.Linear(12, 36))


def batches(shape, count=2):
    rng = torch.Generator().manual_seed(3)
    return [((torch.randn(*shape, generator=rng),), (torch.randint(10, shape[:1], generator=rng),))
            for _ in range(count)]


CASES = {
    "layer": (lambda: layers(nn.ReLU(), nn.Dropout(0.4), nn.Linear(24, 24), nn.Dropout(1.0)), (20, 11), BLOCKS),
    "input": (lambda: nn.Sequential(nn.Dropout(0.2), nn.Linear(11, 10)), (9, 11), FEW),
    "in place": (lambda: layers(nn.Dropout(0.5, inplace=True), nn.GELU()), (33, 11), TILES),
    "long rows": (lambda: nn.Sequential(nn.Linear(11, 37, bias=False), nn.Dropout(0.3), nn.Linear(37, 10)), (40, 11),
                  SMALL),
    "function": (lambda: Made(lambda own, x: own.classes(F.dropout(own.hidden(x), 0.7) * own.hidden(x))), (6, 11), FEW),
    "none": (lambda: Made(lambda own, x: own.classes(F.dropout(F.dropout(own.hidden(x), 0.0), 0.3, False))), (4, 11),
             accelerator()),
    "attention": (attended, (3, 7, 11), BLOCKS),
    "encoder": (encoder, (3, 5, 11), BLOCKS),
    "encoder, tiles": (lambda: encoder(2, norm_first=True, activation="gelu"), (2, 5, 11), TILES),
    "lstm": (lambda: last(nn.LSTM(12, 12, num_layers=2, dropout=0.5, batch_first=True)), (3, 3, 11), BLOCKS),
}


@pytest.mark.parametrize("name", sweep(6, CASES))
def test_a_step_has_the_bits_of_pytorch(name):
    make, shape, machine = CASES[name]
    torch.manual_seed(0)
    step, _ = follow(make(), F.cross_entropy, batches(shape), machine, seed=5)
    drops = [node for node in step.host.capture.graph.graph.nodes if node.target == torch.ops.hbfp.dropout.default]
    assert len({node.args[2] for node in drops}) == {"layer": 2, "attention": 2, "encoder": 4, "encoder, tiles": 8,
                                                     "none": 0}.get(name, 1)


def test_an_accelerator_that_draws_nothing_is_refused():
    with pytest.raises(LoweringError, match=r"^Layer 'forward 1' \(dropout\) cannot be lowered: it drops elements at "
                                            r"random, and the accelerator draws no numbers; --rounding stochastic "
                                            r"would do$"):
        lower_step(layers(nn.Dropout(0.5)), F.cross_entropy, sgd(), batches((4, 11))[0], accelerator())


def test_dropout_beside_stochastic_rounding():
    """Both draw by position, of keys of their own."""
    torch.manual_seed(0)
    follow(layers(nn.Dropout(0.5)), F.cross_entropy, batches((20, 11)), BLOCKS, seed=9, stochastic=("x", "w", "g"))
