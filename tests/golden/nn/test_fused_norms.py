"""Batch normalisation of a job.

Covers: golden/nn/fused/norms.py.
"""

import copy

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

from golden.nn import fused  # noqa: E402
from golden.nn.fused import norms, proof  # noqa: E402


def same(layers, x, last=False, tops=None):
    """:func:`equal` of layers and of these with a ReLU behind them."""
    rectified = [nn.Sequential(copy.deepcopy(layer), nn.ReLU()).train(layer.training) for layer in layers]
    for each in (layers, rectified):
        equal(each, x, last, tops)


def equal(layers, x, last, tops):
    """A job of layers and each alone: outputs, gradients of inputs and parameters, and buffers after two batches."""
    twins = copy.deepcopy(layers)
    job = fused.fuse(twins)
    form = {"memory_format": torch.channels_last} if last else {}
    for _ in range(2):
        whole = x.clone().contiguous(**form).requires_grad_()
        y = job(whole)
        top = torch.randn(y.shape).contiguous(**form) if tops is None else tops
        y.backward(top)
        for layer, own, part, g in zip(layers, y.chunk(len(layers)), x.chunk(len(layers)), top.chunk(len(layers)),
                                       strict=True):
            part = part.clone().contiguous(**form).requires_grad_()
            expected = layer(part)
            expected.backward(g.clone())
            assert proof.same_bits(own.detach(), expected.detach())
            assert proof.same_bits(part.grad, whole.grad.chunk(len(layers))[layers.index(layer)])
    for layer, twin in zip(layers, twins, strict=True):
        for p, q in zip(layer.parameters(), twin.parameters(), strict=True):
            assert proof.same_bits(p.grad, q.grad)
        for a, b in zip(layer.buffers(), twin.buffers(), strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("options", [{}, {"affine": False}, {"track_running_stats": False}, {"momentum": None},
                                     {"momentum": 0.37, "eps": 0.1}], ids=lambda options: "-".join(options) or "plain")
@pytest.mark.parametrize("shape, last", [((4, 8, 4, 4), False), ((4, 8, 4, 4), True), ((3, 24, 2, 12), False),
                                         ((3, 24, 5, 3), True), ((5, 3, 3, 3), False), ((5, 12, 3, 3), True),
                                         ((1, 1, 4, 2), False), ((2, 16, 1, 1), True)])
def test_batch_norm(shape, last, options):
    """Sizes that a vector divides and others, of both orders in memory."""
    torch.manual_seed(0)
    layers = [nn.BatchNorm2d(shape[1], **options) for _ in range(3)]
    for layer in layers:
        for p in layer.parameters():
            p.data.normal_()
    same(layers, torch.randn(3 * shape[0], *shape[1:]) * 3 + 1, last)


@pytest.mark.parametrize("kind, shape", [(nn.BatchNorm1d, (4, 6, 16)), (nn.BatchNorm1d, (8, 16)),
                                         (nn.BatchNorm3d, (2, 4, 2, 3, 4))])
def test_batch_norm_of_other_dimensions(kind, shape):
    torch.manual_seed(0)
    same([kind(shape[1]) for _ in range(3)], torch.randn(3 * shape[0], *shape[1:]))


def test_batch_norm_of_extremes():
    torch.manual_seed(0)
    x = torch.randn(6, 8, 2, 4)
    x[:, 0] *= 1e-42
    x[:, 1] *= 1e18
    x[:, 2] = 3
    same([nn.BatchNorm2d(8) for _ in range(3)], x)
    x[0, 3, 0, 0] = torch.inf
    job = fused.fuse([nn.BatchNorm2d(8) for _ in range(3)])
    assert torch.equal(job(x).isnan(), torch.cat([nn.BatchNorm2d(8)(part) for part in x.chunk(3)]).isnan())


def test_gradient_of_another_order_in_memory():
    torch.manual_seed(0)
    for last in (False, True):
        form = torch.contiguous_format if last else torch.channels_last
        tops = torch.randn(12, 8, 4, 4).contiguous(memory_format=form)
        same([nn.BatchNorm2d(8) for _ in range(3)], torch.randn(12, 8, 4, 4), last, tops)


@pytest.mark.parametrize("shape", [(4, 8, 4, 4), (4, 1, 4, 4), (4, 8, 1, 1), (1, 3, 2, 5), (4, 8, 6)])
def test_order_that_a_relu_gives_gradients(shape):
    """As torch's own has it."""
    orders = [torch.empty(shape).stride(), torch.empty(shape).transpose(1, -1).contiguous().transpose(1, -1).stride()]
    for g in orders:
        for y in orders:
            whole = torch.ops.aten.threshold_backward(*(torch.empty_strided(shape, each) for each in (g, y)), 0)
            assert norms._rectified_stride(torch.Size(shape), g, y) == whole.stride()


def test_batch_norm_without_proof(monkeypatch):
    class Refused(dict):
        def get(self, key):
            return False

    monkeypatch.setattr(proof, "_FOUND", Refused())
    torch.manual_seed(0)
    same([nn.BatchNorm2d(8) for _ in range(3)], torch.randn(12, 8, 4, 4))


def test_hooks_see_what_is_between():
    """A ReLU is by itself where somebody looks."""
    torch.manual_seed(0)
    job, seen = fused.fuse([nn.Sequential(nn.BatchNorm2d(8), nn.ReLU()) for _ in range(3)]), []
    job.net[0].register_forward_hook(lambda layer, inputs, y: seen.append(y))
    y = job(torch.randn(12, 8, 4, 4))
    assert torch.equal(seen[0].relu(), y) and (seen[0] < 0).any()


def test_batch_norm_in_evaluation():
    layers = [nn.BatchNorm2d(8).eval() for _ in range(3)]
    same(layers, torch.randn(12, 8, 4, 4))
