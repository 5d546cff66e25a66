"""What ``--help`` says: every option and its default, examples of the command alone, the models that have a name.

Covers: golden/lower/names.py, golden/command/progress.py.
"""

import argparse

import pytest

from golden.lower.names import PRODUCT, ZOO
from hbfp.values import flag, refuse
from tests.commands import COMMANDS

EVERY = pytest.mark.parametrize("start", COMMANDS, ids=" ".join)


@EVERY
def test_every_option_says_what_it_is_and_its_default(start):
    parser = COMMANDS[start][1]
    expand = parser._get_formatter()._expand_help
    for action in parser._actions:
        if action.help is argparse.SUPPRESS:
            continue
        assert action.help, action.dest
        if action.default not in (None, False, "", argparse.SUPPRESS):
            assert "default" in expand(action), action.dest


@EVERY
def test_examples_are_of_the_command_itself(start):
    """Those of a package whose first command needs no name show the others, too."""
    lines = [line.split() for line in (COMMANDS[start][1].epilog or "").splitlines() if "python -m" in line]
    assert lines or start[0] != "golden"
    assert all(tuple(words[2:2 + len(start)]) == start for words in lines)


@pytest.mark.parametrize("start", [("golden", "lower"), ("golden", "perf"), ("cosim", "run")])
def test_models_that_have_a_name(start):
    text = COMMANDS[start][1].format_help()
    assert all(f"  {name} " in text for name in (*ZOO, PRODUCT))


def test_values_without_an_option_have_the_name_of_help(tmp_path, capsys):
    """A complaint names no option that does not exist."""
    assert flag("v_words") == "--v-words" and str(refuse("FILE", "x", "is none")) == "FILE x: is none"
    path = tmp_path / "page.md"
    path.write_text("# A page")
    for command, name in (("program", "FILE"), ("run", "FILE"), ("perf", "MODEL")):
        main, parser = COMMANDS["golden", command]
        with pytest.raises(SystemExit):
            main([command, str(path)])
        assert capsys.readouterr().err.startswith(f"python -m golden: error: {name} {path}: ")
        assert name in {action.metavar for action in parser._actions if not action.option_strings}
