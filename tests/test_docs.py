"""The pages: every link and every page that is named exists, design pages are numbered without a gap.

The site that they become: test_site.py.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hbfp.checkout import version

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
    folders = "benchmarks|cosim|docs|flow|gen|golden|hbfp|rtl|runtime|synth|tests"
    assert [line for page in PAGES
            for line in missing(page, rf"`((?:{folders})/[\w/.-]+\.\w+)", ROOT)] == []


@pytest.mark.parametrize("folder, width", [("design", 2), ("decisions", 4)])
def test_pages_are_numbered(folder, width):
    names = sorted(path.name for path in (ROOT / "docs" / folder).glob("*.md"))
    numbers = [re.match(rf"\d{{{width}}}(?=-[a-z0-9-]+\.md$)", name) for name in names]
    assert all(numbers) and len({found[0] for found in numbers}) == len(names)
    headings = [(ROOT / "docs" / folder / name).read_text().partition("\n")[0] for name in names]
    assert [name for name, head in zip(names, headings, strict=True)
            if head.startswith(f"# {name[:4]}: ") != (folder == "decisions")] == []
    if folder == "design":
        assert [int(found[0]) for found in numbers] == list(range(1, len(names) + 1))


def test_every_package_has_an_api_page():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"benchmarks", "flow", "tests"}
    assert packages == {path.stem for path in (ROOT / "docs/api").glob("*.rst")}


@pytest.mark.parametrize("page", ["index", "quickstart"])
def test_first_result_is_what_is_printed(page):
    """A block of Python and the block of text behind it."""
    (code, shown), = re.findall(r"```python\n([^`]*)```[^`]*```text\n(.*?)```", (ROOT / f"docs/{page}.md").read_text(),
                                re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (shown, 0), done.stderr


def test_glossary_is_in_order():
    words = re.findall(r"^\*\*(.*?)\*\*", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    assert len(words) > 40 and words == sorted(words, key=str.lower)


def test_changelog():
    """The newest release is this version, or what comes after it; a change is one line, and stands once."""
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = re.findall(r"^## (?:(\d+\.\d+\.\d+), (\d{4}-\d\d-\d\d)|Next)$", text, re.MULTILINE)
    named = [release for release in releases if release[0]]
    assert len(releases) == text.count("\n## ") and named[0][0] == version() and releases[-len(named):] == named
    assert [date for _, date in named] == sorted((date for _, date in named), reverse=True)
    changes = [line for line in text.splitlines()[3:] if line and not line.startswith("#")]
    assert [line for line in changes if not re.match(r"- .*\.$|First release\.$", line) or len(line) > 300] == []
    for release in text.split("\n## ")[1:]:
        starts = [line for line in re.findall(r"^- (`--[^`]*`)", release, re.MULTILINE)]
        assert len(starts) == len(set(starts)), starts


def site(docs, out, *options):
    """Exit status and messages of a build from nothing, in which a warning is an error."""
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name)
    done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", out / "doctrees",
                           *options, docs, out / "site"], capture_output=True, text=True)
    return done.returncode, done.stderr


def test_warnings_are_errors(tmp_path):
    """A link that only files have, a page outside the contents, a docstring that is no reStructuredText."""
    own = {name: (ROOT / name).read_text() for name in ("docs/conf.py", "docs/site.css", "pyproject.toml")}
    for name, text in {**own, "README.md": "# Top\n",
                       "docs/index.md": "# Site\n\n[top](../README.md#top)\n\n```{toctree}\napi/gen\n```\n",
                       "docs/lost.rst": "Lost\n====\n", "docs/api/gen.rst": "gen\n===\n",
                       "gen/one.py": 'def one():\n    """One *two."""\n'}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    status, errors = site(tmp_path / "docs", tmp_path / "out", "-b", "dummy", "-t", "docstrings")
    found = ("Unknown source document", "document isn't included in any toctree", "emphasis start-string without")
    assert status == 1 and [text in errors for text in found] == [True] * 3 and errors.count("WARNING") == 3, errors
