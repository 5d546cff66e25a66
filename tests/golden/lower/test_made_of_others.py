"""Operations that move numbers or are made of others have the bits of PyTorch on the golden machine.

Several functions are one model, since to trace a model takes longer than to run it.

Covers: golden/lower/operations/moved.py, golden/lower/views.py, golden/lower/transposed.py, golden/ops/borders.py,
golden/ops/extremes.py, golden/ops/enlarged.py, golden/ops/powers.py, golden/ops/truths.py, golden/ops/windows.py,
golden/ops/moves.py, golden/ops/whole.py, golden/ops/volumes.py, golden/ops/bags.py, golden/lower/volumes.py,
golden/lower/long_rows.py, golden/lower/products/matrix.py, golden/lower/operations/convolutions.py,
golden/lower/operations/moves.py.
"""

import re
from dataclasses import replace
from math import prod

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.errors import LoweringError
from golden.lower.lowering import lower
from golden.lower.operations.moved import boxes

from .test_lowering import MACHINES, Of, check

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("costs")]


def written(x):
    y = torch.zeros(3, 12)
    y[:, [1, 4, 5]] = x[:, :3]
    y[:, 7:9] = 2.5
    return y


def kernel(*shape):
    return torch.linspace(-1, 1, prod(shape)).reshape(shape)


