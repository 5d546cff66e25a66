"""Results of HBFP functions can be changed in place, as torch's own; to differentiate their gradients is refused.

Covers: golden/nn/ops.py.
"""

import itertools

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.nn import fused  # noqa: E402
from tests.cases import sweep  # noqa: E402

nn, F = torch.nn, torch.nn.functional
FMT, TILES = gn.HBFPFormat(block=(1, 4)), gn.HBFPFormat(mantissa=5, block=(4, 4))
MODES = {"hbfp": {"fmt": FMT}, "emulator": {"fmt": TILES, "mode": "emulator"}}


class Own(nn.Module):
    """A product of a module's own code, of the input and a parameter."""

    def __init__(self, product, *shape):
        super().__init__()
        self.product, self.weight = product, nn.Parameter(torch.randn(shape))

    def forward(self, x):
        return self.product(x, self.weight)


class First(nn.Module):
    """A layer of which the output is the first of several."""

    def __init__(self, layer, arguments):
        super().__init__()
        self.layer, self.arguments = layer, arguments

    def forward(self, x):
        return self.layer(*[x] * self.arguments)[0]


#: Layer -> what makes it, and the shapes of inputs that it takes.
LAYERS = {
    "linear": (lambda bias: nn.Linear(6, 6, bias), [(6,), (3, 6), (2, 3, 6), (2, 2, 3, 6)]),
    "conv1d": (lambda bias: nn.Conv1d(6, 6, 3, bias=bias), [(6, 5), (2, 6, 5)]),
    "conv2d": (lambda bias: nn.Conv2d(6, 6, 3, bias=bias), [(6, 5, 5), (2, 6, 5, 5)]),
    "grouped": (lambda bias: nn.Conv2d(6, 6, 3, groups=2, bias=bias), [(6, 5, 5), (2, 6, 5, 5)]),
    "depthwise": (lambda bias: nn.Conv2d(6, 6, 3, groups=6, bias=bias), [(6, 5, 5), (2, 6, 5, 5)]),
    "conv3d": (lambda bias: nn.Conv3d(6, 6, 2, bias=bias), [(6, 3, 3, 3), (2, 6, 3, 3, 3)]),
    "transposed": (lambda bias: nn.ConvTranspose2d(6, 6, 2, bias=bias), [(6, 3, 3), (2, 6, 3, 3)]),
    "bilinear": (lambda bias: Own(lambda x, w: F.bilinear(x, x, w), 6, 6, 6), [(3, 6), (2, 3, 6)]),
    "matmul": (lambda bias: Own(torch.matmul, 6, 6), [(6,), (3, 6), (2, 3, 6), (2, 2, 3, 6)]),
    "addmm": (lambda bias: Own(lambda x, w: torch.addmm(w[0], x, w), 6, 6), [(3, 6)]),
    "einsum": (lambda bias: Own(lambda x, w: torch.einsum("...i,ij->...j", x, w), 6, 6), [(6,), (3, 6), (2, 3, 6)]),
    "attention": (lambda bias: Own(lambda x, w: F.scaled_dot_product_attention(x, x @ w, x), 6, 6), [(2, 3, 6)]),
    "quantise": (lambda bias: Own(lambda x, w: gn.quantise(x, "hbfp4", axis=0) * w, 6), [(6,), (3, 6), (2, 3, 6)]),
    "heads": (lambda bias: First(nn.MultiheadAttention(6, 2, bias=bias), 3), [(2, 3, 6)]),
    "lstm": (lambda bias: First(nn.LSTM(6, 6, bias=bias), 1), [(3, 6), (2, 3, 6)]),
    "gru": (lambda bias: First(nn.GRU(6, 6, bias=bias), 1), [(3, 6), (2, 3, 6)])}


def assign(y):
    y[..., 0] = 1
    return y


#: In place, and the same otherwise.
SUCCESSORS = {
    "relu": (nn.ReLU(inplace=True), F.relu), "hardtanh": (nn.Hardtanh(inplace=True), F.hardtanh),
    "add_": (lambda y: y.add_(1), lambda y: y + 1), "mul_": (lambda y: y.mul_(3), lambda y: y * 3),
    "sigmoid_": (lambda y: y.sigmoid_(), torch.sigmoid), "assign": (assign, lambda y: assign(y.clone())),
    "dropout": (lambda y: F.dropout(y, 1.0, inplace=True), lambda y: y * 0),
    "narrow": (lambda y: (y.narrow(-1, 0, 2).zero_(), y)[1], lambda y: torch.cat((0 * y[..., :2], y[..., 2:]), -1))}


