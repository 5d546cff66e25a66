"""A pretrained model of a folder in Hugging Face's layout, judged on the user's data; nothing is fetched."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from ..published import folders
from ..published.samples import Samples

#: Tokens of a piece of text, and images or pieces of a batch.
LENGTH, BATCH = 256, 8


def functions(folder: Path, data: Path, calibration: Path | None = None) -> dict[str, Callable[..., Any]]:
    """What a user's file would define: ``model``, ``inputs``, ``metric``, ``better``, and perhaps
    ``calibration``.

    Parameters
    ----------
    folder : path
        ``config.json``, weights, and the tokenizer or image processor.
    data : path
        A text, of which a language model's perplexity is found, or a folder with a folder of images for each class.
    calibration : path, optional
        Another of the same kind, whose first batches fixed scales follow from.

    Raises
    ------
    ValueError
        If a file is missing, or the model is none of words or images; one line.
    """
    lacking = folders.lacking(folder)
    if lacking:
        raise ValueError(f"Model {folder} lacks {', '.join(lacking)}")
    kinds = json.loads((folder / "config.json").read_text()).get("architectures") or [""]
    if "ImageClassification" in kinds[0]:
        model, metric, kind, right = folders.images, accuracy, "a folder of images by class", Path.is_dir
    elif kinds[0].endswith(("ForCausalLM", "LMHeadModel")):
        model, metric, kind, right = folders.causal, perplexity, "a file of text", Path.is_file
    else:
        raise ValueError(f"Model {folder} must be one of words (ForCausalLM) or images (ForImageClassification), not "
                         f"{kinds[0] or 'one without architectures'}")
    for what, path in {"Data": data, "Calibration": calibration}.items():
        if path is not None and not right(path):
            raise ValueError(f"{what} {path} must be {kind} for {kinds[0]}")

    def samples(path):
        if metric is accuracy:
            return folders.pictures(path.parent, folder, test=path.name)
        return folders.text(path.parent, folder, test=path.name, length=LENGTH)
    found = _judged(lambda: model(0, folder), samples(data), metric)
    if calibration is not None:
        found["calibration"] = lambda: (x for x, _ in samples(calibration).tests(BATCH))
    return found


def _judged(model, samples, metric):
    def inputs():
        return next(samples.tests(BATCH))[0]

    def judge(net):
        return metric(net, samples)
    judge.__name__ = metric.__name__
    return {"model": model, "inputs": inputs, "metric": judge,
            "better": lambda: "lower" if metric is perplexity else "higher"}


def perplexity(net: nn.Module, samples: Samples) -> float:
    """e to the mean loss of the next word, over all words but each piece's last."""
    loss, count = 0.0, 0
    for (x,), y in samples.tests(BATCH):
        logits = net(x).flatten(0, 1)
        loss += float(nn.functional.cross_entropy(logits.double(), y.flatten(), reduction="sum"))
        count += int((y != -100).sum())
    return math.exp(min(700.0, loss / count))


def accuracy(net: nn.Module, samples: Any) -> float:
    """Share of images whose class has the largest logit, %."""
    pairs = [(int((net(x).argmax(-1) == y).sum()), len(y)) for (x,), y in samples.tests(BATCH)]
    return 100 * sum(right for right, _ in pairs) / sum(count for _, count in pairs)
