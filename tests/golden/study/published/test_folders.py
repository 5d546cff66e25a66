"""Models and data from folders: what they lack is named; transformers' own figures are ours in FP32."""

import json
import re
from importlib.util import find_spec
from math import exp
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from golden.__main__ import main  # noqa: E402
from golden.study.published import folders, task  # noqa: E402
from golden.study.published.models import model  # noqa: E402

#: Task -> what makes it small.
SMALL = {"opt": {"2048": "16", "batch = 1\n": "batch = 8\n"}, "llama": {"2048": "16", "batch = 1\n": "batch = 8\n"},
         "vit": {}, "bert": {"length = 128": "length = 8", "2e-5": "1e-2", "batch = 32": "batch = 8"}}


def test_what_a_model_lacks(tmp_path):
    assert folders.lacking(tmp_path) == ["config.json", "model.safetensors"]
    (tmp_path / "config.json").write_text("{}")
    assert folders.lacking(tmp_path) == ["model.safetensors"]
    before = folders.digest(tmp_path)
    (tmp_path / "pytorch_model.bin").write_text("")
    assert folders.lacking(tmp_path) == [] and folders.digest(tmp_path) != before


def refused(words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", *map(str, words)])
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    return err.removeprefix("python -m golden: error: ")


def test_wrong_folders(tmp_path, capsys):
    start = ["--task", "opt"]
    assert refused(start, capsys) == ("--data: must be a folder with wiki.test.raw for task opt; nothing is "
                                      "downloaded, --generate writes a few that try it\n")
    start += ["--data", tmp_path]
    assert refused(start, capsys) == ("--model: must be a folder with config.json, weights and what prepares the data "
                                      "for task opt; nothing is downloaded, --generate writes a few that try it\n")
    start += ["--model", tmp_path]
    assert refused(start, capsys) == f"--data {tmp_path}: lacks wiki.test.raw\n"
    (tmp_path / "wiki.test.raw").write_text("a b")
    assert refused(start, capsys) == f"--model {tmp_path}: lacks config.json, model.safetensors\n"
    assert refused([*start, "--steps", 3], capsys) == "--steps 3: has no effect on task opt, which trains nothing\n"
    assert refused(["--task", "resnet20-cifar10", "--model", "x"], capsys) == (
        "--model x: has no effect on task resnet20-cifar10, which needs no such folder\n")
    assert refused(["--task", "digits", "--formats", "fp32", "--generate"], capsys) == (
        "--generate: has no effect on task digits, which needs no folder\n")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_text("")
    said = refused(start, capsys)
    assert said == ("transformers is missing; install it with: pip install 'hbfp[experiments]'\n"
                    if not find_spec("transformers") else said) and said.count("\n") == 1


@pytest.fixture
def small(tmp_path, capsys):
    """From a task's name to the options with which it runs, small, on generated data."""
    for name in ("transformers", "datasets"):
        if not find_spec(name):
            pytest.skip(f"needs {name}")

    def make(name):
        text = (task.FOLDER / f"{name}.toml").read_text()
        for old, new in SMALL[name].items():
            assert old in text
            text = text.replace(old, new)
        (tmp_path / f"{name}.toml").write_text(text)
        words = ["train", "--task", str(tmp_path / f"{name}.toml"), "--data", str(tmp_path / "data"), "--model",
                 str(tmp_path / "model")]
        assert main([*words, "--generate"]) == 0
        capsys.readouterr()
        return [*words, "--out", str(tmp_path)]
    return make


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SMALL)
def test_every_table(name, small, tmp_path):
    main(small(name))
    found = json.loads((tmp_path / f"{name}.json").read_text())
    ours = {row["format"]: row["ours"] for row in found["rows"]}
    assert list(ours) == list(task.read(name).formats) and None not in ours.values()
    assert len(list((tmp_path / "layers").iterdir())) == len(ours)
    if name == "bert":
        assert ours["fp32"] == ours["hbfp8_64"] == 100               # the second word says the class
    if name in ("opt", "llama"):
        import transformers
        tokens = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")(
            (tmp_path / "data/wiki.test.raw").read_text(), return_tensors="pt").input_ids[0]
        net = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model").eval()
        pieces = tokens[:len(tokens) // 16 * 16].view(-1, 16)
        with torch.no_grad():
            loss = torch.stack([net(input_ids=each[None], labels=each[None]).loss for each in pieces]).double().mean()
        assert ours["fp32"] == pytest.approx(exp(loss), rel=1e-5)
        assert len(set(ours.values())) == len(ours)                  # each format, and each order, is another


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_read(small, tmp_path, capsys):
    words = small("bert")[1:]
    path = Path(tmp_path / "data/train.csv")
    path.write_text("words,label\na,1\n")
    assert refused(words[:-2] + ["--out", tmp_path], capsys) == "train.csv has no column sentence, only words, label\n"
    (tmp_path / "model/model.safetensors").write_text("nothing")
    with pytest.raises(task.TaskError, match=f"^model {re.escape(str(tmp_path / 'model'))} cannot be read: "
                                             r"SafetensorError: .*$"):
        model({"kind": "classifier"}, 2, tmp_path / "model")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_events(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    main(["train", "--task", "digits", "--formats", "fp32", "--epochs", "2", "--batch", "700", "--tensorboard", "--out",
          str(tmp_path)])
    folder, = (tmp_path / "tensorboard").iterdir()
    events = EventAccumulator(str(folder))
    events.Reload()
    curve = json.loads((tmp_path / "digits.json").read_text())["results"][0]["curve"]
    for name in ("loss", "error", "rate", "test loss"):
        got = [(each.step, each.value) for each in events.Scalars(name)]
        assert got == [(point["step"], pytest.approx(point[name], rel=1e-6)) for point in curve]
