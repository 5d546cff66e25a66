# amaranth: UnusedElaboratable=no
"""Other tools take the text without a warning: Verilator, Yosys, Icarus Verilog."""

import shutil
import subprocess

import pytest

from gen.emit import FOOTER, HEADER
from tests.cases import sweep

from .emitted import DESIGNS, emitted


@pytest.fixture(params=sweep(3, DESIGNS))
def file(request, tmp_path):
    """Verilog of one design, in a folder of its own."""
    data = emitted(request.param).manifest
    path = tmp_path / data["verilog"]
    path.write_text(emitted(request.param).text)
    return path


def quiet(command, file, **options):
    """Run a tool; it must succeed and say nothing."""
    done = subprocess.run([str(part) for part in command], cwd=file.parent, capture_output=True, text=True, **options)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_icarus(file):
    assert shutil.which("iverilog"), "iverilog is missing: apt-get install iverilog"
    quiet(["iverilog", "-g2005", "-Wall", "-Wno-timescale", "-o", "out", file.name], file)


@pytest.mark.cosim
def test_verilator(file):
    from cosim.simulate.verilator import find_tool
    tool = find_tool()
    done = subprocess.run([str(tool.program), "--lint-only", "-Wall", "--top-module", file.stem, file.name],
                          cwd=file.parent, capture_output=True, text=True, env=tool.environment())
    warnings = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("%")]
    assert (done.returncode, warnings) == (0, [])


@pytest.mark.cosim
@pytest.mark.parametrize("file", ["tiny"], indirect=True)
def test_verilator_warns_of_files_read_later(file):
    """The lines that see to it are the same around every text."""
    from cosim.simulate.verilator import find_tool
    tool = find_tool()
    text = file.read_text()
    assert text.startswith(HEADER) and text.endswith(FOOTER)
    (file.parent / "later.v").write_text(
        "module later(input [3:0] a, output [4:0] b);\n  assign b = a;\nendmodule\n")
    command = [str(tool.program), "--lint-only", "--top-module", "later", "-Wno-MULTITOP", file.name, "later.v"]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, env=tool.environment())
    assert done.returncode and "%Warning-WIDTHEXPAND: later.v:2" in done.stdout + done.stderr


@pytest.mark.synth
def test_yosys(file):
    from synth.tools.yosys import find
    (file.parent / "read.ys").write_text(
        f"read_verilog {file.name}\nhierarchy -check -top {file.stem}\nproc\ncheck -assert\n")
    done = subprocess.run([find()[0], "-q", "-l", "log", "read.ys"], cwd=file.parent, capture_output=True, text=True)
    log = (file.parent / "log").read_text()
    assert done.returncode == 0 and "Warning" not in log + done.stdout + done.stderr, log[-2000:]
