"""FuseSoC takes the core files, generates what they ask for, and its lint has nothing to say of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fusesoc", reason="fusesoc is missing; install it with: pip install 'hbfp[soc]'")
from cosim.simulate.verilator import find_tool  # noqa: E402
from gen.fusesoc import main, words  # noqa: E402

ROOT = Path(__file__).parents[2]
#: A core of 2 x 2, and its module.
PARAMETERS, MODULE = {"rows": 2, "block": [1, 2], "depth": 4}, "hbfp_m8_e10_b1x2_r2_c2_g2x2_fp32_d4"
#: Somebody else's system with that core; its own Verilog says something that Verilator has to warn of.
SYSTEM = f"""\
CAPI=2:
name: ::system:1.0
filesets:
  own: {{depend: ["hbfp::generator"], files: [top.v: {{file_type: verilogSource}}]}}
generate:
  core: {{generator: hbfp, parameters: {json.dumps(PARAMETERS)}}}
targets:
  lint: {{filesets: [own], generate: [core], toplevel: top, flow: lint, flow_options: {{tool: verilator}}}}
"""
WRONG = f"module top(input a, output b);\n  {MODULE} core();\n  assign b = a >= 0;\nendmodule\n"


def fusesoc(folder, *words, core):
    """A call of FuseSoC, which leaves all that it leaves in a folder; its exit status and what it said."""
    tool = find_tool()
    environment = tool.environment() | {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"),
                                        "XDG_CONFIG_HOME": str(folder / "config")}
    environment["PATH"] = os.pathsep.join(map(str, (Path(sys.executable).parent, tool.program.parent,
                                                    environment["PATH"])))
    done = subprocess.run([sys.executable, "-m", "fusesoc.main", "--cores-root", str(ROOT), "--cores-root", str(folder),
                           "run", "--target", "lint", *words, "--build-root", str(folder / "build"), core],
                          cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow    # by default tests/gen/test_names.py has its warnings
@pytest.mark.cosim
def test_the_accelerator_passes_lint(tmp_path):
    status, said = fusesoc(tmp_path, core="hbfp::accelerator")
    assert status == 0 and "verilator -f" in said and "%" not in said, said
    written, = (tmp_path / "build").rglob("src/*/hbfp_accelerator_*.v")
    assert written.with_name("verilator.vlt").exists()


@pytest.mark.cosim
def test_a_system_with_a_core_has_its_own_warnings_alone(tmp_path):
    (tmp_path / "system.core").write_text(SYSTEM)
    (tmp_path / "top.v").write_text(WRONG)
    status, said = fusesoc(tmp_path, core="system")
    assert status and "%Warning-UNSIGNED" in said, said
    assert all("top.v" in line for line in said.splitlines() if line.startswith("%Warning")), said


def test_a_design_that_is_refused_is_said_so(tmp_path):
    (tmp_path / "system.core").write_text(SYSTEM.replace('"rows": 2', '"rows": 0'))
    (tmp_path / "top.v").write_text(WRONG)
    status, said = fusesoc(tmp_path, "--setup", core="system")
    assert status and "\npython -m gen: error: --rows 0: must be 1 to 256\n" in said, said
    assert not list((tmp_path / "build").rglob("*.v"))


def test_parameters_are_options():
    assert words({"top": "accelerator", "x_words": 64, "block": [1, 8], "ragged": True, "sparse": False}) == [
        "--top", "accelerator", "--x-words", "64", "--block", "1,8", "--ragged"]


@pytest.mark.parametrize("text", ["rows: [", "5", "vlnv: a:b:c:1", "{parameters: [1], vlnv: a:b:c:1}"])
def test_other_files_are_refused(tmp_path, capsys, text):
    (tmp_path / "input.yml").write_text(text)
    with pytest.raises(SystemExit, match="^2$"):
        main([str(tmp_path / "input.yml")])
    assert capsys.readouterr().err == (f"python -m gen.fusesoc: error: --input {tmp_path / 'input.yml'}: must be YAML "
                                       "with parameters, each with a name, and vlnv\n")