#: Name -> shapes of inputs, and functions of them.
CASES = {
    "moved": (((3, 5, 12),), [
        lambda x: x.flip(1), lambda x: x.flip(-1), lambda x: x.roll(2, 1), lambda x: x.roll((1, -5), (0, 2)),
        lambda x: x[:, [2, 0, 1, 1]], lambda x: x[[0, 1, 1], [2, 0, 4]],
        lambda x: x.index_select(-1, torch.tensor([3, 0, 3])), lambda x: x[torch.tensor([True, False, True])],
        lambda x: x.gather(1, torch.tensor([[[0, 1, 4]], [[2, 2, 0]]])), lambda x: x.tril(), lambda x: x.triu(1),
        lambda x: x.repeat_interleave(2, 1), lambda x: x.unfold(2, 3, 2), lambda x: F.pad(x, (1, -1)),
        lambda x: F.pad(x, (2, 1), "reflect"), lambda x: torch.diag_embed(x[0]), lambda x: x.tile(2, 1, 1),
        lambda x: torch.slice_scatter(x, x[:, 1:3] * 2, 1, 2, 4), lambda x: torch.select_scatter(x, x[:, 0], 1, 2),
        lambda x: x[0, 0].flip(0), lambda x: x[0, 0].gather(0, torch.tensor(2))]),
    "moved images": (((2, 8, 4, 6),), [
        lambda x: x.flip(2, 3), lambda x: x.roll((-1, -2), (2, 3)), lambda x: x.rot90(1, (2, 3)),
        lambda x: F.pixel_shuffle(x, 2), lambda x: F.pixel_unshuffle(x, 2), lambda x: F.channel_shuffle(x, 2),
        lambda x: F.unfold(x, 2), lambda x: F.pad(x, (1, 2, 2, 1), "reflect"),
        lambda x: F.pad(x, (1, 2, 2, 1), "replicate"), lambda x: F.pad(x, (1, 2, 2, 1), "circular")]),
    "enlarged": (((2, 5, 3, 4),), [
        lambda x: F.interpolate(x, scale_factor=2), lambda x: F.interpolate(x, size=(5, 7)),
        lambda x: F.interpolate(x, size=(5, 7), mode="nearest-exact"), lambda x: F.interpolate(x[0], scale_factor=3),
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), lambda x: F.interpolate(x[1], 7, mode="linear"),
        lambda x: F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True)]),
    "pools": (((1, 5, 8, 9),), [
        lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), lambda x: F.max_pool2d(x, 2, ceil_mode=True),
        lambda x: F.avg_pool2d(x, 2, ceil_mode=True), lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5),
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        lambda x: F.adaptive_avg_pool2d(x, (3, 4)), lambda x: F.adaptive_max_pool2d(x, (2, 3)),
        lambda x: F.adaptive_avg_pool1d(x[0], 4), lambda x: F.avg_pool1d(x[0], 3, 2, 1, ceil_mode=True),
        lambda x: F.max_pool1d(x[0], 3, 2, 1, ceil_mode=True),
        lambda x: F.max_pool2d(x, 2, 1, 1, dilation=2)]),
    "means": (((2, 3, 4, 5), (1, 2, 16, 17), (2, 300, 5)), [
        lambda x, y, z: x.softmax(-1).mean(1), lambda x, y, z: x.mean((1, 2)), lambda x, y, z: x.mean((1, 3)),
        lambda x, y, z: x.mean(), lambda x, y, z: y.mean((2, 3)), lambda x, y, z: F.adaptive_avg_pool2d(y, 1),
        lambda x, y, z: z.mean(1, keepdim=True)]),
    "extremes": (((2, 5, 4, 3), (3, 2)), [
        lambda x, y: x.amax(1), lambda x, y: x.amax((2, 3)), lambda x, y: x.amax(1, keepdim=True),
        lambda x, y: x.amin(-1), lambda x, y: x.max(), lambda x, y: x.max(2)[0], lambda x, y: y.min(-1).values,
        lambda x, y: torch.maximum(x, x.flip(0)), lambda x, y: torch.minimum(y, y[0]),
        lambda x, y: torch.clamp(y, min=y[1]), lambda x, y: torch.clamp(y, y[2], y[0])]),
    "powers": (((3, 21),), [
        lambda x: x.abs() ** 0.5, lambda x: x ** -1, lambda x: x ** -2, lambda x: x ** 7, lambda x: x.abs() ** -0.5,
        lambda x: x.abs() ** 1.5, lambda x: x ** 0 + x, lambda x: 2 ** x, lambda x: x.abs() ** 2.3,
        lambda x: torch.log1p(x.abs()), torch.expm1, torch.exp2, lambda x: torch.log2(x.abs()),
        lambda x: torch.log10(x.abs()), torch.sign, torch.cosh, torch.sinh, lambda x: torch.rsub(x, x * 3),
        lambda x: torch.rsub(x, 2, alpha=3), lambda x: torch.lerp(x, x * 2, x.sigmoid())]),
    "deviations": (((3, 21), (2, 3, 4, 5)), [
        lambda x, y: x.var(-1), lambda x, y: x.var(0), lambda x, y: x.std(-1, keepdim=True), lambda x, y: x.var(),
        lambda x, y: torch.var_mean(x, -1), lambda x, y: y.var((2, 3), correction=0),
        lambda x, y: x.norm(dim=-1, keepdim=True), lambda x, y: F.normalize(y, dim=1),
        lambda x, y: torch.linalg.vector_norm(x, 1, -1), lambda x, y: torch.linalg.vector_norm(x, float("inf"), -1),
        lambda x, y: torch.linalg.matrix_norm(y), lambda x, y: F.cosine_similarity(x, x.flip(1)),
        lambda x, y: F.pairwise_distance(x, x * 3), lambda x, y: y.logsumexp(1)]),
    "activations": (((2, 5, 12),), [
        lambda x: F.celu(x, 0.7), F.hardsigmoid, lambda x: F.threshold(x, 0.1, 20.0), F.softshrink, F.hardshrink,
        lambda x: F.prelu(x, torch.linspace(-1, 1, 5)), F.tanhshrink, F.softsign]),
    "truths": (((5, 21), (5, 21)), [
        lambda x, y: torch.where(x > 0, x, y), lambda x, y: torch.where(x > 0.5, x, 0.0),
        lambda x, y: x.masked_fill(x > 0, 1.0), lambda x, y: x.masked_fill(x > 0, -0.0),
        lambda x, y: (x > y).float(), lambda x, y: x * (x <= 0),
        lambda x, y: x * ((x > 0) & (x < 1)).float(), lambda x, y: (x == y) * 1.0, lambda x, y: (x != x[0]).float(),
        lambda x, y: torch.where(torch.eye(5, 21) > 0, x, -1.0), lambda x, y: torch.where(~(x >= y), -2.0, 3.0),
        lambda x, y: torch.where(torch.eye(5, 21) > 0, x, y), lambda x, y: ((x > 1) | (y > 1)).float()]),
    "whole": (((3, 21), (4, 2, 5)), [
        lambda x, y: torch.round(x * 3), lambda x, y: torch.floor(x * 3), lambda x, y: torch.ceil(x * 3),
        lambda x, y: torch.trunc(x * 3), lambda x, y: x // 0.5, lambda x, y: x % 0.75, lambda x, y: torch.fmod(x, 0.75),
        lambda x, y: torch.div(x, 0.5, rounding_mode="trunc"), lambda x, y: torch.frac(x * 3)]),
    "waves": (((3, 21),), [torch.sin, torch.cos, torch.tan, torch.erf, lambda x: torch.sin(x * 100)]),
    "places": (((3, 21), (4, 2, 5)), [
        lambda x, y: x.argmax(-1), lambda x, y: y.argmin(1, keepdim=True), lambda x, y: x.argmax(),
        lambda x, y: x.topk(2)[0], lambda x, y: y.topk(2, 0, largest=False), lambda x, y: y.sort(-1, descending=True),
        lambda x, y: F.one_hot(x.argmax(-1), 21).float(), lambda x, y: (x * 3).long() * 2 + 1,
        lambda x, y: x * (x > 0).long()]),
    "running": (((3, 5, 7),), [
        lambda x: x.cumsum(1), lambda x: x.cumsum(-1), lambda x: x.cumprod(0), lambda x: x.prod(1),
        lambda x: x.prod()]),
    "volumes": (((2, 4, 3, 4, 5),), [
        lambda x: F.conv3d(x, kernel(6, 4, 2, 3, 2), kernel(6), (1, 2, 1), (1, 1, 0)),
        lambda x: F.conv3d(x, kernel(4, 2, 2, 1, 1), None, 2, dilation=(2, 1, 1), groups=2),
        lambda x: F.conv_transpose3d(x, kernel(4, 3, 2, 2, 2), kernel(3), 2),
        lambda x: F.conv_transpose3d(x, kernel(4, 3, 3, 1, 2), None, (2, 1, 2), (1, 0, 0), (1, 0, 1), groups=2),
        lambda x: F.conv_transpose3d(x, kernel(4, 3, 3, 2, 1), None, 2),
        lambda x: F.max_pool3d(x, 2), lambda x: F.max_pool3d(x, (3, 2, 2), 1, (1, 0, 1)),
        lambda x: F.avg_pool3d(x, 2, 1, ceil_mode=True), lambda x: F.avg_pool3d(x, 3, 2, 1, count_include_pad=False),
        lambda x: F.adaptive_avg_pool3d(x, (2, 3, 2)), lambda x: F.adaptive_max_pool3d(x, 2)]),
    "large windows": (((1, 2, 34, 17), (1, 3, 2, 1)), [
        lambda x, y: F.avg_pool2d(x, 17), lambda x, y: F.max_pool2d(x, 16, 9, 1),
        lambda x, y: F.adaptive_max_pool2d(x, (3, 5)), lambda x, y: F.adaptive_avg_pool2d(y, 6)]),
    "long rows": (((2, 600), (3, 2, 2053)), [
        lambda x, y: x.softmax(-1), lambda x, y: F.log_softmax(y, -1), lambda x, y: y.sum(-1), lambda x, y: y.amax(-1),
        lambda x, y: F.layer_norm(x, (600,), torch.linspace(-1, 2, 600), torch.linspace(1, 3, 600)),
        lambda x, y: F.layer_norm(y, (2, 2053)), lambda x, y: F.rms_norm(x, (600,), torch.linspace(-1, 2, 600)),
        lambda x, y: x.mean(-1, keepdim=True), lambda x, y: x.var(-1, correction=0), lambda x, y: x.sum(),
        lambda x, y: F.group_norm(x.view(2, 4, 150), 2), lambda x, y: x.view(600, 2).softmax(0),
        lambda x, y: (x.abs() * -0.0)[:, :597].sum(-1)]),
    "bags": (((12, 9),), [
        lambda x: F.embedding_bag(torch.tensor([3, 0, 3, 11, 5]), x, torch.tensor([0, 3, 3])),
        lambda x: F.embedding_bag(torch.tensor([[3, 1], [2, 7]]), x, mode="sum", padding_idx=2)]),
    "constants": (((3, 21),), [
        lambda x: torch.zeros_like(x) + x, lambda x: torch.cat([torch.ones(3, 1), x], 1),
        lambda x: x.new_full((3, 21), 2.0) * x, lambda x: torch.full_like(x, 3.0) - x, lambda x: written(x)[:, ::2]]),
    "transposed": (((2, 4, 3, 5),), [
        lambda x: F.conv_transpose2d(x, kernel(4, 7, 2, 2), kernel(7), 2),
        lambda x: F.conv_transpose2d(x, kernel(4, 8, 3, 3), None, 2, 1, 1),
        lambda x: F.conv_transpose2d(x, kernel(4, 3, 4, 3), kernel(6), (2, 1), 1, groups=2),
        lambda x: F.conv_transpose1d(x[:, :, 0], kernel(4, 5, 4), None, 3, 1)]),
    "sums of products": (((2, 3, 5, 8), (2, 3, 6, 8)), [
        lambda x, y: torch.einsum("bhid,bhjd->bhij", x, y), lambda x, y: torch.einsum("bhid,bhjd->bhji", x, y),
        lambda x, y: torch.einsum("bhid,ed->beih", x, y[0, 0]), lambda x, y: torch.tensordot(x[0, 0], y[0, 0].t(), 1)])}


