"""Gradients of gradients are products of the same three kinds, and transforms of torch.func are the loop."""

import copy
from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.matmul import matmul  # noqa: E402
from golden.nn import again, functional  # noqa: E402

from .test_once import First  # noqa: E402

nn, F = torch.nn, torch.nn.functional
#: A format for each role, so that a product in the place of another is seen.
ROLES = gn.Formats.of(gn.HBFPFormat(mantissa=4, block=(1, 4)), w=gn.HBFPFormat(mantissa=6, block=(1, 4)),
                      g=gn.HBFPFormat(mantissa=8, block=(1, 4)))
TILES = gn.Formats.of(gn.HBFPFormat(mantissa=5, block=(4, 4)))


class Own(nn.Module):
    """Products of a module's own code."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 6))

    def forward(self, x):
        return F.scaled_dot_product_attention(x, x @ self.weight, x)


#: Name -> what makes a layer, and the shape of an input.
LAYERS = {
    "linear": (lambda: nn.Linear(6, 5), (3, 6)), "without bias": (lambda: nn.Linear(6, 5, bias=False), (2, 3, 6)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=1), (2, 4, 5)), "conv2d": (lambda: nn.Conv2d(4, 6, 3), (2, 4, 5, 5)),
    "strided": (lambda: nn.Conv2d(4, 6, 3, 2, 1), (2, 4, 6, 6)),
    "grouped": (lambda: nn.Conv2d(4, 6, 3, groups=2), (2, 4, 5, 5)),
    "depthwise": (lambda: nn.Conv2d(6, 6, 3, groups=6), (2, 6, 5, 5)),
    "conv3d": (lambda: nn.Conv3d(4, 2, 2), (2, 4, 3, 3, 3)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 2), (2, 4, 3, 3)),
    "own": (Own, (2, 3, 6)), "heads": (lambda: First(nn.MultiheadAttention(6, 2, batch_first=True), 3), (2, 3, 6)),
    "lstm": (lambda: First(nn.LSTM(6, 4), 1), (3, 2, 6))}


def layer(name, fmt):
    torch.manual_seed(0)
    make, shape = LAYERS[name]
    net = nn.Sequential(make())
    return gn.convert(copy.deepcopy(net), fmt), net, shape


def law(a, b, fmt, w_fmt):
    return torch.from_numpy(matmul(*(t.detach().contiguous().numpy() for t in (a, b)), fmt, w_fmt=w_fmt))


@pytest.mark.parametrize("formats", [ROLES, TILES], ids=["roles", "tiles"])
def test_the_rule(formats):
    """What stands in a place has that place's format: docs/numerics.md, section 9."""
    torch.manual_seed(0)
    x, w, g = (torch.randn(*shape, requires_grad=True) for shape in ((5, 6), (7, 6), (5, 7)))
    hx, hw = torch.randn(5, 6), torch.randn(7, 6)
    y = functional.linear(x, w, formats=formats)
    gx, gw = torch.autograd.grad(y, (x, w), g, create_graph=True)
    assert torch.equal(gx, law(g, w, formats.g, formats.w)) and torch.equal(gw, law(g.T, x, formats.g, formats.x))
    of_g, of_w = torch.autograd.grad(gx, (g, w), hx, retain_graph=True)
    assert torch.equal(of_g, law(hx, w.T, formats.x, formats.w))
    assert torch.equal(of_w, law(g.T, hx, formats.g, formats.x))
    of_g, of_x = torch.autograd.grad(gw, (g, x), hw)
    assert torch.equal(of_g, law(x, hw.T, formats.x, formats.w))
    assert torch.equal(of_x, law(g, hw, formats.g, formats.w))


@pytest.mark.parametrize("fmt", [ROLES, "mxint8"], ids=["hbfp", "values"])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_keep_their_bits(name, fmt):
    net, _, shape = layer(name, fmt)
    x = torch.randn(shape, requires_grad=True)
    inputs = [x, *net.parameters()]
    plain, again = (torch.autograd.grad(net(x).square().sum(), inputs, create_graph=create) for create in (False, True))
    assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))


