"""Patches of pixels that are loaded once: of tiles, of pairs of pixels, and of few channels, which are turned.

Covers: golden/lower/products/convolution.py, golden/lower/products/paired.py, golden/lower/products/turned.py,
golden/lower/products/rectangle.py, golden/lower/products/gathered.py, golden/lower/operations/convolutions.py.
"""

import pytest
import torch
from torch import nn

from golden.lower.lowering import lower
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator
from tests.golden.lower.running import checked

pytestmark = pytest.mark.usefixtures("costs")


def machine(block, **sizes):
    """Of 8 x 8 elements, with memories that make images come in bands."""
    core = Design(format=HBFPFormat(mantissa=8, block=block), rows=8, depth=sizes.pop("depth", 64))
    return Accelerator(core=core, w_words=512, **{"v_words": 256, "x_words": 512} | sizes)


TILES = [((1, 16, 8, 8), (9, (3, 3), 1, 1, 1), {}), ((2, 8, 6, 17), (17, (3, 3), 2, 1, 1), {"x_words": 256}),
         ((1, 8, 9, 10), (5, (2, 3), (1, 1), (2, 1), (2, 2)), {"depth": 8}),
         ((1, 8, 5, 8), (5, (1, 1), 1, (1, 0), 1), {}),
         ((1, 64, 4, 8), (9, (1, 3), 1, (0, 1), 1), {"x_words": 256, "v_words": 1024}),    # and fill X
         ((1, 16, 8, 8), (9, (3, 1), 1, (1, 0), 1), {"x_words": 64})]    # or do not fit
PAIRS = [((2, 8, 7, 6), (9, (3, 3), 1, 1, 1), {}), ((1, 8, 12, 9), (17, (3, 3), 1, 0, 1), {"x_words": 256}),
         ((1, 8, 6, 7), (5, (2, 3), 1, (2, 1), (1, 2)), {"depth": 8}), ((1, 8, 6, 7), (5, (5, 1), 1, (2, 0), 1), {})]


def of(shape, layer, sizes, block):
    """A program of a convolution of numbers of which one is none, behind another layer, and its reads of patches."""
    torch.manual_seed(1)
    outs, size, stride, padding, dilation = layer
    model = nn.Sequential(nn.ReLU(), nn.Conv2d(shape[1], outs, size, stride, padding, dilation), nn.ReLU()).eval()
    x = torch.randn(shape)
    x[0, 1, 2, 3] = float("nan")
    lowered = lower(model, (x,), machine(block, **sizes))
    checked(lowered)
    return [each for each in lowered.program.instructions if each.opcode == Opcode.LOAD and each["elements"]]


@pytest.mark.parametrize(("shape", "layer", "sizes"), TILES)
def test_tiles_that_end_with_lines(shape, layer, sizes):
    assert not of(shape, layer, sizes, (8, 8))


@pytest.mark.parametrize(("shape", "layer", "sizes"), PAIRS)
def test_pairs_of_pixels(shape, layer, sizes):
    assert not of(shape, layer, sizes, (1, 16))


def test_tiles_that_go_on_in_the_next_line_are_gathered_in_words():
    assert not of((1, 16, 5, 6), (9, (3, 3), 1, 1, 1), {}, (8, 8))


FEW = [((2, 3, 9, 11), dict(out_channels=9, kernel_size=3, padding=1), (1, 8)),
       ((2, 1, 5, 8), dict(out_channels=17, kernel_size=3, padding=1), (8, 8)),
       ((3, 19, 6, 5), dict(out_channels=19, kernel_size=3, padding=1, groups=19), (1, 8)),
       ((1, 3, 4, 30), dict(out_channels=9, kernel_size=3, padding=1), (1, 8)),    # results fill a quarter of V
       ((1, 3, 6, 20), dict(out_channels=5, kernel_size=(3, 2), stride=(2, 1), dilation=(1, 2)), (1, 16))]
COPIED = [((1, 18, 7, 8), dict(out_channels=36, kernel_size=3, padding=1, groups=18, stride=2), (1, 8)),
          ((2, 6, 5, 8), dict(out_channels=6, kernel_size=3, padding=1, groups=3), (8, 8)),
          ((1, 4, 6, 11), dict(out_channels=4, kernel_size=(5, 5), padding=2, groups=4, stride=(1, 3)), (1, 4))]


@pytest.mark.parametrize(("behind", "shape", "layer", "block"), [
    *((False, *each) for each in FEW), *((True, *each) for each in COPIED)])
def test_lines_of_pixels_are_turned(behind, shape, layer, block):
    torch.manual_seed(1)
    conv = nn.Conv2d(shape[1], **layer)
    model = nn.Sequential(nn.ReLU(), conv).eval() if behind else nn.Sequential(conv, nn.ReLU()).eval()
    x = torch.randn(shape)
    x[0, 0, 2, 3] = float("inf")
    lowered = lower(model, (x,), machine(block, v_words=512))
    assert any(each.opcode == Opcode.CONVERT and each["columns"] and not each["to_w"]
               for each in lowered.program.instructions)
    checked(lowered)


def test_a_patch_a_line_is_gathered_sooner_than_turned():
    lowered = lower(nn.Conv2d(1, 8, (1, 2)), (torch.randn(2, 1, 4, 2),), machine((1, 8)))
    assert not any(each.opcode == Opcode.CONVERT and each["columns"] and not each["to_w"]
                   for each in lowered.program.instructions)
    checked(lowered)
