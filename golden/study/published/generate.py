"""Small generated data in the layout of the true ones: what tries a task without them."""

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

#: Generated images of a file.
IMAGES = 64


def _images(seed, count, classes):
    """uint8 (count, 3, 32, 32) whose colours and stripes tell their class, and the classes."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    pattern = np.random.default_rng(0).integers(0, 256, (classes, 3, 4, 4)).repeat(8, 2).repeat(8, 3)
    noise = rng.integers(0, 256, (count, 3, 32, 32))
    return ((pattern[labels] * 3 + noise) // 4).astype(np.uint8), labels


def _dump(path: Path, table: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(dict(table)))


def _cifar10(folder: Path, **options: Any) -> None:
    base = folder / "cifar-10-batches-py"
    for seed, name in enumerate((*(f"data_batch_{n}" for n in range(1, 6)), "test_batch")):
        x, y = _images(seed, IMAGES, 10)
        _dump(base / name, {"data": x.reshape(len(x), -1), "labels": y.tolist()})
    _dump(base / "batches.meta", {"label_names": [f"class{n}" for n in range(10)]})


def _cifar100(folder: Path, **options: Any) -> None:
    base = folder / "cifar-100-python"
    for seed, (name, count) in enumerate({"train": 5 * IMAGES, "test": 2 * IMAGES}.items()):
        x, y = _images(seed, count, 100)
        _dump(base / name, {"data": x.reshape(len(x), -1), "fine_labels": y.tolist()})
    _dump(base / "meta", {"fine_label_names": [f"class{n}" for n in range(100)]})


def _words(folder: Path, *, train: str, test: str, **options: Any) -> None:
    """Sentences of a small grammar, a line each."""
    rng = np.random.default_rng(0)
    parts = [[f"{kind}{n}" for n in range(6)] for kind in ("the", "noun", "verb", "end")]
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in ((train, 400), (test, 60)):
        text = (" ".join(rng.choice(words) for words in parts) for _ in range(lines))
        (folder / name).write_text("".join(f" {line} \n" for line in text))


#: Kind of data -> what writes a few of them into a folder.
GENERATORS: dict[str, Callable[..., None]] = {"cifar10": _cifar10, "cifar100": _cifar100, "words": _words}
