"""Windows: many small images in few instructions, and behind convolutions before anything is stored.

Covers: golden/lower/windows.py, golden/lower/products/rectangle.py, golden/lower/operations/after.py,
golden/lower/products/turned.py.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.lowering import lower
from golden.lower.vectors import BODY
from golden.lower.windows import taps_fit
from hbfp.isa.instructions import Opcode
from tests.cases import sweep

from .products.test_on_chip import machine
from .running import checked
from .test_lowering import Of

pytestmark = pytest.mark.usefixtures("costs")


def conv(channels, outs, size=3, **more):
    return nn.Conv2d(channels, outs, size, **more)


def lowered(model, *shapes, block=(1, 8), **sizes):
    """A model on the golden machine, with a number that is none: all its numbers are PyTorch's."""
    torch.manual_seed(1)
    for part in model.modules():
        for parameter in part.parameters(recurse=False):
            nn.init.normal_(parameter)
    inputs = tuple(map(torch.randn, shapes))
    inputs[0].view(-1)[7] = float("nan")
    result = lower(model.eval(), inputs, machine(block, **sizes))
    checked(result)
    return result


def count(result, opcode):
    return sum(each.opcode == opcode for each in result.program.instructions)


def test_windows_have_as_many_elements_as_a_program_has_room_for():
    """One of its instructions is no element's."""
    assert taps_fit(BODY - 1) and not taps_fit(BODY)


#: Of images behind ReLU; whether they come together.
ALONE = {
    "windows divide images": (nn.MaxPool2d(2), (24, 8, 4, 6), True),
    "and lines have borders": (nn.AvgPool2d((2, 3), (2, 1), (0, 1)), (9, 8, 4, 6), True),
    "of several words": (nn.MaxPool2d((1, 2)), (6, 20, 2, 6), True),
    "lines between windows": (nn.MaxPool2d((1, 2), (2, 2)), (9, 8, 4, 6), True),
    "images are windows": (Of(lambda x: x.mean((2, 3))), (40, 8, 3, 3), True),
    "images of several words are": (nn.AdaptiveMaxPool2d(1), (20, 19, 3, 2), True),
    "with elements far apart": (nn.MaxPool2d(2, 2, dilation=(2, 1)), (4, 8, 6, 6), False),
    "images end within windows": (nn.MaxPool2d(2), (4, 8, 5, 5), False),
}


@pytest.mark.parametrize("name", sweep(8, ALONE, ["images are windows", "with elements far apart"]))
def test_small_images_come_together(name):
    model, shape, together = ALONE[name]
    result = lowered(nn.Sequential(nn.ReLU(), model), shape, v_words=512)
    passes, = (each.counts["vector"] for each in result.became[1:] if "vector" in each.counts)
    assert passes < shape[0] if together else passes == shape[0]


#: Layers, images and sizes of the machine, in which windows follow a product in V.
BEHIND = {
    "turned": (nn.Sequential(conv(1, 8), nn.ReLU(), nn.MaxPool2d(2)), (5, 1, 6, 8), {}),
    "turned, images side by side": (nn.Sequential(conv(1, 12), nn.MaxPool2d(2)), (6, 1, 6, 10),
                                    {"v_words": 1024, "x_words": 1024}),
    "turned, the last ones fewer": (Of(lambda f, x, y: F.max_pool2d(f(x) + y, 2), conv(1, 8)), (6, 1, 6, 10),
                                    (6, 8, 4, 8), {"v_words": 2048, "x_words": 1024}),
    "turned, few lines at a time": (nn.Sequential(conv(2, 8, padding=1), nn.AvgPool2d((3, 2))), (3, 2, 12, 8),
                                    {"v_words": 512}),
    "turned, all that commands take": (nn.Sequential(conv(1, 8), nn.MaxPool2d((2, 3))), (3, 1, 6, 8), {"depth": 12}),
    "turned, all that V holds": (nn.Sequential(conv(1, 8, (3, 4)), nn.MaxPool2d(2)), (3, 1, 6, 7), {"v_words": 64}),
    "turned, all that X holds": (nn.Sequential(conv(1, 8), nn.MaxPool2d(2)), (3, 1, 6, 6), {"x_words": 64}),
    "turned, with a sum": (Of(lambda f, x, y: F.max_pool2d(f(x) + y, 2), conv(1, 8)), (3, 1, 6, 8), (3, 8, 4, 6), {}),
    "by address": (nn.Sequential(nn.ReLU(), conv(8, 20, padding=1), nn.ReLU6(), nn.MaxPool2d(2)), (2, 8, 6, 8),
                   {"v_words": 512}),
    "by address, bands": (nn.Sequential(nn.ReLU(), conv(8, 8, padding=1), nn.AvgPool2d(2)), (2, 8, 12, 10),
                          {"x_words": 128}),
    "by address, whole images": (nn.Sequential(nn.ReLU(), conv(16, 12), Of(lambda x: x.mean((2, 3)))), (3, 16, 6, 7),
                                 {}),
    "by address, sums of images": (nn.Sequential(nn.ReLU(), conv(8, 8), nn.AdaptiveAvgPool2d(1)), (3, 8, 5, 6), {}),
}


@pytest.mark.parametrize("name", sweep(9, BEHIND, [
    "turned, all that commands take", "turned, all that V holds", "turned, all that X holds", "by address, bands"]))
def test_windows_behind_a_product_take_no_way_by_dram(name):
    model, *shapes, sizes = BEHIND[name]
    result = lowered(model, *shapes, **sizes)
    assert not [layer.name for layer in result.program.layers if "pool" in layer.name or "mean" in layer.name]
    last = result.program.layers[-1]
    assert count(result, Opcode.MULTIPLY) and last.products, last.name
    assert not any(each.endswith(("pool2d", "mean")) for each in result.expected if each not in result.outputs)


#: The same where windows are a layer of their own.
APART = {
    "borders": (nn.Sequential(conv(1, 8), nn.MaxPool2d(2, 2, 1)), (2, 1, 6, 8), {}),
    "they share pixels": (nn.Sequential(conv(1, 8), nn.MaxPool2d(2, 1)), (2, 1, 6, 8), {}),
    "pixels are left": (nn.Sequential(conv(1, 8), nn.MaxPool2d(2)), (2, 1, 7, 8), {}),
    "others read the product": (Of(lambda f, x: F.max_pool2d(y := f(x), 2).sum() + y.sum(), conv(1, 8)), (2, 1, 6, 8),
                                {}),
    "too many for a command": (nn.Sequential(nn.ReLU(), conv(8, 8), nn.AdaptiveAvgPool2d(1)), (2, 8, 12, 9), {}),
    "more than V holds": (nn.Sequential(conv(1, 8, (3, 5)), nn.MaxPool2d(2)), (3, 1, 6, 8), {"v_words": 64}),
    "tiles": (nn.Sequential(nn.ReLU(), conv(8, 8, padding=1), nn.MaxPool2d(2)), (2, 8, 8, 8), {"block": (8, 8)}),
    "groups": (nn.Sequential(nn.ReLU(), conv(16, 16, groups=2), nn.MaxPool2d(2)), (2, 16, 6, 6), {}),
    "windows along the channels": (nn.Sequential(nn.ReLU(), conv(8, 8), Of(lambda x: x.mean(1))), (2, 8, 6, 6), {}),
}


@pytest.mark.parametrize("name", sweep(9, APART, ["more than V holds"]))
def test_windows_that_are_a_layer_of_their_own(name):
    model, shape, sizes = APART[name]
    result = lowered(model, shape, **sizes)
    assert not result.program.layers[-1].products
