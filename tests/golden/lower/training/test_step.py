"""Steps of training on the golden machine have the bits of PyTorch: loss, gradients, weights and state.

Covers: golden/lower/training/capture.py, golden/lower/training/products.py, golden/lower/training/reference.py,
golden/lower/training/updates.py, golden/lower/training/evaluated.py, golden/lower/training/host.py,
golden/lower/training/network.py, golden/lower/training/one_program.py, golden/lower/products/draw.py.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.errors import LoweringError
from golden.lower.training.step import lower_step
from golden.machine.dram import Dram
from golden.machine.layouts import pack
from golden.machine.machine import Machine
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator
from tests.cases import sweep

from .steps import follow, get

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("costs")]


def accelerator(rows, block, mantissa=8, accumulate="fp32", rounding="rne", **sizes):
    """A small one, so that everything is cut."""
    fmt = HBFPFormat(mantissa=mantissa, block=block, rounding=rounding)
    return Accelerator(core=Design(format=fmt, rows=rows, accumulate=accumulate, depth=32),
                       **{"x_words": 256, "w_words": 512, "v_words": 256} | sizes)


MACHINES = {"8": accelerator(8, (1, 8)), "8-tiles": accelerator(8, (8, 8)),
            "16-hbfp4": accelerator(16, (1, 16), 4, w_words=1024),
            "16-tiles": accelerator(16, (16, 16), 4, v_words=1024, x_words=512),
            "8-aligned": accelerator(8, (1, 8), accumulate="aligned"), "16-long": accelerator(16, (1, 32), v_words=512)}


class Residual(nn.Module):
    """A layer beside a path around it."""

    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)

    def forward(self, x):
        return x + torch.relu(self.layer(x))


def mlp(activation=nn.ReLU, bias=True):
    return nn.Sequential(nn.Linear(21, 19, bias=bias), activation(), nn.Linear(19, 10))


def sgd(**options):
    return lambda parameters: torch.optim.SGD(parameters, **{"lr": 0.1} | options)


def adam(kind=torch.optim.Adam, **options):
    return lambda parameters: kind(parameters, **{"lr": 0.01} | options)


def two_decays(parameters):
    first, *others = parameters
    return torch.optim.AdamW([{"params": [first], "weight_decay": 0.1, "betas": (0.3, 0.9)},
                              {"params": others, "lr": 0.03, "weight_decay": 0.0, "maximize": True}], lr=0.01)


def rows(count, *sides):
    return tuple(torch.randn(count, side) for side in sides)


def classes(count, of=10):
    return (torch.randint(of, (count,)),)


def two_rates(parameters):
    first, *others = parameters
    return torch.optim.SGD([{"params": [first], "lr": 0.5}, {"params": others, "momentum": 0.9}], lr=0.25)


def frozen():
    model = mlp()
    model[0].weight.requires_grad_(False)
    return model


#: Model, loss, optimiser, inputs and targets of a batch.
CASES = {
    "one layer": (lambda: nn.Linear(21, 10), F.mse_loss, sgd(), lambda: (rows(12, 21), rows(12, 10))),
    "mlp": (mlp, F.cross_entropy, sgd(), lambda: (rows(32, 21), classes(32))),
    "momentum": (mlp, F.cross_entropy, sgd(momentum=0.9, weight_decay=0.01), lambda: (rows(13, 21), classes(13))),
    "nesterov": (lambda: mlp(bias=False), lambda y, t: F.cross_entropy(y, t, reduction="sum"),
                 sgd(lr=1e-2, momentum=0.5, nesterov=True), lambda: (rows(9, 21), classes(9))),
    "two rates": (lambda: mlp(nn.Tanh), F.cross_entropy, two_rates, lambda: (rows(8, 21), classes(8))),
    "frozen": (frozen, F.cross_entropy, sgd(), lambda: (rows(8, 21), classes(8))),
    "residual": (lambda: nn.Sequential(nn.Linear(21, 16), Residual(16), nn.GELU(), nn.Linear(16, 10)), F.cross_entropy,
                 sgd(momentum=0.9), lambda: (rows(24, 21), classes(24))),
    "weights": (mlp, lambda y, t: F.cross_entropy(y, t, weight=torch.arange(1.0, 11)), sgd(),
                lambda: (rows(11, 21), classes(11))),
    "images": (lambda: nn.Sequential(nn.Flatten(), mlp()), F.cross_entropy, sgd(),
               lambda: ((torch.randn(8, 3, 7, 1),), classes(8))),
    "soft": (mlp, F.cross_entropy, sgd(), lambda: (rows(8, 21), (torch.rand(8, 10).softmax(-1),))),
    "scheduled": (mlp, F.cross_entropy, sgd(momentum=0.9, nesterov=True), lambda: (rows(8, 21), classes(8))),
    "adam": (mlp, F.cross_entropy, adam(), lambda: (rows(16, 21), classes(16))),
    "adam with decay": (lambda: mlp(nn.Tanh), F.mse_loss, adam(weight_decay=0.1, maximize=True, eps=0.0),
                        lambda: (rows(8, 21), rows(8, 10))),
    "adamw": (lambda: nn.Linear(21, 10), F.cross_entropy, adam(torch.optim.AdamW, weight_decay=0.05),
              lambda: (rows(8, 21), classes(8))),
    **dict.fromkeys(("clipped", "not clipped"),
                    (mlp, F.cross_entropy, sgd(), lambda: (rows(8, 21), classes(8)))),
    "two decays": (mlp, F.cross_entropy, two_decays, lambda: (rows(8, 21), classes(8)))}
#: Norms that gradients are clipped to.
CLIPS = {"adamw": 0.1, "clipped": 1e-3, "not clipped": 1e9}
#: Schedules of learning rates, of the cases that have one.
PLANS = {
    "scheduled": lambda optimiser: torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: step / 2),
    "two rates": lambda optimiser: torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.7),
    "adamw": lambda optimiser: torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 3)}


def check(name, machine, steps=2, **noise):
    """Steps on the golden machine with its check for races: every tensor after each."""
    torch.manual_seed(1)
    make, loss, optimiser, draw = CASES[name]
    batches = [draw() for _ in range(steps)]
    step = lower_step(make(), loss, optimiser, batches[0], machine, plan=PLANS.get(name), clip=CLIPS.get(name), **noise)
    program = step.lowered.program
    dram = Dram(program.limit, program.memory)
    for number, batch in enumerate(batches):
        arguments = step.arguments()
        assert number or arguments == program.arguments
        for each, values in step.host.writes(batch).items():
            dram.put(program.tensors[each].address + step.shift(each, arguments),
                     pack(machine, program.tensors[each], values))
        device = Machine(replace(program, arguments=arguments, seed=step.reference.key), races=True, dram=dram)
        device.run()
        expected = step.advance(batch)
        for each, values in expected.items():
            np.testing.assert_array_equal(get(device, each, step.shift(each, arguments)).view(np.uint32),
                                          values.view(np.uint32), f"{number} {each}")
    return step, expected


@pytest.mark.parametrize(("name", "machine"), [("one layer", "16-tiles"), ("momentum", "16-hbfp4"),
                                               ("scheduled", "8"), ("adam", "16-hbfp4"), ("adamw", "8-tiles")])
def test_steps(name, machine):
    check(name, MACHINES[machine])


@pytest.mark.parametrize("first, seed", sweep(2, [(1, 1), (0, 2)]))
def test_groups_do_not_change_the_norm_of_gradients(first, seed):
    """It is added up in the model's order, of what the optimiser has: all, or all but the first."""
    def optimiser(parameters):
        own = list(parameters)[first:]
        return torch.optim.SGD([{"params": own[1::2]}, {"params": own[::2]}], 0.1)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(21, 17), nn.LayerNorm(17), nn.Linear(17, 13), nn.Tanh(), nn.Linear(13, 10))
    batches = [(rows(8, 21), classes(8)) for _ in range(3)]
    follow(model, F.cross_entropy, batches, accelerator(8, (1, 8), vector_rows=8), optimiser, clip=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", CASES)
def test_steps_on_all_machines(name, machine):
    check(name, MACHINES[machine], 3)


DRAWING = {"8": accelerator(8, (1, 8), rounding="stochastic"),
           "8-tiles": accelerator(8, (8, 8), 4, rounding="stochastic"),
           "16-tiles": accelerator(16, (16, 16), rounding="stochastic", v_words=1024, x_words=512),
           "16-long": accelerator(16, (1, 32), rounding="stochastic", v_words=512)}


@pytest.mark.parametrize(("name", "machine", "roles"), [("momentum", "8", "g"), ("residual", "16-long", "xwg"), *(
    pytest.param(name, machine, roles, marks=pytest.mark.slow) for name in ("mlp", "residual", "images")
    for machine in DRAWING for roles in ("g", "xw", "xwg"))])
def test_stochastic_steps(name, machine, roles):
    """One program, whose register says which step it is, draws what PyTorch draws."""
    step, _ = check(name, DRAWING[machine], stochastic=tuple(roles), seed=5)
    drawn = [each for each in step.lowered.program.instructions if each["stochastic"]]
    layers = [layer for layer in step.lowered.program.layers if layer.name.startswith("gw ")]
    assert len({each["key"] for each in drawn}) == len(roles) * len(layers)


def test_bands_and_portions_draw_what_the_whole_draws():
    """Memories of other sizes cut a step in another way, and change no bit."""
    machines = [replace(DRAWING["8"], w_words=64), replace(DRAWING["8"], x_words=1024, w_words=2048, v_words=2048)]
    steps = [check("mlp", machine, stochastic=("x", "w", "g")) for machine in machines]
    counts = [len(step.lowered.program.instructions) for step, _ in steps]
    assert counts[0] > counts[1]
    for each, values in steps[0][1].items():
        np.testing.assert_array_equal(values, steps[1][1][each], each)


def test_stochastic_rounding_that_cannot_be_lowered():
    batch = rows(12, 21), rows(12, 10)
    with pytest.raises(LoweringError, match="^Rounding g stochastically cannot be lowered: the accelerator has rounding"
                                            " rne; --rounding stochastic would do$"):
        lower_step(mlp(), F.mse_loss, sgd(), batch, MACHINES["8"], stochastic=("g",))
    with pytest.raises(LoweringError, match="a word of its operand has numbers of several rows of the tensor that is "
                                            "rounded stochastically; rounding it to nearest would do$"):
        lower_step(mlp(), F.mse_loss, sgd(), (rows(1, 21), rows(1, 10)), DRAWING["8"], stochastic=("g",))


def test_names_and_products():
    step, expected = check("momentum", MACHINES["8"], 1)
    macs = 13 * 21 * 19, 13 * 19 * 10
    assert {layer.name: layer.macs for layer in step.lowered.program.layers if layer.macs} == {
        "forward 0": macs[0], "forward 2": macs[1], "gx 2": macs[1], "gw 2": macs[1], "gw 0": macs[0]}
    assert {layer.name.split()[0] for layer in step.lowered.program.layers} == {"forward", "backward", "gx", "gw",
                                                                                "update"}
    assert set(expected) == {"loss"} | {f"{name} {what}" for name in ("0.weight", "0.bias", "2.weight", "2.bias")
                                        for what in ("gradient", "after", "momentum_buffer after")}
    tensors = step.lowered.program.tensors
    assert tensors["0.weight"].address == tensors["0.weight after"].address - len(step.place)
    assert set(step.host.writes(((torch.ones(13, 21),), (torch.zeros(13, dtype=torch.int64),)))) == {"input",
                                                                                                    "target rows"}


def test_special_values_go_through():
    torch.manual_seed(1)
    machine, batch = MACHINES["8"], (rows(9, 21), classes(9))
    batch[0][0][1, 3], batch[0][0][2], batch[0][0][4, 5] = float("inf"), 1e-39, float("nan")
    step = lower_step(mlp(), F.cross_entropy, sgd(momentum=0.9), batch, machine)
    device = Machine(step.lowered.program)
    device.run()
    for name, values in step.advance(batch).items():
        np.testing.assert_array_equal(device.get(name).view(np.uint32), values.view(np.uint32), name)


class Angles(nn.Module):
    """An operation that the accelerator has not."""

    def forward(self, x):
        return x.atan()


class Unused(nn.Module):
    """A model with a layer that its output does not depend on."""

    def __init__(self):
        super().__init__()
        self.used, self.spare = nn.Linear(21, 10), nn.Linear(3, 3)

    def forward(self, x):
        return self.used(x)


NO_OPERATION = "the accelerator has no such operation; a model without it would do"


@pytest.mark.parametrize(("model", "loss", "optimiser", "line"), [
    (mlp(), F.cross_entropy, adam(amsgrad=True),
     "The optimiser cannot be lowered: amsgrad=True computes a step in another way; amsgrad=False would do"),
    (mlp(), F.cross_entropy, sgd(maximize=True, differentiable=True),
     ("The optimiser cannot be lowered: differentiable=True computes a step in another way; differentiable=False would "
      "do")),
    (mlp(), F.cross_entropy, sgd(momentum=0.9, dampening=0.5),
     ("The optimiser cannot be lowered: dampening is 0.5, which the first step leaves out, and one program does all; 0 "
     "would do")),
    (mlp(), lambda y, t: y.sum(1), sgd(),
     "The loss cannot be lowered: it has the shape (12,); one number of float32 would do"),
    (mlp(Angles), F.cross_entropy, sgd(), f"Layer 'forward 1' (atan) cannot be lowered: {NO_OPERATION}"),
    (mlp(nn.Dropout), F.cross_entropy, sgd(), ("Layer 'forward 1' (dropout) cannot be lowered: it drops elements at "
     "random, and the accelerator draws no numbers; --rounding stochastic would do")),
    (Unused(), F.cross_entropy, sgd(), ("Parameter spare.weight cannot be trained: the loss does not depend on it; "
     "requires_grad_(False) would do"))])
def test_refusals(model, loss, optimiser, line):
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}$"):
        lower_step(model, loss, optimiser, (rows(12, 21), classes(12)), MACHINES["8"])


