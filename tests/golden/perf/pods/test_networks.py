"""Products of networks, from the networks themselves.

Covers: golden/perf/pods/trace.py, golden/lower/bert.py, golden/perf/pods/catalogue.py, golden/vision.py.
"""

import copy
import re
import sys

import pytest
import torch
from torch import nn

from golden.lower.bert import Bert, Config
from golden.lower.formats import formats
from golden.lower.graph import traced
from golden.lower.zoo import ZOO, zoo
from golden.nn import convert
from golden.perf.pods.catalogue import NAMES, SIZES, STUDY
from golden.perf.pods.graph import Reach
from golden.perf.pods.networks import from_file, lowered, named, network
from golden.perf.pods.trace import UntileableError, trace
from golden.vision import torchvision
from hbfp.design import Design
from hbfp.system import Accelerator
from hbfp.values import OptionError
from tests.cases import sweep


def operations(graph, size=32):
    return sum(each.groups * -(-each.m // size) * -(-each.k // size) * -(-each.n // size) for each in graph.gemms)


@pytest.mark.parametrize("name, products, macs, tiles", [
    ("resnet50", 54, 4089184256, 140720), ("resnet50-v1", 54, 3857973248, 133520),
    ("densenet121", 121, 2834161664, 92128),
    ("bert-medium@128", 64, 8 * (12 * 128 * 512**2 + 2 * 128**2 * 512), 102400),
    ("bert-medium-v1@100", 8 * 22 + 3, 2624979968, 103696)])
def test_sizes(name, products, macs, tiles):
    graph = named(name)
    assert (len(graph.gemms), graph.macs, operations(graph)) == (products, macs, tiles)


@pytest.mark.parametrize("error", ["OSError", "ImportError", "RuntimeError"])
def test_a_torchvision_that_does_not_fit(tmp_path, monkeypatch, error):
    (tmp_path / "torchvision.py").write_text(f"raise {error}('libcudart.so: cannot open')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [each for each in sys.modules if each.split(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    line = (f"torchvision cannot be loaded beside torch {torch.__version__} (libcudart.so: cannot open); install both "
            "of one build: pip install 'hbfp[networks]'")
    with pytest.raises(OptionError, match=f"^{re.escape(line)}$"):
        torchvision()


def test_the_study_is_in_the_catalogue():
    assert len(set(STUDY)) == 10 and set(STUDY) < set(NAMES) == set(SIZES)


def test_heads_apart_give_the_same_numbers():
    torch.manual_seed(1)
    config, x = Config(2, 16, 4), torch.randn(2, 5, 16)
    together, apart = Bert(config), Bert(config, True)
    apart.load_state_dict(together.state_dict())
    torch.testing.assert_close(apart(x), together(x))


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
    ("def model(): pass", "Model {} must define inputs()"),
    ("def model(): return 1\ndef inputs(): return ()", "model() of {} must give a torch.nn.Module, not int"),
    ("import torch\ndef model(): return torch.nn.Linear(1, 1)\ndef inputs(): return 1",
     "inputs() of {} must give a tuple of tensors, not int"),
    ("import torch\ndef model(): return torch.nn.Linear(1, 1)\ndef inputs(): return 1,",
     "inputs() must give tensors alone"),
    ("import torch\ndef model(): return torch.nn.Linear(1, 1)\ndef inputs(): return torch.ones(2, 3),",
     ("The model cannot be lowered: neither torch.export nor torch.fx traces it (a and b must have same "
       "reduction dim, but got "
      "[2, 3] X [1, 1].); a forward whose path does not depend on values would do")),
    (("import torch\ndef model(): return [torch.nn.Linear(4, n) for n in (1, 1, 2)]\n"
      "def inputs(): return torch.ones(2, 4),"),
     "Model 2 of the job has other products than model 0; models of one shape would do"),
    ("1 +", "Model {} does not run: SyntaxError: invalid syntax (mine.py, line 1)")])
def test_files_that_are_refused(text, message, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(ValueError) as refused:
        from_file(path)
    assert str(refused.value) == f"{path}: {message.format(path)}"


def test_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("import torch\ndef model(): return torch.nn.Linear(8, 4)\ndef inputs(): return torch.ones(2, 8),\n")
    gemm, = from_file(path).gemms
    assert (gemm.m, gemm.k, gemm.n) == (2, 8, 4)


def test_a_file_of_a_job(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("import torch\nfrom torch import nn\n"
                    "def model(): return [nn.Sequential(nn.Linear(8, 6), nn.Linear(6, 4)) for _ in range(3)]\n"
                    "def inputs(): return torch.ones(2, 8),\n")
    graph = from_file(path)
    assert [each.k for each in graph.gemms] == [8] * 3 + [6] * 3
    assert [dict(each.sources) for each in graph.gemms[3:]] == [{0: Reach()}, {1: Reach()}, {2: Reach()}]


class Positions(nn.Module):
    """Makes a tensor of its own."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x + torch.arange(4.0))


def test_tensors_that_a_forward_makes():
    assert lowered("positions", Positions(), (torch.ones(2, 4),)).macs == 2 * 4 * 4


# --- The lowering that the accelerator has --------------------------------------------------------

TEN = [pytest.param(name, marks=[] if name in ("bert-medium",) else pytest.mark.slow) for name in STUDY]


@pytest.mark.parametrize("name", TEN)
def test_the_exported_graph_has_the_same_products(name):
    with torch.device("meta"):
        assert lowered(name, *network(name)) == named(name)


def test_gradients_of_the_exported_graph():
    model, given = nn.Sequential(nn.Linear(64, 128), nn.ReLU(inplace=True), nn.Linear(128, 10)), (torch.empty(32, 64),)
    assert lowered("mlp", model, given, train=True) == trace("mlp", model, given, train=True)


@pytest.mark.parametrize("name", sweep(2, ["toy", "bert-medium@16"]))
def test_converted_models_have_the_same_products(name):
    """Also which of them feed which, by rows."""
    with torch.device("meta"):
        model, given = (Toy(), (torch.empty(2, 3, 8, 8),)) if name == "toy" else network(name)
        plain = trace(name, model, given)
        assert lowered(name, convert(model, "hbfp8"), given) == plain


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "lstm" else pytest.mark.slow)
                                  for name in ZOO])
def test_products_are_those_of_the_accelerators_programs(name):
    model, given = zoo(name)
    lower_graph = traced(model, given, ACCELERATOR)
    converted = lowered(name, convert(copy.deepcopy(model), formats(ACCELERATOR)), given)
    assert [(each.groups, each.m, each.k, each.n) for each in converted.gemms] == products(lower_graph)
    assert converted.macs == lowered(name, model, given).macs


ACCELERATOR = Accelerator(core=Design(rows=16))


def products(graph):
    """Groups, m, k, n of all products of a graph of the accelerator's lowering; those of constants alone, such as an
    LSTM's first state, are in no program, but here."""
    found = []
    for node in graph.results:
        if node.op != "call_function":
            continue
        result, *operands = (graph.results[each] for each in (node, *node.all_input_nodes[:2]))
        if node.target == torch.ops.hbfp.linear.default:
            found.append((1, operands[0].numel() // operands[0].shape[-1], *reversed(operands[1].shape)))
        elif node.target == torch.ops.hbfp.matmul.default:
            found.append((result.shape[:-2].numel(), result.shape[-2], operands[0].shape[-1], result.shape[-1]))
        elif node.target == torch.ops.hbfp.conv2d.default:
            groups = node.args[5]
            found.append((groups, result[:, 0].numel(), operands[1][0].numel(), result.shape[1] // groups))
    return found
