"""A converted model as a citizen of torch: compile, export, autocast, narrow types, vmap, fake tensors."""

import re
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402

import golden.nn as gn  # noqa: E402
from golden.study.resnet import resnet20  # noqa: E402

F = torch.nn.functional


class Transformer(torch.nn.Module):
    """Own attention beside torch's, embedding, normalisation."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(11, 16)
        self.qkv, self.out = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)
        self.encoder = torch.nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, tokens):
        x = self.embedding(tokens)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return self.encoder(x) @ self.embedding.weight.T


class Convolutions(torch.nn.Module):
    """One of each kind that has an operator."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two = torch.nn.Conv1d(4, 4, 3, padding=1), torch.nn.Conv2d(1, 4, 3, 2, 1)
        self.three, self.back = torch.nn.Conv3d(1, 2, 2), torch.nn.ConvTranspose2d(4, 2, 3, 2, 1, 1, groups=2)

    def forward(self, x):
        y = self.back(self.two(self.one(x)[:, None]))
        return self.three(y[:, None])


def tokens():
    return torch.randint(0, 11, (2, 5), generator=torch.Generator().manual_seed(1))


NETS = {"transformer": (Transformer, tokens), "convolutions": (Convolutions, lambda: torch.randn(3, 4, 6))}


def gradients(net, run, x):
    net.zero_grad()
    y = run(x)
    y.square().sum().backward()
    return [y.detach(), *(p.grad.clone() for p in net.parameters())]


@pytest.mark.parametrize("name", NETS)
def test_compiled_without_breaks_to_the_same_bits(name):
    make, data = NETS[name]
    net, x = gn.convert(make(), "hbfp8"), data()
    torch._dynamo.reset()
    run = torch.compile(net, backend="aot_eager", fullgraph=True)
    names = [name for name, _ in net.named_parameters()]
    for name, got, want in zip(["y", *names], gradients(net, run, x), gradients(net, net, x), strict=True):
        if name.endswith("bias") and make is Convolutions:     # a sum of torch's, in its order
            torch.testing.assert_close(got, want)
        else:
            assert torch.equal(got, want), name


@pytest.mark.parametrize("make, x, operators", [
    (Transformer, tokens(), {"linear", "add_bias", "matmul"}),
    pytest.param(resnet20, torch.randn(2, 3, 32, 32), {"linear", "add_bias", "conv2d"}, marks=pytest.mark.slow),
    (Convolutions, torch.randn(3, 4, 6), {"conv2d", "conv3d", "conv_transpose3d"})])
def test_exported_programs_keep_every_bit(make, x, operators, tmp_path):
    """And hold the products as operators by name, with their formats."""
    net = gn.convert(make(), "hbfp4").eval()
    program = torch.export.export(net, (x,))
    torch.export.save(program, tmp_path / "net.pt2")
    program = torch.export.load(tmp_path / "net.pt2")
    found = [node for node in program.graph.nodes if getattr(node.target, "namespace", "") == "hbfp"]
    assert {node.target._opname for node in found} == operators
    assert gn.Formats.read(found[0].args[-1]).x.mantissa == 4
    left = {node.target._opname for node in program.graph.nodes if getattr(node.target, "namespace", "") == "aten"}
    assert not left & {"mm", "matmul", "bmm", "addmm", "conv1d", "scaled_dot_product_attention"}
    assert torch.equal(program.module()(x), net(x))


