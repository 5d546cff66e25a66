"""Scales of inputs that are fixed by some batches: how far they reach, what they change, and what has none."""

import math

import numpy as np
import pytest
import torch

import golden.nn as gn
from golden.formats.coded import encode, encode_plain, rounded
from golden.nn import rounded as in_torch
from golden.nn.calibrate import SHARES
from golden.spec.numbers import NUMBERS

OF_TENSOR = ["int8", "fp8-e4m3", "fp8-e5m2", "nvfp4"]


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
                               torch.nn.Linear(8 * 16, 10))


def batches(count=3):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(4, 3, 4, 4, generator=generator) for _ in range(count)]


@pytest.mark.parametrize("name", OF_TENSOR)
@pytest.mark.parametrize("top", [0.0, 2.0 ** -140, 0.75, 3.0, 1e38])
def test_numbers_with_a_fixed_scale(name, top):
    """By definition, by arithmetic and in torch; beyond its reach numbers saturate, and each NaN or Inf is alone."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((6, 40)) * 2.0 ** rng.integers(-8, 8, (6, 1))).astype(np.float32)
    x[1, 3], x[2, 5], x[3, :16], x[4, 0] = np.nan, -np.inf, 0, 3e38
    number = NUMBERS[name].up_to(top)
    got = rounded(x, number)
    assert np.array_equal(encode(x, number).elements, encode_plain(x, number).elements, equal_nan=True)
    assert np.array_equal(in_torch.rounded(torch.from_numpy(x), number).numpy(), got, equal_nan=True)
    alone = np.isnan(got)
    if name == "nvfp4":
        assert alone[1, :16].all() and alone[2, :16].all() and alone.sum() == 32
    else:
        assert alone[1, 3] and alone[2, 5] and alone.sum() == 2
    reach = np.float32(top) if top > 2.0 ** -126 else 0            # no scale that is no normal number
    assert np.abs(got[~alone]).max() == pytest.approx(reach, rel=1e-6)


def test_the_own_largest_fixed_is_the_scale_of_its_own():
    x = np.random.default_rng(0).standard_normal((5, 48)).astype(np.float32)
    for name in OF_TENSOR:
        assert np.array_equal(rounded(x, NUMBERS[name].up_to(float(np.abs(x).max()))), rounded(x, NUMBERS[name]))


@pytest.mark.parametrize("name, top, message", [
    ("mxfp4", 1.0, "A scale can be fixed of a number that has one for a tensor, not of mxfp4"),
    ("int8-row", 1.0, "A scale can be fixed of a number that has one for a tensor, not of int8-row"),
    ("int8", -1.0, "A scale must reach to 0 or a finite magnitude, not -1.0"),
    ("int8", math.inf, "A scale must reach to 0 or a finite magnitude, not inf"),
    ("int8", math.nan, "A scale must reach to 0 or a finite magnitude, not nan")])
def test_what_no_scale_can_be(name, top, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        NUMBERS[name].up_to(top)


@pytest.mark.parametrize("name", ["int8", "int8-channel", "fp8", "nvfp4"])
def test_reach_is_the_largest_input_of_each_layer(name):
    """Of all batches, and finite; weights and gradients keep the scales of their own."""
    model, given = gn.convert(net(), name), batches()
    given[1] *= 3
    plain = gn.convert(net(), name)
    seen = {"0": given, "3": [plain[:3](x).detach() for x in given]}
    found = gn.calibrate(model, given)
    assert found == {layer: max(float(x.abs().max()) for x in inputs) for layer, inputs in seen.items()}
    assert gn.calibrate(model, [given[0], given[1] / math.nan, given[1], given[2]]) == found
    for layer, top in found.items():
        formats, own = model[int(layer)].formats, plain[int(layer)].formats
        assert formats.x == own.x.up_to(top) and (formats.w, formats.g) == (own.w, own.g)
        assert gn.Formats.read(formats.text) == formats
    (first, *_), small = given, given[0] / 64
    assert torch.equal(model(first)[0], model(torch.cat((first[:1], first[:1] * 1e-3)))[0])     # no neighbour matters
    assert not torch.equal(model(small), plain(small))
    assert model.training


def test_reach_of_the_least_error():
    """Chosen of :data:`SHARES` by all inputs; a rare large one is left to saturate."""
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(2048, 32, generator=generator) for _ in range(2)]
    given[1][0, 0] = 30.0
    model = gn.convert(torch.nn.Sequential(torch.nn.Linear(32, 8)), "int8")
    assert gn.calibrate(model, given) == {"0": 30.0}
    number, every = NUMBERS["int8"], torch.cat(given)
    lost = [float((in_torch.rounded(every, number.up_to(30.0 * share)) - every).double().square().sum())
            for share in SHARES]
    best = 30.0 * SHARES[lost.index(min(lost))]
    assert gn.calibrate(model, given, reach="error") == {"0": best} and best < 30     # anew, not from what was fixed
    assert gn.calibrate(model, [given[0] / 8])["0"] == float(given[0].abs().max()) / 8


def test_products_without_a_weight_of_a_layer_stay_as_they_are():
    """Of attention the projections that are layers of their own are fixed."""
    torch.manual_seed(0)
    model = gn.convert(torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0, batch_first=True), "int8")
    found = gn.calibrate(model, [torch.randn(2, 5, 16)])
    assert set(found) == {"self_attn.out_proj", "linear1", "linear2"}
    assert model.self_attn.formats.x.top is None


def test_a_compiled_model_has_the_same_scales():
    model, (x, *_) = gn.convert(net(), "int8").eval(), batches()
    compiled = torch.compile(model, backend="aot_eager")
    compiled(x)
    gn.calibrate(compiled, [x / 2])
    assert model[0].formats.x.top == float(x.abs().max()) / 2
    assert torch.equal(compiled(x), model(x))


@pytest.mark.parametrize("name, given, reach, message", [
    ("int8", [], "largest", "Scales need a batch at least to be calibrated on"),
    ("int8", None, "most", "Reach must be one of largest, error, not 'most'"),
    *((name, None, "largest", ("No layer that ran has inputs with one scale for a tensor: int8, int8-channel, fp8 and "
                               "nvfp4 have one")) for name in ("hbfp8", "mxfp8", "int8-row"))])
def test_wrong_calls(name, given, reach, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        gn.calibrate(gn.convert(net(), name), batches() if given is None else given, reach=reach)
    with pytest.raises(TypeError, match="^module must be of type Module, not int$"):
        gn.calibrate(3, batches())
