"""The picture of a shift: requests, batches and training over time, and the latencies of all requests."""

from pathlib import Path

import numpy as np

from ...pictures import COLOURS, figure, save
from .shift import Served, Shift

#: Batches that the first panel shows.
SHOWN = 12


def draw(path: Path, shift: Shift, found: Served, title: str) -> Path:
    """Write the picture as PNG: the first batches over time, and how many requests take longer than a latency."""
    made, (over_time, latencies) = figure(2)
    made.suptitle(title, fontsize=10)
    _over_time(over_time, shift, found.run)
    _latencies(latencies, shift, found.run.latency)
    save(made, path)
    return path


def _over_time(axes, shift, run):
    batch = run.turns[:, 0] < 0
    until = run.turns[batch][:SHOWN][-1, 2] if batch.any() else 0
    shown = run.turns[:, 1] <= until
    for chosen, height, colour in ((batch, 0.1, COLOURS[0]), (~batch, 1.1, COLOURS[2])):
        _, begins, ends = run.turns[chosen & shown].T
        axes.broken_barh(list(zip(begins, ends - begins, strict=True)), (height, 0.8), color=colour, linewidth=0)
    came = run.arrived[run.arrived <= until]
    axes.plot(came, np.full(len(came), 2.5), "|", color=COLOURS[1], markersize=14)
    axes.set_yticks((0.5, 1.5, 2.5), ("batches", "quanta", "requests"))
    axes.set_ylim(0, 3)
    axes.set_xlabel("cycles")
    axes.set_title(f"The first {(batch & shown).sum()} batches", fontsize=9, loc="left")


def _latencies(axes, shift, latency):
    ordered = np.sort(latency)
    share = 1 - np.arange(len(ordered)) / len(ordered)
    kept = np.unique(np.linspace(0, len(ordered) - 1, 2000).astype(np.int64))
    axes.step(ordered[kept] / shift.plan.service, share[kept], color=COLOURS[0], where="post")
    bound = shift.plan.bound(shift.plan.policy.batch) / shift.plan.service
    axes.axvline(bound, color=COLOURS[1])
    axes.annotate("bound where at most a batch waits", (bound, 1), color=COLOURS[1], ha="right", va="top", rotation=90,
                  fontsize=8, xytext=(-2, 0), textcoords="offset points")
    axes.set_yscale("log")
    axes.set_xlabel("latency, in times of a batch")
    axes.set_ylabel("requests that take longer")
    axes.set_title("Latency", fontsize=9, loc="left")
