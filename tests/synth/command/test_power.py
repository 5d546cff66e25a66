"""``python -m synth power``: what is said of bad options."""

import pytest

from synth.__main__ import main


@pytest.mark.parametrize("words, line", [
    (["--recipe", "generic"], "--recipe generic: must be one of area, adders, stock, speed"),
    (["--period", "0"], "--period 0: must be 0.01 to 1000"),
    (["--wire", "-1"], "--wire -1: must be 0 to 100"),
    (["--pipelines", "4,99"], "--pipelines 99: must be of 0, 1, 2, 3, 4, 5, 6, 7, 8"),
    (["--against", "fp33"], "--against fp33: must be of fp32, fma, bf16, fp16, int8, int")])
def test_wrong_option(capsys, tmp_path, words, line):
    from ..power.cells import TEXT

    path = tmp_path / "easy.lib"
    path.write_text(TEXT)
    with pytest.raises(SystemExit) as caught:
        main(["power", "--rows", "2", "--block", "1,2", "--liberty", str(path), *words])
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"python -m synth power: error: {line}\n"


@pytest.mark.synth
def test_wrong_workload(capsys, tmp_path):
    """Said before anything is mapped."""
    from ..power.cells import TEXT

    path = tmp_path / "easy.lib"
    path.write_text(TEXT)
    with pytest.raises(SystemExit) as caught:
        main(["power", "--rows", "2", "--block", "1,2", "--liberty", str(path), "--workload", "nothing", "--out",
              str(tmp_path / "out")])
    assert caught.value.code == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith(
        "python -m synth power: error: --workload nothing: must be gaussian, digits, mlp, ")
    assert not (tmp_path / "out").exists()
