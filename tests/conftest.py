"""The order of files: those whose tests take long come first.

`make test` gives files to processes in this order. At the end, when only one is left, it should be a quick one.
"""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Marks of tests that build or synthesise something; and files that take long without one.
MARKS = ("cosim", "synth")
LONG = ("tests/test_docs.py", "tests/gen/test_names.py", "tests/gen/test_emit.py", "tests/test_types.py")


def pytest_collection_modifyitems(items):
    """Long files first; then, of each kind, those of many tests. Tests of one file stay as they are."""
    counts = Counter(item.path for item in items)
    marked = {item.path for item in items if any(item.get_closest_marker(mark) for mark in MARKS)}
    first = {ROOT / name for name in LONG}

    def rank(item):
        return item.path not in first, item.path not in marked, -counts[item.path], str(item.path)

    items.sort(key=rank)
