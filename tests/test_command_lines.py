"""Whatever a command line holds: one line and status 2, or it is accepted; no traceback, nothing left behind.

Covers: hbfp/command.py, hbfp/loading.py, cosim/__main__.py, synth/__main__.py, synth/command/options.py.
"""

import os
import random
import signal
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path

import pytest

from hbfp import command
from hbfp.options import OPTIONS
from tests.cases import sweep
from tests.commands import COMMANDS, ROOT, stand_in_tools
from tests.nasty import GOOD, LIBERTY, MANY, NASTY, TOML


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working folder with all kinds of things in it."""
    monkeypatch.chdir(tmp_path)
    for name, text in TOML.items():
        Path(name).write_text(text)
    Path("latin").write_bytes(b"rows = 4 # \xff\n")
    Path("folder").mkdir()
    Path("file").write_text("mine")
    Path("good.lib").write_text(LIBERTY)
    Path("wrong.lib").write_text(LIBERTY.replace("2;", "1.2.3e;"))
    Path("loop").symlink_to("loop")
    os.mkfifo("fifo")
    return tmp_path


def tree(folder):
    """Everything below a folder, with sizes and times of change."""
    return sorted((str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*"))


def line_of(rng, parser):
    """Options for a parser: some valid, some not, some cut short."""
    words = []
    actions = [action for action in parser._actions if action.option_strings]
    for action in rng.choices(actions, k=rng.choice((0, 1, 1, 2, 2, 3, 4, 6))):
        if action.dest == "help" and rng.random() < 0.8:
            continue
        name = rng.choice(action.option_strings)
        if action.nargs == 0:
            words.append(name if rng.random() < 0.9 else f"{name}={rng.choice(NASTY)}")
            continue
        kinds = [GOOD, NASTY] + ([[*TOML, "latin"]] * 4 if action.dest == "config" else [])
        value = rng.choice(rng.choice(kinds))
        words += [name] if rng.random() < 0.03 else [f"{name}={value}"] if rng.random() < 0.4 else [name, value]
    for action in parser._actions:
        if not action.option_strings and action.nargs is None and rng.random() < 0.8:
            words.append(rng.choice(GOOD))
    if rng.random() < 0.05:
        words.insert(rng.randrange(len(words) + 1), rng.choice(NASTY))
    return words


def check_lines(seed, count, place, monkeypatch, capsys, commands=COMMANDS):
    """Run so many random lines of these commands up to where their work would begin; how often each status came."""
    rng, seen = random.Random(seed), {}
    monkeypatch.setattr(command, "perform", lambda job: 0)
    stand_in_tools(monkeypatch)
    before = tree(place)
    for start, (main, parser) in islice(cycle(commands.items()), count):
        words = [*start[1:], *line_of(rng, parser)]
        try:
            status = main(words)
        except SystemExit as stop:
            status = stop.code
        except BaseException as error:
            pytest.fail(f"{start[0]} {words}: {error!r}")
        out, err = capsys.readouterr()
        assert status in (0, 2), (start, words)
        assert bool(err) == (status == 2), (start, words, err)
        if err:
            assert err.startswith(f"python -m {start[0]}") and ": error: " in err, (start, words, err)
            assert len(err.splitlines()) == 1 and err.endswith("\n") and len(err) < 1200, (start, words, err)
            assert not out, (start, words, out)
        assert tree(place) == before, (start, words)
        seen[start, status] = seen.get((start, status), 0) + 1
    return seen


def test_random_command_lines(place, monkeypatch, capsys):
    """Each is refused at times, and accepted at times, if seldom where it wants a library that is not there."""
    seen = check_lines(3, 600, place, monkeypatch, capsys)
    for turn in range(100):    # few of `synth layout` are accepted
        if seldom := {start: each for start, each in COMMANDS.items() if not {(start, 0), (start, 2)} <= seen.keys()}:
            seen |= check_lines(4 + turn, 20 * len(seldom), place, monkeypatch, capsys, seldom)
    for start in COMMANDS:
        assert {(start, 0), (start, 2)} <= seen.keys(), (start, seen)


@pytest.mark.slow
def test_many_random_command_lines(place, monkeypatch, capsys):
    check_lines(2, 20_000, place, monkeypatch, capsys)


def call(place, *words, **options):
    """A command in a process of its own, in the working folder."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    return subprocess.run([sys.executable, "-m", *words], cwd=place, env=environment, stdin=subprocess.DEVNULL,
                          **({"capture_output": True, "timeout": 120} | options))


