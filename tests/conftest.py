"""What holds for all tests: their order, their seeds, why some were skipped, and which files are slow.

`make test` gives files to processes in this order. At the end, when only one is left, it should be a quick one.
`make regression` puts before them what touches files that were changed.
"""

import contextlib
import gc
import importlib
import itertools
import math
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from tests.reach import naming, reached

ROOT = Path(__file__).parents[1]
#: Files that take long without a mark. On a new machine the first one waits until Yosys has compiled itself; what
#: needs Yosys, too, comes only behind the benches, so that no other process waits with it. Beside it Numba compiles
#: the cycle model, which others then find.
LONG = ("tests/gen/test_lint.py", "tests/golden/perf/accelerator/test_banks.py", "tests/gen/test_emit.py",
        "tests/gen/test_names.py", "tests/gen/test_command.py",
        "tests/test_types.py", "tests/test_site.py", "tests/rtl/test_cycles.py",
        "tests/golden/lower/training/test_job.py", "tests/golden/nn/test_distributed.py",
        "tests/golden/study/test_experiment.py")
#: Files that differ from the commit of ``--since``.
CHANGED = pytest.StashKey()

# Without a GPU, Triton runs kernels in Python; it has to know before anything loads it.
if not any(Path("/dev").glob("nvidia[0-9]*")):
    os.environ.setdefault("TRITON_INTERPRET", "1")
# The same examples in every run, and no test fails because its machine is busy.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.load_profile("same")


def pytest_addoption(parser):
    parser.addoption("--since", metavar="COMMIT", help="tests that touch files changed since a commit come first, "
                     "those whose imports lead there in the fewest steps before others")


def changed(since):
    """Files that differ from where this branch left a commit's, new ones among them."""
    lines = []
    for args in (["diff", "--name-only", "--merge-base", since], ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise pytest.UsageError(f"--since={since}: it must be a commit of this checkout: "
                                    f"{(done.stderr.splitlines() or ['git failed'])[0]}")
        lines += done.stdout.splitlines()
    return set(lines)


def pytest_configure(config):
    since = config.getoption("since")
    config.stash[CHANGED] = changed(since) if since else set()
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        from golden.fast import kernels
        # One compiler for a minute, while the processes that run the tests import them.
        threading.Thread(target=kernels.library, daemon=True).start()


def distances(paths, files):
    """Test file -> steps along its imports to the nearest file that changed, infinite where none leads there."""
    files = files.union(*(naming(Path(name).name) for name in files if not name.endswith(".py")))
    return {path: min((step for name, step in reached(path).items() if name in files), default=math.inf)
            if files else math.inf for path in paths}


def pytest_collection_modifyitems(config, items):
    """What touches changes first, then long files; then, of each kind, those of many tests. Tests of one file stay as
    they are."""
    counts = Counter(item.path for item in items)
    first = {ROOT / name: number for number, name in enumerate(LONG)}
    marked = {mark: {item.path for item in items if item.get_closest_marker(mark)} for mark in ("cosim", "synth")}
    steps = distances(counts, config.stash[CHANGED])

    def rank(item):
        path = item.path
        kind = 1 if path in marked["synth"] else 0 if path in marked["cosim"] else 2
        return steps[path], first.get(path, len(first)), kind, -counts[path], str(path)

    items.sort(key=rank)


def pytest_collection(session):
    """On a new machine every process has to compile all files: of two that begin at either end, each finds what the
    other has made."""
    odd = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 2
    if odd and [Path(each).resolve() for each in session.config.args] == [ROOT / "tests"]:
        for path in sorted((ROOT / "tests").rglob("test_*.py"), reverse=True):
            with contextlib.suppress(Exception, pytest.skip.Exception):    # told again when it is collected
                importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish():
    """What was imported and collected stays: never look through it for garbage again, and seldom through what is new.

    It is millions of objects, and hardware under elaboration is as many that are all in use.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(500_000, 10, 10)


def pytest_runtestloop(session):
    """Compile the golden model's kernels, if any test has loaded them: no test shall meet the line that says so."""
    kernels = sys.modules.get("hbfp.golden.fast.kernels")
    if kernels is not None and not session.config.option.collectonly:
        kernels.library()


@pytest.fixture(autouse=True)
def seeded():
    """Every test draws the same numbers, whatever ran before it in its process."""
    seed()


def seed():
    """Seed every generator that code may draw from without a seed of its own."""
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.default_generator.manual_seed(0)
        if torch.cuda.is_initialized():    # before, torch.manual_seed would take its time to note who asked
            torch.cuda.manual_seed_all(0)


def pytest_terminal_summary(terminalreporter):
    """How many tests were skipped for which reason; with ``--durations=N``, the sum of all and the N slowest files."""
    if (most := terminalreporter.config.option.durations) is not None:
        seconds = Counter()
        for report in itertools.chain(*terminalreporter.stats.values()):
            if hasattr(report, "duration"):
                seconds[report.nodeid.split("::")[0]] += report.duration
        terminalreporter.section("slowest files")
        for name, count in [("all", seconds.total()), *seconds.most_common(most or None)]:
            terminalreporter.line(f"{count:8.2f}s {name}")
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ")
                      for report in terminalreporter.getreports("skipped") if isinstance(report.longrepr, tuple))
    if reasons:
        terminalreporter.section("skipped")
        for reason, count in reasons.most_common():
            terminalreporter.line(f"{count:5} {reason}")
