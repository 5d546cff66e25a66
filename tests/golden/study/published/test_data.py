"""Data of a folder: generated ones in the true layout are read, and each step's follow from seed and step alone.

Covers: golden/study/published/generate.py, golden/study/published/samples.py.
"""

import re

import pytest

torch = pytest.importorskip("torch")

from golden.study.published import generate  # noqa: E402
from golden.study.published.data import Words, cropped, lacking, load  # noqa: E402
from golden.study.published.task import TaskError  # noqa: E402

CIFAR = {"cifar10": (["cifar-10-batches-py/" + name for name in (
    "data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch", "batches.meta")], 10,
    40, 8), "cifar100": (["cifar-100-python/" + name for name in ("train", "test", "meta")], 100, 40, 16)}


@pytest.mark.parametrize("kind", CIFAR)
def test_cifar(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "IMAGES", 8)
    files, classes, train, test = CIFAR[kind]
    assert lacking({"kind": kind}, tmp_path) == files
    generate.GENERATORS[kind](tmp_path)
    assert lacking({"kind": kind}, tmp_path) == []
    (tmp_path / files[1]).rename(tmp_path / "elsewhere")
    assert lacking({"kind": kind}, tmp_path) == files[1:2]
    (tmp_path / "elsewhere").rename(tmp_path / files[1])
    data, plain = load({"kind": kind}, tmp_path), load({"kind": kind, "augment": False}, tmp_path)
    assert data.note == f"{train} samples to train on, {test} to judge by, not those that are published"
    assert (data.outputs, data.steps(16), data.digest()) == (classes, 2, plain.digest())
    (x,), y = data.batch(3, 1, 16)
    (again,), _ = data.batch(3, 1, 16)
    (other,), _ = data.batch(4, 1, 16)
    (still,), y_still = plain.batch(3, 1, 16)
    assert x.shape == (16, 3, 32, 32) and x.dtype == torch.float32 and torch.equal(x, again)
    assert not torch.equal(x, other) and not torch.equal(x, still) and torch.equal(y, y_still)
    seen = torch.cat([plain.batch(0, step, 8)[0][0] for step in range(5)])
    assert len(seen.flatten(1).unique(dim=0)) == train               # every image once in an epoch
    assert sum(len(y) for _, y in data.tests(3)) == test


def test_a_broken_file(tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "IMAGES", 1)
    generate.GENERATORS["cifar100"](tmp_path)
    (tmp_path / "cifar-100-python/train").write_bytes(b"")
    line = f"data of {tmp_path} cannot be read: EOFError: Ran out of input"
    with pytest.raises(TaskError, match=f"^{re.escape(line)}$"):
        load({"kind": "cifar100"}, tmp_path)


def test_cropped_by_hand():
    x = torch.randn(6, 2, 5, 7)
    generator = torch.Generator().manual_seed(1)
    got = cropped(x, generator, border=2)
    generator.manual_seed(1)
    down, right = torch.randint(5, (2, 6, 1), generator=generator)
    mirrored = torch.randint(2, (6, 1), generator=generator).bool()
    assert 0 < mirrored.sum() < 6
    for n, image in enumerate(x):
        padded = torch.nn.functional.pad(image, (2, 2, 2, 2))
        part = padded[:, down[n, 0]:down[n, 0] + 5, right[n, 0]:right[n, 0] + 7]
        assert torch.equal(got[n], part.flip(2) if mirrored[n] else part)


def test_words(tmp_path):
    table = {"kind": "words", "train": "a.txt", "test": "b.txt", "length": 4}
    assert lacking(table, tmp_path) == ["a.txt", "b.txt"]
    (tmp_path / "a.txt").write_text(" x y \n z x y\n")
    (tmp_path / "b.txt").write_text("y new\nx z\n")
    data = load(table, tmp_path)
    assert data.train.tolist() == [0, 1, 2, 3, 0, 1, 2] and data.test.tolist() == [1, 4, 2, 0, 3, 2]
    assert data.note == "7 words to train on, 6 to judge by, 5 different"


@pytest.mark.parametrize("size, length", [(1, 4), (3, 4), (4, 24), (4, 23), (2, 100)])
def test_a_text_is_read_in_rows(size, length):
    data = Words(torch.arange(100), torch.arange(20), 100, length)
    pieces = [data.batch(0, step, size) for step in range(data.steps(size))]
    rows = torch.cat([x for (x,), _ in pieces], 1)
    assert torch.equal(rows, torch.arange(100 // size * size).view(size, -1)[:, :-1])
    assert all(torch.equal(x + 1, y) for (x,), y in pieces) and pieces[0][0][0].shape[1] <= length
    assert torch.equal(data.batch(0, data.steps(size), size)[1], pieces[0][1])           # the next epoch