LONG = MANY[:77] + "..." + MANY[:40]
ROWS = "must be 1 to 256"
KEYS = ", ".join(OPTIONS)
REFUSED = [
    ("gen", ["--config", "digits"], "--config digits: holds an integer of too many digits"),
    ("gen", ["--config", "hex"], f"--rows (a value too long to show, int): {ROWS}"),
    ("gen", ["--config", "deep"], "--config deep: is nested too deeply"),
    ("gen", ["--config", "key"], f"--config key: unknown key 'a\\nb'; valid are {KEYS}"),
    ("gen", ["--config", "long file"], "--config long file: cannot be read (longer than 1048576 bytes)"),
    ("gen", ["--rows", "１６"], f"--rows １６: {ROWS}"),
    ("gen", ["--rows=--"], f"--rows --: {ROWS}"),
    ("gen", ["--rows", "--"], "argument --rows: expected one argument"),
    ("gen", ["--unit", "vector", "--lanes", MANY], f"--lanes {LONG}: must be 1 to 64"),
    ("gen", ["--subnormals", "gradual", "--out", "new"], "--subnormals gradual: must be flush: the core's sums are"),
    ("cosim", ["--seed", MANY], f"--seed {LONG}: must be 0 to 4294967295"),
    ("cosim", ["--json", "folder"], "--json folder: cannot be written (Is a directory)"),
    ("cosim", ["--json", "file/below"], "--json file/below: cannot be written (Not a directory)"),
    ("cosim", ["--json", "/dev/full"], "--json /dev/full: cannot be written (not a regular file)"),
    ("cosim", ["--waves", "new/waves.vcd"], "--waves new/waves.vcd: cannot be written (No such file or directory)"),
    ("cosim", ["matrix", "--arrays", ","], "--arrays ,: must name one at least"),
    ("synth", ["--rows", "1_6"], f"--rows 1_6: {ROWS}"),
    ("synth", ["--against", "bf16", "--pipeline", "5", "--rows", "32", "--jobs", "x"],
     "--jobs x: must be 1 to 4096"),
    ("synth", ["--liberty", "fifo"], "--liberty fifo: cannot be read (not a regular file)"),
    ("synth", ["--liberty", "wrong.lib"], "--liberty wrong.lib: is not a Liberty file with cells"),
    ("synth", ["fetch", "now"], "unrecognized arguments: now"),
    ("synth", ["sweep", "--out", "file"], "--out file: cannot be written (File exists)"),
    ("synth", ["fpga", "--family", "ecp5,ice40"], "--family ecp5,ice40: must be one of ecp5, ice40, xc7"),
    ("synth", ["bitstream", "--device", "85F"],
     "--device 85F: must be one of LFE5U-12F, LFE5U-25F, LFE5U-45F, LFE5U-85F"),
    ("synth", ["netlist", "--rows", " 8 "], f"--rows  8 : {ROWS}"),
    ("golden", ["error", "--mantissa", "abc", "--rounding", "zzz", "--prune", "1:2"],
     "--mantissa abc: must be 2 to 16"),
    ("golden", ["error", "--elements", "1e6"], "--elements 1e6: must be 1000 to 1000000000"),
    ("golden", ["schedule", "--base", "a\nb"], "--base a\\nb: must be 2 to 16"),
    ("golden", ["schedule", "--base", "8", "--boost", "4"], "--boost 4: must be 8 to 16"),
    ("golden", ["pods", "--pods", "48"], "--pods 48: must be a power of two, 2 to 4096"),
    ("golden", ["pods", "--bank", "7"], "--bank 7: must hold two of the largest tile, 8 kB"),
    ("flow", ["--config", "/dev/full"], "--config /dev/full: cannot be read (not a regular file)"),
    ("flow", ["--config", "fifo"], "--config fifo: cannot be read (not a regular file)"),
    ("flow", ["--config", "folder"], "--config folder: cannot be read (Is a directory)"),
]


