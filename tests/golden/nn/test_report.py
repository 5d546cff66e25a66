"""What a model multiplies, in which format: as table, as JSON, and as a condition of converting.

Covers: golden/nn/record.py, golden/nn/select.py.
"""

import copy
import json

import pytest

torch = pytest.importorskip("torch")

from torch.nn.attention.flex_attention import flex_attention  # noqa: E402
from torch.nn.utils import parametrizations  # noqa: E402

import golden.nn as gn  # noqa: E402


class Net(torch.nn.Module):
    """A layer, own code, and what HBFP has no form of."""

    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(8, 6), torch.nn.Linear(6, 2, bias=False)
        self.distance = Distance()
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x):
        y = self.dropout(self.body(x))
        return self.head(y @ y.mT @ y), self.distance(x)


class Distance(torch.nn.Module):
    """Own code that nothing converts."""

    def forward(self, x):
        return torch.cdist(x, x, compute_mode="use_mm_for_euclid_dist")


TABLE = """\
layer                operation        format         calls  FLOPs  why FP32
body (HBFPLinear)    linear           hbfp8 (1, 32)      1    288
(model) (Net)        matmul           hbfp8 (1, 32)      2    216
head (Linear)        mm               fp32               1     72  excluded
distance (Distance)  _euclidean_dist  fp32               1    144  there is no such product in HBFP; write it with \
torch.matmul or a convolution
FLOPs: fp32 30.00 %, hbfp8 (1, 32) 70.00 %"""


def test_table():
    net = gn.convert(Net(), "hbfp8", exclude="head")
    x = torch.ones(3, 8)
    report = gn.report(net, x)
    assert str(report) == TABLE
    assert [entry.layer for entry in report.left] == ["head", "distance"]
    assert net.training and net.dropout.training                  # as it was
    data = json.loads(report.json())
    assert data["shares"] == report.shares and data["entries"][0] == {
        "layer": "body", "kind": "HBFPLinear", "operation": "linear", "format": "hbfp8 (1, 32)", "calls": 1,
        "flops": 288, "reason": ""}


def test_before_converting_all_is_fp32():
    report = gn.report(torch.nn.Sequential(torch.nn.Linear(8, 6)), torch.ones(3, 8))
    assert [(e.operation, e.flops, e.reason) for e in report.entries] == [("addmm", 288, "not converted")]


def test_three_formats():
    four = gn.HBFPFormat(mantissa=4, rounding="stochastic")
    net = gn.convert(torch.nn.Sequential(torch.nn.Linear(8, 6)), "hbfp8", g=four)
    assert gn.report(net.train(), torch.ones(1, 8)).entries[0].format == "hbfp8 (1, 32) / hbfp8 (1, 32) / hbfp4 (1, 32)"


@pytest.mark.parametrize("example", [torch.ones(3, 8), (torch.ones(3, 8),), {"x": torch.ones(3, 8)}])
def test_strict_with_an_example_refuses_what_is_left_and_changes_nothing(example):
    net = Net()
    gn.convert(net.body, "hbfp4")
    net.body = gn.convert(net.body, gn.HBFPFormat(mantissa=4, rounding="stochastic"))
    kinds, state = {name: type(part) for name, part in net.named_modules()}, copy.deepcopy(net.state_dict())
    message = ("Module 'distance' (Distance) cannot compute cdist in HBFP: there is no such product in HBFP; write it "
               "with torch.matmul or a convolution; exclude=['distance'] leaves its products in FP32")
    with pytest.raises(TypeError) as caught:
        gn.convert(net, "hbfp8", strict=True, example=example)
    assert str(caught.value) == message
    assert {name: type(part) for name, part in net.named_modules()} == kinds and net.body.formats.x.mantissa == 4
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    assert gn.convert(net, "hbfp8", exclude="distance", strict=True, example=example) is net


def test_strict_finds_what_no_module_multiplies():
    net = torch.nn.Sequential(torch.nn.ReLU())
    net[0].register_forward_hook(lambda module, args, y: y @ y)
    with pytest.raises(ValueError) as caught:
        gn.convert(net, strict=True, example=torch.ones(3, 3))
    assert str(caught.value) == ("Products left in FP32: mm in '0' (not converted); exclude=['0'] leaves them so on "
                                 "purpose")
    assert type(net[0]) is torch.nn.ReLU


def test_wrong_module():
    with pytest.raises(TypeError, match=r"^module must be a torch.nn.Module, not str$"):
        gn.report("net")


class Flex(torch.nn.Module):
    """An operator of torch that is made of others, which no table of functions has."""

    def forward(self, x):
        return flex_attention(x, x, x)


