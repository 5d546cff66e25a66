"""Products of networks, from the networks themselves.

Covers: golden/perf/pods/trace.py, golden/perf/pods/bert.py, golden/perf/pods/catalogue.py.
"""

import pytest
import torch
from torch import nn

from golden.perf.pods.catalogue import NAMES, SIZES, STUDY
from golden.perf.pods.graph import Reach
from golden.perf.pods.networks import from_file, named
from golden.perf.pods.trace import UntileableError, trace


def operations(graph, size=32):
    return sum(each.groups * -(-each.m // size) * -(-each.k // size) * -(-each.n // size) for each in graph.gemms)


@pytest.mark.parametrize("name, products, macs, tiles", [
    ("resnet50", 54, 4089184256, 140720), ("resnet50-v1", 54, 3857973248, 133520),
    ("densenet121", 121, 2834161664, 92128),
    ("bert-medium@128", 64, 8 * (12 * 128 * 512**2 + 2 * 128**2 * 512), 102400)])
def test_sizes(name, products, macs, tiles):
    graph = named(name)
    assert (len(graph.gemms), graph.macs, operations(graph)) == (products, macs, tiles)


def test_the_study_is_in_the_catalogue():
    assert len(set(STUDY)) == 10 and set(STUDY) < set(NAMES) == set(SIZES)


def test_batches_and_sizes():
    assert named("resnet50", 2).macs == 2 * named("resnet50").macs
    assert named("bert-medium@64").gemms[0].m == 64


class Toy(nn.Module):
    """Branches, a concatenation, a pool, a residual, and a product at the end."""

    def __init__(self):
        super().__init__()
        self.first, self.left = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 1)
        self.right, self.wide = nn.Conv2d(8, 4, 3, 2, 1), nn.Conv2d(8, 8, (1, 3), padding=(0, 1), groups=2)
        self.last = nn.Linear(8, 10)

    def forward(self, x):
        x = self.first(x).relu_()
        y = torch.cat((nn.functional.max_pool2d(self.left(x), 2), self.right(x)), 1)
        y = y + self.wide(y)
        return self.last(y.mean((2, 3)))


def test_what_reads_what():
    graph = trace("toy", Toy(), (torch.empty(2, 3, 8, 8),))
    first, left, right, wide, last = graph.gemms
    assert (first.m, first.k, first.n, first.images, first.height, first.width) == (128, 27, 8, 2, 8, 8)
    assert dict(left.sources) == {0: Reach()} and dict(right.sources) == {0: Reach(2, -1, 1, False)}
    assert dict(wide.sources) == {1: Reach(2, 0, 1, False), 2: Reach(1, 0, 0, False)}
    assert (wide.groups, wide.k, wide.n) == (2, 12, 4)
    assert dict(last.sources) == {1: None, 2: None, 3: None} and (last.m, last.k, last.n) == (2, 8, 10)


def test_attention_reads_keys_whole_and_scores_by_rows():
    graph = named("bert-medium@16")
    scores, mixed, out = graph.gemms[3:6]
    assert scores.stacked and dict(scores.sources) == {0: None, 1: None}
    assert dict(mixed.sources) == {3: Reach(), 2: None} and dict(out.sources) == {4: Reach(heads=True)}


def test_gradients_are_products_too():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    graph = trace("mlp", model, (torch.empty(32, 64),), train=True)
    shapes = sorted((each.m, each.k, each.n) for each in graph.gemms)
    assert len(shapes) == 5 and sorted(sorted(each) for each in shapes) == sorted(
        [[32, 64, 128], [10, 32, 128], [10, 32, 128], [10, 32, 128], [32, 64, 128]])
    assert [dict(each.sources) for each in graph.gemms] == [
        {}, {0: Reach()}, {1: Reach()}, {1: None, 0: None}, {2: None, 0: None}]


class Other(nn.Module):
    """A layer that is no product that can be cut."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize("layer, shape, message", [
    (nn.ConvTranspose2d(4, 4, 2), (1, 4, 4, 4), "a transposed convolution is none that can be cut into tiles"),
    (nn.ReLU(), (4,), "has no product of matrices")])
def test_models_that_are_refused(layer, shape, message):
    with pytest.raises(UntileableError, match=f"^{message}$"):
        trace("other", Other(layer), (torch.empty(shape),))


@pytest.mark.parametrize("text, message", [
    ("def model(): pass", "defines no function inputs()"),
    ("def model(): return 1\ndef inputs(): return ()", "model() gives int, not a torch.nn.Module"),
    ("import torch\ndef model(): return torch.nn.Linear(1, 1)\ndef inputs(): return 1",
     "inputs() gives no tuple of tensors"),
    ("1 +", "SyntaxError: invalid syntax ({}, line 1)")])
def test_files_that_are_refused(text, message, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(ValueError) as refused:
        from_file(path)
    assert str(refused.value) == f"{path}: {message.format('mine.py')}"


def test_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("import torch\ndef model(): return torch.nn.Linear(8, 4)\ndef inputs(): return torch.ones(2, 8),\n")
    gemm, = from_file(path).gemms
    assert (gemm.m, gemm.k, gemm.n) == (2, 8, 4)
