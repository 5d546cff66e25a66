"""The command line of tables: from a folder to table, picture and files; what is wrong is one line.

Covers: golden/study/published/results.py, golden/study/published/command.py, golden/study/devices.py.
"""

import csv
import json
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")

from golden.__main__ import main  # noqa: E402
from golden.study.published import generate  # noqa: E402
from golden.study.published.formats import RULE  # noqa: E402
from golden.study.published.results import cells, rows  # noqa: E402
from golden.study.published.task import FOLDER, names, read  # noqa: E402


def check(task, formats, folder, shown):
    """Files and what was printed."""
    found = json.loads((folder / f"{task}.json").read_text())
    ours = {row["format"]: row["ours"] for row in found["rows"]}
    assert [name for name, value in ours.items() if value is not None] == formats
    assert [row["published"] for row in found["rows"]] == [read(task).published.get(name) for name in ours]
    with open(folder / f"{task}.csv") as file:
        curves = list(csv.DictReader(file))
    assert [line["format"] for line in curves] == formats and all(float(line["loss"]) > 0 for line in curves)
    assert (folder / f"{task}.png").read_bytes()[:4] == b"\x89PNG"
    assert len(list((folder / "layers").iterdir())) == len(formats) == len(list((folder / "runs").iterdir()))
    assert all(name in shown for name in ours)


def test_a_table_in_two_calls(tmp_path, capsys):
    words = ["train", "--task", "digits", "--batch", "700", "--epochs", "1", "--out", str(tmp_path), "--formats"]
    main([*words, "hbfp8_1x16"])
    check("digits", ["hbfp8_1x16"], tmp_path, capsys.readouterr().out)
    main([*words, "fp32"])
    check("digits", ["fp32", "hbfp8_1x16"], tmp_path, capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["resnet20-cifar10", "resnet50-cifar100", "densenet40-cifar100", "lstm-ptb"])
def test_every_table(task, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(generate, "IMAGES", 4)
    words = ["train", "--task", task, "--data", str(tmp_path / "data")]
    main([*words, "--generate"])
    assert capsys.readouterr().out == f"generated data in {tmp_path / 'data'}\n"
    main([*words, "--steps", "1", "--batch", "4", "--out", str(tmp_path), "--seeds", "1"])
    found = json.loads((tmp_path / f"{task}.json").read_text())
    assert all(row["ours"] is not None for row in found["rows"]) and len(found["rows"]) == len(read(task).formats)


def test_rows_by_hand():
    task = read("resnet20-cifar10")
    table = rows(task, {"hbfp8_576": [{"value": 1.0}, {"value": 3.0}], "hbfp5_64": [{"value": 2.0}]})
    assert [row["format"] for row in table] == [*task.formats, "hbfp5_64"]
    assert cells(table[0]) == ("fp32", "", "", "7.9") and cells(table[-1]) == ("hbfp5_64", "2.00", "1", "")
    assert cells(table[1]) == ("hbfp8_576", "2.00 ± 1.41", "2", "8.4")


FILES = ("cifar-10-batches-py/data_batch_1, cifar-10-batches-py/data_batch_2, cifar-10-batches-py/data_batch_3, "
         "cifar-10-batches-py/data_batch_4, cifar-10-batches-py/data_batch_5, cifar-10-batches-py/test_batch, "
         "cifar-10-batches-py/batches.meta")


@pytest.mark.parametrize("words, line", [
    (["--task", "cifar"], f"--task cifar: must be one of {', '.join(names())}, or a TOML file like these"),
    (["--task", "none.toml"], "--task none.toml: cannot be read (No such file or directory)"),
    (["--task", "resnet20-cifar10"], (f"--data: must be a folder with {FILES} for task resnet20-cifar10; nothing is "
                                     "downloaded, --generate writes a few that try it")),
    (["--task", "resnet20-cifar10", "--data", "/none"], f"--data /none: lacks {FILES}"),
    (["--task", "digits", "--formats", "fp32,hbfp4_8"],
     f"--formats hbfp4_8: {RULE}"),
    (["--task", "digits", "--formats", "hbfp8_64+6"], "--formats hbfp8_64+6: boost must be 8 bits or more, not 6"),
    (["--task", "digits", "--formats", "fp32", "--mantissa", "4"],
     ("--mantissa 4: has no effect on formats by name; options of a design that have one: --exponent, --rounding, "
     "--noise-bits, --subnormals, --accumulate")),
    (["--task", "digits", "--formats", "fp32", "--boost", "6"],
     "--boost 6: has no effect on formats by name; hbfp4_64+6 is boosted"),
    (["--task", "digits", "--formats", "fp32", "--data", "x"],
     "--data x: has no effect on task digits, which needs no such folder"),
    (["--task", "digits", "--formats", "fp32", "--device", "tpu"], "--device tpu: must be one of cpu, cuda"),
    (["--task", "digits", "--seeds", "2"], "--seeds 2: has no effect on this task without --formats"),
])
def test_wrong(words, line, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", *words])
    assert (stop.value.code, capsys.readouterr().err) == (2, f"python -m golden: error: {line}\n")


def test_a_model_that_does_not_fit(tmp_path, capsys):
    path = tmp_path / "own.toml"
    path.write_text((FOLDER / "digits.toml").read_text().replace("[64, 128, 64]", "[63, 10]"))
    with pytest.raises(SystemExit) as stop:
        main(["train", "--task", str(path), "--formats", "fp32", "--out", str(tmp_path), "--steps", "1"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == ("python -m golden: error: the model of own does not run on its data: mat1 and "
                                       "mat2 shapes cannot be multiplied (32x64 and 63x10)\n")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", "--formats", "fp32", "--device", "cuda"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == ("python -m golden: error: --device cuda: torch finds no GPU here; --device cpu "
                                       "works\n")


@pytest.mark.skipif(bool(find_spec("tensorboard")), reason="TensorBoard is there")
def test_no_tensorboard(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", "--formats", "fp32", "--tensorboard"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == ("python -m golden: error: tensorboard is missing; install it with: pip install "
                                       "'hbfp[experiments]'\n")
