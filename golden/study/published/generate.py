"""Small generated data in the layout of the true ones: what tries a task without them."""

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .folders import prepare

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


def _tokenizer(lines, models, special):
    """A tokenizer of whole words."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import PreTrainedTokenizerFast
    words = [*special, *dict.fromkeys(word for line in lines for word in line.split())]
    own = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    own.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=own, unk_token="[UNK]", pad_token="[PAD]").save_pretrained(models)
    return len(words)


def _save(name, models, **options):
    """A model of transformers with first weights, saved."""
    import torch
    import transformers
    kind = getattr(transformers, name)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        kind(kind.config_class(**options)).save_pretrained(models)


def _sentences(folder: Path, models: Path, task: str, *, train: str, test: str, text: str = "sentence",
               label: str = "label", length: int = 128) -> None:
    """Sentences whose class is the second word's."""
    prepare()
    rng, lines = np.random.default_rng(0), []
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in ((train, IMAGES), (test, IMAGES // 2)):
        rows = [(f"the word{rng.integers(9)} is {('bad', 'good')[n % 2]}", n % 2) for n in range(count)]
        sign = "\t" if name.endswith(".tsv") else ","
        (folder / name).write_text("".join(f"{a}{sign}{b}\n" for a, b in [(text, label), *rows]))
        lines += [line for line, _ in rows]
    words = _tokenizer(lines, models, ("[PAD]", "[UNK]"))
    _save("BertForSequenceClassification", models, vocab_size=words, hidden_size=16, num_hidden_layers=2,
          num_attention_heads=2, intermediate_size=32, max_position_embeddings=length)


def _text(folder: Path, models: Path, task: str, *, test: str, length: int = 2048) -> None:
    """The sentences of :func:`_words`, and a model of the task's family."""
    prepare()
    _words(folder, train=test, test=test)
    path = folder / test
    path.write_text(path.read_text() * (1 + 2 * length // len(path.read_text().split())))
    words = _tokenizer([path.read_text()], models, ("[PAD]", "[UNK]"))
    sizes = {"vocab_size": words, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
             "max_position_embeddings": length, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1}
    if task == "llama":
        _save("LlamaForCausalLM", models, intermediate_size=32, num_key_value_heads=2, **sizes)
    else:
        _save("OPTForCausalLM", models, ffn_dim=32, word_embed_proj_dim=16, **sizes)


def _pictures(folder: Path, models: Path, task: str, *, test: str = "val") -> None:
    """Images of two classes as PNG, and a ViT for 32 x 32 pixels."""
    prepare()
    from PIL import Image
    from transformers import ViTImageProcessor
    x, y = _images(0, IMAGES // 4, 2)
    for number, (image, label) in enumerate(zip(x, y, strict=True)):
        path = folder / test / f"class{label}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.transpose(1, 2, 0)).save(path)
    ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(models)
    _save("ViTForImageClassification", models, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
          intermediate_size=32, image_size=32, patch_size=8, num_labels=2)


#: Kind of data -> what writes a few of them into a folder, and a model into another where the task needs one.
GENERATORS: dict[str, Callable[..., None]] = {
    "cifar10": _cifar10, "cifar100": _cifar100, "words": _words, "sentences": _sentences, "text": _text,
    "pictures": _pictures}
