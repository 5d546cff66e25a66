# amaranth: UnusedElaboratable=no
"""``python -m gen``: what it writes, what it says, and that a mistake is one line and leaves nothing behind.

Covers: gen/__main__.py, gen/tops.py, gen/write.py.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from gen.__main__ import main
from gen.tops import TOPS
from gen.units import CORE_UNITS, FREE_UNITS
from gen.write import write_files
from hbfp import files
from hbfp.values import OptionError, shown
from tests.cases import sweep

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Parts of cores whose columns share accumulators.
SHARED = ("block_sum", "shared_accumulator", "shared_control")
#: Units of cores for sparse weights alone.
SPARSE = ("sparse_weights", "placement", "prune")
SMALL = ["--rows", "2", "--block", "1,2", "--depth", "2"]


def test_files_and_last_lines(tmp_path, capsys):
    out = tmp_path / "a" / "b"
    assert main([*SMALL, "--out", str(out)]) == 0
    name = "hbfp_m8_e10_b1x2_r2_c2_g2x2_fp32_d2"
    assert sorted(path.name for path in out.iterdir()) == [
        f"{name}.v", "manifest.json", "memories.json", "memories.txt"]
    data = json.loads((out / "manifest.json").read_text())
    assert capsys.readouterr().out == (f"{out}/{name}.v: {len(data['modules'])} modules, top {name}\n"
                                       f"{out}/manifest.json\n{out}/memories.json\n{out}/memories.txt\n")
    assert oct((out / "manifest.json").stat().st_mode & 0o777) == "0o644"


def test_default_folder_is_below_build(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(SMALL) == 0
    assert main(["--unit", "side"]) == 0
    assert sorted(str(p) for p in pathlib.Path().rglob("manifest.json")) == [
        "build/gen/hbfp_m8_e10_b1x2_r2_c2_g2x2_fp32_d2/manifest.json", "build/gen/side/manifest.json"]


def test_files_are_replaced(tmp_path):
    for _ in range(2):
        assert main(["--unit", "side", "--out", str(tmp_path)]) == 0
    assert len(list(tmp_path.iterdir())) == 2


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0 and "python -m gen --mantissa 8 --rows 32" in text
    for option in ("--mantissa", "--cols", "--exponent", "--block", "--accumulate", "--arithmetic", "--group", "--out",
                   "--preset", "--config"):
        assert option in text


def test_the_accelerator(tmp_path, capsys):
    assert main(["--top", "accelerator", "--rows", "8", "--v-words", "64", "--out", str(tmp_path)]) == 0
    name = "hbfp_accelerator_hbfp_m8_e10_b1x32_r8_c8_g8x4_fp32_v64"
    data = json.loads((tmp_path / "manifest.json").read_text())
    assert capsys.readouterr().out == (
        f"{tmp_path}/{name}.v: {len(data['modules'])} modules, top {name}\n{tmp_path}/manifest.json\n"
        f"{tmp_path}/registers.rdl\n{tmp_path}/hbfp_accelerator.h\n"
        f"{tmp_path}/memories.json\n{tmp_path}/memories.txt\n")
    assert data["accelerator"]["v_words"] == 64 and data["registers"]["control"]["address"] == 0x40
    assert data["memories"]["hbfp_ram_d64_w256_g8"] == {"words": 64, "width": 256, "granularity": 32, "count": 1}
    assert {"aclk", "aresetn", "interrupt", "s_axil_awaddr", "m_axi_araddr"} <= set(data["ports"])
    assert not {"clk", "rst"} & set(data["ports"])
    assert "$signal" not in (tmp_path / f"{name}.v").read_text()    # every signal has the name that waves show


@pytest.mark.parametrize("unit", sweep(5, CORE_UNITS))
def test_unit_alone(tmp_path, unit):
    some = (["--block", "1,4", "--share", "2"] if unit in SHARED else
            ["--block", "1,4", "--sparse", "1,2"] if unit in SPARSE else ["--block", "1,2"])
    assert main(["--unit", unit, "--rows", "2", *some, "--accumulate", "aligned", "--out", str(tmp_path)]) == 0


# --- Mistakes --------------------------------------------------------------------------------------


def refused(capsys, *arguments):
    """The one line of a refused command."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert stop.value.code == 2 and out == "" and err.count("\n") == 1
    return err.removesuffix("\n")


@pytest.mark.parametrize("unit", SHARED)
def test_unit_of_shared_accumulation_alone(capsys, unit):
    line = refused(capsys, "--unit", unit)
    assert line.endswith("--share 1: must be 2 or more: only columns that share have this unit")


