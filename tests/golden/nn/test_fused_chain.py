"""Fully connected layers and ReLUs in one node have the bits of each model alone, and products in FP32 those of torch.

Covers: golden/fast/chain.py, golden/nn/fused/chain.py, golden/nn/fused/links.py.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.fast import kernels  # noqa: E402
from golden.nn import fused  # noqa: E402
from golden.nn.fused import chain, linear, links, proof  # noqa: E402

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="needs a C++ compiler")

Linear, ReLU = torch.nn.Linear, torch.nn.ReLU
#: Name -> layers of a model, and into how many parts a job takes them.
NETS = {
    "mlp": (lambda: [Linear(19, 33), ReLU(), Linear(33, 16), ReLU(), Linear(16, 10)], 1),
    "ends in a ReLU": (lambda: [Linear(19, 70), Linear(70, 5), ReLU()], 2),
    "two ReLUs": (lambda: [Linear(19, 8), ReLU(), ReLU(), Linear(8, 3), Linear(3, 1)], 4),
    "no biases": (lambda: [Linear(19, 64, bias=False), ReLU(), Linear(64, 9, bias=False)], 1),
    "one alone": (lambda: [torch.nn.Tanh(), Linear(19, 6), torch.nn.Tanh()], 3)}
FORMATS = {"FP32": [None] * 3, "HBFP": ["hbfp8", "hbfp4", "hbfp6"],
           "blocks": [gn.HBFPFormat(mantissa=m, block=block) for m, block in ((8, (1, 8)), (5, (8, 8)), (16, (1, 24)))],
           "noise": [gn.HBFPFormat(mantissa=4, block=(1, 16), rounding=r) for r in ("rne", "stochastic", "truncate")]}


def models(build, formats):
    made = []
    for i, fmt in enumerate(formats):
        torch.manual_seed(i)
        net = torch.nn.Sequential(*build())
        made.append(net if fmt is None else gn.convert(net, fmt, seed=i))
    return made


def same(a, b):
    """Equal bits, but for those of NaN."""
    return proof.same_bits(*(torch.where(x.isnan(), torch.nan, x) for x in (a, b)))


def compare(alone, joined, x, inputs=True, backward=2):
    """Outputs and gradients, added up, of models alone and as a job."""
    job, count = fused.fuse(joined), len(alone)
    own, x = [part.clone().requires_grad_(inputs) for part in x.chunk(count)], x.clone().requires_grad_(inputs)
    for _ in range(backward):
        each, y = [net(part) for net, part in zip(alone, own, strict=True)], job(x)
        assert same(torch.cat(each), y)
        top = torch.randn(y.shape, generator=torch.Generator().manual_seed(7))
        for one, g in zip(each, top.chunk(count), strict=True):
            one.backward(g.clone())
        y.backward(top)
    if inputs:
        assert same(torch.cat([part.grad for part in own]), x.grad)
    for one, other in zip(alone, joined, strict=True):
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            assert (a.grad is None) == (b.grad is None) and (a.grad is None or same(a.grad, b.grad))
    return job


@pytest.mark.parametrize("formats", FORMATS)
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("rows, inputs", [(1, True), (5, False), (32, True), (33, True)])
def test_bits(net, formats, rows, inputs):
    build, parts = NETS[net]
    alone, joined = (models(build, FORMATS[formats]) for _ in range(2))
    job = compare(alone, joined, torch.randn(3 * rows, 19, generator=torch.Generator().manual_seed(rows)), inputs)
    assert len(job.net.__dict__["parts"]) == parts


@pytest.mark.parametrize("formats", ["FP32", "HBFP"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.0, 1e-42, 3e38])
def test_extremes(formats, value):
    """Of inputs, weights and biases."""
    alone, joined = (models(NETS["mlp"][0], FORMATS[formats]) for _ in range(2))
    x = torch.randn(30, 19)
    x[::3, ::4], x[4] = value, 0
    for net in (*alone, *joined):
        with torch.no_grad():
            net[0].weight[1::7] = -0.0
            net[0].bias[1::7] = -0.0
            net[2].weight[3] = value
    compare(alone, joined, x)


@pytest.mark.parametrize("formats", ["FP32", "HBFP"])
def test_refused(monkeypatch, formats):
    """Where torch's own products are called in the middle."""
    monkeypatch.setattr(proof, "_FOUND", type("Never", (dict,), {"get": lambda *_: False})())
    alone, joined = (models(NETS["mlp"][0], FORMATS[formats]) for _ in range(2))
    compare(alone, joined, torch.randn(24, 19))


