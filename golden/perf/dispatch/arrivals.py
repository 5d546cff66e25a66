"""When requests arrive: Poisson, in bursts, by day and night, or from a file."""

from pathlib import Path

import numpy as np

from hbfp.checks import check_choice, check_number, check_range

#: Name -> what it is.
KINDS = {"poisson": "independent requests at a constant rate",
         "bursts": "a tenth of the time at five times the rate, the rest at five ninths of it",
         "day": "a rate that swings between 0.2 and 1.8 of its mean, once in a hundredth of the requests"}


def times(kind: str, count: int, rate: float, seed: int = 0) -> np.ndarray:
    """Times of arrival, ascending.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    count : int
        Requests.
    rate : float
        Mean number of requests in a unit of time.
    seed : int

    Returns
    -------
    ndarray of float64 (count,)

    Raises
    ------
    ValueError
        If there is no such kind, or a number is out of range.
    """
    check_choice("Arrivals", kind, KINDS)
    check_range("Requests", count, 1, 1 << 32)
    check_range("Seed", seed, 0, 1 << 63)
    check_number("Rate", rate, 1e-300)
    rng = np.random.default_rng(seed)
    steady = np.cumsum(rng.exponential(1 / rate, count))    # as many requests as at a rate of 1 in warped time
    if kind == "poisson":
        return steady
    # A rate that changes is a clock that runs fast and slow: warp(t) is the integral of the rate over the mean.
    period = count / rate / 100
    phase, turns = np.linspace(0, 1, 1001), np.floor(steady / period)
    if kind == "bursts":
        warp = np.where(phase < 0.1, 5 * phase, 0.5 + (phase - 0.1) * 5 / 9)
    else:
        warp = phase + 0.8 * (1 - np.cos(2 * np.pi * phase)) / (2 * np.pi)
    return period * (turns + np.interp(steady / period - turns, warp, phase))


def read(path: str | Path) -> np.ndarray:
    """Times of arrival from a text file, one number a line.

    Raises
    ------
    ValueError
        If a line is no finite number, a time is negative or lower than the one before, or there are none.
    """
    found: list[float] = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                found.append(float(line))
            except ValueError:
                raise ValueError(f"{path}, line {number}: must be a number, not {line.strip()[:40]!r}") from None
            if not np.isfinite(found[-1]) or found[-1] < (found[-2] if len(found) > 1 else 0):
                raise ValueError(f"{path}, line {number}: must be a time not before the last, not {line.strip()[:40]}")
    if not found:
        raise ValueError(f"{path}: must hold at least one time")
    return np.array(found)