def test_an_update_of_too_many_rows_is_refused():
    machine = accelerator(8, (1, 8), vector_rows=2)
    step = lower_step(mlp(), F.mse_loss, sgd(), (rows(12, 21), rows(12, 10)), machine)
    assert step.lowered.program.tensors
    with pytest.raises(LoweringError, match=re.escape(
            "The update of 0.weight cannot be lowered: its program keeps 3 rows in the vector unit, which has 2; "
            "--vector-rows 3 would do")):
        lower_step(mlp(), F.mse_loss, sgd(momentum=0.5, nesterov=True), (rows(12, 21), rows(12, 10)), machine)


def test_a_path_that_depends_on_values_is_refused():
    class Path(nn.Linear):
        def forward(self, x):
            return super().forward(x if x.sum() > 0 else -x)
    with pytest.raises(LoweringError, match="^The step cannot be lowered: torch cannot trace it .* would do$"):
        lower_step(Path(21, 10), F.cross_entropy, sgd(), (rows(12, 21), classes(12)), MACHINES["8"])


def test_batches_of_another_kind_are_refused():
    step = lower_step(mlp(), F.cross_entropy, sgd(), (rows(12, 21), classes(12)), MACHINES["8"])
    with pytest.raises(LoweringError, match=re.escape(
            "Tensor input of a batch must be float32 of (12, 21) as in the first, not float32 of (5, 21); batches of "
            "one size (drop_last=True) would do")):
        step.host.writes((rows(5, 21), classes(5)))


@pytest.mark.parametrize("wrong", [-1, 10])
def test_classes_that_there_are_none_of_are_refused(wrong):
    """In the first batch, and in a later one, of which only the host sees the numbers; one that is ignored is none."""
    line = ("^The whole numbers of a batch do not fit the step: "
            f"index {wrong} is out of bounds for dimension 1 with size 10")
    good, bad = (torch.tensor([3, each, 9]) for each in (-100, wrong))
    with pytest.raises(LoweringError, match=line):
        lower_step(mlp(), F.cross_entropy, sgd(), (rows(3, 21), (bad,)), MACHINES["8"])
    step = lower_step(mlp(), F.cross_entropy, sgd(), (rows(3, 21), (good,)), MACHINES["8"])
    with pytest.raises(LoweringError, match=line):
        step.host.writes((rows(3, 21), (bad,)))
    np.testing.assert_array_equal(step.host.writes((rows(3, 21), (good,)))["target rows"].argmax(-1), [3, 0, 9])