#: Which run on all machines in the long regression alone.
LONG = ("waves", "running", "large windows")


@pytest.mark.parametrize(("name", "machine"), [
    pytest.param(*each, marks=[pytest.mark.slow] * (each[0] in LONG))
    for each in zip(CASES, (list(MACHINES) * 2)[2:], strict=False)])
def test_functions(name, machine):
    torch.manual_seed(1)
    system = MACHINES[machine]
    if name == "long rows" and (system.v_words < 512 or system.v_words * system.lanes < 2053):
        machine = "16-long"                                # one takes 257 words of eight numbers
    if name == "waves" and "long" in machine:
        machine = "8"                                      # these have three vector rows, and a wave takes five
    shapes, functions = CASES[name]
    model = Of(lambda *inputs: tuple(function(*inputs) for function in functions)).eval()
    check(model, tuple(map(torch.randn, shapes)), MACHINES[machine])


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", CASES)
def test_functions_on_all_machines(name, machine):
    test_functions(name, machine)


@pytest.mark.parametrize("model, shape", [
    (nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)), (5,)), (nn.BatchNorm1d(700), (3, 700)),
    (nn.PReLU(5), (2, 5, 4, 3)), (nn.Conv2d(3, 5, 3, padding=1, padding_mode="reflect"), (1, 3, 6, 6)),
    (nn.Conv3d(2, 3, 2), (1, 2, 3, 3, 4))])
