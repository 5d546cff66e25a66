"""The pages: every link and every page that is named exists, design pages are numbered without a gap."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted(path for folder in ROOT.glob("[a-z]*") if folder.name != "build" for path in folder.rglob("*.py"))


def missing(path, pattern, base):
    """What a file refers to and is not there, with the file's name."""
    return [f"{path.relative_to(ROOT)}: {name}" for name in re.findall(pattern, path.read_text())
            if not (base / name).exists()]


def test_links_lead_somewhere():
    assert [line for page in PAGES for line in missing(page, r"\]\((?!https?:)([^)#\s]+)", page.parent)] == []


def test_pages_that_are_named_exist():
    assert [line for path in (*PAGES, *SOURCES) for line in missing(path, r"\bdocs/[\w/-]+\.md\b", ROOT)] == []


def test_files_that_pages_name_exist():
    folders = "benchmarks|cosim|docs|flow|gen|golden|hbfp|rtl|synth|tests"
    assert [line for page in PAGES
            for line in missing(page, rf"`((?:{folders})/[\w/.-]+\.\w+)", ROOT)] == []


@pytest.mark.parametrize("folder, width", [("design", 2), ("decisions", 4)])
def test_pages_are_numbered(folder, width):
    names = sorted(path.name for path in (ROOT / "docs" / folder).glob("*.md"))
    numbers = [re.match(rf"\d{{{width}}}(?=-[a-z0-9-]+\.md$)", name) for name in names]
    assert all(numbers) and len({found[0] for found in numbers}) == len(names)
    if folder == "design":
        assert [int(found[0]) for found in numbers] == list(range(1, len(names) + 1))


def test_every_package_has_an_api_page():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"benchmarks", "flow", "tests"}
    assert packages == {path.stem for path in (ROOT / "docs/api").glob("*.rst")}


def site(docs, out, *options):
    """Exit status and messages of a build from nothing, in which a warning is an error."""
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name)
    done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", out / "doctrees",
                           *options, docs, out / "site"], capture_output=True, text=True)
    return done.returncode, done.stderr


def test_pages_and_docstrings_build_without_warnings(tmp_path):
    """Every page is in the contents, its links lead somewhere, and every docstring is valid."""
    assert site(ROOT / "docs", tmp_path, "-b", "dummy", "-t", "docstrings") == (0, "")


def test_warnings_are_errors(tmp_path):
    """A link that only files have, a page outside the contents, a docstring that is no reStructuredText."""
    for name, text in {"docs/conf.py": (ROOT / "docs/conf.py").read_text(), "README.md": "# Top\n",
                       "docs/index.md": "# Site\n\n[top](../README.md#top)\n\n```{toctree}\napi/gen\n```\n",
                       "docs/lost.rst": "Lost\n====\n", "docs/api/gen.rst": "gen\n===\n",
                       "gen/one.py": 'def one():\n    """One *two."""\n'}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    status, errors = site(tmp_path / "docs", tmp_path / "out", "-b", "dummy", "-t", "docstrings")
    found = ("Unknown source document", "document isn't included in any toctree", "emphasis start-string without")
    assert status == 1 and [text in errors for text in found] == [True] * 3 and errors.count("WARNING") == 3, errors


@pytest.mark.slow
def test_site_builds_without_warnings(tmp_path):
    """As ``make docs`` builds it, with the API that autodoc finds.

    The theme has no part in that: the plain one does not draw all contents anew beside every page, a sixth of the time.
    """
    assert site(ROOT / "docs", tmp_path, "-b", "html", "-D", "html_theme=basic") == (0, "")
    assert "hbfp.golden.bfp.encode" in (tmp_path / "site/api/golden.html").read_text()
