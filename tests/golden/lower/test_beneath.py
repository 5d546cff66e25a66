"""A softmax stands among the instructions of a product that it does not need, with PyTorch's bits.

Covers: golden/lower/among.py.
"""

from dataclasses import replace

import torch
from torch import nn

from golden.lower import lowering
from golden.lower.among import followed
from golden.lower.lowering import lower
from golden.lower.schedule import Emission, Span
from golden.machine.machine import Machine
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator

SMALL = Accelerator(core=Design(format=HBFPFormat(mantissa=8, block=(1, 8)), rows=8, depth=32), x_words=256,
                    w_words=128, v_words=256)


class Attention(nn.Module):
    """One head; the product of values comes before the softmax, which does not need it."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        return (q @ k.t()).softmax(-1) @ v


def lowered(model, x, system, monkeypatch=None):
    """The program, of which the golden machine has all numbers of PyTorch, without a race."""
    if monkeypatch is not None:
        monkeypatch.setattr(lowering, "Beneath", lambda net: None)
    made = lower(model.eval(), (x,), system)
    device = Machine(made.program, races=True)
    device.run()
    assert all((device.get(name) == made.expected[name]).all() for name in made.expected)
    return made


def test_each_goes_on_while_the_other_does(monkeypatch):
    torch.manual_seed(3)
    model, x = Attention(), torch.randn(24, 16)
    made, plain = lowered(model, x, SMALL), lowered(model, x, SMALL, monkeypatch)
    macs = [{layer.name: layer.macs for layer in each.program.layers if layer.macs} for each in (made, plain)]
    assert macs[0] == macs[1]

    def changes(program):
        order = [each.opcode for each in program.instructions if each.opcode in (Opcode.VECTOR, Opcode.MULTIPLY)]
        return sum(a != b for a, b in zip(order, order[1:], strict=False))
    assert changes(made.program) > changes(plain.program) + 2


def test_a_product_with_steps_of_the_vector_unit_stays_before_the_softmax():
    """What these keep in registers, and the length that they set, would be another's."""
    torch.manual_seed(4)
    model = Attention()
    model.value = nn.Sequential(model.value, nn.GELU())
    made = lowered(model, torch.randn(24, 16), SMALL)
    (layer,) = [each for each in made.program.layers if each.name == "value.0"]
    order = [each.opcode for each in made.program.instructions[layer.first:layer.stop]]
    last = max(n for n, each in enumerate(order) if each == Opcode.MULTIPLY)
    assert Opcode.VECTOR in order[:last] and order[last:].count(Opcode.VECTOR) >= 5    # pieces of 5 rows


def test_what_a_part_of_v_is_too_small_for_has_all_of_it(monkeypatch):
    """A row of scores, and its softmax, need more than a quarter of V."""
    model, x, system = Attention(), torch.randn(72, 16), replace(SMALL, v_words=64)
    made = lowered(model, x, system)
    assert made.program.to_bytes() == lowered(model, x, system, monkeypatch).program.to_bytes()


def test_what_needs_another_comes_behind_it():
    """Instructions go on alike by their cycles, and none stands before what it reads, or what reads its place."""
    def load(name, start, reads=(), writes=()):
        return Emission(Opcode.LOAD, {"count0": 4, "name": name}, tuple(reads), tuple(writes))
    place = [Span("V", n, n + 1) for n in range(4)]
    first = [load("a", 0), load("b", 1, [place[0]]), load("c", 2, (), [place[1]]), load("d", 3)]
    second = [load("A", 0), load("B", 1, (), [place[0]]), load("C", 2, [place[1]]), load("D", 3, [place[0]])]
    assert [each.values["name"] for each in followed(first, second)] == list("aAbBcCdD")
    late = [load("A", 0, [place[1]]), *second[1:]]
    assert [each.values["name"] for each in followed(first, late)] == list("abcABCdD")
    assert [each.values["name"] for each in followed(first, second[:1])] == list("aAbcd")
    assert followed([], second) == second and followed(first, []) == first
