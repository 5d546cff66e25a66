"""Every command by its first words, and those that pages show and that measured figures name."""

import argparse
import re
import shlex
from importlib import import_module
from pathlib import Path

import cosim.__main__
import flow.__main__
import flow.figures
import gen.__main__
import golden.__main__
import synth.__main__
import synth.command.core
from flow.measure import filled
from hbfp import figures

ROOT = Path(__file__).resolve().parents[1]


def _subcommands(parser):
    """Name -> parser of each real subcommand."""
    (action,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    return action.choices


#: Words before the options -> (main of the package, the parser of the options).
COMMANDS = {
    ("gen",): (gen.__main__.main, gen.__main__.make_parser()),
    ("gen", "soc"): (gen.__main__.main, import_module("gen.soc.command").make_parser()),
    ("flow",): (flow.__main__.main, flow.__main__.make_parser()),
    ("flow", "figures"): (flow.__main__.main, flow.figures.make_parser()),
    ("cosim",): (cosim.__main__.main, import_module("cosim.command.core").make_parser()),
    **{("cosim", name): (cosim.__main__.main, import_module(f"cosim.command.{name}").make_parser())
       for name in cosim.__main__.COMMANDS},
    ("synth",): (synth.__main__.main, synth.command.core.make_parser()),
    **{("synth", name): (synth.__main__.main, each.make_parser()) for name, each in synth.__main__.COMMANDS.items()},
    **{("golden", name): (golden.__main__.main, parser)
       for name, parser in _subcommands(golden.__main__.make_parser()).items()},
}


def stand_in_tools(monkeypatch):
    """Have tools that not every machine has found, for what ends before they are called."""
    for tool in ("opensta.find", "nextpnr.find"):
        monkeypatch.setattr(f"synth.tools.{tool}", lambda *family: ("tool", "1"))


#: Pages for those who use this.
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
#: A line of a block that is indented or fenced, or text in backticks; what stands behind two spaces is a comment.
_SHOWN = re.compile(r"^ *(python -m [^`\n]*)$|`(python -m [^`]*)`", re.MULTILINE)
#: What stands for something else in a line of prose.
_PLACEHOLDER = re.compile(r"\b(N|NS|NAME|FILE|FOLDER)\b|\||\.\.\.")


def _lines(text):
    """(words behind ``python -m``, comment) of each line that a text shows, but of those with something to fill in."""
    for match in _SHOWN.finditer(text):
        shown, _, comment = (match[1] or match[2]).partition("  ")
        for line in re.split("; | && ", shown):
            if line.startswith("python -m ") and not _PLACEHOLDER.search(line):
                yield tuple(shlex.split(line, comments=True)[2:]), comment.strip(" #")


def documented():
    """(where it stands, words behind ``python -m``, exit status) of each line on a page or in help, each once.

    The status is 2 where the comment says that the line is refused.
    """
    texts = {str(page.relative_to(ROOT)): page.read_text() for page in PAGES}
    texts |= {f"{' '.join(start)} --help": parser.epilog or "" for start, (_, parser) in COMMANDS.items()}
    texts |= {f"figures {name}": "\n".join(f"    {next(filled(run))[0]}" for run in figures.load(name)["runs"])
              for name in figures.names()}    # the first of those that differ in values alone
    found = {}
    for where, text in texts.items():
        for words, comment in _lines(text):
            found.setdefault(words, (where, words, 2 if comment.startswith("refused") else 0))
    return list(found.values())
