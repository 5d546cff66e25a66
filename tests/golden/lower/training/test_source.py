"""Trainings of files: what they must define, and batches without end."""

from itertools import islice

import pytest

from golden.lower.training.source import training

FILE = """\
import torch
from torch import nn


def model():
    return nn.Linear(3, 2)


def loss(output, targets):
    return nn.functional.mse_loss(output, targets)


def batches():
    for number in range(2):
        yield torch.full((4, 3), number), [torch.zeros(4, 2)]


def optimiser(parameters):
    return torch.optim.SGD(parameters, lr=0.1)
"""


def test_batches_begin_again(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    made = training(str(path))
    found = list(islice(made.batches(), 5))
    assert [float(inputs[0][0, 0]) for inputs, _ in found] == [0, 1, 0, 1, 0]
    assert all(len(inputs) == len(targets) == 1 and tuple(targets[0].shape) == (4, 2) for inputs, targets in found)


JOB = FILE.replace("return nn.Linear(3, 2)", "return [nn.Linear(3, 2), nn.Linear(3, 2)]").replace(
    "optimiser(parameters)", "optimiser(parameters, number)")


def test_batches_of_a_job(tmp_path):
    """A pair is for all models, a list has one for each."""
    path = tmp_path / "mine.py"
    path.write_text(JOB)
    made = training(str(path))
    first = next(made.batches())
    assert isinstance(made.model, list) and len(first) == 2 and first[0] is first[1]
    path.write_text(JOB.replace("yield torch.full((4, 3), number), [torch.zeros(4, 2)]",
                                "yield [(torch.full((4, 3), each), torch.zeros(4, 2)) for each in range(2)]"))
    assert [float(inputs[0][0, 0]) for inputs, _ in next(training(str(path)).batches())] == [0, 1]


@pytest.mark.parametrize(("old", "new", "line"), [
    ("parameters, number", "parameters", ("optimiser() of {} must take parameters and the number of a model, since "
     "model() gives several")),
    ("nn.Linear(3, 2), nn.Linear(3, 2)", "nn.Linear(3, 2), 7",
     "model() of {} must give torch.nn.Modules alone, not int"),
    ("nn.Linear(3, 2), nn.Linear(3, 2)", "", "model() of {} must give at least one model, not []"),
    ("yield torch.full((4, 3), number), [torch.zeros(4, 2)]", "yield [3]", ("Batch 0 of {} must be a pair (inputs, "
     "targets) for all models, or a list of a pair for each of the 2, not of 1"))])
def test_refusals_of_jobs(old, new, line, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(JOB.replace(old, new))
    with pytest.raises(ValueError) as error:
        next(training(str(path)).batches())
    assert str(error.value) == line.format(path)


@pytest.mark.parametrize(("made", "line"), [
    ("torch.optim.lr_scheduler.StepLR(optimiser, 1, 0.5)", None),
    ("torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser)",
     "schedule() of {} must give a schedule whose step() takes nothing, not ReduceLROnPlateau"),
    ("7", "schedule() of {} must give a schedule whose step() takes nothing, not int"),
    ("1 / 0", "Model {} does not run: ZeroDivisionError: division by zero")])
def test_a_schedule_goes_on_by_steps(made, line, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(f"{FILE}\n\ndef schedule(optimiser):\n    return {made}\n")
    found = training(str(path))
    optimiser = found.optimiser(found.model.parameters())
    if line is None:
        plan = found.plan(optimiser)
        optimiser.step()
        plan.step()
        assert optimiser.param_groups[0]["lr"] == 0.05
        return
    with pytest.raises(ValueError) as error:
        found.plan(optimiser)
    assert str(error.value) == line.format(path)


@pytest.mark.parametrize(("old", "new", "line"), [
    ("def loss", "def lost", "Model {} must define loss()"),
    ("def loss", "schedule = 3\n\n\ndef loss", "Model {} must define schedule()"),
    ("def loss", "def clip():\n    return 0\n\n\ndef loss", "clip() of {} must give a number above 0, not 0"),
    ("def loss", "def clip():\n    return '1'\n\n\ndef loss", "clip() of {} must give a number above 0, not '1'"),
    ("nn.Linear(3, 2)", "7", "model() of {} must give a torch.nn.Module, not int"),
    ("range(2)", "range(0)", "batches() of {} must give at least one pair (inputs, targets)"),
    ("yield torch", "yield 1, 2, torch", "Batch 0 of {} must be a pair (inputs, targets)"),
    ("[torch.zeros(4, 2)]", "['a']", "Batch 0 of {} must have tensors, and tuples of them, alone"),
    ("    for number", "    for number in 3:\n        pass\n    for number",
     "Model {} does not run: TypeError: 'int' object is not iterable")])
def test_what_a_file_must_be(old, new, line, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(ValueError) as error:
        next(training(str(path)).batches())
    assert str(error.value) == line.format(path)
