"""Stacked products in one call have the bits of one product after the other."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.bfp import encode  # noqa: E402
from golden.fast import kernels, stack  # noqa: E402
from golden.matmul import matmul, matmul_blocks  # noqa: E402
from golden.nn import functional, pairs  # noqa: E402
from golden.noise import Stream  # noqa: E402


def same(a, b):
    got, want = (np.ascontiguousarray(t.detach().numpy() if torch.is_tensor(t) else t) for t in (a, b))
    assert got.shape == want.shape and (got.view(np.uint32) == want.view(np.uint32)).all()


def products(a, b, g, formats, stream=None):
    """A stacked product and its two gradients."""
    a, b = (t.detach().requires_grad_() for t in (a, b))
    y = functional.matmul(a, b, formats, stream=stream)
    y.backward(g)
    return y, a.grad, b.grad


def layouts(a, b):
    """The same operands as they lie, turned in memory, with gaps in both directions, and one for all pairs."""
    def turned(t):
        return t.mT.contiguous().mT

    def apart(t):
        wide = torch.zeros(*t.shape[:-2], 2 * t.shape[-2], 2 * t.shape[-1])
        wide[..., ::2, ::2] = t
        return wide[..., ::2, ::2]
    yield from ((a, b), (turned(a), turned(b)), (apart(a), apart(b)))
    yield a[:1, :1].expand_as(a), b


@pytest.mark.parametrize("fmt", [
    "hbfp8", gn.HBFPFormat(mantissa=12, block=(1, 8)), gn.HBFPFormat(block=(8, 8)),
    gn.Formats.of(gn.HBFPFormat(block=(1, 8)), w=gn.HBFPFormat(block=(8, 8)),
                  g=gn.HBFPFormat(mantissa=14, block=(1, 8))),
    gn.Formats.of("hbfp8", accumulate="aligned")])
@pytest.mark.parametrize("m, k, n", [(1, 5, 3), (9, 20, 34)])
def test_equal_to_the_definition_in_every_layout(m, k, n, fmt):
    torch.manual_seed(m)
    formats = gn.Formats.of(fmt)
    for a, b in layouts(torch.randn(2, 3, m, k), torch.randn(2, 3, k, n) * 2 ** torch.randn(2, 3, k, n)):
        g = torch.randn(2, 3, m, n)
        y, ga, gb = products(a, b, g, formats)
        for i, j in np.ndindex(2, 3):
            x, w, top = (t[i, j].numpy() for t in (a, b, g))
            how = formats.accumulate
            same(y[i, j], matmul(x, w, formats.x, how, w_fmt=formats.w))
            same(ga[i, j], matmul(top, w.T, formats.g, how, w_fmt=formats.w))
            same(gb[i, j], matmul(x.T, top, formats.x, how, w_fmt=formats.g))


@pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
@pytest.mark.parametrize("options, one", [
    (dict(), True), (dict(accumulate="aligned"), False), (dict(order="quick"), False)])
def test_who_is_multiplied_in_one_call(options, one, monkeypatch):
    calls = []
    real = stack.product
    monkeypatch.setattr(stack, "product", lambda *args: calls.append(args) or real(*args))
    torch.manual_seed(0)
    a, b, g = torch.randn(4, 5, 16), torch.randn(4, 16, 7), torch.randn(4, 5, 7)
    products(a, b, g, gn.Formats.of("hbfp8", **options))
    assert len(calls) == 3 * one


NOISY = gn.HBFPFormat(rounding="stochastic", block=(1, 8))


@pytest.mark.parametrize("fmt", [
    NOISY, gn.HBFPFormat(rounding="stochastic", block=(1, 16), mantissa=13), gn.Formats.of(NOISY, accumulate="bf16"),
    gn.Formats.of(NOISY, w=gn.HBFPFormat(block=(8, 8))), gn.Formats.of(gn.HBFPFormat(block=(1, 8)), g=NOISY),
    gn.HBFPFormat(rounding="stochastic", block=(8, 8)), gn.HBFPFormat(rounding="stochastic", block=(1, 4)),
    gn.Formats.of(NOISY, accumulate="aligned")])
@pytest.mark.parametrize("m, k, n", [(4, 16, 5), (9, 21, 34), (1, 1, 1)])
def test_noise_is_drawn_pair_by_pair(m, k, n, fmt):
    formats = gn.Formats.of(fmt)
    torch.manual_seed(m)
    for a, b in layouts(torch.randn(2, 3, m, k), torch.randn(2, 3, k, n) * 2 ** torch.randn(2, 3, k, n)):
        g, stream, again = torch.randn(2, 3, m, n), Stream(3, 4), Stream(3, 4)

        def operand(tensor, i, j, fmt, axis, stream=again):
            x = np.ascontiguousarray(tensor[i, j].numpy())
            noise = stream.draw(x.shape, fmt, axis=axis) if fmt.rounding == "stochastic" else None
            return encode(x, fmt, noise, axis=axis)
        y, ga, gb = products(a, b, g, formats, stream)
        how, f, pairs = formats.accumulate, formats, list(np.ndindex(2, 3))
        kept = []
        for i, j in pairs:
            kept.append((operand(a, i, j, f.x, -1), operand(b, i, j, f.w, 0)))
            same(y[i, j], matmul_blocks(*kept[-1], how))
        for (i, j), (x, w) in zip(pairs, kept, strict=True):
            top = operand(g, i, j, f.g, -1)
            same(ga[i, j], matmul_blocks(top, operand(b.mT, i, j, f.w, 0) if not f.w.square else turned(w), how))
            left = turned(x) if f.x.square else operand(a.mT, i, j, f.x, -1)
            same(gb[i, j], matmul_blocks(left, top if f.g.square else operand(g, i, j, f.g, 0), how))
        assert (stream.state == again.state).all()


def turned(blocks):
    """Square tiles of the transpose."""
    return replace(blocks, mantissa=blocks.mantissa.T, exponent=blocks.exponent.T, invalid=blocks.invalid.T)


def test_without_kernels_the_bits_are_the_same(monkeypatch):
    torch.manual_seed(0)
    a, b, g = torch.randn(4, 5, 40), torch.randn(4, 40, 7), torch.randn(4, 5, 7)
    want = products(a, b, g, "hbfp8")
    monkeypatch.setattr(pairs, "quick", lambda formats: False)
    for got, one in zip(products(a, b, g, "hbfp8"), want, strict=True):
        same(got, one)


@pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
def test_heads_of_attention_are_one_call(monkeypatch):
    calls = []
    real, drawn = stack.product, stack.drawn
    monkeypatch.setattr(stack, "product", lambda *args: calls.append(args[0].shape) or real(*args))
    monkeypatch.setattr(stack, "drawn", lambda given, *rest: calls.extend(a.shape for a, *_ in given)
                        or drawn(given, *rest))
    for fmt in ("hbfp8", NOISY):
        layer = gn.HBFPMultiheadAttention(16, 4, batch_first=True, fmt=fmt)
        layer(*[torch.randn(3, 6, 16)] * 3)[0].sum().backward()
    assert [shape[0] for shape in calls] == [12] * 12


@pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler")
@pytest.mark.parametrize("sides", [(5, 7, 9), (16, 33, 20), (1, 40, 3), (9, 1, 8), (24, 64, 64)])
@pytest.mark.parametrize("options", [
    {}, {"mantissa": 14}, {"exponent": 6}, {"rounding": "truncate", "subnormals": "gradual"}, {"block": (1, 1)}])
def test_aligned_pairs_go_together(sides, options, monkeypatch):
    (m, k, n), formats = sides, gn.Formats.of(gn.HBFPFormat(**{"block": (1, 8)} | options), accumulate="aligned")
    torch.manual_seed(m)
    a, b, g = torch.randn(2, 3, m, k), torch.randn(2, 3, k, n), torch.randn(2, 3, m, n)
    a *= 2.0 ** torch.randint(-9, 9, a.shape)
    a[0, 1, 0, 0], b[1, 1, 0, 0], g[1, 2] = float("nan"), float("inf"), 1e-36
    for left, right in layouts(a, b):
        together = products(left, right, g, formats)
        with monkeypatch.context() as patch:
            patch.setattr(pairs, "whole", lambda _: False)
            for got, want in zip(together, products(left, right, g, formats), strict=True):
                same(got, want)


def test_too_many_blocks_of_aligned_pairs():
    formats = gn.Formats.of(gn.HBFPFormat(block=(1, 2)), accumulate="aligned", growth=2)
    with pytest.raises(ValueError, match=r"^Blocks along K must be at most 2\^growth = 4 for accumulation 'aligned', "
                                         "not 5$"):
        functional.matmul(torch.ones(2, 3, 10), torch.ones(2, 10, 3), formats)
