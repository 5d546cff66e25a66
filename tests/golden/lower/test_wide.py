"""Products with wide mantissas have the bits of PyTorch, whichever operands are wide and however they are cut.

Covers: golden/lower/products/wide.py, golden/lower/products/planes.py, golden/lower/formats.py,
golden/lower/products/core.py, golden/lower/products/matrix.py, golden/lower/operations/products.py.
"""

import re
from dataclasses import replace

import pytest
import torch
from torch import nn

import golden.nn as gn
from golden.lower.errors import LoweringError
from golden.lower.lowering import lower
from golden.schedule import MixedMantissa
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator
from tests.cases import cover, sweep

from .running import checked

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("costs")]


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


class Turns(nn.Module):
    """Stacked products of which the transpose alone is read: where widths allow, it is multiplied so."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(20, 24)

    def forward(self, x):
        y = self.first(x).reshape(2, -1, 24)
        return torch.matmul(torch.matmul(y, y.transpose(-1, -2)).transpose(-1, -2), y)


MODELS = {"mlp": lambda: nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 36), nn.ReLU(), nn.Linear(36, 10)),
          "attends": Attends, "turns": Turns}


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


def check(model, machine, *shape):
    """Every tensor, in an order that the waits guarantee; the widths that products have."""
    program = checked(lower(model, (torch.randn(*shape or (20, 20)),), machine)).program
    return multiplies(program)


@pytest.mark.parametrize("model, machine, roles", cover(MODELS, MACHINES, [(1, 0), (0, 1), (1, 1)], turns=1))
def test_widths_by_role(model, machine, roles):
    x, w = roles
    machine = MACHINES[machine]
    bits = 4, machine.core.wide
    if model != "mlp" and (x, w) == (1, 0):
        with pytest.raises(LoweringError, match="which is computed, is not; one width for both would do$"):
            lower(converted(MODELS[model], machine, x=bits[x], w=bits[w]), (torch.randn(20, 20),), machine)
        return
    assert check(converted(MODELS[model], machine, x=bits[x], w=bits[w]), machine) == {(x, w)}


def test_both_digits_of_the_next_band_come_between_commands_of_one():
    """A row is 3 words of high digits and 3 of low ones: X has two bands of 10 rows."""
    machine = accelerator((1, 8), x_words=128, w_words=64, v_words=256)
    model = converted(lambda: nn.Linear(20, 40), machine, x=6, w=6)
    assert check(model, machine, 62, 20) == {(1, 1)}
    opcodes = [each.opcode for each in lower(model, (torch.randn(62, 20),), machine).program.instructions]
    places = [place for place, each in enumerate(opcodes) if each == Opcode.MULTIPLY]
    assert sum(Opcode.CONVERT in opcodes[a:b] for a, b in zip(places, places[1:], strict=False)) > 3


def test_results_of_the_first_half_leave_before_weights_of_the_second_come():
    """A column of 25 passes comes to W in portions, of which there is room for four; a drain takes both halves."""
    machine = MACHINES["streamed"]
    assert check(converted(lambda: nn.Linear(200, 40), machine, x=6, w=6), machine, 5, 200) == {(1, 1)}


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


#: Images of 8 channels: patches by address; by planes of words, a word having several pixels; gathered; and pixels.
CONVOLUTIONS = {"addresses": lambda: nn.Sequential(nn.Conv2d(8, 24, 3, 2, 1), nn.ReLU()),
                "planes": lambda: nn.Sequential(nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 10, 3, padding=1)),
                "gathered": lambda: nn.Sequential(nn.Conv2d(8, 9, 3, padding=1), nn.Conv2d(9, 8, (3, 2), 2)),
                "groups": lambda: nn.Conv2d(8, 24, 3, 1, 1, groups=4),
                "depthwise": lambda: nn.Conv2d(8, 8, 3, groups=8),
                "pixels": lambda: nn.Conv2d(8, 12, 1, 2)}


@pytest.mark.parametrize(("model", "machine", "wide"), sweep(
    7, [(model, machine, wide) for model in CONVOLUTIONS for machine in MACHINES for wide in ((1, 0), (0, 1), (1, 1))]))
def test_convolutions(model, machine, wide):
    """Their weights are constants, so that rows may be wide beside narrow ones."""
    machine = MACHINES[machine]
    bits = 4, machine.core.wide
    model = converted(CONVOLUTIONS[model], machine, x=bits[wide[0]], w=bits[wide[1]])
    assert check(model, machine, 2, 8, 9, 7) == {wide}


def test_planes_come_line_by_line_where_v_holds_no_more():
    """A sixth of V is hardly more than one line of them."""
    machine = MACHINES["streamed"]
    model = nn.Sequential(nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 10, 3, padding=1))
    assert check(model.eval(), replace(machine, x_words=512, w_words=512), 1, 8, 5, 12) == {(0, 0)}
