"""Trainings of files: what they must define, and batches without end."""

from itertools import islice

import pytest
import torch

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
    assert isinstance(made.model, list) and len(first) == 2 and first[0] is first[1] and made.shared
    path.write_text(JOB.replace("yield torch.full((4, 3), number), [torch.zeros(4, 2)]",
                                "yield [(torch.full((4, 3), each), torch.zeros(4, 2)) for each in range(2)]"))
    made = training(str(path))
    assert [float(inputs[0][0, 0]) for inputs, _ in next(made.batches())] == [0, 1] and not made.shared


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


def test_masks_stay_or_are_made_anew(tmp_path):
    path = tmp_path / "mine.py"
    for text, anew in (("", False), ("\n\ndef masks():\n    return None\n", False),
                       ("\n\ndef masks():\n    return 1\n", True)):
        path.write_text(FILE + text)
        assert training(str(path)).anew is anew


@pytest.mark.parametrize(("old", "new", "line"), [
    ("def loss", "def lost", "Model {} must define loss()"),
    ("def loss", "schedule = 3\n\n\ndef loss", "Model {} must define schedule()"),
    ("def loss", "def clip():\n    return 0\n\n\ndef loss", "clip() of {} must give a number above 0, not 0"),
    ("def loss", "def clip():\n    return '1'\n\n\ndef loss", "clip() of {} must give a number above 0, not '1'"),
    ("def loss", "def masks():\n    return 2\n\n\ndef loss",
     "masks() of {} must give 1, masks made anew behind each step, or None, not 2"),
    ("nn.Linear(3, 2)", "7", "model() of {} must give a torch.nn.Module, not int"),
    ("range(2)", "range(0)", "batches() of {} must give at least one pair (inputs, targets)"),
    ("yield torch", "yield 1, 2, torch", "Batch 0 of {} must be a pair (inputs, targets)"),
    ("[torch.zeros(4, 2)]", "['a']", "Batch 0 of {} must have tensors, and tuples of them, alone"),
    ("torch.full((4, 3), number)", "torch.zeros(4, 3).double()",
     "Batch 0 of {} must have real numbers of float32, not float64; .float() would do"),
    ("torch.full((4, 3), number)", "torch.zeros(0, 3)",
     "Batch 0 of {} must have numbers, and a tensor of it is (0, 3)"),
    ("nn.Linear(3, 2)", "torch.compile(nn.Linear(3, 2))",
     "model() of {} must give a module that is not compiled; leave torch.compile out"),
    ("nn.Linear(3, 2)", "exit(3)", "Model {} does not run: SystemExit: 3"),
    ("nn.Linear(3, 2)", "nn.Linear(3, 2).half()",
     "model() of {} must have numbers of float32, and weight has float16; .float() would do"),
    ("nn.Linear(3, 2)", "nn.Linear(3, 2).requires_grad_(False)",
     "model() of {} must have a parameter to train; requires_grad_() would do"),
    ("    for number", "    for number in 3:\n        pass\n    for number",
     "Model {} does not run: TypeError: 'int' object is not iterable")])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_file_must_be(old, new, line, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(ValueError) as error:
        next(training(str(path)).batches())
    assert str(error.value) == line.format(path)


@pytest.mark.parametrize(("old", "new", "line"), [
    ("number in", "number in", None),
    ("nn.functional.mse_loss(output, targets)", "output",
     "loss() of {} must give a tensor of one number of float32, not (4, 2) of float32; a mean of float32 would do"),
    ("nn.functional.mse_loss(output, targets)", "output.sum().item()",
     "loss() of {} must give a tensor of one number of float32, not float"),
    ("nn.functional.mse_loss(output, targets)", "targets.sum()",
     "loss() of {} must depend on parameters that are trained; what it gives depends on none"),
    ("nn.Linear(3, 2)", "nn.Linear(2, 2)",
     "Model {} does not run: RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x3 and 2x2)"),
    ("(output, targets):", "(output):",
     "Model {} does not run: TypeError: loss() takes 1 positional argument but 2 were given")])
def test_the_first_loss_is_computed(old, new, line, tmp_path):
    """Before anything is lowered, in float32; the model and torch's random numbers stay as they are."""
    path = tmp_path / "mine.py"
    path.write_text(FILE.replace("number)", "number / 2)").replace(
        "nn.Linear(3, 2)", "nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Dropout())").replace(old, new))
    made = training(str(path))
    before = torch.get_rng_state(), [each.clone() for each in made.model.buffers()]
    if line is None:
        made.check()
        assert torch.equal(before[0], torch.get_rng_state())
        assert all(map(torch.equal, before[1], made.model.buffers()))
        return
    with pytest.raises(ValueError) as error:
        made.check()
    assert str(error.value) == line.format(path)


@pytest.mark.parametrize(("made", "line"), [
    ("torch.optim.SGD(list(parameters)[:1], lr=0.1)", None),
    ("None", "optimiser() of {} must give a torch.optim optimiser, not NoneType"),
    ("torch.optim.SGD(model().parameters(), lr=0.1)",
     "optimiser() of {} must be of the parameters that it is given alone"),
    ("torch.optim.SGD(parameters, rate=0.1)",
     "Model {} does not run: TypeError: SGD.__init__() got an unexpected keyword argument 'rate'")])
def test_an_optimiser_is_of_the_parameters(made, line, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE.replace("torch.optim.SGD(parameters, lr=0.1)", made))
    found = training(str(path))
    if line is None:
        assert len(found.optimiser(found.model.parameters()).param_groups[0]["params"]) == 1
        return
    with pytest.raises(ValueError) as error:
        found.optimiser(found.model.parameters())
    assert str(error.value) == line.format(path)
