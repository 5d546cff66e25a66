"""Scales of int8: what is multiplied, what goes to the side unit, and how far results are from FP32."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.errors import LoweringError
from golden.lower.hosted import on_host
from golden.lower.lowering import lower
from golden.lower.scaled import LARGEST, scaled
from golden.lower.training.step import lower_step
from golden.lower.zoo import zoo
from hbfp.design import Design
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator

from .running import checked

pytestmark = pytest.mark.usefixtures("costs")

MACHINE = Accelerator(core=Design(arithmetic="int8", rows=8, depth=32), x_words=256, w_words=512, v_words=256)


def products(graph):
    names = ((node, str(node.target)) for node in graph.graph.nodes)
    return [node for node, name in names if name.startswith("hbfp.") and "bias" not in name]


def operands(graph, *inputs):
    """What each product of a graph takes, in order."""
    found = []

    class Watch(torch.fx.Interpreter):
        def run_node(self, node):
            if node in wanted:
                found.append(self.fetch_args_kwargs_from_env(node)[0][:2])
            return super().run_node(node)
    wanted = products(graph)
    with torch.no_grad():
        Watch(graph).run(*inputs)
    return found


def test_weights_are_integers_and_inputs_reach_to_the_largest():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 5)).eval(), torch.randn(7, 12) * 30
    graph = scaled(model, [(x,)], MACHINE)
    for a, w in operands(graph, x):
        assert torch.equal(w, w.round()) and (w.abs().amax(1) == LARGEST).all()
        assert LARGEST - 1 < a.abs().max() < LARGEST + 1    # that of a sum of integers is near that of FP32
    wide = scaled(model, [(x,), (-3 * x,)], MACHINE)    # the largest of all batches
    assert [float(a.abs().max()) for a, _ in operands(wide, x)][0] == pytest.approx(LARGEST / 3, rel=1e-3)


@pytest.mark.parametrize("other", [float("inf"), -float("inf"), float("nan")])
def test_inputs_reach_to_the_largest_that_is_a_number(other):
    torch.manual_seed(0)
    model, x = nn.Linear(12, 9).eval(), torch.rand(7, 12) / 8
    x[3, 5] = other
    (a, _), = operands(scaled(model, [(x,)], MACHINE), x)
    assert float(a[a.isfinite()].max()) == pytest.approx(LARGEST, rel=1e-3)


@pytest.mark.parametrize("name, bound", [("mlp", 0.02), ("cnn", 0.03), ("transformer", 0.02), ("lstm", 0.02)])
def test_networks_stay_near_fp32(name, bound):
    model, inputs = zoo(name)
    inputs = tuple(each[:40] for each in inputs)
    with torch.no_grad():
        want, found = model(*inputs), scaled(model, [inputs], MACHINE)(*inputs)
    assert 0 < float((found - want).abs().max() / want.abs().max()) < bound


def test_factor_bias_and_relu_are_the_side_units():
    """A batch norm goes into the factor and an addend, so that the vector unit has nothing behind the product."""
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(8)
    for part in (norm.running_mean, norm.weight, norm.bias):
        nn.init.normal_(part)
    model = nn.Sequential(nn.Conv2d(8, 8, 3, bias=False), norm, nn.ReLU()).eval()
    x = torch.randn(2, 8, 5, 5)
    lowered = lower(model, (x,), MACHINE)
    checked(lowered)
    kinds = {node.operation: node.counts for node in lowered.became}
    drains = [each for each in lowered.program.instructions if each.opcode == Opcode.DRAIN]
    assert drains and all(each["scale"] and each["bias"] for each in drains)
    assert "vector" not in kinds["conv2d"] and kinds["relu"] == {}
    with torch.no_grad():
        want = model(x)
    found = lowered.torch_order(lowered.outputs[0], lowered.expected[lowered.outputs[0]])
    np.testing.assert_allclose(found, want, atol=0.03 * float(want.abs().max()))


def test_a_weight_of_several_products_has_one_scale():
    """As in the steps of a recurrent layer."""
    torch.manual_seed(0)
    model = nn.LSTM(6, 5, batch_first=True).eval()
    graph = scaled(model, [(torch.randn(3, 4, 6),)], MACHINE)
    weights = [node.args[1] for node in products(graph)]
    assert len(weights) == 5 and len(set(weights)) == 2


def test_two_operands_that_move_and_a_zero():
    torch.manual_seed(0)

    class Net(nn.Module):
        def forward(self, x, y):
            return (x @ y.mT).softmax(-1) @ (y * 0)
    x, y = torch.randn(2, 6, 8), torch.randn(2, 6, 8)
    lowered = lower(Net(), (x, y), MACHINE)
    checked(lowered)
    assert not lowered.expected[lowered.outputs[0]].any()


def test_a_scaled_model_is_taken_as_it_is():
    torch.manual_seed(0)
    model, x = nn.Linear(8, 8).eval(), torch.randn(4, 8)
    graph = scaled(model, [(x,)], MACHINE)
    lowered = lower(graph, (x * 5,), MACHINE)           # beyond the scale: saturated
    checked(lowered)
    own = lower(model, (x * 5,), MACHINE)
    a, b = (each.expected[each.outputs[0]] for each in (lowered, own))
    assert not np.array_equal(a, b) and np.abs(a).max() < np.abs(b).max()


def test_refused():
    model, x = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)), torch.randn(4, 8)
    with pytest.raises(ValueError, match="^Scales need a batch at least$"):
        scaled(model, [], MACHINE)
    with pytest.raises(LoweringError, match="^A model with parts on the host has no scales .* would do$"):
        scaled(on_host(model, ["1"]), [(x,)], MACHINE)
    with pytest.raises(LoweringError, match="^A training step cannot be lowered: int8 has .* do$"):
        lower_step(model, F.mse_loss, lambda p: torch.optim.SGD(p, 0.1), ((x,), (x,)), MACHINE)
