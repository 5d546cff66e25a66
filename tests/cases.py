"""Cases of a sweep of which some run by default and the others in the long regression."""

import itertools

import pytest


def slow(case):
    """A case of the long regression; of several parameters, a tuple."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)


def sweep(step, cases, always=()):
    """Of ``cases``, every ``step``-th from the first on by default, and those of ``always``; others are marked as slow.

    A case of several parameters is a tuple.
    """
    return [case if number % step == 0 or case in always else slow(case) for number, case in enumerate(cases)]


def cover(*axes, turns=2):
    """All combinations of the values of several axes, of which by default few run, with each value in ``turns``.

    Those are the n-th of all axes together, and, in further turns, the n-th of one with others of the others.
    """
    axes = [list(axis) for axis in axes]
    often = {tuple((number + turn * place) % len(axis) for place, axis in enumerate(axes))
             for number in range(max(map(len, axes))) for turn in range(turns)}
    return [tuple(axis[at] for axis, at in zip(axes, where, strict=True)) if where in often else
            slow(tuple(axis[at] for axis, at in zip(axes, where, strict=True)))
            for where in itertools.product(*(range(len(axis)) for axis in axes))]
