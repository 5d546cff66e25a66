"""Several models as one program have the bits that each has alone, and formats of their own are refused.

Covers: golden/lower/formats.py.
"""

import re

import numpy as np
import pytest
import torch
from torch import nn

import golden.nn as gn
from golden.lower.errors import LoweringError
from golden.lower.lowering import lower, lower_job
from golden.lower.zoo import source
from golden.machine.machine import Machine
from golden.nn import fused
from hbfp.format import HBFPFormat
from tests.cases import sweep

from .test_lowering import MACHINES, made, network

pytestmark = pytest.mark.filterwarnings("ignore")


def check(models, inputs, machine):
    """Run a job on the golden machine with its check for races; every tensor has the bits of the model alone."""
    lowered = lower_job(models, inputs, machine)
    device = Machine(lowered.program, races=True)
    device.run()
    outputs = []
    for number, (model, given) in enumerate(zip(models, inputs, strict=True)):
        alone = lower(model, given, machine)
        outputs += [f"{number}/{name}" for name in alone.outputs]
        for name, expected in alone.expected.items():
            own = device.get(f"{number}/{name}")
            np.testing.assert_array_equal(own.view(np.uint32), expected.view(np.uint32), f"{number}/{name}")
    assert lowered.outputs == outputs
    assert len(lowered.program.tensors) == len(lowered.expected)
    return lowered.program


def networks(count):
    """Networks of one architecture with other weights each, and inputs of each."""
    torch.manual_seed(3)
    return [network().eval() for _ in range(count)], [(torch.randn(2, 1, 8, 8),) for _ in range(count)]


def test_models_of_one_architecture():
    models, inputs = networks(2)
    program = check(models, inputs, MACHINES["8"])
    names = [layer.name for layer in program.layers]
    assert names[:4] == ["0/0", "1/0", "0/4", "1/4"] and len(names) == 14
    assert all(first.stop == second.first for first, second in zip(program.layers, program.layers[1:], strict=False))
    assert sum(layer.macs for layer in program.layers) == 2 * sum(
        layer.macs for layer in lower(models[0], inputs[0], MACHINES["8"]).program.layers)


@pytest.mark.parametrize(["names"], sweep(2, [(("network", "glu", "sums"),), (("encoder", "lstm", "linear"),)]))
def test_models_of_several_architectures(names):
    models, inputs = zip(*map(made, names), strict=True)
    check(models, inputs, MACHINES["16-short"])


def test_one_model():
    check(*networks(1), MACHINES["16-hbfp4"])


def pair(*formats, **options):
    """Models of one architecture, each converted to a format of its own, if it has one."""
    torch.manual_seed(1)
    nets = [nn.Sequential(nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 5)) for _ in formats]
    return [net if fmt is None else gn.convert(net, fmt, **options) for net, fmt in zip(nets, formats, strict=True)]


