"""``python -m flow figures``: pages with the figures that were measured, and which of these are older than the code."""

import subprocess
import sys
from functools import partial

from rich.console import Console
from rich.table import Table

from hbfp import figures, files
from hbfp.command import Parser, run
from hbfp.values import OptionError, choice, refuse

from . import pages
from .measure import measure

EXAMPLES = """\
examples:
  python -m flow figures                          write figures into the pages; list what is older than its code
  python -m flow figures --check                  write nothing: status 1 if a page differs from the data
  python -m flow figures --measure area           measure that file's figures again first: minutes
"""


def git(*words):
    """What git says of this checkout; None where it fails, or there is none."""
    try:
        done = subprocess.run(["git", *words], cwd=files.ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return None if done.returncode else done.stdout.strip()


def changed(name):
    """Files that decide the figures of a measurement and are not what they were when it was made; None if unknown."""
    about = figures.load(name)
    found = about["commit"] and git("diff", "--name-only", about["commit"], "--", *about["sources"])
    return None if found is None else found.split()


def listed(names):
    """The table of measurements: when and with what each was made, and what changed since."""
    table = Table(title="Figures: docs/figures", title_justify="left")
    table.add_column("file", no_wrap=True)
    table.add_column("measured", no_wrap=True)
    table.add_column("files that changed since, of those that decide it", overflow="fold")
    table.add_column("takes", overflow="fold")
    for name in names:
        about, since = figures.load(name), changed(name)
        commit = about["commit"]
        missing = "not traced" if about["runs"] else "published"
        when = (commit and git("show", "-s", "--format=%cs %h", commit)) or commit or missing
        shown = [] if since is None else since[:3] + ([f"and {len(since) - 3} more"] if len(since) > 3 else [])
        none = "unknown" if about["runs"] else "; ".join(about["kept"].values())
        table.add_row(name, when, none if since is None else ", ".join(shown) or "none", about["takes"])
    return table


def make_parser():
    """The command line."""
    parser = Parser(prog="python -m flow figures", epilog=EXAMPLES,
                    description="Write the figures of docs/figures into the pages, between their marks, and list the "
                                "measurements that are older than the code that they measure.")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a page differs")
    parser.add_argument("--measure", metavar="NAME", help="first run the commands of that file of docs/figures, and "
                        "write its figures, with the commit and the tools")
    return parser


def prepare(args):
    """From parsed arguments to the work; OptionError without pages, or if one has a mark that says nothing."""
    if not (files.ROOT / "docs").is_dir():
        raise OptionError("the pages are in a checkout, and this is none")
    commit = None
    if args.measure is not None:
        choice("measure", args.measure, figures.names())
        about = figures.load(args.measure)
        sources = about["sources"]
        if not about["runs"]:
            raise refuse("measure", args.measure, f"is not measured: {'; '.join(about['kept'].values())}")
        # The last that changed what is measured: it stays where those that only measure are put onto others.
        commit = git("log", "-1", "--format=%H", "--", *sources)
        if not commit or git("status", "--porcelain", "--", *sources):
            raise refuse("measure", args.measure, f"needs a commit of what it measures: {', '.join(sources)}")
    try:
        pages.render(False, files.ROOT)
    except pages.PageError as error:
        raise OptionError(str(error)) from None
    return partial(work, args.check, args.measure, commit)


def called(words):
    """Run a command of ours in sight of the user."""
    module = words[0] if words[0].startswith(("benchmarks.", "tests.")) else f"hbfp.{words[0]}"
    done = subprocess.run([sys.executable, "-m", module, *words[1:]], cwd=files.ROOT)
    if done.returncode:
        raise SystemExit(done.returncode)    # it has said why


def work(check, name=None, commit=None):
    """Measure what is asked for, render or check the pages, and list the measurements; the exit status."""
    console = Console()
    if name is not None:
        measure(name, called, commit)
    different = pages.render(not check, files.ROOT)
    for path in different:
        console.print(f"{path.relative_to(files.ROOT)}: {'differs from the data' if check else 'written'}",
                      markup=False, highlight=False, soft_wrap=True)
    console.print(listed(figures.names()))
    return int(check and bool(different))


def main(argv):
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv)