def test_threads():
    before = kernels.threads()
    try:
        kernels.set_threads(2)
        alone, joined = (models(lambda: [Linear(64, 128), ReLU(), Linear(128, 64)], FORMATS["HBFP"]) for _ in range(2))
        compare(alone, joined, torch.randn(192, 64))
    finally:
        kernels.set_threads(before)


@pytest.mark.parametrize("formats", ["FP32", "HBFP"])
@pytest.mark.parametrize("frozen", ["0.weight", "2.bias", "4.weight"])
def test_frozen(formats, frozen):
    alone, joined = (models(NETS["mlp"][0], FORMATS[formats]) for _ in range(2))
    for net in (*alone, *joined):
        net.get_parameter(frozen).requires_grad_(False)
    compare(alone, joined, torch.randn(24, 19))


@pytest.mark.parametrize("times", [2, 3])
def test_shared(times):
    """One layer several times, and again outside."""
    def build():
        layer = Linear(19, 19)
        return [*[layer, ReLU()] * times, torch.nn.Tanh(), layer]
    alone, joined = (models(build, FORMATS["FP32"]) for _ in range(2))
    compare(alone, joined, torch.randn(24, 19))


@pytest.mark.parametrize("change", ["hook", "large", "rows", "double", "columns"])
def test_one_by_one(change, monkeypatch):
    """What the node does not serve."""
    alone, joined = (models(NETS["mlp"][0], FORMATS["FP32"]) for _ in range(2))
    x, called = torch.randn(24, 19), []
    if change == "large":
        monkeypatch.setattr(linear, "MOST", 100)
    if change == "rows":
        x = torch.randn(6, 4, 19)
    if change == "columns":
        x = torch.randn(19, 24).t()
    if change == "double":
        alone, joined, x = [net.double() for net in alone], [net.double() for net in joined], x.double()
        assert torch.equal(fused.fuse(joined)(x), torch.cat([net(part) for net, part in zip(alone, x.chunk(3),
                                                                                            strict=True)]))
        return
    monkeypatch.setattr(chain._Run, "forward", None)
    job = fused.fuse(joined)
    if change == "hook":
        job.net[1].register_forward_hook(lambda *_: called.append(1))
    assert same(job(x), torch.cat([net(part) for net, part in zip(alone, x.chunk(3), strict=True)]))
    assert change != "hook" or called


def test_formats_change():
    """Between two steps; and in evaluation, without gradients, layers are those of the models."""
    alone, joined = (models(NETS["mlp"][0], FORMATS["noise"][:1] * 3) for _ in range(2))
    job, x = fused.fuse(joined), torch.randn(24, 19)
    for width in (4, 6, 4):
        for net in (*alone, *joined):
            for _, layer in gn.hbfp_layers(net):
                layer.formats = layer.formats.with_mantissa(width)
        assert same(job(x), torch.cat([net(part) for net, part in zip(alone, x.chunk(3), strict=True)]))
    job.eval()
    with torch.no_grad():
        assert same(job(x), torch.cat([net.eval()(part) for net, part in zip(alone, x.chunk(3), strict=True)]))
    assert same(job.net[:3](x), torch.cat([net[:3](part) for net, part in zip(alone, x.chunk(3), strict=True)]))


