"""Cache entries are made once by many, checked when used, and leave nothing of what was killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hbfp import entries, files

ROOT = Path(__file__).resolve().parents[2]
#: One of several processes that want the same entry; making it takes a while and is written to a log.
MAKER = """
import sys, time
from pathlib import Path
from hbfp import entries
place = Path(sys.argv[1])
def make(folder):
    with open(place / "log", "a") as log:
        log.write("made\\n")
    for n in range(20):
        with open(folder / "part", "a") as part:
            part.write(f"{n}\\n")
        time.sleep(0.01)
print((entries.entry(place / "cache" / "entry", make) / "part").read_text().split()[-1])
"""
#: A process that stays in the middle of making an entry and of writing a file.
STUCK = """
import sys, time
from pathlib import Path
from hbfp import entries, files
place = Path(sys.argv[1])
def make(folder):
    (folder / "part").write_text("half")
    with files.replacing(place / "cache" / "report.json") as path, files.scratch() as scratch:
        path.write_text("half")
        print(scratch, flush=True)
        time.sleep(60)
entries.entry(place / "cache" / "entry", make)
"""


def run(text, place):
    return subprocess.Popen([sys.executable, "-c", text, str(place)], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                            env=os.environ | {"HBFP_BUILD": str(place / "build")})


def make(text="right", name="data"):
    """A function that makes an entry of one file, and counts how often it does."""
    def fill(folder):
        fill.calls += 1
        (folder / name).write_text(text)
    fill.calls = 0
    return fill


def visible(folder):
    """Names in a folder without locks."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_many_processes_make_an_entry_once(tmp_path):
    everyone = [run(MAKER, tmp_path) for _ in range(4)]
    assert [each.communicate(timeout=60)[0] for each in everyone] == ["19\n"] * 4
    assert (tmp_path / "log").read_text() == "made\n"
    assert visible(tmp_path / "cache") == ["entry"]


def test_entry_is_made_once_and_again_for_another_stamp(tmp_path, capsys):
    fill = make()
    for stamp, calls in [("a", 1), ("a", 1), ("b", 2), ("b", 2), ("a", 3)]:
        assert (entries.entry(tmp_path / "entry", fill, stamp) / "data").read_text() == "right"
        assert fill.calls == calls
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("harm, said", [
    (lambda entry: (entry / "data").write_text(""), "data is not as it was made"),
    (lambda entry: (entry / "data").write_text("wrong"), "data is not as it was made"),
    (lambda entry: (entry / "data").unlink(), "data is not as it was made"),
    (lambda entry: (entry / ".entry.json").unlink(), "its record is missing or cannot be read"),
    (lambda entry: (entry / ".entry.json").write_text(""), "its record is missing or cannot be read"),
    (lambda entry: (entry / ".entry.json").write_text("[1]"), "its record is missing or cannot be read"),
    (lambda entry: (entry / ".entry.json").write_text('{"files": 3, "stamp": ""}'),
     "its record is missing or cannot be read")])
def test_harmed_entry_is_made_again_and_said_so(tmp_path, capsys, harm, said):
    entry = entries.entry(tmp_path / "entry", make())
    harm(entry)
    assert not entries.intact(entry)
    assert (entries.entry(entry, make()) / "data").read_text() == "right"
    assert capsys.readouterr().err == f"{entry}: {said}; making it again\n"
    assert entries.intact(entry) and visible(tmp_path) == ["entry"]


def test_unchanged_file_is_read_once_in_a_process(tmp_path, monkeypatch):
    """A sweep asks for the same unit a hundred times; whatever changes a file, though, is seen."""
    digests, work_out = [], entries.hashlib.file_digest
    monkeypatch.setattr(entries.hashlib, "file_digest", lambda *args: digests.append(args) or work_out(*args))
    monkeypatch.setattr(entries, "_COARSE", -1)
    entry = entries.entry(tmp_path / "entry", make())
    assert entries.intact(entry) and entries.intact(entry)
    assert len(digests) == 2    # when it was made, and when it was first used
    before = (entry / "data").stat()
    time.sleep(0.05)    # more than a tick of the file system
    (entry / "data").write_text("wrong")
    os.utime(entry / "data", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not entries.intact(entry)


def test_file_that_is_young_is_read_again(tmp_path):
    """Two changes within one tick of the file system have the same time."""
    entry = entries.entry(tmp_path / "entry", make())
    assert entries.intact(entry) and entry / "data" not in entries._known


def test_file_in_the_place_of_an_entry(tmp_path, capsys):
    (tmp_path / "entry").write_text("no folder")
    assert (entries.entry(tmp_path / "entry", make()) / "data").read_text() == "right"
    assert capsys.readouterr().err.count("\n") == 1


def test_files_that_come_later_are_no_part_of_an_entry(tmp_path, capsys):
    entry = entries.entry(tmp_path / "entry", make())
    (entry / "run.log").write_text("ran")
    entries.entry(entry, make("never"))
    assert (entry / "run.log").read_text() == "ran" and capsys.readouterr().err == ""


def test_failure_keeps_its_log_and_names_it(tmp_path):
    def fail(folder):
        (folder / "log").write_text("why")
        raise RuntimeError(f"failed; see {folder / 'log'}")

    with pytest.raises(RuntimeError) as caught:
        entries.entry(tmp_path / "entry", fail)
    log = Path(str(caught.value).removeprefix("failed; see "))
    assert log.read_text() == "why" and visible(tmp_path) == ["entry.failed"]
    entries.entry(tmp_path / "entry", make())
    assert visible(tmp_path) == ["entry"]


def test_failure_without_files_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        entries.entry(tmp_path / "entry", lambda folder: 1 / 0)
    assert visible(tmp_path) == []


def test_interrupt_leaves_nothing(tmp_path):
    def interrupted(folder):
        (folder / "data").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        entries.entry(tmp_path / "entry", interrupted)
    assert visible(tmp_path) == []


def test_old_logs_of_failures_go(tmp_path):
    for name, age in (("old.failed", entries.KEPT + 60), ("new.failed", 60)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    entries.entry(tmp_path / "entry", make())
    assert visible(tmp_path) == ["entry", "new.failed"]


def test_what_a_killed_process_left_goes(tmp_path, monkeypatch):
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path / "build"))
    cache = tmp_path / "cache"
    stuck = run(STUCK, tmp_path)
    scratch = Path(stuck.stdout.readline().strip())
    entries.entry(cache / "other", make())    # beside one that is still being made
    assert visible(cache)[1:] == ["entry.new", "other"] and scratch.exists()
    stuck.send_signal(signal.SIGKILL)
    stuck.wait()
    stuck.stdout.close()
    with files.scratch() as mine:
        assert visible(scratch.parent) == [mine.name]
    files.write(cache / "report.json", "whole")
    assert visible(cache) == ["entry.new", "other", "report.json"]
    entries.entry(cache / "third", make())
    assert visible(cache) == ["other", "report.json", "third"]


def test_value(tmp_path):
    assert entries.value(tmp_path / "entry", lambda: {"a": [1, 2]}) == {"a": [1, 2]}
    assert entries.value(tmp_path / "entry", lambda: 1 / 0) == {"a": [1, 2]}
    (tmp_path / "entry" / "value.json").write_text("{")
    assert entries.value(tmp_path / "entry", lambda: 3) == 3
