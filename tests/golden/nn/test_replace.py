"""Converting models, and storing weights wide."""

import copy

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
    ("0", ["0"]), (["3.*"], ["3.0", "3.1"]), (["0", "3.1"], ["0", "3.1"]), ([torch.nn.Linear], ["3.0", "3.1"])])
def test_exclude(exclude, left):
    net = gn.convert(model(), gn.HBFPFormat(), exclude)
    hbfp = [name for name, _ in gn.hbfp_layers(net)]
    assert sorted(hbfp + left) == ["0", "3.0", "3.1"]


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
    (lambda: gn.convert(model(), exclude="head"), ValueError, r"^Exclude must name a layer, not 'head'$"),
    (lambda: gn.wide_weights("adam"), TypeError, r"^optimiser must be a torch.optim.Optimizer, not str$"),
    (lambda: gn.wide_weights(torch.optim.Adam(model().parameters()), gn.HBFPFormat(rounding="stochastic")), ValueError,
     r"^Wide weights need rounding 'rne' or 'truncate', not 'stochastic'$")])
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
