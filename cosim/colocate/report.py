"""What came of a co-location: figures by name, a table, a picture, and a trace for Perfetto."""

from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from hbfp.files import write_json
from hbfp.golden.perf.accelerator.colocate.followed import Followed, Turn, latencies
from hbfp.golden.perf.accelerator.colocate.plan import Plan
from hbfp.golden.perf.dispatch.twin import Completion
from hbfp.golden.perf.pictures import COLOURS, figure, save
from hbfp.isa.descriptors import Refusal

from ..bench.comparison import Comparison

#: Batches that the picture shows.
SHOWN = 12


@dataclass(frozen=True)
class Report:
    """What came of it.

    Attributes
    ----------
    plan : Plan
    completions : dict of int to Completion
        Request -> its times: the device's, or the models' where there is none.
    followed : Followed
        What the models say of the same arrivals.
    answers, weights : Comparison
        With PyTorch.
    steps : int
        Steps of the training that ended.
    refused : int
        How often a request was refused.
    late : int
        Requests whose start or end is not in the cycle that the models say.
    denied : dict of int to (int, Refusal)
        Request whose descriptor was refused -> when, and why.
    without : dict of int to Completion, optional
        Request -> its times without training, by the models.
    """
    plan: Plan
    completions: dict[int, Completion]
    followed: Followed
    answers: Comparison
    weights: Comparison
    steps: int
    refused: int
    late: int
    denied: dict[int, tuple[int, Refusal]] = field(default_factory=dict)
    without: dict[int, Completion] | None = None

    @property
    def latency(self) -> NDArray[np.int64]:
        """Of each request, cycles from its arrival to the end of its batch."""
        return latencies(self.completions)

    @property
    def exceeded(self) -> int:
        """Requests that took longer than the bound for as many as waited when they came."""
        times = [each for _, each in sorted(self.completions.items())]
        started = [each.started for each in times]
        return sum(each.finished - each.arrived > self.plan.bound(number + 1 - bisect_right(
            started, each.arrived, hi=number)) for number, each in enumerate(times))

    @property
    def passed(self) -> bool:
        """Whether everything is as it must be."""
        return not (self.answers.mismatches or self.weights.mismatches or self.late or self.exceeded) and (
            self.answers.compared > 0)

    def figures(self) -> dict[str, Any]:
        """Figures by name; times in cycles."""
        latency, plan, policy = self.latency, self.plan, self.plan.policy
        batches = sorted({(each.started, each.finished) for each in self.completions.values()})
        cycles = batches[-1][1] - min([*self.followed.rung[:1], *(each.arrived for each in self.completions.values())])
        idle = cycles - sum(end - start for start, end in batches)
        return {"requests": len(latency), "batch": policy.batch, "batches": len(batches), "service": plan.service,
                "timeout": int(policy.timeout), "quantum": plan.quantum, "step": int(plan.pieces.sum()),
                "answers": _counts(self.answers), "weights": _counts(self.weights), **_quantiles(latency),
                "bound": plan.bound(plan.unit.depth), "exceeded": self.exceeded,
                "steps": self.steps, "cycles": cycles, "idle": idle, "refused": self.refused, "late": self.late,
                "denied": {why.name.lower(): sum(each == why for _, each in self.denied.values()) for why in Refusal},
                **plan.shares(self.ran, len(batches), idle),
                "fill": len(latency) / len(batches) / policy.batch,
                "simulated": _quantiles(latencies(self.followed.completions)), "passed": self.passed, **self.later}

    @property
    def later(self) -> dict[str, int]:
        """By how many cycles a request is later than without training, at most; what that is bound by, and how many
        differ by more."""
        if not self.without:
            return {}
        return self.plan.later(np.array([each.finished - self.without[tag].finished
                                         for tag, each in self.completions.items()]))

    @property
    def ran(self) -> NDArray[np.int64]:
        """How often each quantum of a step ran to its end."""
        return np.bincount([each.piece for each in self.followed.turns if each.piece >= 0],
                           minlength=len(self.plan.pieces))

    def table(self, title: str) -> Table:
        """The figures as a table; cycles beside times of a batch."""
        data = self.figures()
        made = Table(title=title, title_justify="left", show_header=False)
        made.add_column("what")
        made.add_column("figure", justify="right")

        def times(value):
            return f"{value:,.0f} ({value / data['service']:.2f} batches)"

        def compared(name):
            return f"{data[name]['compared']:,}, {data[name]['mismatches']:,}"
        rows = [("answers compared with PyTorch, differ", compared("answers")),
                ("losses, weights and state compared, differ", compared("weights")),
                ("batches, cycles of one", f"{data['batches']:,}, {data['service']:,}"),
                *((f"latency: {text}", times(data[name])) for name, text in (
                    ("p50", "half are below"), ("p99", "99 % are below"), ("max", "longest"))),
                ("the models' longest", times(data["simulated"]["max"])),
                (f"bound with {self.plan.unit.depth} in the queue", times(data["bound"])),
                ("requests above their bound", f"{data['exceeded']:,}"), ("refused", f"{data['refused']:,}")]
        if self.denied:
            told = ", ".join(f"{number} {why}" for why, number in data["denied"].items() if number)
            rows.append(("descriptors refused, why", f"{len(self.denied):,}: {told}"))
        rows += [("steps of training", f"{data['steps']:,}"), ("idle, not in a batch", f"{data['idle']:,}"),
                ("training, of what inference leaves idle", f"{data['of_idle']:.3f}"),
                 ("the same, without the cycles of changes", f"{data['of_allowed']:.3f}")]
        if self.without:
            rows += [("later than without training, at most", times(data["later"])),
                     ("requests that differ by more than a quantum", f"{data['beyond']:,}")]
        for row in rows:
            made.add_row(*row)
        return made


