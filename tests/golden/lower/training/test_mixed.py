"""A training whose layers change their widths: programs of one DRAM have the bits of golden.nn with the schedule."""

import re
from itertools import islice

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from cosim.accelerator import training as runs
from golden.lower.errors import LoweringError
from golden.lower.training.mixed import lower_mixed
from golden.nn import hbfp_layers
from golden.schedule import MixedMantissa
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator

pytestmark = pytest.mark.filterwarnings("ignore")

PLAN = MixedMantissa(base=4, boosted=6, epochs=3, last_epochs=1)
EPOCH = 2


def accelerator(wide=6, rounding="rne"):
    return Accelerator(core=Design(rows=8, wide=wide, format=HBFPFormat(mantissa=4, block=(1, 8), rounding=rounding)))


#: Whose linear layers have sparse weights, too, wide or not.
SPARSE = Accelerator(core=Design(rows=8, wide=6, sparse=(2, 4), format=HBFPFormat(mantissa=4, block=(1, 16))))


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def batches():
    torch.manual_seed(5)
    while True:
        yield (torch.randn(12, 21),), (torch.randint(10, (12,)),)


def mixed(machine=None, plan=PLAN, **options):
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(21, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 10))
    return lower_mixed(model, F.cross_entropy, sgd, next(batches()), machine or accelerator(), plan, EPOCH, **options)


def wide_products(instructions):
    return sum(each["wide_x"] for each in instructions if each.opcode == Opcode.MULTIPLY)


@pytest.mark.parametrize("options", [
    pytest.param({}, marks=pytest.mark.slow),
    pytest.param({"machine": accelerator(rounding="stochastic"), "stochastic": ("g",)}, marks=pytest.mark.slow),
    {"machine": SPARSE}, pytest.param({"machine": SPARSE, "anew": True}, marks=pytest.mark.slow)],
    ids=["nearest", "stochastic", "sparse", "sparse-anew"])
def test_bits_of_the_schedule(options):
    """Every tensor behind every step, over the turn from one program to the other."""
    step = mixed(**options)
    first, last = step.programs
    found = runs.on_machine(step, batches(), 3 * EPOCH, every=True)
    assert found.total.mismatches == 0 and found.total.compared == 3 * EPOCH * (
        1 + 3 * (21 * 16 + 16 + 16 * 16 + 16 + 16 * 10 + 10))
    takes_sparse = options.get("machine") is SPARSE
    for program in step.programs:
        assert {each["sparse"] for each in program.instructions if each.opcode == Opcode.MULTIPLY} == {0, takes_sparse}
    assert found.turns == [2 * EPOCH] and 0 < wide_products(first.instructions) < wide_products(last.instructions)
    assert [layer.formats.x.mantissa for _, layer in hbfp_layers(step.reference.model)] == [6, 6, 6]


def test_convolutions_of_the_schedule():
    """What each layer gives, too: the second convolution is narrow until the last epoch."""
    def images():
        while True:
            yield (torch.randn(3, 1, 8, 8),), (torch.randint(10, (3,)),)
    torch.manual_seed(4)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    step = lower_mixed(model, F.cross_entropy, sgd, next(images()), accelerator(), PLAN, 1)
    found = runs.on_machine(step, images(), 3, every=True, layers=True)
    assert found.total.mismatches == 0 and found.turns == [2] and "conv2d" in found.tensors
    first, last = ({each.name: wide_products(program.instructions[each.first:each.stop])
                    for each in program.layers if each.macs} for program in step.programs)
    assert [name for name, count in first.items() if not count] == ["forward 2", "gx 2", "gw 2"]
    assert all(last.values())


def test_programs_follow_the_schedule():
    """One that stays in the last epoch gives other weights than golden.nn, and one that turns gives them back."""
    step = mixed(plan=MixedMantissa(epochs=4, last_epochs=0, intervals=((1, 2),)))
    found = runs.on_machine(step, batches(), 4 * EPOCH, every=True)
    assert found.total.mismatches == 0 and found.turns == [EPOCH, 2 * EPOCH]
    step, own = mixed(), None
    own = step.steps[(6, 4, 6)]
    step.steps = {(6, 4, 6): own, (6, 6, 6): own}
    found = runs.on_machine(step, batches(), 3 * EPOCH, every=True)
    assert found.total.mismatches and not found.turns


def test_weights_stay_where_they_are():
    """A program brings its own constants, and no first weights: those are what the other one has left."""
    step = mixed()
    steps = list(step.steps.values())
    assert steps[0].stays == steps[1].stays and "0.weight" in steps[0].stays
    runner = runs.Untimed(step.programs[0], max(each.limit for each in step.programs))
    values = np.ones((16, 21), np.float32)
    runner.write("0.weight", values)
    runner.turn_to(step.programs[1], steps[1].kept)
    np.testing.assert_array_equal(runner.read("0.weight"), values)
    runner.turn_to(step.programs[0], range(0))
    assert not np.array_equal(runner.read("0.weight"), values)


@pytest.mark.parametrize("machine, plan, line", [
    (accelerator(wide=0), PLAN, "mantissas of 6 bits, the accelerator 4; --wide 6 would do"),
    (accelerator(), MixedMantissa(base=4, boosted=7, epochs=2),
     "mantissas of 7 bits, the accelerator 4 or 6; --wide 7 would do"),
    (accelerator(), MixedMantissa(base=6, boosted=8, epochs=2),
     "mantissas of 8 bits, the accelerator 4 or 6; --mantissa 8 would do")])
def test_widths_that_it_has_not(machine, plan, line):
    line = re.escape(f"Layer 'forward 0' (linear) cannot be lowered: its product has {line}")
    with pytest.raises(LoweringError, match=f"^{line}$"):
        mixed(machine, plan)


def test_an_epoch_beyond_the_last():
    step = mixed()
    with pytest.raises(ValueError, match="^Epoch must be 0 to 2, not 3$"):
        list(islice((step.at(number) for number in range(9)), 7))
