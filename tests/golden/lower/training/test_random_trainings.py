"""Random trainings: the same for the same number, of everything that can be trained, and drawn anew for limits alone.

Covers: golden/lower/training/random_models.py.
"""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from golden.lower.errors import LoweringError
from golden.lower.training.random_trainings import DRAWS, LOSSES, _Recipe, random_training

from .steps import accelerator, followed

SMALL = accelerator(x_words=64, w_words=64, v_words=64, row_words=1, vector_rows=2)


def test_a_number_stands_for_one():
    one, again, other = (random_training(accelerator(), seed) for seed in (2, 2, 8))
    assert one.text == again.text != other.text
    assert one.step.lowered.program.to_bytes() == again.step.lowered.program.to_bytes()
    for first, second in zip(one.batches, again.batches, strict=True):
        for (mine,), (its,) in zip(first, second, strict=True):
            np.testing.assert_array_equal(mine, its)


def test_of_everything():
    """Each kind of sample, of training and of optimiser within the first numbers, without lowering."""
    narrow = accelerator(rounding="stochastic", mantissa=4)
    machine = replace(narrow, core=replace(narrow.core, wide=6))
    texts = [_Recipe(machine, Random(seed), 2).text for seed in range(150)]
    seen = Counter(word for text in texts for word in (
        "rows", "images", "sequences", "words", ") and Sequential", "SGD", "AdamW", "2 groups", "halved", "clip 0.1",
        "stochastic x,w,g", "stochastic none", "wide ends True", *LOSSES, "Conv2d", "BatchNorm2d",
        "MultiheadAttention", "LSTM", "Dropout", "Embedding", "LayerNorm", "MaxPool2d", "Twice") if word in text)
    assert min(seen.values()) > 2 and len(seen) == 28, seen


@pytest.mark.slow
def test_what_does_not_fit_is_drawn_anew():
    drawn = [random_training(SMALL, seed) for seed in (7, 17)]
    assert sum((Counter(each.anew) for each in drawn), Counter()) and not any(each.failure for each in drawn)
    assert all(each.step is not None for each in drawn)


@pytest.mark.parametrize("error, anew, failure", [
    (LoweringError("it needs 9 words of memory V, not 8; larger --v-words would do"), {"V, X or W": DRAWS}, ""),
    (LoweringError("Layer 'a' (gelu) cannot be lowered: no"), {}, "Layer 'a' (gelu) cannot be lowered: no"),
    (KeyError("a"), {}, "KeyError: 'a'")])
def test_another_refusal_is_a_failure(error, anew, failure, monkeypatch):
    def lowered(self):
        raise error
    monkeypatch.setattr(_Recipe, "lowered", lowered)
    drawn = random_training(SMALL, 1)
    assert (drawn.step, drawn.anew, drawn.failure) == (None, anew, failure) and drawn.text


def test_steps_have_the_bits_of_pytorch():
    drawn = random_training(accelerator(), 11)
    followed(drawn.step, drawn.batches)
