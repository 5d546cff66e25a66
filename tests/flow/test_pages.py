"""Pages have the figures of the data: what a mark may say, how it is printed, and that our pages stand as rendered."""

import re

import pytest

from flow import pages
from hbfp import figures, files

DATA = {"area": {"figures": {"cores": {
    "small": {"title": "HBFP4", "core": 183.7, "side": None, "more": {"cells": 12345}},
    "large": {"title": "HBFP8", "core": 443.2, "side": 622.5, "more": {"cells": 9999}}}, "fp32": 3918.6}}}


@pytest.fixture
def data(monkeypatch):
    """Two cores."""
    monkeypatch.setattr(figures, "load", DATA.__getitem__)


def test_our_pages_stand_as_rendered():
    """A number that differs from the data: python -m flow figures writes it anew."""
    assert [str(path.relative_to(files.ROOT)) for path in pages.render(write=False)] == []


@pytest.mark.parametrize("text, shown", [
    ("area.cores.large.core", "443.2"), ("area.cores.large.core:.0f", "443"), ("area.cores.small.title", "HBFP4"),
    ("area.fp32 / area.cores.large.core:.2f", "8.84"), ("(area.fp32 - 1) * 2 + 0.5:.1f", "7835.7"),
    ("area.cores.small.core / area.cores.large.core - 1:.1%", "-58.6 %"), ("area.cores.small.side:.1f", ""),
    ("area.cores.small.side / 2:.1f", ""), ("area.cores.small.more.cells:n", "12 345"),
    ("area.cores.large.more.cells:n", "9999"), ("area.cores.large.more.cells + 0.6:n", "10 000"),
    ("area.cores.small.more.cells / 10:.1n", "1234.5"), ("area.cores.small.more.cells:,", "12,345")])
def test_what_is_printed(data, text, shown):
    assert pages.printed(text) == shown


REPORT = {"rows": [{"unit": "fp32.add", "kind": "flush", "area": 1160.25, "more": {"x": 1}},
                   {"unit": "fp32.add", "kind": "gradual", "area": 1231.5, "more": {"x": 2}}],
          "by name": {"hbfp_a": {"kind": "a", "area": 3}, "hbfp_b": {"kind": "b", "area": 4}}}


@pytest.mark.parametrize("text, shown", [
    ("rows['unit=fp32.add; kind=flush'].area:.1f", "1160.2"), ("rows['kind=gradual'].more.x", "2"),
    ("sum(rows['unit=fp32.add'].area):.2f", "2391.75"), ("rows[1]['area'] / rows[0].more.x:.1f", "1231.5"),
    ("data['by name']['kind=b'].area + sum(rows.more.x)", "7"), ("rows[0].area / 3", "386.75"),
    ("rows[0].area * 1000", "1160250"), ("(rows[0].area - rows[0].area - 0.001) * 0.1:+.2f", "+0.00"),
    ("(rows[0].area - 1160.75) / 100:+.1%", "-0.5 %"), ("rows[0].area - 1160.75:.1f", "-0.5")])
def test_rows_are_chosen(text, shown):
    assert pages.printed(text, REPORT | {"data": REPORT}) == shown


@pytest.mark.parametrize("text, line", [
    ("rows['kind=none'].area", "no row has kind=none"), ("rows[7].area", "no 7"),
    ("data['by name'].c", "no 'c'; there are hbfp_a, hbfp_b")])
def test_row_that_there_is_not(text, line):
    with pytest.raises(LookupError, match=f"^{re.escape(line)}$"):
        pages.printed(text, REPORT | {"data": REPORT})


def test_row_comes_before_files(data):
    row = DATA["area"]["figures"]["cores"]["small"]
    assert pages.printed("area.fp32 / core:.2f", row) == "21.33" and pages.printed("more.cells:n", row) == "12 345"


@pytest.mark.parametrize("limit, shown", [("443.1", "**443.2**"), ("443.2", "443.2"), ("500", "443.2")])
def test_what_is_above_a_limit_is_bold(data, limit, shown):
    assert pages.printed(f"area.cores.large.core:.1f>{limit}") == shown


def test_sentence_is_rendered(data):
    text = "It takes <!-- figure: area.cores.large.core:.1f -->1<!-- /figure --> and <!-- figure: area.fp32 -->" \
           "<!-- /figure -->.\n"
    new = pages.rendered(text)
    assert new == text.replace("1<", "443.2<").replace("--><!-- /figure -->.", "-->3918.6<!-- /figure -->.")
    assert pages.rendered(new) == new


def test_table_is_rendered(data):
    lines = ("<!-- table:", "| | core |", "|---|---|", "each area.cores: | {title} | **{core:.1f}** |",
             "each area.cores(large): | the same | {area.fp32 / core:.2f} |", "| FP32 | {area.fp32} |", "-->")
    new = pages.rendered("\n".join((*lines, "anything", "<!-- /table -->", "")))
    assert new == "\n".join((*lines, "| | core |", "|---|---|", "| HBFP4 | **183.7** |", "| HBFP8 | **443.2** |",
                             "| the same | 8.84 |", "| FP32 | 3918.6 |", "<!-- /table -->", ""))
    assert pages.rendered(new) == new


@pytest.mark.parametrize("text, line", [
    ("a\nb <!-- figure: area.none -->1<!-- /figure -->", "p.md:2: figure area.none: no 'none'; there are cores, fp32"),
    ("b <!-- figure: area.cores.none.core -->1<!-- /figure -->",
     "p.md:1: figure area.cores.none.core: no 'none'; there are small, large"),
    ("b <!-- figure: area.fp32 + -->1<!-- /figure -->", "p.md:1: area.fp32 +: is no expression"),
    ("b <!-- figure: f(1) -->1<!-- /figure -->",
     "p.md:1: f(1): must be addresses of figures, numbers, + - * / and parentheses"),
    ("b <!-- figure: area.fp32:q -->1<!-- /figure -->",
     "p.md:1: Unknown format code 'q' for object of type 'float'"),
    ("b <!-- figure: area.fp32 -->1", "p.md:1: a mark without its partner"),
    ("b\nc 1<!-- /figure -->", "p.md:2: a mark without its partner"),
    ("<!-- table:\n| {area.fp32} |\n-->\n| 1 |\n", "p.md:1: a mark without its partner"),
    ("a\n <!-- figure: area.fp32 -->1<!-- /figure -->", "p.md:2: a figure must not be the first of its line"),
    ("- <!-- figure: area.fp32 -->1<!-- /figure -->", "p.md:1: a figure must not be the first of its line")])
def test_mark_that_says_nothing(data, text, line):
    with pytest.raises(pages.PageError, match=f"^{re.escape(line)}$"):
        pages.rendered(text, "p.md")


def test_pages_are_found_and_written(data, tmp_path):
    (tmp_path / "docs/design").mkdir(parents=True)
    same, other = tmp_path / "README.md", tmp_path / "docs" / "design" / "a.md"
    same.write_text("x\n")
    other.write_text("x <!-- figure: area.fp32 -->1<!-- /figure -->\n")
    assert pages.render(False, tmp_path) == [other] and "-->1<" in other.read_text()
    assert pages.render(True, tmp_path) == [other] and "-->3918.6<" in other.read_text()
    assert pages.render(False, tmp_path) == []
