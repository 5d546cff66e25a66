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


def functions(folder: Path, data: Path) -> dict[str, Callable[..., Any]]:
    """What a user's file would define: ``model``, ``inputs``, ``metric`` and ``better``.

    Parameters
    ----------
    folder : path
        ``config.json``, weights, and the tokenizer or image processor.
    data : path
        A text, of which a language model's perplexity is found, or a folder with a folder of images for each class.

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
        if not data.is_dir():
            raise ValueError(f"Data {data} must be a folder of images by class for {kinds[0]}")
        return _judged(lambda: folders.images(0, folder), folders.pictures(data.parent, folder, test=data.name),
                       accuracy)
    if not kinds[0].endswith(("ForCausalLM", "LMHeadModel")):
        raise ValueError(f"Model {folder} must be one of words (ForCausalLM) or images (ForImageClassification), not "
                         f"{kinds[0] or 'one without architectures'}")
    if not data.is_file():
        raise ValueError(f"Data {data} must be a file of text for {kinds[0]}")
    text = folders.text(data.parent, folder, test=data.name, length=LENGTH)
    return _judged(lambda: folders.causal(0, folder), text, perplexity)


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
