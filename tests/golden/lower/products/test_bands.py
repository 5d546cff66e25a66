"""Bands of rows: commands cut them without a gap, and the next one comes while one is multiplied."""

from types import SimpleNamespace

import pytest
import torch

from golden.lower.lowering import lower
from golden.lower.products import matrix
from golden.lower.products.bands import Meanwhile, band, commands, shares
from golden.lower.schedule import Ring, Span
from golden.machine.machine import Machine
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator

pytestmark = pytest.mark.usefixtures("costs")


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("count", [1, 8, 9, 40])
def test_commands_take_all_rows(count, first):
    found = list(commands(count, 16, 16, 1, 8, 4, first))
    assert [at for at, _ in found] == [sum(high for _, high in found[:n]) for n in range(len(found))]
    assert sum(high for _, high in found) == count and max(high for _, high in found) <= 16
    for most in (2, 9):
        found = list(shares(9, first, first, most))
        assert list(shares(1, first, first, most)) == [(0, 1)]
        assert [column for column, _ in found] == [sum(wide for _, wide in found[:n]) for n in range(len(found))]
        assert sum(wide for _, wide in found) == 9 and max(wide for _, wide in found) <= most


@pytest.mark.parametrize("rows, wanted, most, found", [(10, 16, 32, 10), (40, 16, 32, 16), (40, 18, 12, 12)])
def test_a_band_has_whole_blocks_unless_it_is_all(rows, wanted, most, found):
    assert band(rows, 4, wanted, most) == found


@pytest.mark.parametrize(("words", "kept"), [(3, 12), (4, 16), (5, 15), (8, 16), (9, None)])
def test_results_have_a_part_of_v_if_a_quarter_holds_two_columns(words, kept):
    """As many as it holds, at most four; else they may be anywhere."""
    v = Ring("V", 0, 64)
    found = matrix._for_results(SimpleNamespace(v=v, keep=lambda count: Span("V", 7, 7 + count)), words)
    assert found is v if kept is None else (found.start, found.size) == (7, kept)


@pytest.mark.parametrize("share, brought", [(0.5, [0, 1, 1, 2]), (1.5, [1, 3, 4, 5]), (9, [5, 5, 5, 5])])
def test_pieces_come_behind_commands_and_the_rest_at_the_end(share, brought):
    done, span = [], Span("X", 0, 8)

    def pieces():
        for each in range(5):
            done.append(each)
            yield
    meanwhile = Meanwhile(pieces(), span, share)
    for count in brought:
        meanwhile.go_on()
        assert len(done) == count
    assert meanwhile.close() is span and len(done) == 5


@pytest.mark.parametrize("before", [False, True])
def test_rows_of_the_next_band_come_between_commands_of_one(before):
    """With K of 24 a band of 21 rows is half of X less a word, behind a layer or not."""
    fmt = HBFPFormat(mantissa=8, block=(1, 8))
    machine = Accelerator(core=Design(format=fmt, rows=8, depth=32), x_words=128, w_words=64, v_words=256)
    torch.manual_seed(1)
    layers = [torch.nn.Linear(8, 24)] if before else []
    model, x = torch.nn.Sequential(*layers, torch.nn.Linear(24, 40)), torch.randn(62, 8 if before else 24)
    made = lower(model, (x,), machine)
    device = Machine(made.program, races=True)
    device.run()
    assert all((device.get(name) == made.expected[name]).all() for name in made.outputs)
    layer = made.program.layers[-1]
    opcodes = [each.opcode for each in made.program.instructions[layer.first:layer.stop]]
    multiplies = [n for n, each in enumerate(opcodes) if each == Opcode.MULTIPLY]
    converts = [n for n, each in enumerate(opcodes) if each == Opcode.CONVERT]
    assert sum(any(a < n < b for n in converts) for a, b in zip(multiplies, multiplies[1:], strict=False)) > 3
