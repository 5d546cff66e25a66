"""Models by name and those of a file.

Covers: golden/lower/source.py, golden/lower/bert.py.
"""

import re

import pytest
import torch

from golden.lower.names import SIZED
from golden.lower.zoo import ZOO, source, zoo
from golden.perf.pods.networks import lowered, network
from golden.study.resnet import ResNet50
from hbfp.design import Design
from hbfp.system import Accelerator

from .test_lowering import check

pytestmark = pytest.mark.filterwarnings("ignore")
MACHINE = Accelerator(core=Design(rows=16))


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "lstm" else pytest.mark.slow)
                                  for name in ZOO if name not in SIZED])
def test_models_run_and_are_the_same_every_time(name):
    model, inputs = zoo(name)
    again, twice = zoo(name)
    assert all(torch.equal(a, b) for a, b in zip(inputs, twice, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True))
    check(model, inputs, MACHINE)


@pytest.mark.slow    # its products: tests/golden/perf/pods/test_networks.py
def test_resnet50_has_the_layers_of_torchvision():
    with torch.device("meta"):
        other, (image,) = network("resnet50")
        own = ResNet50()
    assert image.shape == (1, 3, 224, 224)
    assert {name: each.shape for name, each in own.state_dict().items()} == {
        name: each.shape for name, each in other.state_dict().items()}
    assert lowered("resnet50", own, (image,)) == lowered("resnet50", other, (image,))


def test_products_have_names():
    model, inputs = zoo("gemm-5x9x7")
    assert inputs[0].shape == (5, 9) and model(*inputs).shape == (5, 7)
    check(model, inputs, MACHINE)


@pytest.mark.parametrize("name", ["gemm-0x1x1", "gemm-1x1", "gemm-1x1x1x1", "gemm-1x1x1000000", "resnet50:0",
                                  "resnet50:", "bert-base:2000", "mlp:4"])
def test_wrong_products(name):
    with pytest.raises(ValueError, match=f"^Model must be one of .* or a Python file, not {name!r}$"):
        zoo(name)


def test_a_file_gives_model_and_inputs(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("import torch\ndef model(): return torch.nn.Dropout()\ndef inputs(): return (torch.ones(2),)\n")
    model, inputs = source(str(path))
    assert not model.training
    assert torch.equal(model(*inputs), torch.ones(2))


@pytest.mark.parametrize(("text", "line"), [
    (None, ("Model must be one of mlp, cnn, resnet20, transformer, lstm, resnet50, bert-base, lstm-2048, resnet50 and "
            "bert-base and lstm-2048 perhaps with a batch of 1 to 1024 behind a colon, gemm-MxKxN or a Python file, "
            "not 'vgg'")),
    ("model = 1", "Model {path} must define model()"),
    ("def model(): pass", "Model {path} must define inputs()"),
    ("1 / 0", "Model {path} does not run: ZeroDivisionError: division by zero"),
    ("raise ModuleNotFoundError(name='transformers')",
     "Model {path} does not run: transformers is missing; install it with: pip install 'hbfp[experiments]'"),
    ("def model(): return 1 / 0\ndef inputs(): pass", "Model {path} does not run: ZeroDivisionError: division by zero"),
    ("def model(): return 1\ndef inputs(): return ()", "model() of {path} must give a torch.nn.Module, not int"),
    ("import torch\ndef model(): return torch.nn.ReLU()\ndef inputs(): return 1",
     "inputs() of {path} must give a tuple of tensors, not int")])
def test_bad_sources_get_one_line(tmp_path, text, line):
    path = tmp_path / "model.py"
    path.write_text(text or "")
    with pytest.raises(ValueError, match=f"^{re.escape(line.format(path=path))}$"):
        source("vgg" if text is None else str(path))


def test_a_missing_file_is_refused():
    with pytest.raises(ValueError, match=r"^Model nowhere\.py is no file$"):
        source("nowhere.py")