@pytest.mark.parametrize("layer, mode", sweep(8, itertools.product(LAYERS, MODES)))
def test_in_place_successors(layer, mode):
    """With bias and without, in training and evaluation, with gradient and without, for inputs of all dimensions."""
    make, shapes = LAYERS[layer]
    for bias in (True, False):
        torch.manual_seed(0)
        net = nn.Sequential(make(bias), nn.Identity())
        gn.convert(net, **MODES[mode], strict=True)
        for shape in shapes:
            x = torch.randn(shape)
            for training in (True, False):
                net.train(training)
                for name, (inside, outside) in SUCCESSORS.items():
                    with torch.no_grad():
                        assert torch.equal(inside(net(x)), outside(net(x))), (name, shape)
                    found = []
                    for successor in (inside, outside):
                        own = x.clone().requires_grad_()
                        y = successor(net(own))
                        grads = torch.autograd.grad(y.square().sum() + own.sum(), [own, *net.parameters()])
                        found.append((y.detach(), *grads))
                    for one, other in zip(*found, strict=True):      # of a convolution's bias the sum is torch's
                        close = one.dim() == 1 and torch.allclose(one, other, 1e-5, 1e-5)
                        assert torch.equal(one, other) or close, (name, shape)


@pytest.mark.parametrize("product", ["linear", "conv2d"])
def test_in_place_in_programs_and_jobs(product):
    make, shapes = LAYERS[product]
    nets = [gn.convert(nn.Sequential(make(True), nn.ReLU(inplace=True), make(False), nn.ReLU(inplace=True)), FMT)
            for _ in range(2)]
    x = torch.randn(shapes[-1] if product == "linear" else (2, 6, 7, 7))
    want = [net(x) for net in nets]
    program = torch.export.export(nets[0], (x,)).module()
    assert torch.equal(program(x), want[0])
    program(x).sum().backward()
    gradient = {name: p.grad for name, p in program.named_parameters()}
    job = fused.fuse(nets)
    y = job(torch.cat((x, x)))
    assert torch.equal(y, torch.cat(want))
    y.sum().backward()
    assert all(torch.equal(p.grad, gradient[name]) for name, p in nets[0].named_parameters())


TWICE = (r"^Gradients of HBFP products with stochastic rounding, side arithmetic or mode 'emulator', of programs and "
         r"of fused jobs cannot be differentiated again \(create_graph=True, as for a gradient penalty\); those of "
         r"products that round to nearest, and of layers that are left in FP32 \(exclude=\.\.\.\), can$")
NOISY = gn.HBFPFormat(block=(1, 4), rounding="stochastic")


def penalty(net, x):
    """The loss and the penalty of its gradient: constant if that does not know on what it depends."""
    x = x.clone().requires_grad_()
    y = net(x).sum()
    gradient, = torch.autograd.grad(y, x, create_graph=True)
    return y + gradient.square().sum()


@pytest.mark.parametrize("options", [MODES["emulator"], {"fmt": NOISY}, {"fmt": FMT, "g": NOISY},
                                     {"fmt": FMT, "side": gn.DESIGN_SIDE}],
                         ids=["emulator", "stochastic", "gradients", "side"])
@pytest.mark.parametrize("layer", [name for name in LAYERS if name != "quantise"])
def test_what_has_no_rule_is_not_differentiated_again(layer, options):
    """Nor taken for constants, though the gradient that comes in is one."""
    make, shapes = LAYERS[layer]
    for bias in (True, False):
        net, x = gn.convert(nn.Sequential(make(bias)), **options), torch.randn(shapes[-1])
        torch.autograd.grad(net(x).sum(), list(net.parameters()), create_graph=True)      # by itself it is allowed
        loss = penalty(net, x)
        with pytest.raises(NotImplementedError, match=TWICE):
            loss.backward()


@pytest.mark.parametrize("make", [
    lambda net, x: torch.export.export(net, (x,)).module(), lambda net, x: torch.compile(net, backend="eager"),
    lambda net, x: fused.fuse([net])], ids=["program", "compiled", "job"])
def test_programs_and_jobs_neither(make):
    x = torch.randn(4, 6)
    net = make(gn.convert(nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 1))), x)
    with pytest.raises(NotImplementedError, match=TWICE):
        penalty(net, x).backward()


def test_what_is_left_in_fp32_and_quantise_can_be():
    x = torch.randn(4, 6)
    net = gn.convert(nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1)), exclude="*")
    penalty(net, x).backward()
    assert net[0].weight.grad.abs().sum() > 0
    y = x.clone().requires_grad_()
    gradient, = torch.autograd.grad(gn.quantise(y, "hbfp4").pow(3).sum(), y, create_graph=True)
    gradient.sum().backward()
    assert torch.equal(y.grad, 6 * gn.quantise(x, "hbfp4"))
