"""Gradients and steps under ``side``: programs of the table on the golden vector unit, bit for bit, and near float64.

Covers: golden/ops/losses.py, golden/ops/optimisers.py, golden/ops/results.py.
"""

import copy
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import golden.nn
from golden.ops.optimisers import update
from golden.ops.results import Result, running, without
from golden.spec.vector import VectorUnit
from golden.vector import programs
from golden.vector.side import Side, ascending, elements
from golden.vector.unit import Machine

SIDE = Side(8)
aten = torch.ops.aten


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def bits(x):
    return np.ascontiguousarray(x.detach().numpy()).view(np.uint32)


def same(found, want):
    np.testing.assert_array_equal(bits(found), want.view(np.uint32))


def tensor(patterns):
    return torch.from_numpy(patterns.view(np.float32).copy())


def gradients(function, *tensors, weigh=None):
    """Gradients of a function's result, weighted with numbers, in the arithmetic that is in force."""
    given = [each.detach().clone().requires_grad_() for each in tensors]
    y = function(*given)
    return torch.autograd.grad(y, given, torch.ones_like(y) if weigh is None else weigh.to(y.dtype))


def near(function, *tensors, weigh=None, within=2e-6):
    """Gradients under the side, which are within ``within`` of the largest of those in float64."""
    with golden.nn.sided(SIDE):
        found = gradients(function, *tensors, weigh=weigh)
    exact = gradients(function, *(each.double() for each in tensors), weigh=weigh)
    for mine, want in zip(found, exact, strict=True):
        assert (mine - want).abs().max() <= within * want.abs().max().clamp_min(1e-30)
    return found


def numbers(*shape):
    """Numbers of all sizes, with zeros, and some that are flushed."""
    x = torch.randn(shape) * 10.0 ** torch.randint(-3, 3, shape)
    x.view(-1)[::5] = 0
    x.view(-1)[::7] = 1e-39
    return x


def added(rows):
    """Sums over the first dimension, one after the other, in torch's own float32."""
    total = torch.full(rows.shape[1:], -0.0)
    for row in rows:
        total = total + torch.where(row.abs() < 2.0 ** -126, row * 0, row)
    return total


@pytest.mark.parametrize(("shape", "over"), [((70, 9), [0]), ((3, 50, 9), [0, 1]), ((3, 5, 9), [1]),
                                             ((2, 9, 4, 5), [0, 2, 3]), ((2, 9, 4, 5), [2, 3]), ((6, 9, 5), [0, 2]),
                                             ((0, 3), [0])])
def test_sums_over_rows_ascend(shape, over):
    x = numbers(*shape)
    with golden.nn.sided(SIDE):
        found, kept = x.sum(over), x.sum(over, keepdim=True)
    other = [d for d in range(x.dim()) if d not in over]
    same(found, bits(added(x.permute(*over, *other).flatten(0, len(over) - 1))))
    assert torch.equal(kept.squeeze(), found.squeeze()) and kept.dim() == x.dim()


@pytest.mark.parametrize(("shape", "over"), [((6, 9), [0, 1]), ((9,), []), ((3, 4, 9), [0, 1, 2])])
def test_sums_of_all_add_rows_in_the_lanes_order_first(shape, over):
    x = torch.randn(shape)
    rows = SIDE.rows(programs.row_sum(), bits(x))[..., :1].reshape(-1, 1)
    with golden.nn.sided(SIDE):
        same(x.sum(over).reshape(1), ascending(rows))
        same(x.mean().reshape(1), elements(programs.scale(1 / x.numel()), ascending(rows))
             if x.dim() > 1 else SIDE.rows(programs.row_mean(9), bits(x))[:1])


def test_a_device_adds_as_rows_come():
    """What :func:`running` gives has the sums and rows that the form says."""
    x, y = numbers(20, 13), numbers(20, 13)
    program = [programs.vector(to=0), programs.vector(to=1), programs.vector(programs.register(0), to="out"),
               programs.vector(programs.register(0), programs.register(1), to="out"),
               programs.vector(programs.register(1), to="out", post="relu")]
    results = (Result(), Result(over=(0,)), Result(over=(0,)))
    before, body, after = running(program, results, 2)
    machine = Machine(VectorUnit(lanes=8, beats=2))
    machine.run([programs.length(13), *before])
    rows = [machine.run(body, [bits(a), bits(b)]) for a, b in zip(x, y, strict=True)]
    first, product, positive = SIDE.results(program, bits(x), bits(y))
    np.testing.assert_array_equal(np.array(rows)[:, 0], first)
    np.testing.assert_array_equal(machine.run(after), [ascending(product), ascending(positive)])
    assert without(program, 1, 2) == program[:3] and len(without(program, 0)) == 4


def test_the_gradient_of_a_bias_is_a_sum_over_the_rows():
    model = golden.nn.convert(nn.Sequential(nn.Linear(12, 9)), "hbfp8", side=SIDE)
    x, g = torch.randn(3, 5, 12), numbers(3, 5, 9)
    model(x).backward(g)
    same(model[0].bias.grad, ascending(bits(g).reshape(15, 9)))
    model(x).backward(g)                                   # gradients that are there already are added to
    total = ascending(bits(g).reshape(15, 9))
    same(model[0].bias.grad, elements(programs.add(), total, total))


