"""Stores that nothing reads are left out, where asked, and the tensors that they would write are not in the program."""

import pytest
import torch
from torch.nn import functional as F

from golden.lower.training.job import lower_job_step

from .test_reordered import BATCH, mlp
from .training.steps import accelerator, followed, sgd


@pytest.fixture(scope="module")
def both():
    """A job with what each layer gives, and one without; V holds much of it."""
    machine = accelerator(rounding="stochastic", short_rows=4, row_words=4, v_words=1024)
    return [lower_job_step([mlp(seed) for seed in range(2)], F.cross_entropy, [sgd()] * 2, [BATCH] * 2, machine,
                           layers=layers) for layers in (True, False)]


def stores(step):
    return sum(each.opcode.name == "STORE" for each in step.lowered.program.instructions)


def test_what_is_left_out(both):
    whole, part = (step.lowered for step in both)
    gone = whole.program.tensors.keys() - part.program.tensors.keys()
    assert gone and gone == whole.expected.keys() - part.expected.keys()
    assert {whole.program.tensors[name].role for name in gone} == {"inner"}
    assert any("log_softmax" in name for name in gone) and any(
        each.role == "inner" for each in part.program.tensors.values())
    assert stores(both[0]) - stores(both[1]) >= len(gone)


def test_all_that_stays_has_pytorchs_bits(both):
    """Gradients, too, and what is loaded again."""
    step, last = followed(both[1], [[BATCH] * 2] * 3)
    assert "0/0.weight gradient" in last and step.lowered.program.tensors["1/0.weight gradient"].role == "output"


def test_what_is_read_stays():
    """With a small V much comes from DRAM again."""
    torch.manual_seed(1)
    step = lower_job_step([mlp(seed) for seed in range(3)], F.cross_entropy, [sgd()] * 3, [BATCH] * 3,
                          accelerator(rounding="stochastic", v_words=128), layers=False)
    followed(step, [[BATCH] * 3] * 2)