def twice(net, x):
    """Gradients of the penalty of a gradient."""
    x = x.clone().requires_grad_()
    gradient, = torch.autograd.grad(net(x).square().sum(), x, create_graph=True)
    return torch.autograd.grad(gradient.square().sum(), [x, *net.parameters()], allow_unused=True)


@pytest.mark.parametrize("fmt, far", [(gn.HBFPFormat(mantissa=14, block=(1, 4)), 2e-3),
                                      (gn.HBFPFormat(mantissa=14, block=(4, 4)), 2e-3), ("bf16", 0.05)], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_the_gradient_of_a_gradient_is_near_torchs(name, fmt, far):
    net, plain, shape = layer(name, fmt)
    x = torch.randn(shape)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):     # the others have no second gradient
        wanted = twice(plain, x)
    for found, want in zip(twice(net, x), wanted, strict=True):
        assert (found is None) == (want is None)
        if want is not None:
            assert (found - want).norm() <= far * want.norm() + 1e-6


def test_as_often_as_one_likes():
    net, plain, _ = layer("linear", gn.HBFPFormat(mantissa=14, block=(1, 4)))
    x, found = torch.randn(3, 6), []
    for each in (net, plain):
        y = own = x.clone().requires_grad_()
        y = each(own).pow(5).sum()
        for _ in range(4):
            y = torch.autograd.grad(y, own, create_graph=True)[0].sum()
        found.append(torch.autograd.grad(y, [own, *each.parameters()]))
    assert all((a - b).norm() < 1e-2 * b.norm() for a, b in zip(*found, strict=True))


def test_a_penalty_is_learned():
    torch.manual_seed(0)
    net = gn.convert(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)), "hbfp6")
    x, sizes = torch.randn(16, 4), []
    optimiser = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(60):
        own = x.clone().requires_grad_()
        gradient, = torch.autograd.grad(net(own).sum(), own, create_graph=True)
        loss = (gradient.norm(dim=1) - 1).square().mean()
        sizes.append(float(loss.detach()))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert sizes[-1] < sizes[0] / 5


@pytest.mark.parametrize("fmt", [ROLES, TILES, "mxfp8"], ids=["roles", "tiles", "values"])
@pytest.mark.parametrize("name", [name for name in LAYERS if name != "lstm"])
def test_vmap_is_the_loop(name, fmt):
    net, _, shape = layer(name, fmt)
    x = torch.randn(3, *shape)
    assert torch.equal(torch.vmap(net)(x), torch.stack([net(each) for each in x]))
    if name not in ("own", "heads"):                       # whose own code takes no empty batch
        assert torch.vmap(net)(x[:0]).shape == (0, *net(x[0]).shape)


@pytest.mark.parametrize("fmt", [ROLES, TILES, "mxfp8"], ids=["roles", "tiles", "values"])
@pytest.mark.parametrize("name", ["linear", "conv2d", "grouped", "transposed", "heads"])
def test_gradients_of_each_sample_are_those_of_the_loop(name, fmt):
    net, _, shape = layer(name, fmt)
    x, values = torch.randn(3, *shape), {each: p.detach() for each, p in net.named_parameters()}

    def loss(values, x):
        return torch.func.functional_call(net, values, (x,)).square().sum()
    each = torch.vmap(torch.func.grad(loss), (None, 0))(values, x)
    for number, sample in enumerate(x):
        want = torch.autograd.grad(net(sample).square().sum(), list(net.parameters()))
        for (parameter, _), grad in zip(net.named_parameters(), want, strict=True):
            assert torch.equal(each[parameter][number], grad), parameter


def test_second_derivatives_by_functions():
    net, _, _ = layer("linear", "hbfp8")
    x = torch.randn(6)
    found = torch.func.jacrev(torch.func.jacrev(lambda x: net(x).square().sum()))(x)
    want = torch.autograd.functional.hessian(lambda x: net(x).square().sum(), x)
    assert torch.equal(found, want)


def test_quantise_under_transforms():
    x = torch.randn(3, 4, 8)
    assert torch.equal(torch.vmap(lambda x: gn.quantise(x, "hbfp4_16"))(x),
                       torch.stack([gn.quantise(each, "hbfp4_16") for each in x]))
    assert torch.equal(torch.func.grad(lambda x: gn.quantise(x, "hbfp4").pow(2).sum())(x), 2 * gn.quantise(x, "hbfp4"))