@pytest.mark.parametrize("module, words, line", REFUSED, ids=lambda value: None)
def test_refused_in_one_line(place, monkeypatch, capsys, module, words, line):
    before = tree(place)
    with pytest.raises(SystemExit) as stop:
        COMMANDS[(module,) if (module,) in COMMANDS else (module, words[0])][0](words)
    name = " ".join([module, *words[:1]]) if (module, words[0]) in COMMANDS and module != "golden" else module
    assert (stop.value.code, *capsys.readouterr()) == (2, "", f"python -m {name}: error: {line}\n")
    assert tree(place) == before


def test_a_traceback_where_it_is_asked_for(place, capsys):
    with pytest.raises(SystemExit) as stop:
        COMMANDS["golden", "schedule"][0](["schedule", "--traceback", "--base", "8", "--boost", "4"])
    lines = capsys.readouterr().err.splitlines()
    assert stop.value.code == 2
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "python -m golden: error: --boost 4: must be 8 to 16"


@pytest.mark.parametrize("module, words, line", REFUSED[::9], ids=lambda value: None)
def test_refused_by_a_real_process(place, module, words, line):
    before = tree(place)
    done = call(place, module, *words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().endswith(f": error: {line}\n") and done.stderr.count(b"\n") == 1
    assert tree(place) == before


def test_flow_into_a_file(place):
    design = "hbfp_m8_e10_b1x1_r1_c1_g1x1_fp32"
    Path("build").write_text("")
    done = call(place, "flow", "--rows", "1", "--block", "1,1")
    assert (done.returncode, done.stdout, done.stderr.decode()) == (
        2, b"", f"python -m flow: error: --out build/{design}: cannot be written (Not a directory)\n")


def test_output_that_cannot_be_written(place):
    with open("/dev/full", "wb") as full:
        done = call(place, "golden", "schedule", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"python -m golden: error: output: No space left on device\n")


def test_reader_that_has_gone(place):
    read, write = os.pipe()
    os.close(read)
    done = call(place, "gen", "--unit", "fp32.neg", "--out", "new", capture_output=False, stdout=write,
                stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


def heed_interrupts():
    """In a child, before it starts: tests that run in the background were started with the signal ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("module, words", sweep(3, [("gen", []), ("cosim", []), ("synth", []), ("golden", ["error"]),
                                                    ("flow", []), ("synth.command.sweep", [])]))
def test_interrupt_says_nothing(place, module, words):
    name = module if "." in module else f"{module}.__main__"
    program = f"""if True:
        import sys, time
        from hbfp import command
        from {name} import main

        def perform(job):
            print("ready", flush=True)
            time.sleep(60)

        command.perform = perform
        sys.exit(main({words}))
    """
    with subprocess.Popen([sys.executable, "-c", program], cwd=place, env=os.environ | {"PYTHONPATH": str(ROOT)},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_interrupts) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")


@pytest.mark.parametrize("module, library", [("gen", "amaranth"), ("cosim", "rich"), ("synth", "rich"),
                                             ("golden", "rich"), ("flow", "rich")])
def test_interrupt_while_loading_says_nothing(place, module, library):
    """A library that takes a minute to load stands before the true one."""
    Path(library).mkdir()
    Path(library, "__init__.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(60)\n")
    with subprocess.Popen([sys.executable, "-m", module, "error"], cwd=place, stdout=subprocess.PIPE,
                          env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE,
                          preexec_fn=heed_interrupts) as process:
        assert process.stdout.readline() == b"loading\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (-signal.SIGINT, b"", b"")
