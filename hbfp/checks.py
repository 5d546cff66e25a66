"""Checks of values: each raises one line that says what was given and what is valid."""

import math
from collections.abc import Iterable
from numbers import Real

from . import values


def check_range(what: str, value: object, low: int, high: int, unit: str = "") -> None:
    """Raise ``ValueError`` with one line if ``value`` is not an int in ``low..high``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{what} must be {low} to {high}{unit}, not {values.given(value)}")


def check_number(what: str, value: float, low: float) -> None:
    """Raise ``ValueError`` with one line if ``value`` is not a finite number, ``low`` at least."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= value < math.inf:
        raise ValueError(f"{what} must be a number from {low} on, not {values.given(value)}")


def check_choice(what: str, value: object, choices: Iterable[str]) -> None:
    """Raise ``ValueError`` with one line if ``value`` is none of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{what} must be one of {', '.join(choices)}, not {values.given(value)}")


def check_kind(what: str, value: object, kind: type) -> None:
    """Raise ``TypeError`` with one line if ``value`` is no instance of a class."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} must be of type {kind.__name__}, not {type(value).__name__}")
