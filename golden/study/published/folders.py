"""Models and data in the layout of Hugging Face: transformers and datasets read the folders, nothing is fetched."""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hbfp import extras, files
from hbfp.extras import need
from hbfp.values import shown

from ...vision import torchvision
from .samples import Batch, Samples
from .task import TaskError

#: Files of a model, one of which holds its weights.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
#: Ending of a file of sentences -> what datasets calls it.
ENDINGS = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".parquet": "parquet"}


def lacking(folder: Path) -> list[str]:
    """What a folder lacks to be a model's."""
    config = [] if (folder / "config.json").is_file() else ["config.json"]
    return config if any((folder / name).is_file() for name in WEIGHTS) else [*config, WEIGHTS[0]]


def digest(folder: Path) -> str:
    """A name that follows from the files of a model."""
    return files.digest(path for path in sorted(folder.glob("*"))
                        if path.suffix in (".json", ".safetensors", ".bin", ".txt", ".model"))[:16]


def prepare() -> None:
    """Tell libraries of Hugging Face to stay off the network; torchvision, which they import, is there first, if it is
    there."""
    need("transformers")
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    if not extras.lacking("torchvision"):
        torchvision()


def _library(name):
    """A library of Hugging Face."""
    prepare()
    need(name)
    library = __import__(name)
    if name == "datasets":
        library.disable_progress_bars()
    else:
        library.utils.logging.disable_progress_bar()
    return library


def _read(call: Callable[[], Any], what: str) -> Any:
    """What a library reads; its complaint is one line."""
    try:
        return call()
    except Exception as error:    # of many kinds, by file and version
        line = next(iter(str(error).splitlines()), "")
        raise TaskError(f"{what} cannot be read: {type(error).__name__}: {shown(line, 300)}") from error


class Logits(nn.Module):
    """A model of transformers that takes one tensor and gives its logits.

    Parameters
    ----------
    net : torch.nn.Module
        The model.
    name : str
        What it calls that tensor. Of ``input_ids`` with another dimension the second half is the attention mask.
    """

    def __init__(self, net: nn.Module, name: str) -> None:
        super().__init__()
        self.net, self.name = net, name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits, the last dimension classes or words."""
        given = {self.name: x}
        if self.name == "input_ids" and x.dim() == 3:
            given = {self.name: x[:, 0], "attention_mask": x[:, 1]}
        return self.net(**given).logits


def _model(kind, folder, name, **options):
    transformers = _library("transformers")
    net = _read(lambda: getattr(transformers, kind).from_pretrained(
        folder, local_files_only=True, dtype=torch.float32, **options), f"model {folder}")
    return Logits(net, name).train()


def classifier(outputs: int, folder: Path) -> nn.Module:
    """A classifier of sentences: BERT and others."""
    return _model("AutoModelForSequenceClassification", folder, "input_ids", num_labels=outputs)


def causal(outputs: int, folder: Path) -> nn.Module:
    """A model of the next word: OPT, Llama and others."""
    return _model("AutoModelForCausalLM", folder, "input_ids", use_cache=False)


def images(outputs: int, folder: Path) -> nn.Module:
    """A classifier of images: ViT and others."""
    return _model("AutoModelForImageClassification", folder, "pixel_values")


def _tokenizer(models):
    transformers = _library("transformers")
    return _read(lambda: transformers.AutoTokenizer.from_pretrained(models, local_files_only=True),
                 f"tokenizer of {models}")


def sentences(folder: Path, models: Path, *, train: str, test: str, text: str = "sentence", label: str = "label",
              length: int = 128) -> Samples:
    """Sentences and their classes, from files of CSV, JSON lines or Parquet by their ending."""
    datasets, tokenizer = _library("datasets"), _tokenizer(models)

    def read(name):
        kind = ENDINGS.get(Path(name).suffix)
        if kind is None:
            raise TaskError(f"{name} must end in one of {', '.join(ENDINGS)}")
        sign = {"sep": "\t"} if name.endswith(".tsv") else {}
        table = _read(lambda: getattr(datasets.Dataset, f"from_{kind}")(str(folder / name), keep_in_memory=True,
                                                                       **sign), name)
        for column in (text, label):
            if column not in table.column_names:
                raise TaskError(f"{name} has no column {column}, only {', '.join(table.column_names)}")
        words = tokenizer([str(each) for each in table[text]], padding="max_length", truncation=True,
                          max_length=length, return_tensors="pt")
        return torch.stack((words["input_ids"], words["attention_mask"]), 1), torch.tensor(table[label])
    learned, judged = read(train), read(test)
    return Samples(learned, judged, 1 + max(int(classes.max()) for _, classes in (learned, judged)))


def text(folder: Path, models: Path, *, test: str, length: int = 2048) -> Samples:
    """A text in pieces of ``length`` words; the last, shorter one is left out."""
    words = _tokenizer(models)((folder / test).read_text(encoding="utf-8"), return_tensors="pt",
                               verbose=False)["input_ids"][0]
    count = len(words) // length
    if not count:
        raise TaskError(f"{test} has {len(words)} words, fewer than data.length, {length}")
    x = words[:count * length].view(count, length)
    y = torch.cat((x[:, 1:], torch.full((count, 1), -100)), 1)
    return Samples((x[:0], y[:0]), (x, y), 0)


class Pictures:
    """Images to judge by: a folder of classes, each a folder of files; classes are numbered in the order of names."""

    def __init__(self, folder: Path, models: Path, test: str) -> None:
        transformers = _library("transformers")
        need("torchvision")
        vision = torchvision()
        self.found = _read(lambda: vision.datasets.ImageFolder(folder / test), test)
        self.processor = _read(lambda: transformers.AutoImageProcessor.from_pretrained(models, local_files_only=True),
                               f"image processor of {models}")
        self.outputs, self.folder = len(self.found.classes), folder
        self.note = f"{len(self.found)} images of {self.outputs} classes to judge by"

    def tests(self, size: int) -> Iterator[Batch]:
        """All images."""
        for start in range(0, len(self.found), size):
            pairs = [self.found[index] for index in range(start, min(start + size, len(self.found)))]
            x = self.processor(images=[image for image, _ in pairs], return_tensors="pt")["pixel_values"]
            yield (x,), torch.tensor([label for _, label in pairs])

    def judged(self, size: int) -> int:
        """Batches to judge by."""
        return -(-len(self.found) // size)

    def digest(self) -> str:
        """A name that follows from all files."""
        found = hashlib.sha256()
        for path, _ in self.found.samples:
            found.update(str(Path(path).relative_to(self.folder)).encode() + Path(path).read_bytes())
        return found.hexdigest()[:16]


def pictures(folder: Path, models: Path, *, test: str = "val") -> Pictures:
    """Images as ImageNet's validation data lie: a folder for each class."""
    return Pictures(folder, models, test)