class Branch(torch.nn.Module):
    """A part of a model that torch calls, not the model itself."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: self.linear(y), lambda y: y, (x,))


def old_norm(layer):
    return torch.nn.utils.spectral_norm(layer)


def scripted(module):
    return torch.jit.script(module)


def exported(module):
    return torch.export.export(module, (torch.ones(3, 8),)).module()


LINEAR = ("0", "addmm", 288)
#: What a model holds -> the model, its input, and layer, operation and operations of each row, in FP32.
KINDS = {
    "spectral norm": (lambda: parametrizations.spectral_norm(torch.nn.Linear(8, 6)), (3, 8), [
        ("0.parametrizations.weight.0", "mv", 96), ("0.parametrizations.weight.0", "vdot", 12), LINEAR]),
    "old spectral norm": (lambda: old_norm(torch.nn.Linear(8, 6)), (3, 8), [("", "mv", 96), ("", "dot", 12), LINEAR]),
    "flex attention": (Flex, (1, 2, 16, 16), [("0", "flex_attention", 32768)]),
    "branch": (Branch, (3, 8), [("0.linear", "addmm", 384)]),
    "script": (lambda: scripted(torch.nn.Linear(8, 6)), (3, 8), [("", "addmm", 288)]),
    "exported": (lambda: exported(torch.nn.Linear(8, 6)), (3, 8), [("0", "addmm", 288)]),
    "compiled": (lambda: torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 6)), backend="eager"), (3, 8), [
        ("0._orig_mod.0", "addmm", 288)])}


@pytest.mark.filterwarnings("ignore:`torch.jit.[a-z_]*` is (deprecated|not supported)",
                            "ignore:flex_attention called without")
@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_part_has_its_rows(kind, inference):
    make, shape, rows = KINDS[kind]
    net = torch.nn.Sequential(make())
    with torch.inference_mode(inference):
        report = gn.report(net, torch.ones(shape))
        assert gn.fp32_products(net, torch.ones(shape)) == [row[:2] for row in rows]
    assert [(e.layer, e.operation, e.flops) for e in report.entries] == rows
    assert {e.reason for e in report.left} == {"not converted"} and net[0].training


class Several(torch.nn.Module):
    """One of each product that is an operator of programs."""

    def __init__(self):
        super().__init__()
        self.linear, self.conv = torch.nn.Linear(8, 8), torch.nn.Conv2d(3, 4, 3)
        self.conv3d, self.back = torch.nn.Conv3d(3, 4, 2), torch.nn.ConvTranspose2d(3, 4, 2)

    def forward(self, x):
        y = self.linear(x)
        return y @ y.mT, self.conv(x), self.conv3d(x.transpose(0, 1)[None]), self.back(x)


def test_an_exported_program_has_the_rows_of_its_model():
    net, x = gn.convert(Several(), "hbfp4").eval(), torch.ones(2, 3, 8, 8)
    program = torch.export.export(net, (x,)).module()
    rows, model = ([(e.format, e.calls, e.flops) for e in gn.report(part, x).entries] for part in (program, net))
    assert rows == model and len(rows) == 5 and gn.fp32_products(program, x) == []


@pytest.mark.parametrize("inference", [False, True])
def test_converted_parts_beside_others(inference):
    net = gn.convert(torch.nn.Sequential(old_norm(torch.nn.Linear(8, 8)), Branch()), "hbfp8")
    with torch.inference_mode(inference):
        rows = [(e.layer, e.operation, e.format) for e in gn.report(net, torch.ones(3, 8) * net[0].weight[0]).entries]
    assert rows[:3] == [("", "mv", "fp32"), ("", "dot", "fp32"), ("0", "linear", "hbfp8 (1, 32)")]


def test_side_arithmetic_goes_on_in_branches():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 8)

        def forward(self, x):
            y = self.linear(x)
            return torch.cond(y.sum() > -1e9, torch.nn.functional.gelu, torch.sigmoid, (y,))
    net, x = gn.convert(Two(), "hbfp8", side=gn.DESIGN_SIDE).eval(), torch.randn(64, 8)
    other = gn.convert(torch.nn.Sequential(net.linear, torch.nn.GELU()), "hbfp8", side=gn.DESIGN_SIDE).eval()
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        assert torch.equal(net(x), other(x))


def test_train_and_eval_of_a_part_are_not_called():
    """They may merge weights, or refuse."""
    class Merging(torch.nn.Linear):
        def train(self, mode=True):
            raise AssertionError
    net = torch.nn.Sequential(Merging(8, 6))
    assert len(gn.report(net, torch.ones(3, 8)).entries) == 1 and net[0].training


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_stay_fp32_and_have_a_row():
    class Own(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.linear(x, torch.ones(3, 8))
    strided = torch.nested.nested_tensor([torch.ones(2, 8), torch.ones(3, 8)])
    [entry] = gn.report(gn.convert(torch.nn.Sequential(Own())), strided).entries
    assert (entry.layer, entry.operation, entry.format) == ("0", "linear", "fp32")
    assert entry.reason == "a nested tensor; only dense ones are converted"
    with pytest.raises(TypeError, match=r"^Module '0' \(Own\) cannot compute linear in HBFP: a nested tensor; only "
                                        r"dense ones are converted; exclude=\['0'\] leaves its products in FP32$"):
        gn.convert(torch.nn.Sequential(Own()), strict=True)(strided)
