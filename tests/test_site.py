"""The site as it is read: every link lives, and a browser shows every page whole, without errors.

Covers: synth/report/html.py.
"""

from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

import hbfp
from synth.report import html, plots
from tests.browser import MISSING, Browser, find
from tests.synth.fake import FakeReport
from tests.synth.report.test_plots import measured
from tests.test_docs import ROOT, site


class Page(HTMLParser):
    """What a page refers to, and the names of its places."""

    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        """Collect."""
        found = dict(attributes)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}


def dead(folder):
    """``page: link`` of each link within a folder that leads nowhere."""
    pages = {path: Page(path) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists() or target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{path.relative_to(folder)}: {link}")
    return found


@pytest.fixture
def browser(tmp_path):
    if find() is None:
        pytest.skip(MISSING)
    browser = Browser(tmp_path / "profile")
    yield browser
    browser.close()


def complaints(browser, folder):
    """Page -> what is wrong with it, of all pages below a folder."""
    found = {str(path.relative_to(folder)): browser.complaints(path) for path in sorted(folder.rglob("*.html"))}
    return {page: lines for page, lines in found.items() if lines}


def test_links_that_are_dead_are_found(tmp_path):
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    (tmp_path / "a.html").write_text('<a href="b.html#here"></a><a href="b.html#there"></a><img src="c.png">'
                                     '<a href="https://example.org"></a><a href="#"></a><a href="#up"></a>')
    assert sorted(dead(tmp_path)) == ["a.html: #up", "a.html: b.html#there", "a.html: c.png"]


def test_browser_complains(browser, tmp_path):
    """Of an error in a script, of a picture that is not there, and of what is too wide, at the width that it is for."""
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><div style='width: 600px'>wide</div><script>nothing()</script><img src=none.png>")
    script, picture, width = sorted(browser.complaints(page), key=lambda line: ("pixels" in line, "script" not in line))
    assert "nothing is not defined" in script and "none.png" in picture and width.endswith("pixels wider than 390")
    page.write_text("<!doctype html><p>narrow")
    assert browser.complaints(page) == []


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site as ``make docs`` makes it, but for its API pages, which are the docstrings as they stand in the files.

    How the build ended, and the folder.
    """
    folder = tmp_path_factory.mktemp("site")
    return site(ROOT / "docs", folder, "-b", "html", "-t", "docstrings"), folder / "site"


@pytest.fixture
def pages(built):
    return built[1]


def test_pages_and_docstrings_build_without_warnings(built):
    """Every page is in the contents, its links lead somewhere, and every docstring is valid."""
    assert built[0] == (0, "")


def test_links_of_the_site_live(pages):
    assert len(list(pages.rglob("*.html"))) > 40 and dead(pages) == []


def test_site_in_a_browser(pages, browser):
    assert complaints(browser, pages) == {}


@pytest.mark.slow
def test_whole_site(tmp_path, browser):
    """As ``make docs`` builds it, with a page for each module that autodoc has imported."""
    assert site(ROOT / "docs", tmp_path, "-b", "html") == (0, "")
    folder = tmp_path / "site"
    assert "hbfp.golden.bfp.encode" in (folder / "api/modules/hbfp.golden.bfp.html").read_text()
    assert 'href="modules/hbfp.golden.bfp.html"' in (folder / "api/golden.html").read_text()
    assert dead(folder) == [] and complaints(browser, folder) == {}


def test_footer_says_whose_and_which_version(pages):
    assert f"the HBFP project. Version {hbfp.__version__}. Licence: Apache-2.0" in (pages / "index.html").read_text()


def test_no_line_ends_inside_a_number(pages):
    text = (pages / "design/06-area.html").read_text()
    assert "groups of 8\N{NO-BREAK SPACE}x\N{NO-BREAK SPACE}8" in text and "groups of 8 x 8" not in text


def test_page_of_areas_in_a_browser(browser, tmp_path, monkeypatch):
    """Tables that are wider than a telephone, and the pictures that need no areas by component."""
    monkeypatch.setattr(FakeReport, "library", {"name": "some", "sha256": 12 * "0"})
    monkeypatch.setattr(FakeReport, "tools", {"yosys": "1"}, raising=False)
    monkeypatch.setattr(html, "_PICTURES", [each for each in html._PICTURES if each[0].__module__ == plots.__name__
                                            and each[0] is not plots.integer_plot])
    comparisons = [measured(400 + 10 * n, mantissa=mantissa, rows=rows)
                   for n, (mantissa, rows) in enumerate((m, r) for m in (4, 6, 8) for r in (8, 16, 32, 64))]
    html.write_page(tmp_path, comparisons)
    assert complaints(browser, tmp_path) == {} and dead(tmp_path) == []
    assert "data:image/png" in (tmp_path / "area.html").read_text()
