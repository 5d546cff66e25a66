"""Sparse weights in training are those of golden.sparsity, and their products those of golden.matmul, bit for bit.

Covers: golden/nn/sparsify.py.
"""

import copy
import io
import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
import golden.nn.fused as fused  # noqa: E402
from golden.bfp import decode, encode  # noqa: E402
from golden.matmul import matmul_blocks  # noqa: E402
from golden.sparsity import prune  # noqa: E402

ORDERS = ("sparsify-quantise", "quantise-sparsify")
FORMATS = {"row": gn.HBFPFormat(mantissa=4, block=(1, 16)), "straddling": gn.HBFPFormat(mantissa=3, block=(1, 6)),
           "tile": gn.HBFPFormat(mantissa=4, block=(8, 8)),
           "truncate": gn.HBFPFormat(mantissa=3, block=(1, 8), rounding="truncate")}


def bits(y):
    return torch.as_tensor(y).detach().contiguous().view(torch.int32)


def model(fmt="hbfp4", **options):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(4, 6, 3, padding=1, groups=2), torch.nn.ReLU(), torch.nn.Conv2d(6, 8, 3, 2), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(32, 37), torch.nn.ReLU(), torch.nn.Linear(37, 10))
    with torch.no_grad():
        net[0].weight[3:] *= 0.1                                              # groups with other exponents
    return gn.convert(net, fmt, **options)


def layers(net):
    return [layer for _, layer in gn.hbfp_layers(net)]


def matrix(w):
    """(K, O) of a weight; K of a convolution is (kernel row, kernel column, channel)."""
    w = w.detach().numpy()
    return np.ascontiguousarray(w.T if w.ndim == 2 else w.transpose(2, 3, 1, 0).reshape(-1, len(w)))


def quantised(w, fmt):
    return decode(encode(w, fmt, axis=0))


def wanted(layer, n, m, order):
    """What products should see, as (K, O)."""
    w, groups = matrix(layer.weight), getattr(layer, "groups", 1)
    if order == "quantise-sparsify":
        w = np.concatenate([quantised(part, layer.formats.w) for part in np.split(w, groups, 1)], 1)
    return prune(w, n, m, axis=0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n, m", [(2, 4), (1, 4), (4, 8), (0, 4), (4, 4), (2, 5)])
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_weights_are_those_of_golden_sparsity(fmt, n, m, order):
    net = gn.sparsify(model(fmt), f"{n}:{m}", order)
    with torch.no_grad():
        layers(net)[1].weight[:4] = torch.randint(-2, 3, layers(net)[1].weight[:4].shape) / 2      # ties
    net = gn.sparsify(net, f"{n}:{m}", order)
    for layer in layers(net):
        np.testing.assert_array_equal(matrix(layer.used_weight()).view(np.int32),
                                      wanted(layer, n, m, order).view(np.int32))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_product_is_that_of_the_golden_model(fmt, order):
    """In the reverse order the operand is the quantised weight, pruned: to convert it again changes no bit."""
    torch.manual_seed(1)
    layer = gn.sparsify(gn.HBFPLinear(32, 24, bias=False, fmt=fmt), "2:4", order)
    x, g = torch.randn(16, 32, requires_grad=True), torch.randn(16, 24)
    y = layer(x)
    y.backward(g)
    w = wanted(layer, 2, 4, order)
    blocks = encode(w, fmt, axis=0)
    if order == "quantise-sparsify":
        np.testing.assert_array_equal(decode(blocks), w)
    np.testing.assert_array_equal(bits(y), bits(matmul_blocks(encode(x.detach().numpy(), fmt), blocks)))
    gx = matmul_blocks(encode(g.numpy(), fmt), encode(np.ascontiguousarray(w.T), fmt, axis=0))
    gw = matmul_blocks(encode(np.ascontiguousarray(g.numpy().T), fmt), encode(x.detach().numpy(), fmt, axis=0))
    np.testing.assert_array_equal(bits(x.grad), bits(gx))
    np.testing.assert_array_equal(bits(layer.weight.grad), bits(gw))


def test_orders_differ_where_quantising_makes_a_tie():
    """Steps of 1/4 up to 7/4: 0.30 and 0.35 both become 0.25; the reverse order keeps the first, not the larger."""
    fmt = gn.HBFPFormat(mantissa=4, block=(1, 4))
    layer = gn.HBFPLinear(4, 1, bias=False, fmt=fmt)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.30, 0.35, 1.0, 0.1]]))
    first = gn.sparsify(copy.deepcopy(layer), "2:4", "sparsify-quantise")
    second = gn.sparsify(copy.deepcopy(layer), "2:4", "quantise-sparsify")
    assert first.weight_mask.tolist() == [[False, True, True, False]]
    assert second.weight_mask.tolist() == [[True, False, True, False]]
    assert second.used_weight().tolist() == [[0.25, 0, 1, 0]]
    assert first.used_weight().tolist() == layer.weight[:, 1:3].new_tensor([[0, 0.35, 1, 0]]).tolist()


