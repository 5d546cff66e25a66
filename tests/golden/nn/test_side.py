"""``golden.nn.convert(side=...)``: what is no product has the accelerator's bits.

Covers: golden/nn/forms.py.
"""

import copy
import pickle
import re

import numpy as np
import pytest
import torch
from torch import nn

import golden.nn
import golden.nn.fused
from golden import functions
from golden.vector import programs as vector_programs
from golden.vector.side import Side, batch_norm_factors, elements

SIDE = Side(8)
F = torch.nn.functional


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)




def bits(x):
    return np.ascontiguousarray(x.detach().numpy()).view(np.uint32)


def run(module, x, side=SIDE):
    model = golden.nn.convert(nn.Sequential(copy.deepcopy(module)).eval(), "hbfp8", side=side)
    with torch.no_grad():
        return model(x)


@pytest.mark.parametrize(("module", "name"), [(nn.GELU(), "gelu"), (nn.SiLU(), "silu"), (nn.Sigmoid(), "sigmoid"),
                                              (nn.Tanh(), "tanh")])
def test_functions_are_the_vector_unit_s(module, name):
    x = 3 * torch.randn(4, 33)
    np.testing.assert_array_equal(bits(run(module, x)), functions.evaluate(name, bits(x)))


@pytest.mark.parametrize("inplace", [False, True])
def test_relu_flushes(inplace):
    x = torch.tensor([1e-40, -1e-40, 0.0, -1.0, 2.0, float("nan")])
    y = bits(run(nn.ReLU(inplace), x.clone()))
    np.testing.assert_array_equal(y, [0, 0, 0, 0, 0x40000000, 0x7FC00000])


@pytest.mark.parametrize(("module", "shape"), [(nn.LayerNorm(8), (4, 8)), (nn.Softmax(-1), (4, 8)),
                                               (nn.BatchNorm2d(3), (2, 3, 4, 4)), (nn.MaxPool2d(2), (2, 3, 4, 4)),
                                               (nn.AdaptiveAvgPool2d(1), (2, 3, 4, 4))])
def test_inference_mode_has_the_same_bits(module, shape):
    x = torch.randn(shape)
    model = golden.nn.convert(nn.Sequential(module).eval(), "hbfp8", side=SIDE)
    with torch.no_grad():
        want, found = model(x), golden.nn.distances(model, x)
    with torch.inference_mode():
        np.testing.assert_array_equal(bits(model(x)), bits(want))
        assert golden.nn.distances(model, x) == found and found


def lays(x):
    """A tensor (N, C, H, W) in other orders in memory, with gaps, and as one that is broadcast."""
    return [x, x.contiguous(memory_format=torch.channels_last), x.permute(1, 3, 2, 0).contiguous().permute(3, 0, 2, 1),
            torch.nn.functional.pad(x, (0, 3))[..., :-3], x[:, :1, :, :1].expand(x.shape)]


def test_tensors_may_lie_in_any_way():
    class Free(nn.Module):
        def forward(self, x, y):
            return torch.relu(x) * y - 3, x + y

    model, x = golden.nn.convert(Free(), "hbfp8", side=SIDE), torch.randn(2, 3, 4, 5)
    for a in lays(x):
        for b in (*lays(x + 1), torch.randn(3, 1, 5), torch.tensor(0.3)):
            with torch.no_grad():
                found = model(a, b)
                for mine, torch_s in zip(found, Free()(a, b), strict=True):
                    assert torch.equal(mine, torch_s)
            if b.shape == a.shape and b.stride() == a.stride() and 0 not in a.stride():
                assert all(each.stride() == a.contiguous(memory_format=torch.channels_last).stride()
                           for each in found) == a.is_contiguous(memory_format=torch.channels_last)
    assert model(torch.tensor(-1.0), torch.tensor(2.0))[1].shape == ()


@pytest.mark.parametrize(("module", "program"), [
    (nn.Hardswish(), vector_programs.hard_swish()), (nn.LeakyReLU(0.2), vector_programs.leaky_relu(0.2)),
    (nn.ELU(0.7), vector_programs.elu(0.7))])