def test_export_of_stochastic_training_is_refused():
    net = gn.convert(torch.nn.Sequential(torch.nn.Linear(8, 8)), gn.HBFPFormat(rounding="stochastic"))
    x = torch.randn(2, 8)
    with pytest.raises(ValueError, match=r"^Products with stochastic rounding draw noise in training and cannot be "
                                         r"traced then; call eval\(\), which rounds to nearest, or use "
                                         r"rounding='rne'$"):
        torch.export.export(net, (x,))
    program = torch.export.export(net.eval(), (x,))
    assert torch.equal(program.module()(x), net(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NETS)
def test_narrow_models_multiply_what_their_numbers_are(name, dtype):
    """A bfloat16 model gives the bits of its FP32 copy's products, rounded once each."""
    make, data = NETS[name]
    net = gn.convert(make().to(dtype), "hbfp8", strict=True)
    x = data() if name == "transformer" else data().to(dtype)
    y = net(x)
    y.float().square().sum().backward()
    assert y.dtype == dtype and all(p.grad.dtype == dtype for p in net.parameters())
    layer = gn.convert(torch.nn.Linear(8, 4).to(dtype), "hbfp4")
    wide = gn.HBFPLinear(8, 4, fmt="hbfp4")
    wide.load_state_dict(layer.state_dict())
    t = torch.randn(3, 8).to(dtype)
    assert torch.equal(layer(t), wide(t.float()).to(dtype))


def test_autocast_does_not_round_before_the_conversion():
    net, x = gn.convert(Transformer(), "hbfp8", strict=True), tokens()
    with torch.autocast("cpu", torch.bfloat16):
        y = net(x)
        layer = gn.convert(torch.nn.Linear(8, 4), "hbfp4")
        t = torch.randn(3, 8)
        inside = layer(t)
    y.float().sum().backward()
    assert torch.equal(inside, layer(t)) and net.qkv.weight.grad.isfinite().all()


TRANSFORMS = (r"^HBFP products do not run in forward mode \(jvp, jacfwd, dual numbers\): gradients come from "
              r"backward\(\), torch\.func\.grad and vjp$")


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is (deprecated|not supported)")
def test_forward_mode_is_refused():
    layer, x = gn.convert(torch.nn.Linear(8, 1), "hbfp4"), torch.randn(3, 8)
    with forward_ad.dual_level():
        assert torch.equal(layer(x), layer(x.clone()))
        with pytest.raises(NotImplementedError, match=TRANSFORMS):
            layer(forward_ad.make_dual(x, x))


SCRIPT = (r"^HBFP products have no form in TorchScript; torch\.export\.export keeps every bit, with the products as "
          r"operators torch\.ops\.hbfp$")


@pytest.mark.filterwarnings("ignore:`torch.jit.[a-z_]*` is (deprecated|not supported)")
@pytest.mark.parametrize("frozen", [False, True])
def test_torchscript_is_refused(frozen):
    """A trace would hold the numbers of the example, whatever its input."""
    net, x = gn.convert(Transformer(), "hbfp8").eval(), tokens()
    net = gn.freeze(net) if frozen else net
    with torch.no_grad():
        for make in (lambda: torch.jit.trace(net, x), lambda: torch.jit.script(net)):
            with pytest.raises(NotImplementedError, match=SCRIPT):
                make()


def test_functional_call():
    layer, x = gn.HBFPLinear(8, 4, fmt="hbfp4"), torch.randn(3, 8)
    twice = {name: 2 * p.detach() for name, p in layer.named_parameters()}
    assert torch.equal(torch.func.functional_call(layer, twice, (x,)), 2 * layer(x))


def test_shapes_without_values():
    net = gn.convert(Transformer(), "hbfp8")
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        layer = gn.HBFPLinear(8, 4)
        assert layer(mode.from_tensor(torch.randn(3, 8))).shape == (3, 4)
    assert net.to("meta")(tokens().to("meta")).shape == (2, 5, 11)
    layer = gn.HBFPConv2d(3, 4, 3, device="meta")
    y = layer(torch.empty(2, 3, 5, 5, device="meta"))
    y.sum().backward()
    assert y.shape == (2, 4, 3, 3) and layer.weight.grad.is_meta


@pytest.mark.parametrize("inference", [torch.no_grad, torch.inference_mode])
def test_inference(inference):
    net, x = gn.convert(Transformer(), "hbfp8").eval(), tokens()
    want = net(x)
    with inference():
        assert torch.equal(net(x), want)


NO_ONNX = ("HBFP products have no form in ONNX; torch.export.export keeps every bit, with the products as operators "
           "torch.ops.hbfp")


@pytest.mark.parametrize("make, x", [
    (lambda: torch.nn.Linear(4, 3), torch.ones(2, 4)), (lambda: torch.nn.Conv2d(1, 2, 2), torch.ones(1, 1, 3, 3)),
    (lambda: torch.nn.ConvTranspose1d(1, 2, 2), torch.ones(1, 1, 3)),
    (lambda: torch.nn.LSTM(4, 3), torch.ones(2, 1, 4)),
    (Transformer, tokens())], ids=["linear", "conv", "transposed", "lstm", "transformer"])
def test_onnx_is_refused(make, x, monkeypatch):
    """While torch exports, at the first product; a frozen model does not slip through."""
    net = gn.convert(make(), "hbfp8").eval()
    for prepare in (gn.thaw, gn.freeze):
        prepare(net)
        with monkeypatch.context() as exporting, torch.no_grad():
            exporting.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
            with pytest.raises(NotImplementedError, match=f"^{re.escape(NO_ONNX)}$"):
                net(x)
        net(x)


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_onnx_export_says_so(dynamo, tmp_path):
    """Torch's newer exporter asks for its package before it looks at the model: nothing of ours runs until then."""
    text = "No module named 'onnxscript'" if dynamo and find_spec("onnxscript") is None else NO_ONNX
    net = gn.convert(torch.nn.Linear(4, 3), "hbfp8").eval()
    with pytest.raises(Exception, match=re.escape(text)):
        torch.onnx.export(net, (torch.ones(2, 4),), tmp_path / "net.onnx", dynamo=dynamo)
    assert not list(tmp_path.iterdir())
