"""A conversion as data, and quantize_, which is convert under another name.

Covers: golden/nn/chosen.py.
"""

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
import hbfp  # noqa: E402
from golden.formats.names import rule  # noqa: E402
from golden.spec.numbers import NUMBERS  # noqa: E402

STOCHASTIC = gn.HBFPFormat(mantissa=6, block=(1, 8), rounding="stochastic")


class Own(torch.nn.Module):
    """A product of its own between two layers."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)

    def forward(self, x):
        x = self.first(x)
        return self.last(x @ x.T @ x)


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(Own(), torch.nn.Linear(4, 2))


X = torch.linspace(-1, 1, 24).view(3, 8)
CONFIGS = [hbfp.HBFPConfig(), hbfp.HBFPConfig("hbfp4_1x8", exclude="1", w="hbfp6_1x8"),
           hbfp.HBFPConfig(gn.HBFPFormat(mantissa=5), accumulate="aligned", guard=3, growth=9, seed=7, strict=True),
           hbfp.HBFPConfig("hbfp6_1x4", layers={"0.*": "hbfp8_1x4"}, side=gn.Side(lanes=4)),
           hbfp.HBFPConfig(STOCHASTIC, noise="position", g=STOCHASTIC), hbfp.HBFPConfig(gn.Formats.of("hbfp3")),
           hbfp.HBFPConfig("hbfp8", order="quick"), hbfp.HBFPConfig("hbfp8_64", mode="emulator"),
           hbfp.HBFPConfig(NUMBERS["mxfp4"], w="nvfp4", layers={"1": NUMBERS["int8"]})]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_quantize_is_convert(config):
    want, found = gn.convert(net(), **config.arguments()), net()
    assert hbfp.quantize_(found, config) is None
    assert str(found) == str(want) and torch.equal(found(X), want(X))


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_what_is_written_is_read(config):
    text = json.dumps(config.to_dict())
    assert hbfp.HBFPConfig.from_dict(json.loads(text)) == config and json.loads(text)["quant_method"] == "hbfp"


def test_arguments_are_those_of_convert():
    assert hbfp.HBFPConfig().arguments() == {"fmt": "hbfp8"}
    assert hbfp.HBFPConfig("hbfp4", w="hbfp6", layers={"0": "hbfp2"}, order="quick", guard=4).arguments() == \
        {"fmt": "hbfp4", "w": "hbfp6", "layers": {"0": "hbfp2"}, "order": "quick"}


def test_a_format_stands_for_its_configuration():
    for fmt in ("hbfp4", gn.HBFPFormat(mantissa=4), gn.Formats.of("hbfp4")):
        found = net()
        hbfp.quantize_(found, fmt)
        assert {str(layer.formats.x.mantissa) for _, layer in gn.hbfp_layers(found, own=True)} == {"4"}


@pytest.mark.parametrize("wanted, formats", [
    (lambda part, name: isinstance(part, torch.nn.Linear) and name != "1",
     {"linear 0.first": "hbfp8", "matmul 0": "fp32", "linear 0.last": "hbfp8", "linear 1": "fp32"}),
    (lambda part, name: isinstance(part, Own),
     {"linear 0.first": "fp32", "matmul 0": "hbfp8", "linear 0.last": "fp32", "linear 1": "fp32"}),
    (lambda part, name: name in ("0", "0.last"),
     {"linear 0.first": "fp32", "matmul 0": "hbfp8", "linear 0.last": "hbfp8", "linear 1": "fp32"}),
    (lambda part, name: True,
     {"linear 0.first": "hbfp8", "matmul 0": "hbfp8", "linear 0.last": "hbfp8", "linear 1": "hbfp8"})])
def test_each_module_is_asked_alone(wanted, formats):
    hbfp.quantize_(model := net(), "hbfp8", wanted)
    names = {"addmm": "linear", "mm": "matmul"}
    assert {f"{names.get(each.operation, each.operation)} {each.layer}": each.format.partition(" ")[0]
            for each in gn.report(model, X).entries} == formats


def test_strict_lets_what_was_left_on_purpose():
    hbfp.quantize_(model := net(), hbfp.HBFPConfig(strict=True), lambda part, name: name != "0")
    gn.convert(net(), strict=True, example=X, only=lambda name, part: name != "0")
    assert [each.layer for each in gn.report(model, X).left] == ["0"]


def test_parts_of_a_layer_that_goes_whole_are_not_asked():
    asked = []
    model = torch.nn.ModuleDict({"heads": torch.nn.MultiheadAttention(4, 2), "own": Own()})
    gn.convert(model, only=lambda name, part: bool(asked.append(name)) or name == "own")
    assert sorted(asked) == ["heads", "own", "own.first", "own.last"]
    assert [name for name, _ in gn.hbfp_layers(model, own=True)] == ["own"]


def test_what_is_left_keeps_its_format():
    model = gn.convert(net(), "hbfp4")
    gn.convert(model, "hbfp8", only=lambda name, part: name == "1")
    assert {name: layer.formats.x.mantissa for name, layer in gn.hbfp_layers(model)} == \
        {"0.first": 4, "0.last": 4, "1": 8}


@pytest.mark.parametrize("call, kind, message", [
    (lambda: hbfp.quantize_("net"), TypeError, "model must be of type Module, not str"),
    (lambda: hbfp.quantize_(net(), 8), TypeError, "Format must be a name such as 'hbfp8' or an HBFPFormat, not 8"),
    (lambda: hbfp.quantize_(torch.nn.Linear(4, 4)), ValueError,
     "A Linear by itself is not converted in place: write model = hbfp.golden.nn.convert(model, ...)"),
    (lambda: hbfp.quantize_(net(), "hbfp8", lambda part, name: False), ValueError,
     "only must leave a module of the model to convert"),
    (lambda: gn.convert(net(), only="0"), TypeError, "only must be a function of name and module, not '0'"),
    (lambda: hbfp.HBFPConfig(gn.Formats.of("hbfp4"), w="hbfp8"), TypeError,
     "A Formats has w of its own; give one of the two"),
    (lambda: hbfp.HBFPConfig("hbfp17"), ValueError, f"Name of a format {rule()}, not 'hbfp17'"),
    (lambda: hbfp.HBFPConfig(layers={"0": "hbfp1"}), ValueError,
     f"Name of a format {rule()}, not 'hbfp1'"),
    (lambda: hbfp.HBFPConfig(order="fast"), ValueError, "Order must be one of block, quick, not 'fast'"),
    (lambda: hbfp.HBFPConfig(acumulate="fp32"), TypeError,
     "HBFPConfig.__init__() got an unexpected keyword argument 'acumulate'"),
    (lambda: hbfp.HBFPConfig(exclude=torch.nn.Linear).to_dict(), ValueError,
     "exclude must be names alone to be written to a file, not <class 'torch.nn.modules.linear.Linear'>"),
    (lambda: hbfp.HBFPConfig(layers={torch.nn.LSTM: "hbfp4"}).to_dict(), ValueError,
     "layers must be names alone to be written to a file, not <class 'torch.nn.modules.rnn.LSTM'>"),
    (lambda: hbfp.quantise_, AttributeError, "module 'hbfp' has no attribute 'quantise_'")])
def test_refused(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message


def test_a_layer_that_is_hbfp_changes_in_place():
    layer = gn.HBFPLinear(4, 4)
    hbfp.quantize_(layer, "hbfp4")
    assert layer.formats == gn.Formats.of("hbfp4")


def test_the_package_alone_loads_no_torch():
    code = ("import sys, hbfp\nassert not {'torch', 'numpy', 'transformers'} & sys.modules.keys()\n"
            "from hbfp import HBFPConfig, quantize_\nassert 'torch' in sys.modules\n"
            "assert quantize_ is sys.modules['hbfp.golden.nn'].quantize_ and 'transformers' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)
