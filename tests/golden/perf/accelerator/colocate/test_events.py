"""Batches and quanta: to the cycle as the model of both programs together; as a plain loop says; within the bound.

Covers: golden/perf/accelerator/colocate/shift.py, golden/perf/accelerator/colocate/command.py,
golden/perf/accelerator/colocate/picture.py.
"""

import json
from functools import cache

import numpy as np
import pytest
import torch

from golden.__main__ import main
from golden.lower.lowering import lower
from golden.perf.accelerator.colocate import events
from golden.perf.accelerator.colocate.quanta import quanta, yielding
from golden.perf.accelerator.model import times, together
from hbfp.isa.instructions import ENDS
from tests.golden.lower.test_yields import SYSTEM, step

from .latencies import LATENCY

MEMORY = 32, SYSTEM.beat


@cache
def programs():
    """What serves and its cycles; what trains, its quanta; what changes cost."""
    serve = lower(torch.nn.Linear(12, 16), (torch.ones(4, 12),), SYSTEM.share(8)).program
    made, found = yielding(step(), 1500, LATENCY, *MEMORY)
    pieces = quanta(made.program, found)
    return (serve, times(serve, LATENCY, *MEMORY).cycles, made.program, pieces,
            events.costs(serve, made.program, pieces, SYSTEM, LATENCY, *MEMORY))


def test_to_the_cycle_as_both_programs_together():
    """A request at any cycle, on both sides of each YIELD; and where training gives way behind it."""
    serve, service, train, pieces, cost = programs()
    assert len(pieces) > 3
    ends = np.cumsum(pieces)
    near = [int(end) + off for end in ends[:3] for off in (-2, 0, 2, 3)]
    for rung in (1, *near, int(ends[-1]) - 1, int(ends[-1]) + 2):
        batch, trained = together([serve, train], LATENCY, *MEMORY, rung=(rung, 0), priority=True, accelerator=SYSTEM)
        found = events.simulate(np.array([rung]), 1, 0, service, pieces, cost)
        assert found.started.tolist() == [batch.begun] and found.latency.tolist() == [batch.begun + service - rung]
        gives = [int(trained.times.completed[number]) for number, each in enumerate(train.instructions)
                 if each.opcode in ENDS]
        for end in [each for each in gives[:-1] if each > batch.begun]:
            later = events.simulate(np.array([rung, end]), 1, 0, service, pieces, cost)
            assert later.started[1] == end + 2 + cost.enter


def plain(arrivals, batch, timeout, service, pieces, cost):
    """The same, piece by piece."""
    now, place, ran, first, started = 0, 0, 0, 0, []
    while first < len(arrivals):
        due = min(arrivals[first] + timeout, arrivals[first + batch - 1] if first + batch <= len(arrivals) else 1 << 60)
        if started and due <= now:
            now += cost.again
        elif not len(pieces):
            now = max(due, now + cost.again if started else 0)
        else:
            now += int(cost.leave[place]) if started else 0
            while True:
                last = place + 1 == len(pieces)
                now += int(pieces[place])
                ran, place = ran + 1, (place + 1) % len(pieces)
                gives = now + (cost.again if last else 2)
                if due <= gives:
                    now = gives + (0 if last else cost.enter)
                    break
                now += cost.again if last else 0
        started.append(now)
        first += max(1, int((arrivals[first:first + batch] <= now).sum()))
        now += service
    return started, ran


@pytest.mark.parametrize("seed", range(12))
def test_as_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    pieces = rng.integers(20, 400, rng.integers(0, 7))
    cost = events.Costs(int(rng.integers(1, 90)), rng.integers(1, 120, len(pieces)), int(rng.integers(1, 90)))
    batch, timeout, service = int(rng.integers(1, 9)), int(rng.integers(0, 3000)), int(rng.integers(50, 1500))
    arrivals = np.cumsum(rng.integers(0, int(2.5 * service / batch) + 2, 400))
    found = events.simulate(arrivals, batch, timeout, service, pieces, cost)
    started, ran = plain(arrivals, batch, timeout, service, pieces, cost)
    assert found.started.tolist() == started and found.pieces == ran and found.fills.sum() == len(arrivals)
    assert found.idle == found.cycles - service * len(started) >= found.training
    assert (found.latency <= events.bound(batch, timeout, service, pieces, cost, found.waiting)).all()


def test_the_bound_is_met_nearly():
    """One request behind a full quantum, and one behind a batch: the bound is no more than the queue's share above."""
    pieces, cost = np.array([400, 30]), events.Costs(40, np.array([60, 100]), 60)
    latest = events.simulate(np.array([0, 1000]), 1, 0, 50, pieces, cost).latency.max()
    several = max(events.simulate(np.array([0, each]), 1, 0, 50, pieces, cost).latency[1] for each in range(1200))
    assert latest <= several <= events.bound(1, 0, 50, pieces, cost, 1) <= several + cost.again


WORDS = ["--rows", "8", "--cols", "8", "--block", "1,8", "--requests", "2000"]


def test_command(tmp_path, capsys):
    serve, out, picture = tmp_path / "serve.py", tmp_path / "found.json", tmp_path / "found.png"
    serve.write_text("import torch\n\n\ndef model():\n    return torch.nn.Linear(16, 8)\n\n\n"
                     "def inputs():\n    return (torch.ones(4, 16),)\n")
    words = ["colocate", str(serve), "docs/examples/training.py", *WORDS, "--quantum", "30", "--json", str(out),
             "--timeline", str(picture)]
    assert main(words) == 0
    data = json.loads(out.read_text())
    assert data["exceeded"] == 0 and data["p50"] <= data["p99"] <= data["max"] <= data["bound"]
    assert data["batch"] == 4 and data["steps"] > 0 and data["quantum"] <= 30 * data["service"]
    assert data["simulated"] == {name: data[name] for name in ("p50", "p99", "max")}
    assert 0 < data["of_idle"] < 1 and picture.read_bytes()[:4] == b"\x89PNG"
    assert "training, of what inference leaves idle" in capsys.readouterr().out
    assert main(["colocate", str(serve), "none", *WORDS, "--json", str(out)]) == 0
    assert json.loads(out.read_text())["steps"] == 0


@pytest.mark.parametrize("words, message", [
    (["--load", "1.2"], "--load 1.2: must be 0.001 to 0.99"),
    (["--contexts", "1"], "--contexts 1: must be 2: one program serves, another trains"),
    (["--places", "0"], "--places 0: must be 1 to 1048576"),
    (["--arrivals", "/no/file"], "--arrivals /no/file: cannot be read (No such file or directory)")])
def test_wrong_option(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["colocate", "x", "y", *words])
    assert stop.value.code == 2 and capsys.readouterr().err == f"python -m golden: error: {message}\n"


def test_epochs(capsys):
    """A training whose epochs have other widths must say which; another must not."""
    words = ["colocate", "docs/examples/serving.py", "docs/examples/boosters.py", *WORDS, "--mantissa", "4", "--wide",
             "6"]
    for file, extra, line in (("boosters", (), "--epoch N would say which"),
                              ("training", ("--epoch", "0"), "--epoch must not be given")):
        words[2] = f"docs/examples/{file}.py"
        with pytest.raises(SystemExit) as ended:
            main([*words, *extra])
        assert ended.value.code == 2 and line in capsys.readouterr().err
