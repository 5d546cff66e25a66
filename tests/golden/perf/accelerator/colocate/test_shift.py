"""Batches and quanta by the dispatcher's law: a million requests, as the plain follower has it, within the bound.

Covers: golden/perf/accelerator/colocate/shift.py, golden/perf/accelerator/colocate/command.py,
golden/perf/accelerator/colocate/picture.py, golden/perf/accelerator/colocate/sweep.py.
"""

import io
import json
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch
from rich.console import Console

from golden.__main__ import main
from golden.lower.lowering import lower
from golden.perf.accelerator.colocate import sweep
from golden.perf.accelerator.colocate.followed import follow, latencies
from golden.perf.accelerator.colocate.plan import CHANGE, HOST
from golden.perf.accelerator.colocate.shift import Shift
from golden.perf.accelerator.model import times
from tests.golden.lower.test_yields import SYSTEM, step

from .latencies import LATENCY

MEMORY = 32, SYSTEM.beat
DISPATCHED = replace(SYSTEM, dispatch=16)


@cache
def programs():
    """What serves, what trains."""
    return lower(torch.nn.Linear(12, 16), (torch.ones(4, 12),), SYSTEM.share(8)).program, step()


def shift(**asked):
    """Of both, with some requests."""
    given = {"batch": 4, "load": 0.6, "requests": 300, "seed": 3, "arrivals": "poisson", "timeout": 9, "quantum": 7}
    return Shift.of(*programs(), DISPATCHED, LATENCY, *MEMORY, **given | asked)


@pytest.mark.parametrize("asked", [{}, {"arrivals": "bursts", "load": 0.95}, {"patience": 4}])
def test_as_the_plain_follower(asked):
    made = shift(**asked)
    plan, found = made.plan, made.served()
    plain = follow(plan.unit, plan.policy, plan.service, plan.quanta, made.arrivals.tolist(), again=HOST)
    np.testing.assert_array_equal(found.run.latency, latencies(plain.completions))
    data = found.as_dict()
    assert data["exceeded"] == 0 and 0 < data["p50"] <= data["p99"] <= data["max"] <= data["bound"]
    assert data["steps"] == sum(each.piece == len(plan.pieces) - 1 for each in plain.turns)
    assert (data["overdue"] >= 0) == ("patience" in asked) and (data["refused"] > 0) == (data["outside"] > 2)
    batches = {(each.started, each.finished) for each in plain.completions.values()}
    assert data["idle"] == data["cycles"] - sum(end - begin for begin, end in batches)
    pieces = [each.piece for each in plain.turns if each.piece >= 0]
    trained = plan.pieces[pieces].sum()
    assert data["of_idle"] == trained / data["idle"]
    # a program begins in the cycle behind its start; training that is stopped for good has few
    changes = {later.started + 1 - each.ended for each, later in pairwise(plain.turns)}
    assert min(changes) >= CHANGE and (CHANGE in changes or "patience" in asked)
    saved = int((plan.pieces - plan.quanta.on)[pieces].sum())
    assert data["of_idle"] <= data["of_allowed"] == trained / (data["idle"] + saved - CHANGE * len(plain.turns)) <= 1
    without = follow(plan.unit, replace(plan.policy, training=False), plan.service, None, made.arrivals.tolist())
    later = latencies(plain.completions) - latencies(without.completions)
    assert data["later"] == later.max() and data["beyond"] == (abs(later) > data["later_bound"]).sum()
    assert plan.quantum < data["later_bound"] < plan.quantum + 20 or asked
    assert data["alone"] == times(programs()[1], LATENCY, *MEMORY).cycles + HOST


def test_a_latency_above_its_bound_is_counted():
    found = shift().served()
    found.run.finished[7] += found.shift.plan.bound(DISPATCHED.dispatch)
    assert found.exceeded == 1


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


def test_several_bandwidths(tmp_path, capsys):
    """A row for each, as the command has it for one alone; the faster, the more of a step is the array's."""
    serve, out, picture = tmp_path / "serve.py", tmp_path / "found.json", tmp_path / "found.png"
    serve.write_text("import torch\n\n\ndef model():\n    return torch.nn.Linear(16, 8)\n\n\n"
                     "def inputs():\n    return (torch.ones(4, 16),)\n")
    words = ["colocate", str(serve), "docs/examples/training.py", *WORDS, "--quantum", "30", "--json", str(out)]
    assert main([*words, "--bandwidth", "4,32", "--timeline", str(picture)]) == 0
    slow, fast = json.loads(out.read_text())["points"]
    assert (slow["bandwidth"], fast["bandwidth"]) == (4, 32) and slow["service"] > fast["service"]
    assert slow["limits"]["DRAM"] > 0.9 > fast["limits"]["DRAM"] and slow["limits"]["array"] < fast["limits"]["array"]
    assert slow["quantum"] <= 30 * slow["service"] and picture.read_bytes()[:4] == b"\x89PNG"
    text = capsys.readouterr().out
    assert "DRAM" in text and "array" in text
    assert main([*words, "--bandwidth", "32"]) == 0
    alone = json.loads(out.read_text())
    assert {name: each for name, each in alone.items() if "seconds" not in name} == {
        name: each for name, each in fast.items() if "seconds" not in name}


def test_no_digit_is_cut_where_a_terminal_is_narrow():
    busy = {"array": 0.7, "vector": 0.2, "bus": 0.2, "DRAM": 0.95}
    point = {"bandwidth": 4096, "service": 11_966_957, "p99": 4e7, "step": 123_456_789, "of_idle": 0.9, "limits": busy,
             "of_dedicated": 0.7, "limits_alone": busy}
    console = Console(width=80, file=io.StringIO())
    console.print(sweep.table([point], "both"))
    assert all(each in console.file.getvalue() for each in ("4,096", "11,966,957", "123,456,789", "0.700"))


@pytest.mark.parametrize("words, message", [
    (["--load", "1.2"], "--load 1.2: must be 0.001 to 0.99"),
    (["--contexts", "1", "--dispatch", "0"], "--dispatch 0: must be there, in front of 2 contexts"),
    (["--bandwidth", "8,9,8"], "--bandwidth 8,9,8: must not name one twice"),
    (["--bandwidth", "8,"], "--bandwidth : must be 1 to 4096"),
    (["--patience", "-1"], "--patience -1: must be 0 to 1e+06"),
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
