"""Products with wide mantissas have the bits of PyTorch, whichever operands are wide and however they are cut.

Covers: golden/lower/products/wide.py, golden/lower/formats.py.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import golden.nn as gn
from golden.lower.errors import LoweringError
from golden.lower.lowering import lower
from golden.machine.layouts import unpack
from golden.machine.machine import Machine
from golden.schedule import MixedMantissa
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator

pytestmark = pytest.mark.filterwarnings("ignore")


def accelerator(block, accumulate="fp32", wide=6, **sizes):
    return Accelerator(core=Design(rows=8, wide=wide, depth=32, accumulate=accumulate,
                                   format=HBFPFormat(mantissa=4, block=block)), **sizes)


MACHINES = {"plain": accelerator((1, 8)), "tiles": accelerator((8, 8), "aligned", 7),
            "streamed": accelerator((1, 16), x_words=64, w_words=64, v_words=128), "large": accelerator((16, 16))}


class Attends(nn.Module):
    """Two products of matrices that are computed, one of a matrix that lies in DRAM column by column."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(20, 24)

    def forward(self, x):
        y = self.first(x)
        return torch.matmul(torch.matmul(y, y.transpose(-1, -2)), x)


MODELS = {"mlp": lambda: nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 36), nn.ReLU(), nn.Linear(36, 10)),
          "attends": Attends}


def converted(model, machine, **roles):
    """A model whose layers have these mantissas by role; others are narrow."""
    torch.manual_seed(3)
    core = machine.core
    sums = {"guard": core.guard, "growth": core.growth} if core.accumulate == "aligned" else {}
    model = gn.convert(model(), core.format, accumulate=core.accumulate, **sums).eval()
    for _, layer in gn.hbfp_layers(model, own=True):
        layer.formats = replace(layer.formats, **{role: replace(core.format, mantissa=bits)
                                                  for role, bits in roles.items()})
    return model


def multiplies(program):
    return {(each["wide_x"], each["wide_w"]) for each in program.instructions if each.opcode == Opcode.MULTIPLY}


def check(model, machine, count=20):
    """Every tensor, in an order that the waits guarantee; the widths that products have."""
    program = (made := lower(model, (torch.randn(count, 20),), machine)).program
    device = Machine(program, races=True)
    device.run()
    for name, values in made.expected.items():
        tensor = program.tensors[name]
        data = device.dram.get(tensor.address, tensor.bytes(machine))
        np.testing.assert_array_equal(unpack(machine, tensor, data).view(np.uint32),
                                      np.ascontiguousarray(values, np.float32).view(np.uint32), name)
    return multiplies(program)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("x, w", [(1, 0), (0, 1), (1, 1)])
def test_widths_by_role(model, machine, x, w):
    machine = MACHINES[machine]
    bits = 4, machine.core.wide
    if model == "attends" and (x, w) == (1, 0):
        with pytest.raises(LoweringError, match="which is computed, is not; one width for both would do$"):
            lower(converted(MODELS[model], machine, x=bits[x], w=bits[w]), (torch.randn(20, 20),), machine)
        return
    assert check(converted(MODELS[model], machine, x=bits[x], w=bits[w]), machine) == {(x, w)}


def test_layers_of_their_own_widths():
    """The first and the last layer are wide, then all; a model that golden.nn has not converted is narrow."""
    machine, schedule = MACHINES["plain"], MixedMantissa(epochs=2)
    model = converted(MODELS["mlp"], machine)
    for epoch, found in enumerate(({(0, 0), (1, 1)}, {(1, 1)})):
        schedule.apply(gn.hbfp_layers(model), epoch)
        assert check(model, machine) == found
    assert check(MODELS["mlp"]().eval(), machine) == {(0, 0)}


def test_a_wide_product_is_another_one():
    """What the wide mantissas change: results are nearer to PyTorch's own."""
    machine = MACHINES["plain"]
    narrow, wide = (converted(MODELS["mlp"], machine, x=bits, w=bits) for bits in (4, 6))
    x = torch.randn(20, 20)
    plain = MODELS["mlp"]()
    plain.load_state_dict(narrow.state_dict())
    errors = [float((model(x) - plain(x)).abs().mean()) for model in (narrow, wide)]
    assert errors[1] < errors[0] / 2


@pytest.mark.parametrize("wide, mantissa, would", [
    (0, 6, "--mantissa 6, or an accelerator with --wide 6,"), (6, 7, "--mantissa 7, or an accelerator with --wide 7,"),
    (6, 8, "--mantissa 8,")])
def test_widths_that_it_has_not(wide, mantissa, would):
    machine = accelerator((1, 8), wide=wide)
    line = (f"has mantissa {mantissa} for x, the accelerator 4; golden.nn.convert to that, or a program of its own "
            f"with {would} would do")
    with pytest.raises(LoweringError, match=f"^Layer '0' {re.escape(line)}$"):
        lower(converted(MODELS["mlp"], machine, x=mantissa, w=mantissa), (torch.randn(20, 20),), machine)


def test_wide_convolutions_are_refused():
    machine = MACHINES["plain"]
    model = converted(lambda: nn.Conv2d(8, 8, 3), machine, x=6, w=6)
    with pytest.raises(LoweringError, match="linear layers and products of matrices can be; a layer of 4 bits would "
                                            "do$"):
        lower(model, (torch.randn(1, 8, 5, 5),), machine)
