"""Single files are written whole or not at all, and lie where one folder says."""

import json
from pathlib import Path

import pytest

from hbfp import files

ROOT = Path(__file__).resolve().parents[2]


def visible(folder):
    """Names in a folder without locks."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_write_is_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "report.json"
    files.write(path, "one")
    files.write(path, b"two")
    assert path.read_text() == "two" and oct(path.stat().st_mode & 0o777) == "0o644"
    with pytest.raises(RuntimeError), files.replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "two" and visible(path.parent) == ["report.json"]


def test_one_build_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("HBFP_BUILD", raising=False)
    assert files.build() == ROOT / "build" and files.cache("synth") == ROOT / "build" / "cache" / "synth"
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "elsewhere"))
    assert files.build() == tmp_path / "elsewhere"
    monkeypatch.delenv("HBFP_BUILD")
    monkeypatch.setattr(files, "ROOT", tmp_path)    # installed, no checkout
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert files.build() == tmp_path / "user" / "hbfp"


def test_output_is_below_the_current_folder_or_as_told(monkeypatch, tmp_path):
    monkeypatch.delenv("HBFP_BUILD", raising=False)
    assert files.output("gen", "name") == Path("build/gen/name")
    monkeypatch.chdir(ROOT)
    assert files.output().resolve() == files.build()
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path))
    assert files.output("gen", "name") == tmp_path / "gen" / "name" and files.output() == files.build()


def test_key_tells_parts_apart():
    assert files.key("ab", "c") != files.key("a", "bc") != files.key(b"abc")
    assert files.key("a", 1) == files.key(b"a", "1") and len(files.key()) == 32
    assert json.loads(json.dumps(files.key("x"))) == files.key("x")


def test_csv_has_its_columns_and_leaves_out_what_is_missing(tmp_path):
    files.write_csv(tmp_path / "t.csv", ("a", "b"), [{"a": 1, "b": 0.5}, {"b": "x,y", "more": 3}])
    assert (tmp_path / "t.csv").read_text() == 'a,b\n1,0.5\n,"x,y"\n'


def test_lock_is_held_by_one(tmp_path):
    with files.lock(tmp_path / "deep" / "it"), files.lock(tmp_path / "deep" / "other", wait=0):
        with pytest.raises(TimeoutError), files.lock(tmp_path / "deep" / "it", wait=0):
            pytest.fail("two hold one lock")
    with files.lock(tmp_path / "deep" / "it", wait=0):
        pass


def test_digest_follows_names_bytes_and_order(tmp_path):
    for name, data in (("a", b"1"), ("b", b"2"), ("c", b"1")):
        (tmp_path / name).write_bytes(data)
    found = [files.digest(tmp_path / name for name in names) for names in ("ab", "ba", "cb", "a", "")]
    assert len(set(found)) == 5 and all(len(each) == 64 for each in found)
    (tmp_path / "a").write_bytes(b"3")
    assert files.digest([tmp_path / "a", str(tmp_path / "b")]) not in found