EIGHT = HBFPFormat(mantissa=8, block=(1, 8))
X = torch.randn(3, 20, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("fmt", [EIGHT, HBFPFormat(block=(1, 8), rounding="stochastic", noise_bits=4)])
def test_models_converted_to_the_accelerators_format(fmt):
    job = fused.fuse(pair(fmt, EIGHT, g=HBFPFormat(mantissa=6, block=(1, 8))))
    check(job.models, [(X,), (2 * X,)], MACHINES["8"])
    check(pair(EIGHT, accumulate="aligned"), [(X,)], MACHINES["8-aligned"])


class Head(nn.Module):
    """A layer that stays in FP32."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(20, 20), nn.Linear(20, 3)

    def forward(self, x):
        return self.head(self.body(x))


@pytest.mark.parametrize(("models", "line"), [
    (pair(EIGHT, HBFPFormat(mantissa=4, block=(1, 8))),
     ("Model 1 of the job: Layer '0' has mantissa 4 for x, the accelerator 8; golden.nn.convert to that, or a program "
      "of its own with --mantissa 4, would do")),
    (pair(None, HBFPFormat(block=(1, 4))),
     ("Model 1 of the job: Layer '0' has block 1,4 for x, the accelerator 1,8; golden.nn.convert to that, or a program "
      "of its own with --block 1,4, would do")),
    (pair(EIGHT, w=HBFPFormat(mantissa=6, block=(1, 8))),
     "Model 0 of the job: Layer '0' has mantissa 6 for w, the accelerator 8; golden.nn.convert to that would do"),
    (pair(EIGHT, accumulate="aligned"),
     ("Model 0 of the job: Layer '0' has accumulate aligned, the accelerator fp32; golden.nn.convert to that, or a "
      "program of its own with --accumulate aligned, would do")),
    (pair(EIGHT, order="quick"),
     "Model 0 of the job: Layer '0' has order quick, the accelerator block; golden.nn.convert to that would do"),
    ([gn.convert(Head(), EIGHT, exclude=["head"])],
     ("Model 0 of the job: Layer 'head' multiplies in FP32, in a model that golden.nn.convert has converted; to "
      "convert it, too, would do")),
    ([*pair(None), nn.Sequential(nn.Linear(20, 4), nn.RReLU())],
     ("Model 1 of the job: Layer '1' (rrelu) cannot be lowered: the accelerator has no such operation; a model "
      "without it would do")),
    ([nn.Sequential(nn.Linear(600, 4)), *pair(None)],
     "Model 0 of the job: Shapes of input and weight must be (..., I) and (O, I), not (3, 20) and (4, 600)")])
def test_refusals(models, line):
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}$"):
        lower_job([model.eval() for model in models], [(X,)] * len(models), MACHINES["8"])


def test_a_model_alone_with_a_format_of_its_own_is_refused():
    model, = pair(HBFPFormat(mantissa=6, block=(1, 8)))
    with pytest.raises(LoweringError, match=r"^Layer '0' has mantissa 6 for x, the accelerator 8; golden\.nn\.convert "
                                            r"to that, or a program of its own with --mantissa 6, would do$"):
        lower(model, (X,), MACHINES["8"])


FILE = """
import torch
from torch import nn

def model():
    return {model}

def inputs():
    return {inputs}
"""


@pytest.mark.parametrize(("model", "inputs", "given"), [
    ("[nn.Linear(4, 2), nn.Dropout()]", "torch.ones(1, 4),", [1, 1]),
    ("nn.Linear(4, 2), nn.Dropout()", "[(torch.ones(1, 4),), (torch.ones(3, 4),)]", [1, 3]),
    ("__import__('golden.nn').nn.fused.fuse([nn.Linear(4, 2) for _ in range(2)])", "(torch.ones(2, 4),)", [2, 2])])
def test_a_file_gives_a_job(tmp_path, model, inputs, given):
    path = tmp_path / "job.py"
    path.write_text(FILE.format(model=model, inputs=inputs))
    models, inputs = source(str(path))
    assert not any(each.training for each in models)
    assert [len(x) for x, in inputs] == given


@pytest.mark.parametrize(("model", "inputs", "line"), [
    ("[]", "()", "model() of {path} must give at least one model, not []"),
    ("[nn.ReLU(), 1]", "()", "model() of {path} must give torch.nn.Modules alone, not int"),
    ("[nn.ReLU()]", "1", ("inputs() of {path} must give a tuple of tensors for all models, or a list of a tuple for "
                         "each, not int")),
    ("[nn.ReLU()]", "[1]", ("inputs() of {path} must give a tuple of tensors for all models, or a list of a tuple for "
                           "each, not list")),
    ("[nn.ReLU()] * 3", "[(), ()]", "inputs() of {path} must give a tuple for each of the 3 models, not 2")])
def test_bad_jobs_get_one_line(tmp_path, model, inputs, line):
    path = tmp_path / "job.py"
    path.write_text(FILE.format(model=model, inputs=inputs))
    with pytest.raises(ValueError, match=f"^{re.escape(line.format(path=path))}$"):
        source(str(path))
