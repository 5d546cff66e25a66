"""Whole numbers near others are torch's, and waves are near those of float64, for small and large numbers."""

import numpy as np
import pytest
import torch

from golden.vector import waves
from golden.vector.side import elements

RNG = np.random.default_rng(1)
SPECIAL = np.array([0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, np.inf, -np.inf, np.nan, 8388607.5, 8388608, -8388609,
                    4194304.5, 1e-40], np.float32)
X = np.concatenate([RNG.standard_normal(2000).astype(np.float32) * np.float32(s) for s in (0.1, 10, 1e4, 1e7, 1e12)])


def run(program, x):
    return elements(program, x.view(np.uint32)).view(np.float32)


@pytest.mark.parametrize("program, function", [
    (waves.rounded, torch.round), (waves.floor, torch.floor), (waves.ceil, torch.ceil), (waves.cut, torch.trunc)])
def test_whole_numbers(program, function):
    x = np.concatenate([X, SPECIAL[:-1]])
    np.testing.assert_array_equal(run(program(), x), function(torch.from_numpy(x)).numpy())


def test_what_is_flushed_is_zero():
    assert [run(program(), SPECIAL[-1:])[0] for program in (waves.floor, waves.ceil)] == [0, 0]


@pytest.mark.parametrize("program, function", [(waves.sine, np.sin), (waves.cosine, np.cos)])
def test_waves(program, function):
    x = X[np.abs(X) < 8192]
    assert np.abs(run(program(), x) - function(x.astype(np.float64))).max() < 2e-7
    assert np.isnan(run(program(), SPECIAL[7:10])).all()


def test_error_function():
    assert np.abs(run(waves.error(), X) - torch.erf(torch.from_numpy(X)).numpy()).max() < 3e-7
