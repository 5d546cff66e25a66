"""Products with sparse weights have the bits of PyTorch, however they are cut, in half of the passes.

Covers: golden/lower/formats.py.
"""

from dataclasses import replace

import pytest
import torch
from torch import nn

import golden.nn as gn
from golden.lower.lowering import lower
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator
from tests.cases import sweep

from .running import checked

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("costs")]


def accelerator(block=(1, 16), sparse=(2, 4), mantissa=8, accumulate="fp32", wide=0, **sizes):
    return Accelerator(core=Design(rows=8, sparse=sparse, wide=wide, depth=32, accumulate=accumulate,
                                   format=HBFPFormat(mantissa=mantissa, block=block)), **sizes)


MACHINES = {"plain": accelerator(), "tiles": accelerator((16, 16), accumulate="aligned"),
            "few": accelerator((1, 32), (1, 4), 4), "many": accelerator((1, 32), (4, 8)),
            "small": accelerator(x_words=128, w_words=64, v_words=128)}


def mlp():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(52, 40), nn.ReLU(), nn.Linear(40, 36), nn.ReLU(), nn.Linear(36, 10)).eval()


def check(model, machine, count=40):
    """Every tensor, in an order that the waits guarantee; (sparse, passes) of each command."""
    torch.manual_seed(5)
    width = next(model.parameters()).shape[1]
    program = checked(lower(model, (torch.randn(count, width),), machine)).program
    return [(each["sparse"], each["tiles"]) for each in program.instructions
            if each.opcode == Opcode.MULTIPLY and each["first"]]


@pytest.mark.parametrize("machine", sweep(2, MACHINES))
def test_linear_layers_are_sparse(machine):
    """All of them, of terms that fill no block, too."""
    machine = MACHINES[machine]
    block, spread = machine.core.format.terms, machine.spread
    passes = {-(-terms // block) * block // 8 // spread for terms in (52, 40, 36)}
    assert set(check(mlp(), machine)) == {(1, each) for each in passes}


@pytest.mark.parametrize("block, roles, products", [
    ((1, 16), "xw", {(1, 1, 1)}), ((16, 16), "w", {(1, 0, 1)}), ((1, 16), "x", {(0, 1, 0)}),
    ((1, 16), "", {(1, 0, 0)})])
def test_wide_layers(block, roles, products):
    """In as many passes as narrow ones; narrow weights beside wide rows are dense, which only records can be."""
    machine = accelerator(block, mantissa=4, wide=6)
    model = gn.convert(mlp(), machine.core.format)
    for _, layer in gn.hbfp_layers(model):
        layer.formats = replace(layer.formats, **{role: machine.core.widest for role in roles})
    torch.manual_seed(5)
    program = checked(lower(model, (torch.randn(40, 52),), machine)).program
    assert {tuple(each[name] for name in ("sparse", "wide_x", "wide_w")) for each in program.instructions
            if each.opcode == Opcode.MULTIPLY} == products


@pytest.mark.parametrize("rows, cols, terms", [(4, 16, 16), (8, 16, 16)])
def test_rows_unlike_columns(rows, cols, terms):
    """All layers are sparse, in memories with one port, too."""
    core = Design(rows=rows, cols=cols, sparse=(2, 4), depth=64, format=HBFPFormat(block=(1, terms)))
    assert {sparse for sparse, _ in check(mlp(), Accelerator(core=core, memory_banks=2))} == {1}


def test_few_rows_are_dense():
    """Up to two of the array: records come sooner than what is converted."""
    assert {sparse for sparse, _ in check(mlp(), MACHINES["plain"], 16)} == {0}
    assert {sparse for sparse, _ in check(mlp(), MACHINES["plain"], 17)} == {1}


def test_a_column_that_fills_w_is_dense():
    model = nn.Sequential(nn.Linear(160, 12)).eval()
    assert {sparse for sparse, _ in check(model, MACHINES["small"])} == {0}
    assert {sparse for sparse, _ in check(model, MACHINES["plain"])} == {1}


def test_a_model_says_which_layers_are_sparse():
    """Its own masks stay; a layer that is pruned to less than the core asks for is sparse, too, one to more is not."""
    core = MACHINES["plain"].core
    model = gn.convert(mlp(), core.format)
    gn.sparsify(model, "1:4", layers=["0"])
    gn.sparsify(model, "4:8", layers=["2"])
    found = check(model, MACHINES["plain"])
    assert {sparse for sparse, passes in found if passes in (4, 2)} == {1}    # of 52 terms: 64 by 16
    assert sum(sparse for sparse, _ in found) < len(found)
    assert found[-1] == (0, 6)


def test_pruning_changes_results():
    """Those of a machine with sparse weights are those of PyTorch's pruned model, and of no other."""
    x = torch.randn(40, 52)
    sparse, dense = (lower(mlp(), (x,), machine) for machine in (
        MACHINES["plain"], Accelerator(core=Design(rows=8, format=HBFPFormat(block=(1, 16))))))
    name, = sparse.outputs
    assert (sparse.expected[name] != dense.expected[name]).mean() > 0.9
    rows = [sum(each["passes0"] * each["columns"] * each["rows0"] for each in made.program.instructions
                if each.opcode == Opcode.MULTIPLY) for made in (sparse, dense)]
    assert 2 * rows[0] == rows[1]


class Images(nn.Module):
    """Convolutions whose patches are addresses, of single pixels, and gathered."""

    def __init__(self):
        super().__init__()
        self.first, self.wide = nn.Conv2d(12, 32, 3, padding=1), nn.Conv2d(32, 24, 3, padding=1)
        self.short, self.far = nn.Conv2d(24, 32, 1), nn.Conv2d(32, 20, 3, 2, 1, 2)

    def forward(self, x):
        return self.far(self.short(self.wide(self.first(x))))


def convolutions(machine, sparse=True):
    """(sparse, passes) of each command of a network of convolutions, whose bits are those of PyTorch."""
    torch.manual_seed(3)
    model = gn.convert(Images().eval(), machine.core.format)
    if sparse:
        gn.sparsify(model)
    program = checked(lower(model, (torch.randn(1, 12, 16, 16),), machine)).program
    found = [each for each in program.instructions if each.opcode == Opcode.MULTIPLY]
    return {(each["sparse"], each["tiles"]) for each in found if each["first"]}


@pytest.mark.parametrize("machine, found", [
    (accelerator(x_words=1024), {(0, 14), (1, 18), (1, 2)}),
    (accelerator((16, 16), x_words=4096, v_words=2048), {(0, 14), (1, 18), (1, 2), (0, 36)}),
    (accelerator((1, 32), mantissa=4, wide=6, x_words=1024), {(0, 16), (1, 18), (1, 2)})],
    ids=["blocks", "tiles", "long"])
def test_convolutions(machine, found):
    """Where patches are addresses, or pixels: half of the passes. Gathered ones are dense, of the pruned weights: those
    of twelve channels, and in tiles those whose lines end within one.
    """
    assert convolutions(machine) == found
    assert convolutions(machine, sparse=False) == {(0, passes * (1 + kind)) for kind, passes in found}
