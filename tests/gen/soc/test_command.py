"""``python -m gen soc``: what is refused, and what it writes for a board.

Covers: gen/soc/target.py.
"""

import json
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from gen.__main__ import main
from gen.soc import command

SMALL = ["--rows", "4", "--block", "1,4", "--v-words", "256", "--x-words", "256", "--w-words", "256"]


@pytest.mark.parametrize("words, message", [
    (["--board", "arty"], "--board arty: must be one of ulx3s"),
    (["--device", "LFE5U-85"], "--device LFE5U-85: must be one of LFE5U-12F, LFE5U-25F, LFE5U-45F, LFE5U-85F"),
    (["--clock", "200"], "--clock 200: must be 10 to 100"),
    (["--firmware", "empty"], "--firmware empty: must have 1 to 16384 bytes, not 0"),
    (["--firmware", "long"], "--firmware long: must have 1 to 16384 bytes, not 16385"),
    (["--x-words", "100"], "--x-words 100: must be a power of two")])
def test_refused(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "long").write_bytes(bytes(16385))
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(main(["soc", *SMALL, *words, "--out", "new"]))
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m gen soc: error: {message}\n"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("there, words, message", [
    (None, [], "litex is missing; install it with: pip install 'hbfp[soc]'"),
    (True, ["--v-words", "16384", "--device", "LFE5U-12F"],
     ("--device LFE5U-12F: is too small for this accelerator: it needs 168 block RAMs at least, and it has 56; "
      "LFE5U-85F would do"))])
def test_refused_when_it_is_made(there, words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("hbfp.extras.find_spec", lambda name: there)
    with pytest.raises(SystemExit) as stop:
        command.main([*SMALL, *words, "--out", str(tmp_path / "new")])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m gen soc: error: {message}\n"
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(find_spec("litex") is None, reason="no LiteX: pip install 'hbfp[soc]'")
def test_what_is_written_for_a_board(tmp_path):
    (tmp_path / "firmware").write_bytes(bytes([0x6F, 0, 0, 0, 1, 2, 3]))
    words = [*SMALL, "--firmware", tmp_path / "firmware", "--out", tmp_path / "soc"]
    done = subprocess.run([sys.executable, "-m", "hbfp.gen", "soc", *words], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    folder, gateware = tmp_path / "soc", tmp_path / "soc" / "gateware"
    said = done.stdout.splitlines()
    assert all((folder / line).exists() for line in said) and len(said) == 6
    verilog = (gateware / "hbfp_soc.v").read_text()
    read = re.findall(r"^read_verilog (.*)$", (gateware / "hbfp_soc.ys").read_text(), re.M)
    assert len(read) == 3 and all((gateware / name).exists() for name in read)    # the folder can be taken elsewhere
    assert re.search(r"^synth_ecp5 +-nodsp .*-top hbfp_soc$", (gateware / "hbfp_soc.ys").read_text(), re.M)
    assert str(folder) not in (gateware / "hbfp_soc.ys").read_text()
    assert re.search(r"^hbfp_accelerator_\w+ \w+\($", verilog, re.M) and re.search(r"^VexRiscv \w+\($", verilog, re.M)
    rom = (gateware / "hbfp_soc_rom.init").read_text().split()
    assert [int(word, 16) for word in rom[:2]] == [0x6F, 0x030201]
    pins = (gateware / "hbfp_soc.lpf").read_text()
    assert 'LOCATE COMP "sdram_clock"' in pins and "FREQUENCY" in pins
    numbers = dict(re.findall(r"^#define HBFP_SOC_(\w+) (0x\w+)u$", (folder / "hbfp_soc.h").read_text(), re.M))
    assert numbers["REGISTERS"] == "0x90000000" and numbers["MEMORY"] == "0x40000000"
    assert int(numbers["MEMORY_BYTES"], 16) == 32 << 20 and len(numbers) == 15
    assert "--85k" in (gateware / "build_hbfp_soc.sh").read_text()
    about = json.loads((gateware / "soc.json").read_text())
    assert (about["top"], about["device"], about["package"], about["speed"]) == (
        "hbfp_soc", "LFE5U-85F", "CABGA381", "6")
    assert about["verilog"] == read and "hbfp_soc_rom.init" in about["data"] and about["constraints"] == "hbfp_soc.lpf"
    assert all((gateware / name).exists() for name in (*about["data"], about["constraints"]))