def test_layers(model, shape):
    torch.manual_seed(1)
    check(model.eval(), (torch.randn(shape),), MACHINES["8"])


def test_bags_need_one_register():
    """The sum of their rows is all that the vector unit keeps."""
    model = Of(lambda x: F.embedding_bag(torch.tensor([3, 0, 3]), x, torch.tensor([0, 1]), mode="sum")).eval()
    check(model, (torch.randn(5, 9),), replace(MACHINES["8"], vector_rows=1))


@pytest.mark.parametrize("places", [
    np.arange(24).reshape(2, 3, 4), np.arange(24).reshape(2, 3, 4)[:, ::-1], np.arange(12).repeat(2).reshape(4, 6),
    np.where(np.tri(5, dtype=bool), np.arange(25).reshape(5, 5), -1), np.full((2, 3), -1), np.array(7),
    np.random.default_rng(1).integers(-1, 40, (3, 4, 5)), np.arange(16).reshape(2, 2, 2, 2).transpose(2, 0, 3, 1)])
def test_boxes_give_every_place_once(places):
    found = np.full(places.shape, -1)
    for box in boxes(places):
        assert (found[box.target] == -1).all()
        grid = np.indices(found[box.target].shape)
        found[box.target] = box.first + sum(axis * step for axis, step in zip(grid, box.steps, strict=True))
    np.testing.assert_array_equal(found, places)


@pytest.mark.parametrize("places, most", [
    (np.arange(24).reshape(4, 6)[::-1], 4), (np.roll(np.arange(24).reshape(4, 6), (1, 2), (0, 1)), 4),
    (np.arange(24).repeat(2), 2), (np.arange(48).reshape(6, 2, 4).transpose(0, 2, 1).reshape(6, 8), 2)])
def test_boxes_are_few(places, most):
    assert len(list(boxes(places))) <= most


def test_a_fault_of_the_lowering_is_one_line(monkeypatch):
    def fails(*given):
        raise IndexError("no such\nplace")
    monkeypatch.setattr("golden.lower.operations.vector.elementwise", fails)
    line = ("Layer '0' (tanh) cannot be lowered: the lowering itself fails (IndexError: no such), which is no fault of "
            "the model; --traceback shows where")
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}$") as caught:
        lower(nn.Sequential(nn.Tanh()).eval(), (torch.ones(3),), MACHINES["8"])
    assert isinstance(caught.value.__cause__, IndexError)
