"""``python -m flow figures``: pages are written, and what is older than its code is named."""

import json
import subprocess

import pytest

from flow.__main__ import main
from hbfp import figures, files

PAGE = "It takes <!-- figure: area.core -->1<!-- /figure -->.\n"


def git(folder, *words):
    return subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *words], cwd=folder, check=True,
                          capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with code, a page and figures that were measured at its first commit."""
    folder = tmp_path / "docs/figures"
    folder.mkdir(parents=True)
    for name in ("rtl/one.py", "rtl/two.py", "gen/other.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "README.md").write_text(PAGE)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")

    def measured(commit, runs=("python -m x",)):
        (folder / "area.json").write_text(json.dumps(
            {"about": "a", "runs": runs, "takes": "hours" if runs else "",
             "kept": {} if runs else {"core": "of a book"},
             "commit": commit, "library": None, "tools": {}, "sources": ["rtl"],
             "figures": {"core": 443.2}}))
        figures.load.cache_clear()

    measured(git(tmp_path, "rev-parse", "HEAD"))
    monkeypatch.setattr(files, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "FOLDER", folder)
    yield tmp_path, measured
    figures.load.cache_clear()


def told(capsys, *words):
    """Exit status and lines of the command."""
    status = main(["figures", *words])
    return status, [" ".join(line.replace("│", "").split()) for line in capsys.readouterr().out.splitlines()]


def test_pages_are_written(checkout, capsys):
    folder, _ = checkout
    assert (told(capsys, "--check")[0], (folder / "README.md").read_text()) == (1, PAGE)
    status, lines = told(capsys)
    assert (status, lines[0]) == (0, "README.md: written")
    assert (folder / "README.md").read_text() == PAGE.replace("-->1<", "-->443.2<")
    assert told(capsys, "--check")[0] == 0


def test_what_is_older_is_named(checkout, capsys):
    folder, _ = checkout
    assert told(capsys)[1][-2].endswith(" none hours")
    (folder / "gen/other.py").write_text("x = 2\n")
    assert told(capsys)[1][-2].endswith(" none hours")
    (folder / "rtl/one.py").write_text("x = 2\n")
    assert told(capsys)[1][-2].endswith(" rtl/one.py hours")
    git(folder, "commit", "-q", "-a", "-m", "second")
    (folder / "rtl/two.py").unlink()
    assert told(capsys)[1][-2].endswith(" rtl/one.py, rtl/two.py hours")


def test_the_commit_is_the_last_that_changed_what_is_measured(checkout, monkeypatch):
    folder, _ = checkout
    first, given = git(folder, "rev-parse", "HEAD"), []
    (folder / "gen/other.py").write_text("x = 2\n")
    git(folder, "commit", "-q", "-a", "-m", "second")
    monkeypatch.setattr("flow.figures.measure", lambda name, call, commit: given.append(commit))
    main(["figures", "--measure", "area"])
    (folder / "rtl/one.py").write_text("x = 2\n")
    git(folder, "commit", "-q", "-a", "-m", "third")
    main(["figures", "--measure", "area"])
    assert given == [first, git(folder, "rev-parse", "HEAD")]


def test_what_cannot_be_known_is_said(checkout, capsys, monkeypatch):
    _, measured = checkout
    measured("0" * 40)
    assert told(capsys)[1][-2] == f"area {'0' * 40} unknown hours"
    measured(None)
    assert told(capsys)[1][-2] == "area not traced unknown hours"
    monkeypatch.setenv("PATH", "")
    assert told(capsys)[1][-2] == "area not traced unknown hours"
    measured(None, [])
    assert told(capsys)[1][-2] == "area published of a book"


def test_mark_that_says_nothing(checkout, capsys):
    folder, _ = checkout
    (folder / "README.md").write_text(PAGE.replace("area", "size"))
    with pytest.raises(SystemExit) as ended:
        main(["figures"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == ("python -m flow figures: error: README.md:1: figure size: no such file; there "
                                       "are area\n")


def test_pages_are_those_of_a_checkout(checkout, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(files, "ROOT", tmp_path / "site-packages")
    with pytest.raises(SystemExit) as ended:
        main(["figures"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "python -m flow figures: error: the pages are in a checkout, and this is none\n"
