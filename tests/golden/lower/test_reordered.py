"""Instructions of a job in another order: the same ones, with the same results, and what belongs together together.

That machines find no race in them, and the bits of each model alone, is what :mod:`.training.test_job` holds.

Covers: golden/lower/waits.py.
"""

from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.training.job import lower_job_step
from golden.lower.yields import followed as uses_of
from hbfp.isa.instructions import Opcode
from hbfp.isa.vector_words import loads, read

from .training.steps import accelerator, followed, sgd
from .training.test_tables import Words

pytestmark = pytest.mark.usefixtures("costs")

BATCH = ((torch.randn(12, 21, generator=torch.Generator().manual_seed(1)),), (torch.arange(12) % 10,))


def mlp(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(21, 17), nn.Dropout(0.25), nn.ReLU(), nn.Linear(17, 10))


@pytest.fixture(scope="module", params=[0, 4])
def both(request):
    """A job in turns, and reordered; with one row of a pass, and several."""
    machine = accelerator(rounding="stochastic", short_rows=request.param, row_words=4)
    return [lower_job_step([mlp(seed) for seed in range(3)], F.cross_entropy, [sgd()] * 3, [BATCH] * 3, machine,
                           reorders=reorders).lowered.program for reorders in (False, True)]


def words(program):
    """What each instruction is, without its waits; of a VECTOR the words of P instead of their place."""
    given = dict(read(program))
    return [(each.opcode, tuple(given[number]) if number in given else (), tuple(sorted(
        (name, value) for name, value in each.values.items() if name != "program" or number not in given)))
        for number, each in enumerate(program.instructions) if each.opcode != Opcode.NOP]


def test_the_same_instructions_in_another_order(both):
    one, other = map(words, both)
    assert one != other and Counter(one) == Counter(other)


def by_layer(program):
    """How often each layer has each instruction, without its waits and the place of its program; NOPs have none."""
    given = dict(read(program))
    return Counter((layer.name, each.opcode, tuple(given.get(number, ())), tuple(sorted(
        (name, value) for name, value in each.values.items() if name != "program" or number not in given)))
        for layer in program.layers for number, each in enumerate(
            program.instructions[layer.first:layer.stop], layer.first) if each.opcode not in (Opcode.NOP, Opcode.HALT))


def test_instructions_stay_in_their_layers(both):
    assert by_layer(both[0]) == by_layer(both[1])


def test_layers_are_cut_and_keep_their_products(both):
    one, other = both
    assert all(a.stop == b.first for a, b in zip(other.layers, other.layers[1:], strict=False))
    assert (other.layers[0].first, other.layers[-1].stop) == (0, len(other.instructions))
    for name in {layer.name for layer in one.layers} | {layer.name for layer in other.layers}:
        macs, products = ([sum((getattr(layer, what) for layer in program.layers if layer.name == name),
                               0 if what == "macs" else ()) for program in both] for what in ("macs", "products"))
        assert macs[0] == macs[1] and products[0] == products[1]


def test_commands_keep_their_order(both):
    """Weights, rows and results of the core among each other, since queues are short; words of P that are not there
    yet.
    """
    one, other = ([each for each in words(program) if each[0] in (Opcode.WEIGHTS, Opcode.MULTIPLY, Opcode.DRAIN)]
                  for program in both)
    assert one == other
    assert sum(map(loads, both[0].instructions)) == sum(map(loads, both[1].instructions))


def test_what_the_vector_unit_keeps_is_read_by_the_next(both):
    """A VECTOR that finds something in the unit finds what it would in turns: what is before it is before it there."""
    longest = both[0].accelerator.row_words * both[0].accelerator.lanes
    chains = []
    for program in both:
        found, length, kept = Counter(), longest, dict[tuple[str, int], tuple[int, ...]]()
        for _, own in read(program):
            uses, length = uses_of(own, length)
            found[tuple(own), *(kept.get(what) for what in sorted(uses.reads))] += 1
            kept |= dict.fromkeys(uses.writes, tuple(own))
        chains.append(found)
    assert chains[0] == chains[1] and any(len(each) > 1 for each in chains[0])


def cnn(seed, channels):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(channels, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(),
                         nn.LazyLinear(10))


@pytest.mark.parametrize("channels, images, size", [(8, 4, 8), (16, 16, 4)])
def test_what_waits_for_the_core_or_the_vector_unit_comes_behind_what_these_wait_for(channels, images, size):
    """Weights of several instructions for a command; VECTORs that belong together, with what others need among them."""
    batch = ((torch.randn(images, 1, size, size, generator=torch.Generator().manual_seed(1)),),
             (torch.arange(images) % 10,))
    models = [cnn(seed, channels) for seed in range(2)]
    for model in models:
        model(batch[0][0])
    step = lower_job_step(models, F.cross_entropy, [sgd()] * 2, [batch] * 2, accelerator(queue=2))
    followed(step, [[batch] * 2])


def test_rows_that_a_batch_chooses():
    """The host writes addresses into instructions, whose numbers are others."""
    torch.manual_seed(1)
    models = [Words(), Words()]
    several = [((torch.randint(7, (4, 5)),), (torch.randint(10, (4,)),)) for _ in range(4)]
    step = lower_job_step(models, F.cross_entropy, [sgd()] * 2, several[:2], accelerator(block=(8, 8)))
    followed(step, [several[:2], several[2:]])