NO_RULE = ("Under torch.func HBFP products need rounding 'rne' or 'truncate', or eval(), and no mode 'emulator': noise "
           "has no order there")
STOCHASTIC = gn.HBFPFormat(rounding="stochastic")


@pytest.mark.parametrize("options", [{"fmt": STOCHASTIC}, {"fmt": "hbfp8", "g": STOCHASTIC},
                                     {"fmt": gn.HBFPFormat(block=(4, 4)), "mode": "emulator"}], ids=str)
@pytest.mark.parametrize("make", [lambda: nn.Linear(4, 4), lambda: nn.Conv1d(4, 4, 1), lambda: nn.Conv2d(4, 4, 1),
                                  lambda: nn.Conv3d(4, 4, 1), lambda: nn.ConvTranspose2d(4, 4, 1), Own])
def test_what_has_no_rule_is_refused(make, options):
    net = gn.convert(nn.Sequential(make()), **options)
    dims = {"Conv1d": 1, "Conv2d": 2, "HBFPConv2d": 2, "Conv3d": 3, "ConvTranspose2d": 2}.get(type(net[0]).__name__, 0)
    x = torch.randn(2, 3, *((4, *[4] * dims) if dims else (4 if make is not Own else 6,)))
    for transform in (torch.vmap, lambda f: torch.func.grad(lambda x: f(x).sum())):
        with pytest.raises(NotImplementedError) as error:
            transform(net)(x)
        assert str(error.value) == NO_RULE
    if "mode" not in options:
        assert torch.vmap(net.eval())(x).isfinite().all()


def test_noise_of_quantise_is_refused():
    with pytest.raises(NotImplementedError) as error:
        torch.vmap(lambda x: gn.quantise(x, STOCHASTIC))(torch.ones(2, 4))
    assert str(error.value) == NO_RULE


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is (deprecated|not supported)")
@pytest.mark.parametrize("call", [lambda f, x: torch.func.jvp(f, (x,), (x,)), lambda f, x: torch.func.hessian(f)(x),
                                  lambda f, x: torch.func.jacfwd(torch.vmap(f))(x[None])])
def test_forward_mode_is_refused(call):
    net = gn.convert(nn.Linear(4, 4), "hbfp8")
    with pytest.raises(NotImplementedError) as error:
        call(lambda x: net(x).sum(), torch.ones(4))
    assert str(error.value) == ("HBFP products do not run in forward mode (jvp, jacfwd, dual numbers): gradients come "
                                "from backward(), torch.func.grad and vjp")


@pytest.mark.parametrize("transform", [torch.vmap, lambda f: torch.func.grad(lambda x: f(x).sum())])
def test_side_arithmetic_is_refused(transform):
    net = gn.convert(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), "hbfp8", side=gn.DESIGN_SIDE)
    with pytest.raises(NotImplementedError) as error:
        transform(net)(torch.ones(2, 4))
    assert str(error.value) == ("A model with side arithmetic does not run under torch.func (vmap, grad and so on): "
                                "give it the whole batch, or loop; gradients come from backward()")


@pytest.mark.parametrize("fmt", [ROLES, TILES, "mxfp8", "hbfp8@aligned"], ids=["roles", "tiles", "values", "aligned"])
@pytest.mark.parametrize("name", [name for name in LAYERS if name != "lstm"])
def test_what_nobody_reads_is_not_made(name, fmt):
    """A forward pass for its gradients alone: the shape, and the gradients, of the pass that makes its result."""
    net, _, shape = layer(name, fmt)
    x, found = torch.randn(shape), []
    for how in (nullcontext, again.unread):
        own = x.clone().requires_grad_()
        with how():
            y = net(own)
        inputs = [own, *(each for each in net.parameters())]
        g = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
        found.append((y.shape, torch.autograd.grad(y, inputs, g) if name not in ("own", "heads") else ()))
    assert found[0][0] == found[1][0]
    assert all(map(torch.equal, found[0][1], found[1][1]))
