"""``python -m cosim operands``: a file of payloads, and what is said of a workload that is none."""

import numpy as np
import pytest

from cosim.__main__ import main


def test_a_file_of_payloads(tmp_path, capsys):
    path = tmp_path / "digits.npz"
    assert main(["operands", "--rows", "4", "--block", "1,4", "--workload", "digits", "--out", str(path)]) == 0
    with np.load(path) as data:
        assert set(data) == {"i_cmd", "i_x", "i_w", "o", "i_q", "o_q", "every", "commands", "names"}
        assert list(data["names"]) == ["layer 1", "layer 1", "layer 2", "layer 2", "layer 2"]
        beats, macs = data["commands"].sum(0)
    assert capsys.readouterr().out == f"{path}: 5 commands, {beats:,} rows of X, {macs:,} multiply-accumulates\n"


@pytest.mark.parametrize("name", ["nothing", "missing.py"])
def test_wrong_workload(capsys, name):
    with pytest.raises(SystemExit) as caught:
        main(["operands", "--workload", name])
    assert caught.value.code == 2
    assert capsys.readouterr().err == (
        f"python -m cosim operands: error: --workload {name}: must be gaussian, digits, mlp, cnn, resnet20, "
        "transformer, lstm, resnet50, bert-base, lstm-2048, gemm-MxKxN or a Python file\n")


def test_a_model_that_multiplies_nothing(tmp_path, capsys):
    path = tmp_path / "still.py"
    path.write_text("import torch\ndef model():\n    return torch.nn.Identity()\ndef inputs():\n"
                    "    return (torch.ones(1),)\n")
    with pytest.raises(SystemExit) as caught:
        main(["operands", "--rows", "4", "--block", "1,4", "--workload", str(path), "--out", str(tmp_path / "x.npz")])
    assert caught.value.code == 2
    assert capsys.readouterr().err == (f"python -m cosim operands: error: --workload {path}: cannot be recorded: Model "
                                       f"{path} has no matrix product\n")
    assert not (tmp_path / "x.npz").exists()
