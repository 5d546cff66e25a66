"""Batches and quanta that are known are not found again, unless something that they follow from has changed."""

import runpy
import sys
from importlib import import_module

import numpy as np
import pytest

from golden.perf.accelerator.colocate import kept

from .test_shift import DISPATCHED, shift

ASKED = {"load": 0.6, "requests": 300, "seed": 3, "arrivals": "poisson", "times": None, "timeout": 9, "patience": 4}


@pytest.fixture(autouse=True)
def build(tmp_path, monkeypatch):
    """A build folder of its own."""
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "build"))


def found(words, calls, read=lambda: None):
    """What is kept of a shift that ``read`` stands for; ``calls`` grows if it is made."""
    def make():
        calls.append(read())
        return [shift(patience=4)]
    return kept.shifts(words, make)


def test_what_is_kept_says_all():
    """What follows from it is what follows from programs, also from the cache."""
    calls = []
    for _ in range(2):
        again = kept.shift(*found(["a"], calls), DISPATCHED, **ASKED)
        assert again.served().as_dict() == shift(patience=4).served().as_dict()
        np.testing.assert_array_equal(again.arrivals, shift().arrivals)
    assert len(calls) == 1
    other = kept.shift(*found(["a"], calls), DISPATCHED, **ASKED | {"timeout": 5, "patience": 0})
    assert other.served().as_dict() == shift(timeout=5).served().as_dict() and len(calls) == 1


def test_what_has_changed_is_made_again(tmp_path):
    """Words, the file of a network, what it imports and what it reads, and what it sought in vain."""
    (file, beside, sought), calls = (tmp_path / name for name in ("net.py", "beside.txt", "sought.txt")), []
    beside.write_text("1")
    file.write_text(f"from pathlib import Path\nnumber = Path({str(beside)!r}).read_text()\ntry:\n"
                    f"    number = Path({str(sought)!r}).read_text()\nexcept OSError:\n    pass\n")

    def count(words=("a",)):
        found(list(words), calls, lambda: runpy.run_path(str(file)))
        return len(calls)
    assert (count(), count(), count("b"), count("b"), count()) == (1, 1, 2, 2, 2)
    beside.write_text("2")
    assert (count(), count()) == (3, 3)
    file.write_text(file.read_text() + "# more\n")
    assert (count(), count()) == (4, 4)
    sought.write_text("3")
    assert (count(), count()) == (5, 5)
    beside.unlink()
    with pytest.raises(FileNotFoundError):
        count()


def test_a_module_that_a_file_imports(tmp_path, monkeypatch):
    """Also where Python has it compiled."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    (tmp_path / "widths.py").write_text("WIDTH = 1\n")

    def read():
        monkeypatch.delitem(sys.modules, "widths", raising=False)
        return import_module("widths").WIDTH
    read()
    calls = []
    found(["a"], calls, read)
    (tmp_path / "widths.py").write_text("WIDTH = 22\n")
    found(["a"], calls, read)
    found(["a"], calls, read)
    assert calls == [1, 22]


def test_other_code_makes_it_again(monkeypatch):
    calls = []
    found(["a"], calls)
    monkeypatch.setattr("hbfp.generator.key", lambda: "other")
    found(["a"], calls)
    assert len(calls) == 2
