"""Converting models, and storing weights wide.

Covers: golden/nn/optimiser.py.
"""

import copy
import re
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.bfp import decode, encode  # noqa: E402


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                               torch.nn.Sequential(torch.nn.Linear(288, 16), torch.nn.Linear(16, 10)))


def test_every_layer_with_products_is_replaced():
    net = model()
    optimiser = torch.optim.SGD(net.parameters(), 0.1)
    names, before = list(net.state_dict()), copy.deepcopy(net)
    assert gn.convert(net, gn.HBFPFormat(mantissa=12)) is net
    assert [name for name, _ in gn.hbfp_layers(net)] == ["0", "3.0", "3.1"]
    assert list(net.state_dict()) == names
    x = torch.randn(2, 3, 8, 8)
    assert 0 < (net(x) - before(x)).abs().max() < 0.01
    net(x).sum().backward()
    optimiser.step()                                           # made before: still the same parameters
    assert not torch.equal(net[0].weight, before[0].weight)


@pytest.mark.parametrize("exclude, left", [
    ("0", ["0"]), (["3.*"], ["3.0", "3.1"]), (["0", "3.1"], ["0", "3.1"]), ([torch.nn.Linear], ["3.0", "3.1"]),
    ("3", ["3.0", "3.1"]), ("", ["0", "3.0", "3.1"]), ([torch.nn.Sequential, "1"], ["0", "3.0", "3.1"])])
def test_exclude(exclude, left):
    net = gn.convert(model(), gn.HBFPFormat(), exclude)
    hbfp = [name for name, _ in gn.hbfp_layers(net)]
    assert sorted(hbfp + left) == ["0", "3.0", "3.1"]


def test_exclude_of_a_container_reaches_every_depth():
    net = torch.nn.Module()
    net.body, net.body2 = torch.nn.Sequential(model()), torch.nn.Linear(4, 4)
    gn.convert(net, exclude="body")
    assert [name for name, _ in gn.hbfp_layers(net)] == ["body2"]


def test_a_second_call_converts_again():
    net = gn.convert(model(), gn.HBFPFormat(mantissa=8))
    weights = [p.detach().clone() for p in net.parameters()]
    x = torch.randn(2, 3, 8, 8)
    again = gn.convert(net, gn.HBFPFormat(mantissa=4))
    assert again is net and {layer.formats.x.mantissa for _, layer in gn.hbfp_layers(net)} == {4}
    assert all(torch.equal(p, w) for p, w in zip(net.parameters(), weights, strict=True))
    fresh = model()
    fresh.load_state_dict(net.state_dict())
    assert torch.equal(net(x), gn.convert(fresh, gn.HBFPFormat(mantissa=4))(x))


def test_a_second_call_leaves_what_it_excludes_in_the_old_format():
    net = gn.convert(gn.convert(model(), gn.HBFPFormat(mantissa=8)), gn.HBFPFormat(mantissa=4), "3")
    assert [layer.formats.w.mantissa for _, layer in gn.hbfp_layers(net)] == [4, 8, 8]


def test_a_second_call_keeps_the_noise_unless_a_seed_is_given():
    fmt = gn.HBFPFormat(rounding="stochastic")
    layer = gn.convert(torch.nn.Linear(8, 8), fmt, seed=5)
    layer(torch.ones(1, 8))
    state = layer.noise_state.clone()
    assert gn.convert(layer, gn.HBFPFormat(mantissa=6, rounding="stochastic")) is layer
    assert layer.seed == 5 and torch.equal(layer.noise_state, state)
    gn.convert(layer, fmt, seed=5)
    assert layer.seed == 5 and torch.equal(layer.noise_state, gn.HBFPLinear(8, 8, fmt=fmt, seed=5).noise_state)


def test_a_second_call_reaches_the_projection_of_attention():
    net = gn.convert(torch.nn.Sequential(torch.nn.MultiheadAttention(8, 2)), gn.HBFPFormat(mantissa=8))
    gn.convert(net, gn.HBFPFormat(mantissa=4))
    assert net[0].formats.x.mantissa == net[0].out_proj.formats.x.mantissa == 4


def replaced_forward():
    cell = torch.nn.GRUCell(4, 4)
    cell.forward = lambda x: x
    return cell


def noisy():
    cell = torch.nn.GRUCell(4, 4)
    cell.noise_state = 3
    return cell


