"""Attention in one kernel: every product has golden's bits for the shares and gradients that the kernel says it had.

Covers: golden/gpu/attention_kernel.py, golden/gpu/attention_gradients_kernel.py, golden/nn/attended.py.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="needs Triton: pip install 'hbfp[gpu]'")

import golden.nn as gn  # noqa: E402
from golden.gpu import attention, runtime  # noqa: E402
from golden.matmul import matmul  # noqa: E402
from golden.noise import Stream  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in :RuntimeWarning",    # NumPy's, of the interpreter
                                        "ignore:All-NaN slice encountered:RuntimeWarning")


def fmt(terms, mantissa=8, **more):
    return HBFPFormat(mantissa=mantissa, block=(1, terms), **more)


def spoiled(which, value):
    def spoil(operands):
        operands[which][0, 5, 3] = value
    return spoil


#: Name -> sizes (pairs, queries, keys, features), terms, whether causal, factors of q, v and g, and what is spoiled.
CASES = {
    "ragged": ((2, 17, 21, 20), 16, False, (1, 1, 1e-4), None),
    "causal": ((1, 40, 40, 24), 16, True, (1, 1, 1e-4), None),
    "parts": ((1, 18, 18, 60), 16, True, (1, 1, 1), None),
    "one block": ((1, 20, 40, 20), 128, True, (1, 1, 1), None),
    "far apart": ((1, 20, 20, 64), 32, True, (30, 1, 1), None),
    "tiny scores": ((1, 20, 20, 20), 16, True, (1e-30, 1, 1), None),
    "subnormal": ((1, 18, 18, 20), 16, False, (20, 1e-37, 1), None),
    "tiny gradients": ((1, 20, 20, 20), 16, True, (1, 1, 1e-36), None),
    "large gradients": ((1, 20, 20, 20), 16, True, (1, 1, 1e9), None),
    "vast gradients": ((1, 20, 20, 20), 16, True, (1, 1, 1e33), None),
    "NaN among values": ((1, 20, 20, 20), 16, True, (1, 1, 1), spoiled(2, np.nan)),
    "NaN among queries": ((1, 20, 20, 20), 16, False, (1, 1, 1), spoiled(0, np.nan)),
    "Inf among gradients": ((1, 20, 20, 20), 16, True, (1, 1, 1), spoiled(3, np.inf)),
}


#: Those that run by default: ragged sides, numbers outside what the quick sums serve, and ones that are none.
QUICK = ("ragged", "vast gradients", "NaN among values")


def numbers(sizes, factors, spoil):
    """Queries, keys, values and gradients of the result."""
    pairs, queries, keys, size = sizes
    rng = np.random.default_rng(3)
    q, k, v, g = (rng.standard_normal((pairs, n, size)).astype(np.float32) for n in (queries, keys, keys, queries))
    operands = [q * np.float32(factors[0]), k, v * np.float32(factors[1]), g * np.float32(factors[2])]
    if spoil:
        spoil(operands)
    return operands


def same(got, want):
    return (got.cpu().numpy().view(np.uint32) == want.view(np.uint32)).all()


def turned(x):
    return np.ascontiguousarray(x.T)


@pytest.mark.parametrize("name", [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES])
def test_products(device, name):
    sizes, terms, causal, factors, spoil = CASES[name]
    x, w, g_fmt = fmt(terms), fmt(terms, 6), fmt(terms, 9 if terms < 128 else 8)
    operands = numbers(sizes, factors, spoil)
    q, k, v, g = operands
    on = [torch.from_numpy(t).to(device) for t in operands]
    factor = float(np.float32(sizes[3] ** -0.5))
    y, found, weights = attention.attended(*on[:3], x, w, factor=factor, causal=causal, weights=True)
    gq, gk, gv, under = found.gradients(on[3], g_fmt, kept=True)
    shares, under = weights.cpu().numpy(), under.cpu().numpy()
    for i in range(sizes[0]):
        scores = matmul(q[i], turned(k[i]), x, w_fmt=w) * np.float32(factor)
        if causal:
            scores = np.where(np.tril(np.ones(scores.shape, bool)), scores, np.float32(-np.inf))
        want = torch.from_numpy(scores).softmax(-1).numpy()
        np.testing.assert_allclose(shares[i], np.where(np.isnan(want).any(1, keepdims=True), np.nan, want), 1e-5, 1e-37)
        back = matmul(g[i], turned(v[i]), g_fmt, w_fmt=w)
        want = (back - (shares[i] * back).sum(1, keepdims=True)) * shares[i] * np.float32(factor)
        np.testing.assert_allclose(under[i], want, 1e-3, np.nanmax(abs(want), initial=0) * 1e-4 + 2e-38)
        assert same(y[i], matmul(shares[i], v[i], x, w_fmt=w))
        assert same(gq[i], matmul(under[i], k[i], g_fmt, w_fmt=w))
        assert same(gk[i], matmul(turned(under[i]), q[i], g_fmt, w_fmt=x))
        assert same(gv[i], matmul(turned(shares[i]), g[i], x, w_fmt=g_fmt))


def test_noise_of_gradients(device):
    """Both conversions of both gradients draw what the kernels are given."""
    pairs, queries, size, terms = 2, 17, 12, 16
    x, g_fmt = fmt(terms), fmt(terms, 5, rounding="stochastic", noise_bits=6)
    q, k, v, g = numbers((pairs, queries, queries, size), (1, 1, 1e-3), None)
    rng = np.random.default_rng(4)
    dice = [rng.integers(0, 64, (pairs, queries, n), np.uint8) for n in (size, size, queries, queries)]
    on = [torch.from_numpy(t).to(device) for t in (q, k, v, g)]
    thrown = [torch.from_numpy(t).to(device) for t in dice]
    _, found, weights = attention.attended(*on[:3], x, x, factor=0.25, weights=True)
    gq, gk, gv, under = found.gradients(on[3], g_fmt, attention.Noise((thrown[0], thrown[1]), (thrown[2], thrown[3])),
                                        kept=True)
    shares, under = weights.cpu().numpy(), under.cpu().numpy()
    for i in range(pairs):
        assert same(gq[i], matmul(under[i], k[i], g_fmt, w_fmt=x, noise=dice[2][i]))
        assert same(gk[i], matmul(turned(under[i]), q[i], g_fmt, w_fmt=x, noise=turned(dice[3][i])))
        assert same(gv[i], matmul(turned(shares[i]), g[i], x, w_fmt=g_fmt, w_noise=dice[1][i]))
        back = matmul(g[i], turned(v[i]), g_fmt, w_fmt=x, noise=dice[0][i])
        want = (back - (shares[i] * back).sum(1, keepdims=True)) * shares[i] * np.float32(0.25)
        np.testing.assert_allclose(under[i], want, 1e-3, abs(want).max() * 1e-4)


def test_results_lie_as_operands_do(device):
    """Heads beside each other in a row, and one after the other, have the same bits; nothing is copied behind them."""
    apart = [torch.from_numpy(t).to(device).view(2, 2, *t.shape[1:])
             for t in numbers((4, 17, 18, 12), (1, 1, 1e-3), None)]
    beside = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in apart]

    def passed(q, k, v, g):
        y, found, _ = attention.attended(q, k, v, fmt(16), fmt(16), factor=0.25)
        return y, *found.gradients(g, fmt(16))[:3]
    for a, b in zip(passed(*apart), passed(*beside), strict=True):
        assert torch.equal(a, b) and a.is_contiguous() and b.transpose(1, 2).is_contiguous()


@pytest.mark.slow
def test_exact_where_quick_serves_not(device, monkeypatch):
    """With operands of usual size both ways have the same bits."""
    operands = [torch.from_numpy(t).to(device) for t in numbers((1, 20, 20, 20), (1, 1, 1e-4), None)]

    def passed():
        y, found, _ = attention.attended(*operands[:3], fmt(16), fmt(16), factor=0.25, causal=True)
        return y, *found.gradients(operands[3], fmt(16))[:3]
    quick = passed()
    true = attention.converted

    def far(*args, **more):                            # a span that no quick sums serve
        found = true(*args, **more)
        found[0].span[0] += 100
        return found
    monkeypatch.setattr(attention, "converted", far)
    for a, b in zip(quick, passed(), strict=True):
        assert torch.equal(a, b)


def model(formats, noise="lanes"):
    class Heads(torch.nn.Module):
        def forward(self, q, k, v):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return gn.convert(Heads(), formats, seed=5, noise=noise)


FORMATS = {"rne": gn.Formats.of(fmt(16)), "stochastic": gn.Formats.of(fmt(16), g=fmt(16, rounding="stochastic"))}


@pytest.mark.parametrize("name, noise", [
    pytest.param("rne", "lanes", marks=pytest.mark.slow), ("stochastic", "lanes"),
    pytest.param("stochastic", "position", marks=pytest.mark.slow)])
def test_layers(device, name, noise, monkeypatch):
    """As by products of their own: near in value, and with the same noise drawn."""
    made = []
    for together in (True, False):
        if not together:
            monkeypatch.setattr(attention, "takes", lambda fmt, size: False)
        layer = model(FORMATS[name], noise).to(device)
        q, k, v, g = (torch.from_numpy(t)[None].to(device) for t in numbers((2, 17, 17, 4), (1, 1, 1), None))
        with runtime.forced():
            leaves = [t.clone().requires_grad_() for t in (q, k, v)]
            y = layer(*leaves)
            y.backward(g)
        made.append([y.detach(), *(t.grad for t in leaves)])
        made[-1] += list(layer.buffers())
    for a, b in zip(*made, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-2)
        assert a.is_floating_point() or torch.equal(a, b)


@pytest.mark.parametrize("rounding", [pytest.param("rne", marks=pytest.mark.slow), "stochastic"])
def test_pairs_draw_as_one_by_one(device, rounding):
    """Stacks of matrices have the bits that the loop over pairs has on the CPU, noise in all roles."""
    noisy = fmt(8, 5, rounding="stochastic", noise_bits=5)
    formats = gn.Formats.of(fmt(8, 5, rounding=rounding, noise_bits=8), w=noisy, g=noisy)

    def passed(where):
        stream = Stream(9, 4)
        state = torch.from_numpy(stream.state.view(np.int32).copy()).to(where)
        stream = gn.state._BufferStream(state)
        a, b, g = (torch.from_numpy(t).to(where) for t in np.random.default_rng(5).standard_normal((3, 2, 9, 9))
                   .astype(np.float32))
        a, b = (t.clone().requires_grad_() for t in (a, b))
        y = gn.functional.matmul(a, b, formats, stream=stream)
        y.backward(g)
        return [t.detach().cpu() for t in (y, a.grad, b.grad, state)]
    want = passed("cpu")
    with runtime.forced():
        for a, b in zip(passed(device), want, strict=True):
            assert torch.equal(a, b)


@pytest.mark.slow
def test_gradients_of_gradients(device):
    """They come from the products one by one."""
    layer = model(FORMATS["rne"]).to(device)
    q, k, v, _ = (torch.from_numpy(t)[None].to(device).requires_grad_()
                  for t in numbers((1, 6, 6, 8), (1, 1, 1), None))
    with runtime.forced():
        first = torch.autograd.grad(layer(q, k, v).square().sum(), (q, k, v), create_graph=True)
        sum(t.square().sum() for t in first).backward()
    assert all(t.grad is not None and t.grad.isfinite().all() and t.grad.any() for t in (q, k, v))


def test_what_is_taken():
    assert attention.takes(fmt(32), 64) and attention.takes(fmt(32), 128) and attention.takes(fmt(16), 64)
    for other in (fmt(20), fmt(16, 10), HBFPFormat(block=(16, 16)), fmt(16, subnormals="gradual"),
                  fmt(16, rounding="truncate")):
        assert not attention.takes(other, 16)
    assert not attention.takes(fmt(16), 65) and not attention.takes(fmt(64), 129) and not attention.takes(fmt(16), 0)