def _counts(found):
    return {"compared": found.compared, "mismatches": found.mismatches, "first": found.first}


def _quantiles(latency):
    p50, p99 = np.quantile(latency, (0.5, 0.99)).tolist()
    return {"p50": p50, "p99": p99, "max": int(latency.max())}


def draw(path: Path, report: Report, title: str) -> Path:
    """Write the picture as PNG: the first batches over time, and how many requests take longer than a latency."""
    made, (over_time, behind) = figure(2)
    made.suptitle(title, fontsize=10)
    turns = report.followed.turns
    batches = [each for each in turns if each.piece < 0][:SHOWN]
    shown = [each for each in turns if each.started <= batches[-1].ended]
    for training, height, colour in ((False, 0, COLOURS[0]), (True, 1, COLOURS[2])):
        bars = [(each.started, each.ended - each.started) for each in shown if (each.piece >= 0) == training]
        over_time.broken_barh(bars, (height + 0.1, 0.8), color=colour, linewidth=0)
    came = [each.arrived for each in report.completions.values() if each.arrived <= batches[-1].ended]
    over_time.plot(came, np.full(len(came), 2.5), "|", color=COLOURS[1], markersize=14)
    over_time.set_yticks((0.5, 1.5, 2.5), ("batches", "quanta", "requests"))
    over_time.set_ylim(0, 3)
    over_time.set_xlabel("cycles")
    over_time.set_title(f"The first {len(batches)} batches", fontsize=9, loc="left")
    service = report.plan.service
    for values, colour, style, name in ((report.latency, COLOURS[0], "-", "the device"),
                                        (latencies(report.followed.completions), COLOURS[1], "--", "the models")):
        ordered = np.sort(values)
        behind.step(ordered / service, 1 - np.arange(len(ordered)) / len(ordered), color=colour, linestyle=style,
                    where="post", label=name)
    behind.set_yscale("log")
    behind.set_xlabel("latency, in times of a batch")
    behind.set_ylabel("requests that take longer")
    behind.legend(fontsize=8)
    save(made, path)
    return path


def trace(path: Path, report: Report) -> Path:
    """Write requests, batches and quanta for Perfetto or chrome://tracing, a cycle as a microsecond."""
    events: list[dict[str, Any]] = [{"ph": "M", "pid": 0, "tid": number, "name": "thread_name", "args": {"name": name}}
                                    for number, name in enumerate(("batches", "quanta"))]
    events += [_bar(each) for each in report.followed.turns]
    for request, each in sorted(report.completions.items()):
        both = {"cat": "request", "id": request, "pid": 1, "name": f"request {request}"}
        events += [{"ph": "b", "ts": each.arrived, "args": {"started": each.started}} | both,
                   {"ph": "e", "ts": each.finished} | both]
    write_json(path, {"displayTimeUnit": "ns", "traceEvents": events})
    return path


def _bar(turn: Turn) -> dict[str, Any]:
    training = turn.piece >= 0
    return {"ph": "X", "pid": 0, "tid": int(training), "ts": turn.started, "dur": turn.ended - turn.started,
            "name": f"quantum {turn.piece}" if training else f"batch of {len(turn.requests)}"}