def entropy(logits, target, weight=None, reduction="mean", ignore=-100):
    """Loss and gradient of cross entropy by the programs."""
    n, classes = logits.shape
    hot = np.zeros((n, classes), np.float32)
    for row, number in enumerate(target.tolist()):
        if number != ignore:
            hot[row, number] = 1
    logs = SIDE.rows(programs.log_softmax(), bits(logits))
    chosen, hot = elements(programs.relu_gradient(), hot.view(np.uint32), logs), hot.view(np.uint32)
    if weight is not None:
        chosen, hot = (elements(programs.multiply(), each, bits(weight)) for each in (chosen, hot))
    found = elements(programs.negate(), SIDE.rows(programs.row_sum(), chosen)[:, :1])
    total = ascending(SIDE.rows(programs.row_sum(), hot)[:, :1])
    loss = found if reduction == "none" else ascending(found)
    one = np.array([0x3F800000], np.uint32)
    share = elements(programs.quotient(), one, total) if reduction == "mean" else one
    if reduction == "mean":
        loss = elements(programs.quotient(), loss, total)
    gradient = elements(programs.multiply(), hot, elements(programs.negate(), share))
    return loss.reshape(-1), SIDE.rows(programs.log_softmax_gradient(), logs, gradient)


@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"reduction": "none"}, {"ignore_index": 2},
                                     {"weight": torch.tensor([0.5, 2.0, 1.0, 0.0, 3.0, 1e-3])}])
def test_cross_entropy(options):
    logits, target = 3 * torch.randn(11, 6), torch.randint(0, 6, (11,))
    logits[0, :3] = -1e4                                   # a logarithm of nothing
    found, = near(lambda x: F.cross_entropy(x, target, **{name: each if name != "weight" else each.to(x.dtype)
                                                          for name, each in options.items()}), logits)
    with golden.nn.sided(SIDE):
        value = F.cross_entropy(logits, target, **options).reshape(-1)
    loss, gradient = entropy(logits, target, options.get("weight"), options.get("reduction", "mean"),
                             options.get("ignore_index", -100))
    same(value, loss)
    same(found, gradient)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_squared_error(reduction):
    x, y = torch.randn(7, 9), torch.randn(7, 9)
    found, other = near(lambda x, y: F.mse_loss(x, y, reduction=reduction), x, y)
    difference = elements(programs.subtract(), bits(x), bits(y))
    same(found, elements(programs.scale(2 / 63 if reduction == "mean" else 2.0), difference))
    same(other, bits(found) ^ np.uint32(1 << 31))
    squares = elements(programs.power(2), difference)
    total = ascending(SIDE.rows(programs.row_sum(), squares)[:, :1])
    with golden.nn.sided(SIDE):
        same(F.mse_loss(x, y, reduction=reduction).reshape(-1),
             {"none": squares.reshape(-1), "sum": total, "mean": elements(programs.scale(1 / 63), total)}[reduction])


@pytest.mark.parametrize("wrong", [-1, 6])
def test_classes_that_there_are_none_of_have_no_row(wrong):
    logits, target = torch.randn(3, 6), torch.tensor([0, wrong, 2])
    with golden.nn.sided(SIDE), pytest.raises(IndexError, match=rf"^Target {wrong} is out of bounds\.$"):
        F.cross_entropy(logits, target)


def network():
    return nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 6))


def test_a_step_of_a_network_is_that_of_its_parts():
    """Backward outside of the model, products as torch asks for them, all else the programs'."""
    model = golden.nn.convert(network(), "hbfp8", side=SIDE)
    plain = golden.nn.convert(copy.deepcopy(model), "hbfp8")
    loss, x, target = golden.nn.convert(nn.CrossEntropyLoss(), "hbfp8", side=SIDE), torch.randn(9, 12), torch.arange(
        9) % 6
    loss(model(x), target).backward()
    with torch.no_grad(), golden.nn.sided(SIDE):
        first = plain[0](x)
        hidden = tensor(elements(programs.activation("relu"), bits(first)))
        logits = plain[2](hidden)
    _, g = entropy(logits, target)
    same(model[2].bias.grad, ascending(g))
    hidden.requires_grad_()
    plain[2](hidden).backward(tensor(g))
    same(model[2].weight.grad, bits(plain[2].weight.grad))
    h = elements(programs.relu_gradient(), bits(first), bits(hidden.grad))
    same(model[0].bias.grad, ascending(h))
    plain[0](x).backward(tensor(h))
    same(model[0].weight.grad, bits(plain[0].weight.grad))


OPTIONS = [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"weight_decay": 0.01},
           {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01, "maximize": True},
           {"momentum": 0.9, "weight_decay": 0.01, "nesterov": True}]


