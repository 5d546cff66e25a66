"""Pretrained models of a folder: perplexity and accuracy are what they are called, and what is missing is named."""

import json
import math
import re
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")

from golden.__main__ import main  # noqa: E402
from golden.study.compare import folder  # noqa: E402
from golden.study.published.samples import Samples  # noqa: E402


def test_perplexity_is_of_words_that_follow():
    """A model that gives every word the same logit is as unsure as there are words."""
    x = torch.randint(7, (20, 5))
    y = torch.cat((x[:, 1:], torch.full((20, 1), -100)), 1)
    samples = Samples((x[:0], y[:0]), (x, y), 0)
    assert folder.perplexity(lambda words: torch.zeros(*words.shape, 7), samples) == pytest.approx(7)
    sure = torch.nn.functional.one_hot(torch.cat((x[:, 1:], x[:, :1]), 1), 7).float() * 100
    parts = iter(sure.split(folder.BATCH))
    assert folder.perplexity(lambda words: next(parts), samples) == pytest.approx(1)
    assert folder.perplexity(lambda words: torch.full((*words.shape, 7), -1e6).index_fill_(
        2, torch.tensor([3]), 1e6), samples) == math.exp(700)                        # no number is beyond FP64's


def test_accuracy_is_a_share():
    x = torch.arange(20.0)[:, None]
    samples = Samples((x[:0], x[:0, 0]), (x, torch.arange(20) % 4), 4)
    assert folder.accuracy(lambda images: torch.eye(4)[torch.zeros(len(images), dtype=torch.long)], samples) == 25


@pytest.mark.parametrize("config, data, message", [
    (None, "text", "Model FOLDER lacks config.json, model.safetensors"),
    ({"architectures": ["BertModel"]}, "text", ("Model FOLDER must be one of words (ForCausalLM) or images "
                                               "(ForImageClassification), not BertModel")),
    ({}, "text", ("Model FOLDER must be one of words (ForCausalLM) or images (ForImageClassification), not one without "
                 "architectures")),
    ({"architectures": ["OPTForCausalLM"]}, "images", "Data DATA must be a file of text for OPTForCausalLM"),
    ({"architectures": ["ViTForImageClassification"]}, "text", ("Data DATA must be a folder of images by class for "
                                                              "ViTForImageClassification"))])
def test_wrong_folders(tmp_path, capsys, config, data, message):
    model, data = tmp_path / "model", tmp_path / data
    model.mkdir()
    if data.name == "images":
        data.mkdir()
    else:
        data.write_text("a b c")
    if config is not None:
        (model / "config.json").write_text(json.dumps(config))
        (model / "model.safetensors").write_text("")
    with pytest.raises(SystemExit):
        main(["compare", str(model), "--data", str(data), "--out", str(tmp_path / "out")])
    message = message.replace("FOLDER", str(model)).replace("DATA", str(data))
    assert capsys.readouterr().err == f"python -m golden: error: {message}\n"


@pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers")
@pytest.mark.parametrize("task, data, title", [("opt", "wiki.test.raw", "perplexity"), ("vit", "val", "accuracy")])
def test_models_of_transformers(tmp_path, capsys, task, data, title):
    assert main(["train", "--task", task, "--data", str(tmp_path / "data"), "--model", str(tmp_path / "model"),
                 "--generate"]) == 0
    assert main(["compare", str(tmp_path / "model"), "--data", str(tmp_path / "data" / data), "--formats",
                 "fp32,hbfp8,2:4-hbfp6,mxfp4,int8-static", "--calibration", str(tmp_path / "data" / data),
                 "--out", str(tmp_path / "out"), "--jobs", "1",
                 "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert re.search(title, found["metric"]) and found["higher"] == (title == "accuracy") and found["post"]
    fp32, hbfp8, *_ = (row["metric"] for row in found["formats"])
    assert hbfp8 == pytest.approx(fp32, rel=0.1) and found["formats"][1]["qsnr"] > 30
