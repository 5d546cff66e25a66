"""Files, options and calls of all kinds: they work, or say in one line what is wrong.

Examples are drawn by hypothesis, few by default and the same in every run; with HBFP_FUZZ=5000 there are so many of
each. A failure prints the command that repeats it. Random lines of every command are in ``test_command_lines.py``.

Covers: hbfp/program.py, hbfp/checks.py.
"""

import os
import traceback
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from hbfp import command
from hbfp.design import Design
from hbfp.files import ROOT
from hbfp.program import Program, ProgramError
from hbfp.system import Accelerator
from hbfp.values import flag
from tests import fuzz
from tests.commands import COMMANDS, stand_in_tools

#: Examples of each test.
COUNT = int(os.environ.get("HBFP_FUZZ", "15"))
#: First words of commands, and what their options describe.
DESCRIBED = {("gen",): Design, ("synth",): Design, ("cosim", "words"): Accelerator}


@pytest.fixture
def examples(request):
    """Runs a test with so many random generators, whose draws get simpler where it fails."""
    def run(test):
        @settings(max_examples=COUNT, suppress_health_check=list(HealthCheck))
        @given(pick=st.randoms(use_true_random=False))
        def repeated(pick):
            note(f"again: HBFP_FUZZ={COUNT} python -m pytest 'tests/test_fuzz.py::{request.node.name}'")
            test(pick)
        repeated()
    return run


def is_line(text):
    """Whether a message is one line that says something."""
    return text.strip() and len(text.splitlines()) == 1 and len(text) < 1500


@pytest.mark.parametrize("change", [fuzz.changed_bytes, fuzz.changed_header], ids=["bytes", "header"])
def test_program_files(examples, change):
    """One line, or a program that a file has again as it is."""
    def test(pick):
        try:
            program = Program.from_bytes(change(fuzz.PROGRAM, pick))
        except ProgramError as error:
            assert is_line(str(error))
        else:
            assert Program.from_bytes(program.to_bytes()) == program
    examples(test)


@pytest.mark.parametrize("start", DESCRIBED, ids=" ".join)
def test_options(examples, start, tmp_path, monkeypatch, capsys):
    """Of a command line and of a file: accepted by both, or one line and status 2 by both; then of anything in a file.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "perform", lambda job: 0)
    stand_in_tools(monkeypatch)

    def status(words):
        try:
            found = COMMANDS[start][0]([*start[1:], *words])
        except SystemExit as stop:
            found = stop.code
        out, err = capsys.readouterr()
        assert found in (0, 2) and bool(err) == (found == 2), words
        assert not err or is_line(err) and ": error: " in err and not out, err
        return found

    def test(pick):
        values = fuzz.options(DESCRIBED[start], pick)
        Path("whole.toml").write_text(fuzz.toml(values, None), errors="surrogatepass")
        Path("spoilt.toml").write_text(fuzz.toml(values, pick), errors="surrogatepass")
        status(["--config", "spoilt.toml"])
        given = [f"{flag(name)}={value}" for name, value in values.items()]
        assert status(given) == status(["--config", "whole.toml"]), given
    examples(test)


@pytest.mark.parametrize("name", fuzz.CALLS)
def test_calls(examples, name):
    """What is refused is refused by a line of ours, in words, and not where it is used at last."""
    def test(pick):
        function, given, named = fuzz.call(name, pick)
        try:
            function(*given, **named)
        except (ValueError, TypeError) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            assert Path(last.filename).is_relative_to(ROOT) and last.line.startswith("raise"), (given, named)
            assert is_line(str(error))
    examples(test)


def test_a_failure_says_how_to_repeat_it(examples):
    def wrong(pick):
        assert pick.random() < 0
    with pytest.raises(AssertionError) as failed:
        examples(wrong)
    command_line = f"HBFP_FUZZ={COUNT} python -m pytest 'tests/test_fuzz.py::test_a_failure_says_how_to_repeat_it'"
    assert any(line == f"again: {command_line}" for note in failed.value.__notes__ for line in note.splitlines())
