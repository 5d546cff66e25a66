"""``cosim board``: networks by the C library, the files it writes, and the script that drives boards alike."""

import hashlib
import json
import runpy
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from cosim.__main__ import main
from cosim.accelerator import board
from cosim.command import board as command
from cosim.system import bridged, soc
from cosim.system import run as system
from golden.machine.machine import Machine
from golden.machine.random_programs import random_program
from hbfp.isa.registers import BY_NAME, parameters
from hbfp.program import load
from runtime.transport import REGISTERS
from tests.cosim.accelerator.built import ACCELERATOR, LEVEL

SCRIPT = Path(__file__).parents[3] / "docs/examples/board.py"
SMALL = """\
import torch


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(10, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))


def inputs():
    return (torch.ones(4, 10),)
"""


#: Networks that were trained and lowered before.
known = cache(command.lowered_network)


@pytest.fixture
def quick(monkeypatch):
    """Builds that other tests have, too."""
    monkeypatch.setattr(command, "lowered_network", known)
    monkeypatch.setattr(command, "Simulated", partial(board.Simulated, level=LEVEL))
    monkeypatch.setattr(board, "Simulated", partial(board.Simulated, level=LEVEL))


@pytest.mark.cosim
@pytest.mark.parametrize("poll", [[], ["--poll"]])
def test_any_network(quick, tmp_path, monkeypatch, capsys, poll):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SMALL)
    words = ["board", "mine.py", *ACCELERATOR.words(), "--program", "a.hbfp", "--json", "a.json", "--quiet", *poll]
    assert main(words) == 0
    found = json.loads(Path("a.json").read_text())
    assert capsys.readouterr().out == (
        f"12 numbers compared with PyTorch, 0 differ; {found['cycles']:,} cycles: passed\n")
    assert (found["passed"], found["compared"], found["mismatches"]) == (True, 12, 0)
    assert load("a.hbfp", ACCELERATOR).tensors


@pytest.mark.cosim
def test_digits(quick, tmp_path, monkeypatch, capsys):
    """And what is said where one number is another."""
    monkeypatch.chdir(tmp_path)
    honest = command.recognise

    def wrong(*arguments):
        found, scores = honest(*arguments)
        scores[7, 3] += 1
        return found, scores
    monkeypatch.setattr(command, "recognise", wrong)
    assert main(["board", *ACCELERATOR.words(), "--json", "a.json", "--quiet"]) == 1
    found = json.loads(Path("a.json").read_text())
    lines = capsys.readouterr().out.splitlines()
    assert found["right"] > 300 and lines[-1] == (
        f"{found['right']} of 360 digits recognised; 3,600 numbers compared with PyTorch, 1 differ; "
        f"{found['cycles']:,} cycles: FAILED")


@pytest.mark.cosim
@pytest.mark.parametrize("code, wrong", [(0, 0), (7, 0), (0, 1)])
@pytest.mark.parametrize("option, kind, given", [("--cpu", system, {"timing"}), ("--soc", soc, set())])
def test_digits_on_a_cpu(quick, tmp_path, monkeypatch, capsys, option, kind, given, code, wrong):
    """What firmware says is printed; neither an error of it nor a wrong number passes. The CPUs: tests/cosim/system."""
    monkeypatch.chdir(tmp_path)
    want, = (values for name, values in known("mlp", ACCELERATOR).expected.items()
             if known("mlp", ACCELERATOR).program.tensors[name].role == "output")
    scores = np.array(want)
    scores[5, 5] += wrong

    def ran(program, images, classes, *, interrupts, progress, **further):
        assert set(further) == given and interrupts and images.shape == (360, 64) and classes.shape == (360,)
        return system.Ran("9 digits\n", code, 1234, scores)
    monkeypatch.setattr(kind, "recognise", ran)
    failed = bool(code or wrong)
    assert main(["board", *ACCELERATOR.words(), option, "--json", "a.json", "--quiet"]) == failed
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "9 digits" and lines[-1] == (
        f"3,600 numbers compared with PyTorch, {wrong} differ; 1,234 cycles: {'FAILED' if failed else 'passed'}")
    assert json.loads(Path("a.json").read_text())["code"] == code


@pytest.mark.cosim
def test_digits_over_a_bridge(quick, tmp_path, monkeypatch, capsys):
    """The system: tests/cosim/system/test_bridged.py."""
    monkeypatch.chdir(tmp_path)
    lowered = known("mlp", ACCELERATOR)
    want, = (values for name, values in lowered.expected.items() if lowered.program.tensors[name].role == "output")

    def ran(program, images, *, progress):
        assert images.shape == (360, 64)
        return system.Ran("", 0, 1234, np.array(want))
    monkeypatch.setattr(bridged, "recognise", ran)
    assert main(["board", *ACCELERATOR.words(), "--soc", "--bridge", "--quiet"]) == 0
    assert capsys.readouterr().out == "3,600 numbers compared with PyTorch, 0 differ; 1,234 cycles: passed\n"


