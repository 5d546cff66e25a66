"""Several models as one training program: each has the bits that it has alone, whatever the others do.

Covers: golden/lower/alike.py.
"""

import itertools
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.errors import LoweringError
from golden.lower.training import space
from golden.lower.training.job import lower_job_step
from golden.lower.training.one_program import NUMBERS
from golden.lower.training.step import lower_step
from tests.cases import sweep

from .steps import MACHINES, accelerator, followed, sgd

BATCHES = [((torch.randn(12, 21, generator=torch.Generator().manual_seed(seed)),),
            (torch.randint(10, (12,), generator=torch.Generator().manual_seed(seed)),)) for seed in range(6)]


def mlp(seed, hidden=17, act=nn.ReLU):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(21, hidden), act(), nn.Linear(hidden, 10))


def adamw(rate):
    return lambda parameters: torch.optim.AdamW(parameters, rate, weight_decay=0.01)


def job(models, optimisers, machine, batch=None, **options):
    return lower_job_step(models, F.cross_entropy, optimisers, [batch or BATCHES[0]] * len(models), machine, **options)


@pytest.mark.parametrize("rates, machine", sweep(4, itertools.product([(0.1, 0.01), (0.3, 0.1, 0.03)],
                                                                      ["8", "8-tiles", "16-tiles"])))
def test_each_model_trains_as_alone(rates, machine):
    """With numbers that fit the arguments (2 x 1), and with those that do not (3 x 3), with batches of their own."""
    adam = len(rates) == 3
    optimisers = [adamw(rate) if adam else sgd(lr=rate) for rate in rates]
    models = [mlp(seed) for seed in range(len(rates))]
    batches = [[BATCHES[(step + seed) % 6] for seed in range(len(rates))] for step in range(3)]
    step = lower_job_step(models, F.cross_entropy, optimisers, batches[0], MACHINES[machine])
    assert (NUMBERS in step.lowered.program.tensors) == adam
    _, last = followed(step, batches)
    for number, (model, optimiser) in enumerate(zip(models, optimisers, strict=True)):
        own = lower_step(model, F.cross_entropy, optimiser, batches[0][number], MACHINES[machine])
        for each in batches:
            alone = own.advance(each[number])
        for name, values in alone.items():
            np.testing.assert_array_equal(last[f"{number}/{name}"].view(np.uint32), values.view(np.uint32))


@pytest.mark.parametrize("count", sweep(2, [2, 3]))
def test_models_of_several_shapes_and_optimisers(count):
    """They need not be alike; rates follow a schedule, and gradients are clipped."""
    models = [mlp(0), mlp(1, 9, nn.GELU), mlp(2)][:count]
    step = job(models, [sgd(lr=0.1), adamw(0.01), sgd(momentum=0.0)][:count], MACHINES["8"], clip=0.5,
               plans=[lambda optimiser: torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.5)] * count)
    followed(step, [[each] * count for each in BATCHES[:count]])
    assert step.losses == ["0/loss", "1/loss", "2/loss"][:count]


def test_space_of_a_job_is_kept_and_it_needs_no_values(monkeypatch):
    """What one model gives back may be what another still reads. Hidden rows fill their words."""
    def made(**options):
        return job([mlp(0, 16), mlp(1, 16)], [sgd(), sgd()], MACHINES["8"], **options).lowered.program
    program = made()
    assert made(values=False).instructions == program.instructions
    monkeypatch.setattr(space, "CROWDED", 0)
    assert made() == program


@pytest.mark.parametrize("short", sweep(2, [4, 0]))
def test_a_batch_that_models_share_is_there_once(short):
    """It is loaded and converted for all of them, and what follows from it alone is done for all; bits are the same."""
    models, optimisers = [mlp(seed) for seed in range(2)], [sgd(lr=rate) for rate in (0.1, 0.2)]
    machine = accelerator(short_rows=short)
    step, alone = (job(models, optimisers, machine, shared=shared) for shared in (True, False))
    assert len({step.lowered.program.tensors[f"{number}/input"].address for number in range(2)}) == 1
    assert len(step.lowered.program.instructions) < len(alone.lowered.program.instructions)
    found = [followed(each, [[batch] * 2 for batch in BATCHES[:2]])[1] for each in (step, alone)]
    assert all(np.array_equal(values, found[1][name]) for name, values in found[0].items())
    line = "The batch of model 1 must be that of model 0, as in the first step; a job that shares none would do"
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}$"):
        step.writes(BATCHES[:2])