def scripted():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit.script` is (deprecated|not supported)")
        return torch.jit.script(torch.nn.Linear(4, 4))


#: Layer, its class and why it cannot be converted.
BAD = {
    "script": (scripted(), "RecursiveScriptModule",
               "TorchScript hides its products; convert the model that it was made of"),
    "double": (torch.nn.Linear(4, 4).double(), "Linear", "weight must be float32, not float64"),
    "own code": (torch.nn.Conv1d(4, 4, 1).double(), "Conv1d", "weight must be float32, not float64"),
    "lazy": (torch.nn.LazyLinear(4), "LazyLinear", "it has no shape yet; run the model once before"),
    "replaced": (replaced_forward(), "GRUCell", "forward was replaced on the object; convert first, then replace it"),
    "noise": (noisy(), "GRUCell", "it has an attribute 'noise_state' of its own; rename that")}


@pytest.mark.parametrize("bad", BAD)
def test_all_or_nothing(bad):
    """A layer that cannot be converted is named, and the model is as it was, HBFP layers of before too."""
    layer, kind, reason = BAD[bad]
    message = f"Layer '4.inner' ({kind}) cannot be converted: {reason}; exclude=['4.inner'] leaves it in FP32"
    inner = torch.nn.ModuleDict({"inner": layer})
    encoder = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    before = gn.convert(torch.nn.Linear(4, 4), gn.HBFPFormat(rounding="stochastic"))
    net = torch.nn.Sequential(*model()[:2], before, encoder, inner)
    parts, state = dict(net.named_modules()), copy.deepcopy(net.state_dict())
    formats, shortcut = before.formats, encoder.activation_relu_or_gelu
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        gn.convert(net, gn.HBFPFormat(mantissa=4), seed=9)
    assert dict(net.named_modules()) == parts and before.formats is formats and before.seed == 1
    assert all(isinstance(v, torch.nn.parameter.UninitializedParameter) or torch.equal(v, state[name])
               for name, v in net.state_dict().items())
    assert encoder.activation_relu_or_gelu == shortcut != 0
    gn.convert(net, exclude="4.inner")


def test_a_bad_module_alone():
    message = (r"^The module \(LSTM\) cannot be converted: weight_ih_l0 must be float32, not float64; "
               r"it has to stay in FP32$")
    with pytest.raises(ValueError, match=message):
        gn.convert(torch.nn.LSTM(4, 4).double())


def test_a_layer_alone_gives_its_twin():
    layer = torch.nn.Linear(4, 4)
    twin = gn.convert(layer)
    assert isinstance(twin, gn.HBFPLinear) and twin.weight is layer.weight


def test_a_shared_layer_stays_shared():
    layer = torch.nn.Linear(4, 4)
    net = gn.convert(torch.nn.Sequential(layer, torch.nn.ReLU(), layer))
    assert isinstance(net[0], gn.HBFPLinear) and net[0] is net[2]


def test_layers_get_noise_of_their_own():
    net = gn.convert(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)),
                     gn.HBFPFormat(rounding="stochastic"), seed=5)
    assert [layer.seed for _, layer in gn.hbfp_layers(net)] == [5, 6]


@pytest.mark.parametrize("train", [True, False])
def test_transformer_never_takes_the_shortcut_in_fp32(train):
    torch.manual_seed(0)
    net = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True), 2,
                                      enable_nested_tensor=False)
    twin = gn.convert(copy.deepcopy(net), gn.HBFPFormat(mantissa=4)).train(train)
    x = torch.randn(2, 7, 32)
    with torch.no_grad():
        assert (twin(x) - net.train(train)(x)).abs().max() > 0.05


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), torch.optim.Adam])
def test_wide_weights_stay_in_their_format(make):
    net = gn.convert(model(), gn.HBFPFormat(block=(24, 24)))
    optimiser = gn.wide_weights(make(net.parameters()))
    wide = gn.HBFPFormat(mantissa=16, block=(24, 24))
    for _ in range(3):
        optimiser.zero_grad()
        net(torch.randn(4, 3, 8, 8)).square().sum().backward()
        optimiser.step()
        for layer in (net[0], net[3][0]):
            w = layer.weight.detach().reshape(len(layer.weight), -1).numpy()
            assert np.array_equal(decode(encode(w, wide)), w)


def test_narrow_copy_is_the_rounded_wide_mantissa():
    wide, narrow = gn.HBFPFormat(mantissa=16, block=(24, 24)), gn.HBFPFormat(mantissa=8, block=(24, 24))
    w = np.random.default_rng(0).standard_normal((48, 48)).astype(np.float32)
    master = encode(w, wide)
    copy_ = encode(decode(master), narrow)
    whole, rest = np.abs(master.mantissa) >> 8, np.abs(master.mantissa) & 255
    rounded = whole + ((rest > 128) | ((rest == 128) & (whole & 1 == 1)))
    assert np.array_equal(np.sign(master.mantissa) * np.minimum(rounded, 127), copy_.mantissa)
    assert np.array_equal(master.exponent, copy_.exponent)


@pytest.mark.parametrize("call, error, message", [
    (lambda: gn.convert("net"), TypeError, r"^module must be a torch.nn.Module, not str$"),
    (lambda: gn.convert(model(), exclude="head"), ValueError, r"^Exclude must match a layer of the model, not 'head'$"),
    (lambda: gn.convert(model(), exclude=["0", torch.nn.LSTM]), ValueError,
     r"^Exclude must match a layer of the model, not LSTM$"),
    (lambda: gn.convert(model(), exclude=[7]), TypeError,
     r"^Exclude must hold names, classes and functions, not 7$"),
    (lambda: gn.convert(model(), exclude=lambda name, layer: False), ValueError,
     r"^Exclude must match a layer of the model, not <lambda>$"),
    (lambda: gn.convert(model(), layers={"head": "hbfp4"}), ValueError,
     r"^Layers must match a layer of the model, not 'head'$"),
    (lambda: gn.convert(model(), "hbfp1"), ValueError, r"^Name of a format must be hbfpW .*, not 'hbfp1'$"),
    (lambda: gn.convert(torch.nn.Sequential(torch.nn.MultiheadAttention(8, 2)), exclude="*.out_proj"), ValueError,
     r"^Exclude must not match '0\.out_proj', a part of '0', which is converted whole$"),
    (lambda: gn.convert(model(), seed=2 ** 32 - 2), ValueError, r"^Seed must be 0 to 4294967293, not 4294967294$"),
    (lambda: gn.wide_weights("adam"), TypeError, r"^optimiser must be a torch.optim.Optimizer, not str$"),
    (lambda: gn.wide_weights(torch.optim.Adam(model().parameters()), gn.HBFPFormat(rounding="stochastic")), ValueError,
     r"^Wide weights need rounding 'rne' or 'truncate', not 'stochastic'$")])
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
