"""Trainings by name.

Covers: golden/lower/training/zoo.py.
"""

import pytest
import torch

from golden.lower.training import zoo


def test_a_name_has_its_usual_batch_and_another_behind_a_colon(monkeypatch):
    made = zoo.training("bert-base:3")
    (x,), (target,) = next(made.batches())
    assert x.shape == target.shape == (3, zoo.TOKENS, 768) and len(made.model.layers) == 12
    monkeypatch.setitem(zoo.TRAININGS, "small", (2, lambda: torch.nn.Linear(4, 4), lambda size: (
        (torch.randn(size, 4),), (torch.randn(size, 4),)), torch.nn.functional.mse_loss))
    assert len(next(zoo.training("small").batches())[0][0]) == 2
    one, other = (zoo.training("small") for _ in range(2))
    assert torch.equal(one.model.weight, other.model.weight)


@pytest.mark.parametrize("text", ["resnet", "resnet50:0", "resnet50:", "", "bert-base:x"])
def test_other_names_are_refused(text):
    with pytest.raises(ValueError, match="Training must be a Python file, or one of resnet50, bert-base"):
        zoo.training(text)
