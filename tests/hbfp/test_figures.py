"""Files of measured figures: each says what, how, when and with what, and an address leads to one figure."""

import re

import pytest

from hbfp import figures, files

ADDRESS = re.compile(r"[a-z_]\w*", re.ASCII)


@pytest.mark.parametrize("name", figures.names())
def test_file_says_where_it_comes_from(name):
    about = figures.load(name)
    assert tuple(about) == (*figures.ABOUT, "figures") and about["about"] and about["figures"]
    assert about["commit"] is None or re.fullmatch("[0-9a-f]{40}", about["commit"])
    assert all((files.ROOT / path).exists() for path in about["sources"])
    assert bool(about["sources"]) == bool(about["runs"]) == bool(about["takes"])
    assert about["runs"] or about["kept"]
    assert about["tools"] == {} or all(isinstance(version, str) for version in about["tools"].values())


def keys(data):
    """Every key of nested rows."""
    for key, inner in data.items():
        yield key
        yield from keys(inner) if isinstance(inner, dict) else ()


@pytest.mark.parametrize("name", figures.names())
def test_every_figure_has_an_address(name):
    wrong = [key for key in [name, *keys(figures.load(name)["figures"])] if not ADDRESS.fullmatch(key)]
    assert not wrong


@pytest.mark.parametrize("name", figures.names())
def test_file_is_as_commands_write_it(name):
    assert (figures.FOLDER / f"{name}.json").read_text() == figures.text(figures.load(name))


def test_rows_are_lines():
    assert figures.text({"a": {"b": {"c": 1, "d": "x {y} [z]"}, "e": [1, 2]}, "f": None, "g": {}}) == (
        '{\n "a": {\n  "b": {"c": 1, "d": "x {y} [z]"},\n  "e": [1, 2]\n },\n "f": null,\n "g": {}\n}\n')
    assert figures.text({"a": [{"b": [1]}, {"c": 2}]}) == (
        '{\n "a": [\n  {\n   "b": [1]\n  },\n  {"c": 2}\n ]\n}\n')


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with one file."""
    (tmp_path / "area.json").write_text('{"figures": {"cores": {"hbfp8": {"core": 443.2}}}}')
    monkeypatch.setattr(figures, "FOLDER", tmp_path)
    figures.load.cache_clear()
    yield
    figures.load.cache_clear()


def test_address_leads_to_a_figure(place):
    assert figures.figure("area.cores.hbfp8.core") == 443.2 and figures.figure("area.cores.hbfp8") == {"core": 443.2}


@pytest.mark.parametrize("address, line", [
    ("size.cores", "figure size: no such file; there are area"),
    ("area.cores.hbfp9", "figure area.cores.hbfp9: no 'hbfp9'; there are hbfp8"),
    ("area.cores.hbfp8.core.x", "figure area.cores.hbfp8.core.x: no 'x'")])
def test_address_that_leads_nowhere(place, address, line):
    with pytest.raises(LookupError, match=f"^{re.escape(line)}$"):
        figures.figure(address)
