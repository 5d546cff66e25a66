"""Rows of tables that a batch's numbers name: a host writes their addresses into instructions, and gradients add up.

Covers: golden/lower/operations/tables.py.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.errors import LoweringError
from tests.cases import sweep

from .steps import MACHINES, accelerator, follow

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("costs")]


class Words(nn.Module):
    """Words and their places become vectors; their mean says the class."""

    def __init__(self, words=7, size=12, **options):
        super().__init__()
        self.words, self.places, self.classes = (nn.Embedding(words, size, **options), nn.Embedding(9, size),
                                                 nn.Linear(size, 10))

    def forward(self, words):
        return self.classes(self.words(words) + self.places(torch.arange(words.shape[1]))).mean(1)


class Tied(nn.Module):
    """Words twice, and a table that is a layer's weight, too."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 12)

    def forward(self, words):
        return torch.tanh(self.words(words) * self.words((words + 1) % 10)) @ self.words.weight.t()


def batches(words=7, places=5, count=3):
    return [((torch.randint(words, (4, places)),), (torch.randint(10, (4,)),)) for _ in range(count)]


@pytest.mark.parametrize(("options", "words", "machine"), [
    ({"padding_idx": 3}, 7, "8-tiles"), *(pytest.param(*each, marks=pytest.mark.slow) for each in (
        ({}, 7, "8"), ({}, 200, "8"), ({"size": 40}, 60, "8"), ({}, 7, "16-tiles")))])
def test_embeddings(options, words, machine):
    """A table of 200 rows does not fit V, and is added up in several parts."""
    torch.manual_seed(1)
    follow(Words(words, **options), F.cross_entropy, batches(words), MACHINES[machine])


def test_a_table_that_v_does_not_hold():
    """Is added up in several parts, each with one more row for what belongs to others."""
    torch.manual_seed(1)
    follow(Words(40), F.cross_entropy, batches(40, count=1), accelerator(v_words=64))


def test_a_table_that_is_a_weight():
    torch.manual_seed(1)
    follow(Tied(), lambda y, t: F.cross_entropy(y[:, 0], t), batches(10))


def test_zeros_have_the_sign_of_a_sum_from_zero():
    """A row whose places all get -0 gets +0, as docs/numerics.md has it: sums begin with +0."""
    class Scaled(Words):
        def forward(self, words):
            return super().forward(words) * -0.0
    torch.manual_seed(1)
    follow(Scaled(), lambda y, t: (y * y).sum() * 0 + y.sum(), [((torch.zeros(4, 1, dtype=torch.long),), (
        torch.zeros(4, dtype=torch.long),))])


def test_instructions_follow_the_batch():
    torch.manual_seed(1)
    first, second, _ = batches()
    step, _ = follow(Words(), F.cross_entropy, [first])
    program = step.lowered.program
    own, other = (step.host.instructions(each) for each in (first, second))
    assert {number: program.instructions[number] for number in own} == own
    assert own.keys() == other.keys() and len(own) == 2 * first[0][0].numel()
    differ = first[0][0].flatten() != second[0][0].flatten()
    assert sum(own[number] != other[number] for number in own) == 2 * differ.sum()


@pytest.mark.parametrize("wrong", sweep(2, [7, -1]))
def test_rows_that_there_are_none_of_are_refused(wrong):
    torch.manual_seed(1)
    (good, classes), _, _ = batches()
    bad = (good[0].clone(),)
    bad[0][2, 1] = wrong
    step, _ = follow(Words(), F.cross_entropy, [(good, classes)])
    line = "^The whole numbers of a batch do not fit the step: "
    with pytest.raises(LoweringError, match=f"{line}{wrong} is no row of a table of 7$"):
        step.host.instructions((bad, classes))
    with pytest.raises(LoweringError, match=f"{line}index out of range"):
        follow(Words(), F.cross_entropy, [(bad, classes)])