@pytest.mark.parametrize("arguments, message", [
    (["--mantissa", "17"], "--mantissa 17: must be 2 to 16"),
    (["--rows", "0"], "--rows 0: must be 1 to 256"),
    (["--block", "1,24"], "--block 1,24: must divide or be divided by the 32 rows along K, or be ragged"),
    (["--group", "5,1"], "--group 5,1: must divide 32 rows of a segment and 32 columns"),
    (["--arithmetic", "fp32", "--accumulate", "aligned"],
     "--accumulate aligned: must be fp32 where arithmetic is fp32"),
    (["--subnormals", "gradual"], "--subnormals gradual: must be flush: the core's sums are"),
    (["--unit", "pe"], f"--unit pe: must be one of {', '.join((*CORE_UNITS, *FREE_UNITS))}"),
    (["--unit", "encode", "--arithmetic", "int"],
     "--unit encode: must be a part of --arithmetic int, which has no blocks"),
    (["--unit", "align", "--arithmetic", "bf16"],
     "--unit align: must be a part of --arithmetic bf16, which has no blocks"),
    (["--unit", "dot_product", "--rounding", "stochastic"],
     "--rounding stochastic: must be rne or truncate for a dot-product unit"),
    (["--unit", "dot_product", "--arithmetic", "bf16"],
     "--arithmetic bf16: must be hbfp or fp32 for a dot-product unit"),
    (["--unit", "dot_product.both", "--block", "16,16"],
     "--block 16,16: must be 1,B for a dot-product unit of B terms"),
    (["--top", "tower"], f"--top tower: must be one of {', '.join(TOPS)}"),
    (["--colour"], "unrecognized arguments: --colour"),
    (["--out"], "argument --out: expected one argument"),
], ids=str)
def test_wrong_option(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert refused(capsys, *arguments) == f"python -m gen: error: {message}"
    assert not list(tmp_path.iterdir())


def test_wrong_config(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("d.toml").write_text("rosw = 3\n")
    assert refused(capsys, "--config", "d.toml").startswith(
        "python -m gen: error: --config d.toml: unknown key 'rosw'; valid are mantissa, ")
    assert refused(capsys, "--config", "no.toml") == (
        "python -m gen: error: --config no.toml: cannot be read (No such file or directory)")
    assert [p.name for p in tmp_path.iterdir()] == ["d.toml"]


def test_wrong_out(tmp_path, capsys):
    """A file in the way, a file above, a name that is too long, a folder where a file should be."""
    file, long = tmp_path / "file", tmp_path / ("x" * 300)
    file.write_text("mine")
    for out, why in ((file, "File exists"), (file / "below", "Not a directory"), (long, "File name too long")):
        assert refused(capsys, *SMALL, "--out", str(out)) == (
            f"python -m gen: error: --out {shown(out)}: cannot be written ({why})")
    taken = tmp_path / "taken"
    (taken / "manifest.json").mkdir(parents=True)
    assert refused(capsys, *SMALL, "--out", str(taken)) == (
        f"python -m gen: error: --out {taken}: cannot be written (Is a directory)")
    assert [p.name for p in taken.iterdir()] == ["manifest.json"]
    assert file.read_text() == "mine" and sorted(p.name for p in tmp_path.iterdir()) == ["file", "taken"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_wrong_permission(tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert refused(capsys, *SMALL, "--out", str(tmp_path / "new")).endswith("cannot be written (Permission denied)")


@pytest.mark.parametrize("call", ["mkstemp", "replace"])
def test_full_disk_leaves_nothing(tmp_path, monkeypatch, call):
    """Whatever fails on the way: new files, temporary files and new folders go."""
    folder = tmp_path / "new" / "folder"
    place = files.tempfile if call == "mkstemp" else files.os
    calls, original = [], getattr(place, call)

    def fail(*args, **kwargs):
        calls.append(call)
        if len(calls) == (2 if call == "mkstemp" else 1):
            raise OSError(28, "No space left on device")
        return original(*args, **kwargs)
    monkeypatch.setattr(place, call, fail)
    with pytest.raises(OptionError, match=rf"^--out {re.escape(str(folder))}: cannot be written "
                                          r"\(No space left on device\)$"):
        write_files(folder, {"a.v": "a", "b.json": "b"})
    assert calls and not list(tmp_path.iterdir())


def test_as_a_program(tmp_path):
    done = subprocess.run([sys.executable, "-m", "gen", "--mantissa", "1"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (
        2, "", "python -m gen: error: --mantissa 1: must be 2 to 16\n")


def test_people_get_the_text_for_people(tmp_path, capsys):
    texts = {}
    for name, words in (("default", []), ("readable", ["--text", "readable"]), ("plain", ["--text", "plain"])):
        assert main(["--unit", "align", *SMALL, "--accumulate", "aligned", *words, "--out", str(tmp_path / name)]) == 0
        texts[name] = next((tmp_path / name).glob("*.v")).read_text()
    assert texts["default"] == texts["readable"] and "$" not in re.sub(r"\$signed", "", texts["default"])
    assert re.search(r"^  wire .*\\\$\d+ ;$", texts["plain"], re.MULTILINE)
    capsys.readouterr()
    assert refused(capsys, "--text", "short") == (
        "python -m gen: error: --text short: must be one of readable, plain")
