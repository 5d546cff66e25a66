"""The order of files: those whose tests take long come first. What all share is compiled before the first.

`make test` gives files to processes in this order. At the end, when only one is left, it should be a quick one.
"""

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Files that take long without a mark. On a new machine the first one waits until Yosys has compiled itself; what
#: needs Yosys, too, comes only behind the benches, so that no other process waits with it.
LONG = ("tests/gen/test_lint.py", "tests/gen/test_emit.py", "tests/rtl/test_cycles.py", "tests/gen/test_names.py",
        "tests/test_types.py")


def pytest_collection_modifyitems(items):
    """Long files first; then, of each kind, those of many tests. Tests of one file stay as they are."""
    counts = Counter(item.path for item in items)
    first = {ROOT / name: number for number, name in enumerate(LONG)}
    marked = {mark: {item.path for item in items if item.get_closest_marker(mark)} for mark in ("cosim", "synth")}

    def rank(item):
        path = item.path
        kind = 1 if path in marked["synth"] else 0 if path in marked["cosim"] else 2
        return first.get(path, len(first)), kind, -counts[path], str(path)

    items.sort(key=rank)


def pytest_runtestloop(session):
    """Compile the golden model's kernels, if any test has loaded them: no test shall meet the line that says so."""
    kernels = sys.modules.get("hbfp.golden.fast.kernels")
    if kernels is not None and not session.config.option.collectonly:
        kernels.library()
