"""Depthwise convolutions: a word's channels together, with PyTorch's bits; steps of training have the gradients.

Covers: golden/lower/operations/convolutions.py, golden/lower/products/rectangle.py.
"""

from dataclasses import replace

import pytest
import torch
from torch import nn

from golden.lower.lowering import lower
from hbfp.isa.instructions import Opcode
from tests.golden.lower.running import checked

from .test_on_chip import machine

pytestmark = pytest.mark.usefixtures("costs")

#: Images; what of the layer; sizes of the machine, and its block.
CASES = {
    "ragged": ((2, 19, 6, 5), {"padding": 1}, {}, (1, 8)),
    "one word, one command a line": ((1, 8, 5, 9), {"padding": 1}, {"depth": 72}, (1, 8)),
    "pixels of a line in turns": ((1, 16, 4, 11), {"padding": (0, 1)}, {"depth": 16}, (1, 8)),
    "strips across": ((1, 24, 7, 30), {"padding": 1}, {"x_words": 128}, (1, 8)),
    "more taps than rows": ((1, 11, 9, 8), {"kernel_size": 5, "padding": 2}, {}, (1, 8)),
    "strides, and pixels that nothing reads": ((2, 16, 8, 9), {"stride": (2, 3), "padding": 1}, {}, (1, 8)),
    "far apart across": ((1, 8, 6, 12), {"dilation": (1, 3), "padding": (1, 2)}, {}, (1, 8)),
    "short blocks": ((1, 16, 6, 7), {"padding": 1}, {}, (1, 4)),
    "long blocks": ((1, 16, 6, 7), {"padding": 1}, {}, (1, 16)),
    "single pixels": ((1, 10, 4, 6), {"kernel_size": 1}, {}, (1, 8)),
    "a line": ((2, 12, 1, 20), {"kernel_size": (1, 4), "padding": (0, 3)}, {}, (1, 8)),
    "lines far apart": ((1, 8, 7, 9), {"kernel_size": (1, 3), "dilation": (2, 2), "padding": (0, 2)}, {}, (1, 8)),
    "no more words than a quarter of V has taps for": ((1, 24, 6, 5), {"padding": 1}, {"v_words": 128}, (1, 8)),
    "far beyond the image": ((1, 8, 3, 4), {"padding": 3, "kernel_size": 4}, {}, (1, 8)),
}


def alone(program):
    """Loads and stores of single numbers, or of fewer than a word has."""
    return [each for each in program.instructions if each.opcode in (Opcode.LOAD, Opcode.STORE) and each["elements"]]


def model(channels, more):
    """Between layers, so that nobody lays the images out as the convolution likes, and with what follows fused."""
    torch.manual_seed(1)
    conv = nn.Conv2d(channels, channels, **{"kernel_size": 3, **more}, groups=channels)
    return nn.Sequential(nn.ReLU(), conv, nn.ReLU6()).eval()


@pytest.mark.parametrize("name", CASES)
def test_bits_where_numbers_are_none(name):
    """A number that is none stays in its channel, although a word's channels are multiplied together."""
    shape, more, sizes, block = CASES[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    x[0, 1, 0, 3], x[-1, -1, -1, 0] = float("nan"), float("inf")
    lowered = lower(model(shape[1], more), (x,), machine(block, **sizes))
    assert any(each.opcode == Opcode.DRAIN and each["diagonal"] for each in lowered.program.instructions)
    assert not alone(lowered.program) or shape[1] % 8
    checked(lowered)


def test_what_would_take_longer_is_not_taken():
    """Few channels in a word, or in the last; blocks that several channels would share; wide mantissas."""
    wide = machine((1, 8))
    wide = replace(wide, core=replace(wide.core, format=replace(wide.core.format, mantissa=4), wide=6))
    for channels, more, system in ((2, {"padding": 1}, machine((1, 8))), (9, {"kernel_size": 7}, machine((1, 8))),
                                   (8, {"padding": 1}, machine((8, 8))), (8, {"padding": 1}, wide)):
        x = torch.randn(1, channels, 7, 8)
        lowered = lower(model(channels, more), (x,), system)
        narrow = system is not wide
        assert narrow <= (not any(each["diagonal"] for each in lowered.program.instructions
                                  if each.opcode == Opcode.DRAIN))
        checked(lowered)