def test_convolution_is_that_of_its_sparse_weight():
    for order in ORDERS:
        net = gn.sparsify(model(), "2:4", order)
        plain = gn.densify(copy.deepcopy(net))
        assert [type(layer) for layer in layers(plain)] == [gn.HBFPConv2d] * 2 + [gn.HBFPLinear] * 2
        assert not list(plain.buffers())
        found = []
        for each in (net, plain):
            x = torch.linspace(-1, 1, 3 * 4 * 6 * 6).view(3, 4, 6, 6).clone().requires_grad_()
            y = each(x)
            y.square().sum().backward()
            found.append([bits(t) for t in (y, x.grad, *(p.grad for p in each.parameters()))])
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_gradient_goes_straight_through():
    layer = gn.sparsify(gn.HBFPLinear(8, 4), "2:4")
    g = torch.arange(1., 33).view(4, 8)
    layer.used_weight().backward(g)
    assert torch.equal(layer.weight.grad, g) and layer.weight_mask.sum() == 16


def step(net, optimiser, seed):
    torch.manual_seed(seed)
    optimiser.zero_grad()
    net(torch.randn(4, 4, 6, 6)).square().mean().backward()
    optimiser.step()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, 0.5, momentum=0.9),
                                  lambda p: torch.optim.AdamW(p, 0.05)], ids=["sgd", "adamw"])
def test_masks_follow_the_steps(make, order):
    net = model()
    optimiser = make(net.parameters())
    gn.sparsify(net, "2:4", order, optimiser=optimiser)
    changed, before = 0, [layer.weight_mask.clone() for layer in layers(net)]
    dead = [layer.weight.detach()[~layer.weight_mask].clone() for layer in layers(net)]
    for seed in range(4):
        step(net, optimiser, seed)
        for layer in layers(net):
            used = matrix(layer.used_weight())
            np.testing.assert_array_equal(used.view(np.int32), wanted(layer, 2, 4, order).view(np.int32))
            full = used[:len(used) // 4 * 4].reshape(-1, 4, used.shape[1])
            assert ((full != 0).sum(1) <= 2).all() and (used != 0).any()
    for layer, mask, weight in zip(layers(net), before, dead, strict=True):
        changed += int((layer.weight_mask != mask).sum())
        assert not torch.equal(layer.weight.detach()[~mask], weight)          # what is pruned learns, too
    assert changed


def test_interval_and_frozen_masks():
    def step(net, optimiser, seed):
        """Weights become other random numbers."""
        torch.manual_seed(seed)
        for p in net.parameters():
            p.grad = torch.randn_like(p)
        optimiser.step()
    net = model()
    optimiser = torch.optim.SGD(net.parameters(), 1.0)
    gn.sparsify(net, "1:4", optimiser=optimiser, every=3)
    last, seen = layers(net)[-1], []
    for seed in range(7):
        before = last.weight_mask.clone()
        step(net, optimiser, seed)
        seen.append(not torch.equal(before, last.weight_mask))
    assert [i for i, changed in enumerate(seen) if changed] == [2, 5] and last.mask_rule.tolist() == [1, 4, 0, 7]
    gn.sparsify(net, "1:4")                                                   # ends the interval
    before = last.weight_mask.clone()
    for seed in range(6):
        step(net, optimiser, seed)
    assert torch.equal(before, last.weight_mask) and last.mask_rule.tolist() == [1, 4, 0, 0]


def test_resumed_training_has_the_same_bits():
    def fresh(order="sparsify-quantise"):
        net = model()
        optimiser = torch.optim.SGD(net.parameters(), 0.5, momentum=0.9)
        return gn.sparsify(net, "2:4", order, optimiser=optimiser, every=3), optimiser
    net, optimiser = fresh()
    for seed in range(4):
        step(net, optimiser, seed)
    saved = io.BytesIO()
    torch.save((net.state_dict(), optimiser.state_dict()), saved)
    saved.seek(0)
    other, its = fresh()
    for part, state in zip((other, its), torch.load(saved), strict=True):
        part.load_state_dict(state)
    for seed in range(4, 9):
        step(net, optimiser, seed)
        step(other, its, seed)
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), other.state_dict().values(), strict=True))


