"""Products of a step that nothing waits for run beside what is for the vector unit, with the bits that they have alone.

Covers: golden/lower/training/beside.py.
"""

import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.among import among
from golden.lower.bert import Bert, Config
from golden.lower.schedule import Emission, Span
from golden.lower.training import beside, space
from golden.lower.training.beside import touch
from hbfp.isa.instructions import Opcode
from tests.cases import sweep

from .steps import accelerator, follow, sgd
from .test_space import batches, model

pytestmark = pytest.mark.filterwarnings("ignore")
#: Its V is long enough for halves.
LARGE = {"w_words": 512, "x_words": 512, "v_words": beside.BESIDE}


def layers(step):
    return {each.name: step.lowered.program.instructions[each.first:each.stop] for each in step.lowered.program.layers}


@pytest.mark.parametrize("block, crowded", sweep(3, itertools.product([(1, 8), (8, 8)], [1 << 31, 0])))
def test_a_convolutions_weights_have_their_gradient_beside_the_norm_before_it(block, crowded, monkeypatch):
    monkeypatch.setattr(space, "CROWDED", crowded)
    step, _ = follow(model(), F.cross_entropy, batches(3), accelerator(block=block, **LARGE))
    own = layers(step)
    opcodes = [each.opcode for each in own["gw inner"]]
    assert Opcode.VECTOR in opcodes and Opcode.MULTIPLY in opcodes
    assert "update head.weight" not in own and "update conv.weight" in own


def test_a_product_that_is_apart_has_nothing_beside_it():
    step, _ = follow(model(), F.cross_entropy, batches(2), accelerator(**LARGE), apart={"gw inner"})
    own = layers(step)
    assert Opcode.VECTOR not in [each.opcode for each in own["gw inner"]]
    assert Opcode.VECTOR in [each.opcode for each in own["gw conv"]]


def test_copies_that_a_product_takes_are_made_before_what_stands_beside_it():
    """They set the length of the vector unit's rows, as the sums of the bias do that stand beside the product."""
    torch.manual_seed(1)
    convolutions = nn.Conv2d(5, 40, 1), nn.ReLU(), nn.Conv2d(40, 16, 3, 2, 1), nn.ReLU()
    network = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(16 * 9, 3))
    pair = (torch.randn(3, 5, 6, 6),), (torch.randint(3, (3,)),)
    step, _ = follow(network, F.cross_entropy, [pair], accelerator(**LARGE | {"w_words": 64}), sgd(momentum=0.0))
    layer = next(each for each in step.lowered.program.layers if each.name == "gw 2")
    own = [step.lowered.kinds[place].startswith("gw ") for place in range(layer.first, layer.stop)
           if step.lowered.program.instructions[place].opcode == Opcode.VECTOR]
    assert own == sorted(own, reverse=True) and set(own) == {True, False}


def test_a_transformer_has_its_gradients_beside_each_other():
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(3)
    pairs = [((torch.randn(2, 12, 16, generator=generator),), (torch.randn(2, 12, 16, generator=generator),))
             for _ in range(2)]
    step, _ = follow(Bert(Config(1, 16, 2)), F.mse_loss, pairs, accelerator(**LARGE), sgd(momentum=0.0))
    assert Opcode.VECTOR in [each.opcode for each in layers(step)["gw layers.0.down"]]


def test_a_weight_that_is_used_twice_is_updated_behind_its_last_use():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.head = nn.Linear(8, 8, bias=False), nn.Linear(8, 3)

        def forward(self, x):
            return self.head(torch.relu(self.layer(torch.relu(self.layer(x)))))
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(3)
    pairs = [((torch.randn(9, 8, generator=generator),), (torch.randn(9, 3, generator=generator),)) for _ in range(2)]
    follow(Twice(), F.mse_loss, pairs, accelerator(**LARGE))


def test_a_machine_whose_v_has_no_room_for_halves_keeps_the_order():
    step, _ = follow(model(), F.cross_entropy, batches(), accelerator(**LARGE | {"v_words": beside.BESIDE // 2}))
    assert "update head.weight" in layers(step)
    assert Opcode.VECTOR not in [each.opcode for each in layers(step)["gw inner"]]


def emission(opcode, read=(), written=(), **values):
    return Emission(opcode, values, tuple(Span("DRAM", *each) for each in read),
                    tuple(Span("DRAM", *each) for each in written))


def test_lists_are_merged_so_that_both_end_alike():
    product = [emission(Opcode.MULTIPLY, rows0=100, columns=1) for _ in range(3)]
    others = [emission(Opcode.LOAD, count0=5) for _ in range(6)]
    merged = among(product, others)
    assert [each.opcode == Opcode.MULTIPLY for each in merged] == [True, False, False] * 3
    assert among([], others) == others and among(product, []) == product


@pytest.mark.parametrize("read, written, touches", [((0, 8), (8, 16), False), ((0, 9), (8, 16), True),
                                                    ((16, 24), (8, 16), False), ((15, 24), (8, 16), True)])
def test_lists_touch_where_one_writes_what_the_other_reads(read, written, touches):
    one, other = [emission(Opcode.LOAD, read=[read])], [emission(Opcode.STORE, written=[written])]
    assert touch(one, other) is touches and touch(other, one) is touches
    assert not touch(one, [emission(Opcode.LOAD, read=[read])])
