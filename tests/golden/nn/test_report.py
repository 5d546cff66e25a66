"""What a model multiplies, in which format: as table, as JSON, and as a condition of converting.

Covers: golden/nn/record.py, golden/nn/select.py.
"""

import copy
import json

import pytest

torch = pytest.importorskip("torch")

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