def digests(program):
    """What the script prints of a program's outputs."""
    machine = Machine(program)
    machine.run()
    return [f"{name}: {'x'.join(map(str, tensor.shape))} float32, sha256 "
            f"{hashlib.sha256(machine.get(name).tobytes()).hexdigest()}"
            for name, tensor in program.tensors.items() if tensor.role == "output"]


@pytest.mark.cosim
def test_the_script_on_the_simulated_machine(quick, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SMALL)
    assert main(["board", "mine.py", *ACCELERATOR.words(), "--program", "a.hbfp", "--quiet"]) == 0
    cycles = capsys.readouterr().out.partition("; ")[2].split()[0]
    runpy.run_path(str(SCRIPT))["main"](["a.hbfp"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{cycles.replace(',', '')} cycles, of which the array multiplied in ")
    assert lines[1:] == digests(load("a.hbfp"))


def test_the_script_on_mapped_memory(tmp_path, capsys):
    """Registers in a file, which say that a program has ended: the script does the same there."""
    page, words = 1 << 16, np.zeros(REGISTERS // 4, "<u4")
    for name, value in (parameters(ACCELERATOR) | {"status": 2, "cycles": 7}).items():
        words[BY_NAME[name].address // 4] = value
    data = np.zeros(2 * page + (1 << 20), np.uint8)
    data[page:page + REGISTERS] = words.view(np.uint8)
    data.tofile(tmp_path / "mem")
    random_program(ACCELERATOR, 0, 5).save(tmp_path / "a.hbfp")
    runpy.run_path(str(SCRIPT))["main"]([str(tmp_path / "a.hbfp"), "--registers", hex(page), "--memory", hex(2 * page),
                                         "--size", "0x100000", "--path", str(tmp_path / "mem")])
    assert capsys.readouterr().out == "7 cycles, of which the array multiplied in 0\n"


@pytest.mark.cosim
def test_the_script_over_a_bridge(tmp_path, monkeypatch, capsys):
    """A litex_server whose serial line leads to the Verilated accelerator; and one that is not there."""
    pytest.importorskip("litex")
    from cosim.system.bridged import serving
    from tests.runtime.bridged import MEMORY, CommUART

    monkeypatch.chdir(tmp_path)
    main_of = runpy.run_path(str(SCRIPT))["main"]
    random_program(ACCELERATOR, 3, 5).save("a.hbfp")
    Path("hbfp_soc.h").write_text("#define HBFP_SOC_REGISTERS 0x90000000u\n#define HBFP_SOC_MEMORY 0x40000000u\n"
                                  "#define HBFP_SOC_MEMORY_BYTES 0x00200000u\n")
    with board.Simulated(ACCELERATOR, 1 << 20, address=MEMORY, level=LEVEL) as way, serving(CommUART(way)) as port:
        main_of(["a.hbfp", "--litex", f"localhost:{port}", "--header", "hbfp_soc.h", "--size", "0x100000"])
        lines = [line for line in capsys.readouterr().out.splitlines() if "onnect" not in line and "port" not in line]
        program = load("a.hbfp")
        assert " cycles, of which the array multiplied in " in lines[0] and lines[1:] == digests(program)
        golden = Machine(program)
        golden.run()
        base = 4096 * -(-len(program.words()) // 4096)
        found = way.memory[base:base + program.limit].view(np.uint32)
        assert not np.flatnonzero((found != golden.dram.data) & golden.dram.defined[:, 0]).size
    with pytest.raises(SystemExit, match=f"^board.py: No litex_server at localhost:{port}: "):
        main_of(["a.hbfp", "--litex", f"localhost:{port}", "--header", "hbfp_soc.h"])
    with pytest.raises(SystemExit, match=r"^board.py: .*build/soc/hbfp_soc.h"):
        main_of(["a.hbfp", "--litex", "localhost"])


@pytest.mark.parametrize("words, line", [
    (["none"], "MODEL none: Model must be one of mlp, "),
    (["cnn", "--cpu"], "--cpu must be given with mlp alone, for which the firmware is"),
    (["cnn", "--soc"], "--soc must be given with mlp alone, for which the firmware is"),
    (["--soc", "--cpu"], "--cpu must not be given with --soc, which has a CPU and a memory of its own"),
    (["--wild", "1"], "--wild must be given with --soc, and without --bridge and --poll, which take no interrupts"),
    (["--wild", "1", "--soc", "--poll"], "--wild must be given with --soc, and without --bridge and --poll, "),
    (["--wild", "0", "--soc"], "--wild 0: must be 1 to "),
    (["--bridge"], "--bridge must be given with --soc, whose bridge it is"),
    (["--soc", "--latency", "9"], "--latency must not be given with --soc, which has a CPU and a memory of its own"),
    (["--program", "/dev/full"], "--program /dev/full: cannot be written"),
    (["--latency", "x"], "--latency x: must be 1 to ")])
def test_refused(words, line, capsys):
    with pytest.raises(SystemExit):
        main(["board", *words, "--quiet"])
    assert capsys.readouterr().err.startswith(f"python -m cosim board: error: {line}")
