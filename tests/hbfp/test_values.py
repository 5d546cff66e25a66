"""Values that users give: what is read, and every message word for word."""

import os
from pathlib import Path

import pytest

from hbfp.values import (
    OptionError,
    choice,
    number,
    pair,
    read_file,
    readable_file,
    several,
    shown,
    whole,
    words_of,
    writable_file,
    writable_folder,
)


def message(read, *arguments):
    with pytest.raises(OptionError) as caught:
        read(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("value, text", [
    ("plain", "plain"), ("", ""), ("a\nb\tc", "a\\nb\\tc"), ("\x1b[0m", "\\x1b[0m"), ("é６", "é６"),
    ("\u2028", "\\u2028"), ("\udcff", "\\udcff"), ("x" * 120, "x" * 120),
    ("a" * 60 + "b" * 61, "a" * 60 + "b" * 17 + "..." + "b" * 40),
    (1 << 20_000, "(a value too long to show, int)"), ([1, "a"], "[1, 'a']")], ids=lambda value: "")
def test_shown_on_one_line(value, text):
    assert shown(value) == text


def test_shown_of_lists_without_end():
    value = []
    for _ in range(100_000):
        value = [value]
    assert shown(value) == "(a value too long to show, list)"
    while value:    # taken apart again from outside: freeing it at once would nest as deeply
        value = value.pop()


@pytest.mark.parametrize("value, result", [("8", 8), ("-3", -3), ("007", 7), (8, 8), (-8, -8)])
def test_whole_number(value, result):
    assert whole("guard", value, -8, 16) == result


@pytest.mark.parametrize("value", ["", " 8", "8 ", "1_6", "１６", "٣", "²", "+8", "0x8", "8.0", "1e1", "8\n", "17",
                                   "-9", True, 8.0, None, [8]])
def test_no_whole_number(value):
    assert message(whole, "noise_bits", value, -8, 16) == f"--noise-bits {shown(value)}: must be -8 to 16"


def test_whole_number_of_any_size():
    assert whole("pipeline", "12345678901234567890") == 12345678901234567890
    assert message(whole, "pipeline", "two") == "--pipeline two: must be a whole number"
    assert message(whole, "pipeline", "1" * 21) == f"--pipeline {'1' * 21}: must be a whole number"


@pytest.mark.parametrize("value, result", [("0.5", 0.5), (".5", 0.5), ("5.", 5), ("+1e-3", 1e-3), ("100", 100),
                                           ("-0", 0)])
def test_number(value, result):
    assert number("rate", value, 0, 100) == result


@pytest.mark.parametrize("value", ["", "nan", "inf", "1_0", " 1", "１", "1e999", "100.1", "-1", "0x1p3", "1e", ".",
                                   "1e99999"])
def test_no_number(value):
    assert message(number, "rate", value, 0, 100) == f"--rate {value}: must be 0 to 100"


def test_pairs_and_lists():
    assert pair("block", "1,32", 1, 64) == pair("block", "1x32", 1, 64) == pair("block", [1, 32], 1, 64) == (1, 32)
    for value in ("1 ,32", "1,３2", "1,2,3", "1", "1,65", [1], 7):
        assert message(pair, "block", value, 1, 64) == (
            f"--block {value}: must be two numbers such as 1,32, each 1 to 64")
    assert choice("bench", "all", ("core", "all")) == "all" and several("units", "a,,b", "ab") == ["a", "b"]
    assert message(choice, "bench", ["core"], ("core",)) == "--bench ['core']: must be one of core"
    assert message(several, "units", "a,c", ("a", "b")) == "--units c: must be of a, b"
    assert several("units", ",", "ab") == [] and message(words_of, "units", ",") == "--units ,: must name one at least"


def test_files_to_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_bytes(b"12345")
    os.mkfifo("fifo")
    assert readable_file("config", "file") == Path("file")
    assert read_file("config", "file", 5) == b"12345"
    assert message(read_file, "config", "file", 4) == "--config file: cannot be read (longer than 4 bytes)"
    for path, why in (("fifo", "not a regular file"), ("/dev/zero", "not a regular file"), (".", "Is a directory"),
                      ("none", "No such file or directory"), ("file/x", "Not a directory")):
        assert message(readable_file, "config", path) == f"--config {path}: cannot be read ({why})"


def test_places_to_write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("folder").mkdir()
    os.mkfifo("fifo")
    long = "x" * 256
    for path in ("file", "new", "folder/new"):
        assert writable_file("json", path) == Path(path)
    for path in ("folder", "new", "new/below", "."):
        assert writable_folder("out", path) == Path(path)
    for path, why in (("", "Is a directory"), ("folder", "Is a directory"), ("fifo", "not a regular file"),
                      ("/dev/null", "not a regular file"), ("no/x", "No such file or directory"),
                      ("file/x", "Not a directory"), (long, "File name too long")):
        assert message(writable_file, "json", path) == f"--json {shown(path)}: cannot be written ({why})"
    for path, why in (("", "no name of a folder"), ("file", "File exists"), ("file/x", "Not a directory"),
                      (f"new/{long}", "File name too long"), ("/dev/null/x", "Not a directory")):
        assert message(writable_folder, "out", path) == f"--out {shown(path)}: cannot be written ({why})"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "file", "folder"]


@pytest.mark.parametrize("check", [writable_file, writable_folder])
def test_places_without_permission(tmp_path, monkeypatch, check):
    """As root may write anywhere, what the system answers is put in its mouth."""
    monkeypatch.setattr("hbfp.values.os.access", lambda path, mode: False)
    path = tmp_path / "new"
    assert message(check, "out", path) == f"--out {path}: cannot be written (Permission denied)"