@pytest.mark.parametrize("options", OPTIONS)
def test_steps_of_sgd_are_one_program(options):
    parameters = [nn.Parameter(numbers(5, 9)), nn.Parameter(numbers(7))]
    own = golden.nn.optimiser(torch.optim.SGD(parameters, 0.1, **options), SIDE)
    twins = [nn.Parameter(each.detach().double()) for each in parameters]
    exact = torch.optim.SGD(twins, 0.1, **options)
    schedules = [torch.optim.lr_scheduler.ExponentialLR(each, 0.7) for each in (own, exact)]
    kept = [{} for _ in parameters]
    for step in range(1, 4):
        made = update(own, own.param_groups[0], step)
        wanted = []
        for parameter, twin, state in zip(parameters, twins, kept, strict=True):
            parameter.grad = numbers(*parameter.shape)
            parameter.grad[parameter.grad == 1e-39] = 0    # what comes from an operation is flushed
            twin.grad = parameter.grad.double()
            have = state | {"parameter": bits(parameter).copy(), "gradient": bits(parameter.grad).copy()}
            state.update(made.results(have))
            wanted.append(state.pop("parameter"))
        for each in (own, exact, *schedules):
            each.step()
        for parameter, twin, want in zip(parameters, twins, wanted, strict=True):
            same(parameter, want)
            assert (parameter - twin).abs().max() <= 1e-6 * twin.abs().max()
        for parameter, state in zip(parameters, kept, strict=True):
            for name, want in state.items():
                same(own.state[parameter][name], want)


def test_a_step_may_compute_its_loss_itself():
    parameter = nn.Parameter(torch.ones(3))
    own = golden.nn.optimiser(torch.optim.SGD([parameter], 0.5), SIDE)

    def loss():
        own.zero_grad()
        value = parameter.square().sum()
        value.backward()
        return value
    assert own.step(loss) == 3 and torch.equal(parameter, torch.zeros(3))


@pytest.mark.parametrize(("make", "line"), [
    (lambda p: torch.optim.RMSprop(p), "Optimiser RMSprop has no program; torch.optim's SGD, Adam, AdamW would do"),
    (lambda p: torch.optim.SGD(p, 0.1, fused=True),
     "fused=True computes a step in another way; fused=False would do"),
    (lambda p: torch.optim.SGD(p, torch.tensor(0.1)), "a rate is a tensor; a number would do")])
def test_optimisers_without_a_program_are_refused(make, line):
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        golden.nn.optimiser(make([nn.Parameter(torch.ones(3))]), SIDE)


def test_what_is_no_optimiser_is_refused():
    with pytest.raises(TypeError, match=r"^optimiser must be a torch\.optim\.Optimizer, not int$"):
        golden.nn.optimiser(3, SIDE)
    with pytest.raises(TypeError, match=r"^side must be a Side, not str$"):
        golden.nn.optimiser(torch.optim.SGD([nn.Parameter(torch.ones(3))], 0.1), "design")


def trained(model, run):
    """Gradients of a model after ``run``, which computes a loss and calls backward."""
    model.zero_grad()
    run(model)
    return [each.grad.clone() for each in model.parameters()]


def test_bits_do_not_depend_on_who_runs_the_pass():
    """Backward within the mode, outside of it, compiled, and with activations computed again."""
    model, x = golden.nn.convert(nn.Sequential(nn.Linear(12, 20), nn.Tanh(), nn.Linear(20, 6)), "hbfp8",
                                 side=SIDE), torch.randn(40, 12)
    want = trained(model, lambda model: model(x).backward(torch.ones(40, 6)))

    def within(model):
        with golden.nn.sided(SIDE):
            model(x).backward(torch.ones(40, 6))

    def again(model):
        torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).backward(torch.ones(40, 6))
    ways = [within, again, lambda model: torch.compile(model, backend="eager")(x).backward(torch.ones(40, 6))]
    for run in ways:
        for found, one in zip(trained(model, run), want, strict=True):
            assert torch.equal(found, one)
    plain = trained(golden.nn.convert(model, "hbfp8"), lambda model: model(x).backward(torch.ones(40, 6)))
    assert not all(torch.equal(found, one) for found, one in zip(plain, want, strict=True))


def test_what_comes_before_and_behind_a_model_stays_torch_s():
    model, x = golden.nn.convert(nn.Sequential(nn.Tanh()), "hbfp8", side=SIDE), torch.randn(300, requires_grad=True)
    y = model(torch.tanh(x))
    torch.tanh(y).sum().backward()
    g = (1 - torch.tanh(y.detach()) ** 2)
    inner = elements(programs.tanh_gradient(), bits(y), bits(aten.tanh_backward(torch.ones(300), torch.tanh(y))))
    same(x.grad, bits(aten.tanh_backward(tensor(inner), torch.tanh(x.detach()))))
    assert (g != 0).any() and golden.nn.side.here() is None


class Fails(torch.autograd.Function):
    """Has no gradient."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("no gradient")


def test_an_error_in_the_backward_pass_leaves_no_mode_behind():
    class Broken(nn.Module):
        def forward(self, x):
            return torch.relu(Fails.apply(x))
    model = golden.nn.convert(nn.Sequential(Broken()), "hbfp8", side=SIDE)
    with pytest.raises(RuntimeError, match=r"^no gradient$"):
        model(torch.ones(3, requires_grad=True)).sum().backward()
    assert golden.nn.side.here() is None