def test_checkpoints_both_ways():
    net, dense = gn.sparsify(model()), model()
    with torch.no_grad():
        for p in dense.parameters():
            p.mul_(torch.randn_like(p))
    net.load_state_dict(dense.state_dict())
    for layer in layers(net):
        np.testing.assert_array_equal(matrix(layer.used_weight()), wanted(layer, 2, 4, "sparsify-quantise"))
    model().load_state_dict(gn.weights(net))
    assert gn.weights(net).keys() == dense.state_dict().keys()
    with pytest.raises(RuntimeError, match="Unexpected key"):
        model().load_state_dict(net.state_dict())                             # masks are not lost unsaid


def altered(**changes):
    """A sparse checkpoint with changes in the last layer."""
    state = gn.sparsify(model()).state_dict()
    for name, change in changes.items():
        state[f"7.{name}"] = change(state[f"7.{name}"])
    return {name: value for name, value in state.items() if value is not None}


@pytest.mark.parametrize("state, problem", [
    (lambda: gn.sparsify(model(), "1:4").state_dict(),
     "it is 1:4, 'sparsify-quantise', the layer 2:4, 'sparsify-quantise'; sparsify the model as the checkpoint's was"),
    (lambda: gn.sparsify(model(), "2:4", "quantise-sparsify").state_dict(),
     "it is 2:4, 'quantise-sparsify', the layer 2:4, 'sparsify-quantise'; sparsify the model as the checkpoint's was"),
    (lambda: altered(weight_mask=lambda mask: ~mask | True), "it does not keep 2 of every 4 along K"),
    (lambda: altered(weight_mask=lambda mask: mask.float()), "it does not keep 2 of every 4 along K"),
    (lambda: altered(weight_mask=lambda mask: mask[:, :8]), "its shape is (10, 8), the layer's (10, 37)"),
    (lambda: altered(mask_rule=lambda rule: None), "weight_mask and mask_rule belong together"),
    (lambda: altered(weight_mask=lambda mask: None), "weight_mask and mask_rule belong together")])
def test_masks_that_do_not_fit_are_refused(state, problem):
    net = gn.sparsify(model())
    before = copy.deepcopy(layers(net)[-1].state_dict())
    with pytest.raises(RuntimeError, match=f"Layer '7' cannot take the mask of the checkpoint: {re.escape(problem)}$"):
        net.load_state_dict(state())
    assert all(torch.equal(a, b) for a, b in zip(before.values(), layers(net)[-1].state_dict().values(), strict=True))


@pytest.mark.parametrize("order", ORDERS)
def test_company(order):
    """Converted again, frozen, copied, pickled, compiled, exported, in a job: the bits of the dense twin."""
    net = gn.sparsify(model("hbfp8"), "2:4", order)
    gn.convert(net, "hbfp4")
    net.eval()
    gn.sparsify(net, "2:4", order)
    x = torch.randn(3, 4, 6, 6)
    y = bits(net(x))
    assert torch.equal(y, bits(gn.densify(copy.deepcopy(net))(x)))
    saved = io.BytesIO()
    torch.save(net, saved)
    saved.seek(0)
    assert torch.equal(y, bits(torch.load(saved, weights_only=False)(x)))
    program = torch.export.export(net, (x,))
    assert torch.equal(y, bits(program.module()(x)))
    assert "hbfp.sparse_weight.default" in {str(node.target) for node in program.graph.nodes}
    torch._dynamo.reset()
    compiled = torch.compile(copy.deepcopy(net), backend="eager", fullgraph=True)
    assert torch.equal(y, bits(compiled(x)))
    gn.freeze(net)
    with torch.no_grad():
        assert torch.equal(y, bits(net(x)))
        layers(net)[-1].weight_mask.logical_not_()                            # a mask alone has changed
        assert torch.equal(bits(gn.thaw(copy.deepcopy(net))(x)), bits(net(x)))
        assert not torch.equal(y, bits(net(x)))


