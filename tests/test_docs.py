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


@pytest.mark.slow
def test_site_builds_without_warnings(tmp_path):
    """Every page is in the contents and every docstring is valid.

    The theme has no part in that: the plain one does not draw all contents anew beside every page, a sixth of the time.
    """
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d",
                           tmp_path / "doctrees", "-D", "html_theme=basic", ROOT / "docs", tmp_path / "site"],
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "hbfp.golden.bfp.encode" in (tmp_path / "site/api/golden.html").read_text()