def test_twice():
    """A gradient of gradients is refused; those of inputs alone leave the parameters' be."""
    joined = models(NETS["mlp"][0], FORMATS["FP32"])
    job, x = fused.fuse(joined), torch.randn(24, 19, requires_grad=True)
    gx, = torch.autograd.grad(job(x).sum(), x)
    assert gx.shape == x.shape and all(p.grad is None for net in joined for p in net.parameters())
    gx, = torch.autograd.grad(job(x).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="cannot be differentiated again"):
        gx.sum().backward()


def fma(a, b, c):
    return (a.astype(np.longdouble) * b + c).astype(np.float32)


@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (7, 5, 3), (33, 20, 70), (6, 17, 64), (12, 3, 32), (25, 40, 16)])
def test_along_k(m, k, n):
    """Each sum is a chain of fused steps, whatever the strides."""
    random = np.random.default_rng(m)
    a, b, bias = (random.standard_normal(shape).astype(np.float32) for shape in ((2, m, k), (2, k, n), (2, n)))
    expected = np.zeros((2, m, n), np.float32)
    for i in range(k):
        expected = fma(a[:, :, i:i + 1], b[:, i:i + 1], expected)
    a, b, bias = map(torch.from_numpy, (a, b, bias))
    for one in (a, a.mT.contiguous().mT):
        for other in (b, b.mT.contiguous().mT):
            assert same(links.product(one, other), torch.from_numpy(expected))
            assert same(links.product(one, other, bias), torch.from_numpy(expected) + bias[:, None])


@pytest.mark.parametrize("m, k, n", [(1, 8, 1), (7, 16, 10), (3, 24, 4), (2, 3, 5)])
def test_dots(m, k, n):
    """Lanes of fours of columns and of the rest, each product rounded."""
    random = np.random.default_rng(m)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((2, m, k), (2, n, k)))
    expected = np.zeros((2, m, n), np.float32)
    for column in range(n):
        lanes = 4 if column < n // 4 * 4 else 8
        products, whole = a * b[:, column, None], k - k % lanes
        sums = np.zeros((2, m, lanes), np.float32)
        for i in range(0, whole, lanes):
            sums = sums + products[..., i:i + lanes]
        while sums.shape[-1] > 1:
            sums = sums[..., :sums.shape[-1] // 2] + sums[..., sums.shape[-1] // 2:]
        for i in range(whole, k):
            sums = sums + products[..., i:i + 1]
        expected[..., column] = sums[..., 0]
    found = links.product(torch.from_numpy(a), torch.from_numpy(b).mT, dots=1)
    assert same(found, torch.from_numpy(expected))


@pytest.mark.parametrize("rows", [1, 3, 16, 17, 50])
@pytest.mark.parametrize("columns", [1, 10, 32, 77])
def test_sums(rows, columns):
    """Sixteen rows at a time; behind whole groups of columns every fourth row."""
    def chain_of(x):
        total, part = np.zeros(x.shape[1:], np.float32), np.zeros(x.shape[1:], np.float32)
        for i, row in enumerate(x, 1):
            part = part + row
            if i % 16 == 0:
                total, part = total + part, np.zeros_like(part)
        return part + total
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    whole, fourth = columns - columns % 32, rows // 4
    lanes = [chain_of(x[i:4 * fourth:4, whole:]) for i in range(4)]
    for row in x[4 * fourth:, whole:]:
        lanes[0] = lanes[0] + row
    expected = np.concatenate([chain_of(x[:, :whole]), ((lanes[0] + lanes[1]) + lanes[2]) + lanes[3]])
    assert same(links.row_sums(torch.from_numpy(x)[None])[0], torch.from_numpy(expected))


def test_other_memory():
    """Operands whose numbers are not what lies in memory."""
    zeros, turned = torch._efficientzerotensor(2, 3, 4), torch.view_as_complex(torch.ones(2, 3, 4, 2)).conj().imag
    ones = torch.ones(2, 4, 5)
    assert (links.product(zeros, ones) == 0).all() and (links.product(turned, ones) == -4).all()