@pytest.mark.parametrize("order", ORDERS)
def test_compiled_training_has_the_same_bits(order):
    net = gn.sparsify(gn.convert(torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.ReLU(),
                                                     torch.nn.Linear(16, 8)), "hbfp4"), "2:4", order)
    x, found = torch.randn(5, 32), []
    torch._dynamo.reset()
    for run in (net, torch.compile(net, backend="aot_eager", fullgraph=True)):
        net.zero_grad()
        y = run(x)
        y.square().sum().backward()
        found.append([y.detach(), *(p.grad.clone() for p in net.parameters())])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_models_in_a_job_are_refused():
    nets = [model() for _ in range(2)]
    fused.fuse(nets)
    with pytest.raises(ValueError, match=re.escape(
            "Layer '0' (HBFPConv2d) cannot be sparse: its weight is part of a larger tensor, as in a job of "
            "golden.nn.fused; sparsify first, then fuse; layers=... chooses others") + "$"):
        gn.sparsify(nets[0])


def test_job():
    """Models in a job train as they would alone; their optimisers' hooks make the masks anew."""
    ends = []
    for joint in (False, True):
        nets = [model() for _ in range(2)]
        optimisers = [torch.optim.SGD(net.parameters(), 0.5, momentum=0.9) for net in nets]
        for net, optimiser, order, every in zip(nets, optimisers, ORDERS, (1, 2), strict=True):
            gn.sparsify(net, "2:4", order, optimiser=optimiser, every=every)
        job = fused.fuse(nets) if joint else None
        make = fused.Step(job, optimisers) if joint else None
        for seed in range(4):
            torch.manual_seed(seed)
            x, t = torch.randn(6, 4, 6, 6), torch.randint(10, (6,))
            for optimiser in optimisers:
                optimiser.zero_grad()
            if joint:
                fused.cross_entropy(job(x), t, 2).backward()
                make()
            else:
                for i, (net, optimiser) in enumerate(zip(nets, optimisers, strict=True)):
                    torch.nn.functional.cross_entropy(net(x[3 * i:3 * i + 3]), t[3 * i:3 * i + 3]).backward()
                    optimiser.step()
        ends.append([value for net in nets for value in net.state_dict().values()])
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))
    assert [layers(net)[0].mask_rule[3] for net in nets] == [4, 4]


STOCHASTIC = gn.HBFPFormat(mantissa=4, rounding="stochastic")