def test_functions_of_several_passes(module, program):
    x = 3 * torch.randn(4, 33)
    np.testing.assert_array_equal(bits(run(module, x)), elements(program, bits(x)))
    torch.testing.assert_close(run(module, x), module(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("inference", [False, True])
def test_rms_norm_has_the_bits_of_its_parts(inference):
    """Torch itself takes it apart, as a model by hand does."""
    norm, x = nn.RMSNorm(40, eps=1e-5), torch.randn(3, 7, 40)
    nn.init.normal_(norm.weight)
    program = vector_programs.load_row(1) + vector_programs.rms_norm(40, 1e-5, 1)
    with torch.inference_mode(inference):
        found = run(norm, x)
    np.testing.assert_array_equal(bits(found), SIDE.rows(program, np.broadcast_to(bits(norm.weight), x.shape), bits(x)))
    torch.testing.assert_close(found, norm(x).detach(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("inference", [False, True])
def test_group_norm_is_a_layer_norm_of_each_group(inference):
    norm, x = nn.GroupNorm(2, 6), torch.randn(2, 6, 3, 5)
    for part in (norm.weight, norm.bias):
        nn.init.normal_(part)
    rows = SIDE.rows(vector_programs.layer_norm_plain(45), bits(x).reshape(2, 2, 45)).reshape(x.shape)
    gamma, beta = (bits(part)[:, None, None] for part in (norm.weight, norm.bias))
    with torch.inference_mode(inference):
        found = run(norm, x)
    want = elements(vector_programs.add(), elements(vector_programs.multiply(), rows, gamma), beta)
    np.testing.assert_array_equal(bits(found), want)
    torch.testing.assert_close(found, norm(x).detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("module", [nn.RMSNorm(6), nn.GroupNorm(2, 6), nn.ELU(), nn.Hardswish(), nn.LeakyReLU()])
def test_gradients_of_new_operations_are_near_torch_s(module):
    x = torch.randn(4, 6)
    plain, own = x.clone().requires_grad_(), x.clone().requires_grad_()
    module(plain)[:, 0].square().sum().backward()
    golden.nn.convert(nn.Sequential(copy.deepcopy(module)), "hbfp8", side=SIDE)(own)[:, 0].square().sum().backward()
    torch.testing.assert_close(own.grad, plain.grad, rtol=1e-4, atol=1e-6)


def test_softmax_and_layer_norm_have_the_lanes_order():
    x = torch.randn(20, 40)
    np.testing.assert_array_equal(bits(run(nn.Softmax(-1), x)), SIDE.rows(vector_programs.softmax(), bits(x)))
    assert not torch.equal(run(nn.Softmax(-1), x), run(nn.Softmax(-1), x, Side(16)))
    norm = nn.LayerNorm(40)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    program = vector_programs.load_row(6) + vector_programs.load_row(7) + vector_programs.layer_norm(40, 1e-5)
    rows = (np.broadcast_to(bits(part), x.shape) for part in (norm.weight, norm.bias))
    np.testing.assert_array_equal(bits(run(norm, x)), SIDE.rows(program, *rows, bits(x)))
    plain = nn.LayerNorm(40, elementwise_affine=False)
    np.testing.assert_array_equal(bits(run(plain, x)), SIDE.rows(vector_programs.layer_norm_plain(40), bits(x)))


def test_batch_norm_multiplies_and_adds():
    norm = nn.BatchNorm2d(5)
    for part in (norm.weight, norm.bias, norm.running_mean):
        nn.init.normal_(part)
    nn.init.uniform_(norm.running_var)
    x = torch.randn(2, 5, 3, 4)
    numbers = map(bits, (norm.weight, norm.bias, norm.running_mean, norm.running_var))
    factor, addend = batch_norm_factors(*numbers, norm.eps)
    y = elements(vector_programs.multiply(), bits(x), factor[:, None, None])
    np.testing.assert_array_equal(bits(run(norm, x)), elements(vector_programs.add(), y, addend[:, None, None]))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("stride", [1, 2])
def test_pooling(size, padding, stride):
    x = torch.randn(2, 3, 7, 8)
    most = nn.MaxPool2d(size, stride, padding)
    assert torch.equal(run(most, x), most(x))
    padded = F.pad(x, (padding,) * 4)
    share = torch.tensor(1 / size ** 2)
    total = None
    for i in range(size):
        for j in range(size):
            tap = padded[..., i:, j:][..., :padded.shape[-2] - size + 1:stride, :padded.shape[-1] - size + 1:stride]
            total = tap if total is None else total + tap
    assert torch.equal(run(nn.AvgPool2d(size, stride, padding), x), total * share)


def test_means_ascend():
    x = torch.randn(2, 3, 5, 7)
    total = x[..., 0, 0]
    for pixel in list(x.flatten(2).unbind(-1))[1:]:
        total = total + pixel
    assert torch.equal(run(nn.AdaptiveAvgPool2d(1), x)[..., 0, 0], total * torch.tensor(1 / 35))


class Free(nn.Module):
    """Torch's operations in a model's own code."""

    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        y = self.inner(x, x, x, need_weights=False)[0]
        return (x + y).mul(y) / 3 - F.gelu(x)


def test_own_code_and_attention_are_covered():
    model = golden.nn.convert(Free().eval(), "hbfp8", side=SIDE)
    found = golden.nn.distances(model, torch.randn(2, 5, 16))
    assert set(found) == {"add", "mul", "div", "sub", "gelu", "softmax"}
    assert found["softmax"].elements == 2 * 2 * 5 * 5
    assert 0 < found["gelu"].largest < 1e-6
    assert found["mul"].different == 0


def test_lstm_gates_are_covered():
    lstm = nn.LSTM(8, 8)
    x = torch.randn(3, 2, 8)
    plain = golden.nn.convert(copy.deepcopy(lstm).eval(), "hbfp8")
    model = golden.nn.convert(lstm.eval(), "hbfp8", side=SIDE)
    assert set(golden.nn.distances(model, x)) == {"add", "mul", "sigmoid", "tanh"}
    with torch.no_grad():
        torch.testing.assert_close(model(x)[0], plain(x)[0])
        assert not torch.equal(model(x)[0], plain(x)[0])


def test_gradients_are_near_torch_s():
    module = nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.LayerNorm(8), nn.Softmax(-1))
    x = torch.randn(6, 8)
    plain = golden.nn.convert(copy.deepcopy(module), "hbfp8")
    model = golden.nn.convert(module, "hbfp8", side=SIDE)
    for each in (plain, model):
        each(x)[:, 0].square().sum().backward()
    for mine, torch_s in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, torch_s.grad, rtol=1e-3, atol=1e-5)


def test_it_comes_and_goes_with_convert_and_is_copied():
    x = torch.randn(4, 8)
    model = golden.nn.convert(nn.Sequential(nn.Linear(8, 8), nn.GELU()).eval(), "hbfp8", side=SIDE)
    twin, again = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    assert list(model.state_dict()) == ["0.weight", "0.bias"]
    with torch.no_grad():
        y = model(x)
        assert torch.equal(twin(x), y)
        assert torch.equal(again(x), y)
        plain = golden.nn.convert(model, "hbfp8")(x)
    assert not torch.equal(plain, y)
    assert golden.nn.distances(model, x) == {}


def test_tracing_is_refused():
    model = golden.nn.convert(nn.Sequential(nn.Linear(8, 8), nn.GELU()).eval(), "hbfp8", side=SIDE)
    line = "A model with side arithmetic is not traced; convert it without side first (golden.lower does so)"
    with pytest.raises(NotImplementedError, match=f"^{re.escape(line)}$"):
        torch.export.export(model, (torch.randn(2, 8),), strict=False)


def test_jobs_are_refused():
    models = [golden.nn.convert(nn.Sequential(nn.Linear(8, 8)), "hbfp8", side=SIDE) for _ in range(2)]
    line = "Models with side arithmetic run alone: convert them without side to run in a job"
    with pytest.raises(ValueError, match=f"^{line}$"):
        golden.nn.fused.fuse(models)


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match=f"^{re.escape('side must be a Side, not str')}$"):
        golden.nn.convert(nn.Linear(2, 2), "hbfp8", side="design")