def test_sums_of_rows_longer_than_the_vector_units_are_cut():
    """Rows have 4 words at most; biases of 40 numbers have 5: no two of them fit a row, but what is left of them."""
    step = job([mlp(0, 40), mlp(1, 40)], [sgd(), sgd()], accelerator(row_words=4), reorders=False)
    followed(step, [[each] * 2 for each in BATCHES[:2]])
    program = step.lowered.program
    layer = next(each for each in program.layers if each.name == "backward 0.bias")
    given = [each for each in program.instructions[layer.first:layer.stop] if each.opcode.name == "VECTOR"]
    assert len(given) == 2 * 2 + 2                         # 4 words of each alone, and of both the last one together


def test_one_model_with_more_numbers_than_arguments():
    model = nn.Sequential(*(nn.Linear(21, 21) for _ in range(4)))
    step = lower_step(model, F.cross_entropy,
                      lambda parameters: torch.optim.SGD([{"params": [each], "lr": 0.1 / (1 + number)}
                                                          for number, each in enumerate(parameters)]),
                      BATCHES[0], MACHINES["8"])
    assert step.lowered.program.tensors[NUMBERS].shape == (8, 1) and len(step.arguments()) == 2
    followed(step, BATCHES[:2])


@pytest.mark.slow
def test_a_wrong_number_is_seen():
    """Where the host writes another model's rate, weights differ."""
    step = job([mlp(seed) for seed in range(8)], [sgd(lr=0.1 / (1 + seed)) for seed in range(8)], MACHINES["8"])
    own = step.writes
    step.writes = lambda batches: {name: values[::-1] if name == NUMBERS else values
                                   for name, values in own(batches).items()}
    with pytest.raises(AssertionError, match="0 0/0.weight after"):
        followed(step, [[BATCHES[0]] * 8])


def test_a_refusal_names_the_model():
    class Angles(nn.Module):
        def forward(self, x):
            return x.atan()
    line = "Model 1 of the job: Layer 'forward 1' (atan) cannot be lowered: "
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}"):
        job([mlp(0), mlp(1, act=Angles)], [sgd()] * 2, MACHINES["8"])
    with pytest.raises(ValueError, match="shorter"):
        job([mlp(0), mlp(1)], [sgd()], accelerator())


@pytest.mark.parametrize("adam", sweep(2, [False, True]))
def test_several_rows_of_a_pass(adam):
    """Rows of 10 classes, 12 images and 9 models, as many in a pass as fit: softmax of each model, sums of rows and
    updates of small parameters of all, with rates of each.
    """
    machine = accelerator(16, (1, 16), short_rows=7, row_words=8, v_words=512, x_words=512)
    models = [mlp(seed, 16) for seed in range(9)]
    step = job(models, [adamw(0.01 + number / 9) if adam else sgd(lr=0.1 / (1 + number), weight_decay=0.01)
                        for number in range(9)], machine, reorders=False)
    program = step.lowered.program
    layers = {layer.name: [each for each in program.instructions[layer.first:layer.stop]
                           if each.opcode.name == "VECTOR"] for layer in program.layers}
    softmax, = layers["forward 0/log_softmax"]
    assert (softmax["count0"], softmax["i0_inner"], softmax["i1_inner"]) == (1, 6, 6)    # two halves in turns
    assert [each["i1_step"] for each in layers["forward sum_2"] if each["count0"] > 1] == [12, 12]    # the loss's gate
    assert len(layers["forward div"]) == 2 and "forward threshold_backward" not in layers
    assert [each["count0"] for each in layers["forward sum_1"]] == [12, 1, 12, 1]    # of seven models, and of two
    assert len(layers["update 0.bias"]) == 2 * (3 if adam else 2) and "update 0/0.weight" in layers
    followed(step, [[each] * 9 for each in BATCHES[:2]])


def test_words_that_layers_keep_lie_apart():
    """The bias of a model is loaded while that of the model before is still added to its results."""
    program = job([mlp(0), mlp(1), mlp(2)], [sgd()] * 3, MACHINES["8"], reorders=False).lowered.program
    drains = [next(each for each in program.instructions[layer.first:layer.stop] if each.opcode.name == "DRAIN")
              for layer in program.layers if layer.name in ("forward 0/0", "forward 1/0", "forward 2/0")]
    assert len({each["bias_base"] for each in drains}) == 3