@pytest.mark.parametrize("call, error, message", [
    (lambda: gn.sparsify(3), TypeError, "module must be a torch.nn.Module, not int"),
    (lambda: gn.sparsify(model(), optimiser=3), TypeError, "optimiser must be a torch.optim.Optimizer, not int"),
    (lambda: gn.sparsify(model(), "2/4"), ValueError, "Sparsity must be N:M such as '2:4', not '2/4'"),
    (lambda: gn.sparsify(model(), "5:4"), ValueError, "Kept N must be 0 to 4 of a group of 4, not 5"),
    (lambda: gn.sparsify(model(), order="both"), ValueError,
     "Order must be one of sparsify-quantise, quantise-sparsify, not 'both'"),
    (lambda: gn.sparsify(model(), every=0), ValueError, "Interval must be 1 to 2147483647 steps, not 0"),
    (lambda: gn.sparsify(model(), every=2), ValueError,
     "An interval of 2 steps needs the optimiser that makes them; give optimiser=..."),
    (lambda: gn.sparsify(torch.nn.Linear(4, 4)), ValueError,
     "There is no HBFP layer with weights to make sparse; golden.nn.convert(model, fmt) makes them"),
    (lambda: gn.sparsify(model(), layers="head"), ValueError, "Layers must match a layer of the model, not 'head'"),
    (lambda: gn.sparsify(gn.convert(torch.nn.Sequential(torch.nn.LSTM(4, 4)))), ValueError,
     "Layer '0' (HBFPLSTM) cannot be sparse: only HBFPLinear and HBFPConv2d can be; layers=... chooses others"),
    (lambda: gn.sparsify(gn.convert(torch.nn.Sequential(torch.nn.Conv1d(4, 4, 3)))), ValueError,
     "Layer '0' (Conv1d) cannot be sparse: only HBFPLinear and HBFPConv2d can be; layers=... chooses others"),
    (lambda: gn.sparsify(gn.convert(torch.nn.Sequential(torch.nn.Linear(4, 4, device="meta")))), ValueError, (
        "Layer '0' (HBFPLinear) cannot be sparse: its weight has no values on the device meta; load them first; "
        "layers=... chooses others")),
    (lambda: gn.sparsify(model(STOCHASTIC), order="quantise-sparsify"), ValueError, (
        "Layer '0' (HBFPConv2d) cannot be sparse: order 'quantise-sparsify' needs rounding 'rne' or 'truncate' for w, "
        "not 'stochastic'; layers=... chooses others")),
    (lambda: gn.sparsify(model().bfloat16(), order="quantise-sparsify"), ValueError, (
        "Layer '0' (HBFPConv2d) cannot be sparse: order 'quantise-sparsify' needs float32 weights, not bfloat16; "
        "layers=... chooses others")),
    (lambda: gn.sparsify(model(gn.HBFPFormat(block=(8, 8)), mode="emulator"), order="quantise-sparsify"), ValueError, (
        "Layer '0' (HBFPConv2d) cannot be sparse: order 'quantise-sparsify' needs mode 'hbfp', not 'emulator'; "
        "layers=... chooses others")),
    (lambda: gn.convert(gn.sparsify(model(), order="quantise-sparsify"), STOCHASTIC), ValueError, (
        "Layer '0' is sparse and cannot have this format: order 'quantise-sparsify' needs rounding 'rne' or 'truncate' "
        "for w, not 'stochastic'"))])
def test_refusals(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


def test_nothing_is_half_sparse():
    net = model()
    optimiser = torch.optim.SGD(net[:3].parameters(), 0.1)
    with pytest.raises(ValueError, match=re.escape(
            "Layer '5' (HBFPLinear) cannot be sparse: the optimiser does not have its weight; leave optimiser out to "
            "keep the mask as it is; layers=... chooses others")):
        gn.sparsify(net, optimiser=optimiser)
    assert not list(net.buffers()) and type(net[0]) is gn.HBFPConv2d
    gn.sparsify(net, layers=[gn.HBFPConv2d, lambda name, layer: name == "7"], optimiser=None)
    assert [name for name, _ in net.named_buffers()] == [f"{i}.{b}" for i in (0, 2, 7)
                                                         for b in ("weight_mask", "mask_rule")]


def test_stochastic_and_narrow_weights():
    net = gn.sparsify(model(STOCHASTIC))
    plain = gn.densify(copy.deepcopy(net))
    x = torch.randn(2, 4, 6, 6)
    assert torch.equal(bits(net(x)), bits(plain(x)))                          # equal noise
    net = gn.sparsify(model().bfloat16())
    plain = gn.densify(copy.deepcopy(net))
    assert net(x.bfloat16()).dtype == torch.bfloat16 and torch.equal(net(x.bfloat16()), plain(x.bfloat16()))


def test_page(capsys):
    """The example of the page runs and says what the page says."""
    text = (Path(__file__).parents[3] / "docs/golden.md").read_text().split("\n## Sparse weights in training\n")[1]
    code = re.findall(r"^```python\n(.*?)^```$", text.split("\n## ")[0], re.MULTILINE | re.DOTALL)
    torch.manual_seed(0)
    exec(compile(code[0], "docs/golden.md", "exec"), {})
    shown = re.findall(r"print\(.*?\) +# (.*)", code[0])
    assert shown and capsys.readouterr().out.splitlines() == shown
