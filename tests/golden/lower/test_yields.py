"""Networks that yield behind each layer, for a share of the memories: the same bits, and no race."""

import numpy as np
import torch
from torch import nn

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.golden.lower.lowering import lower, lower_job
from hbfp.golden.machine.machine import Machine
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator

SYSTEM = Accelerator(core=Design(rows=8, cols=8, depth=32, format=HBFPFormat(mantissa=8, block=(1, 8))), contexts=2,
                     x_words=512, w_words=512, v_words=512, p_words=256, row_words=4)


class Small(nn.Module):
    """A linear layer, GELU, a norm, a convolution, a linear layer."""

    def __init__(self):
        super().__init__()
        self.first, self.conv, self.last = nn.Linear(12, 16), nn.Conv1d(1, 3, 3), nn.Linear(42, 6)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        x = self.norm(torch.nn.functional.gelu(self.first(x)))
        return self.last(self.conv(x.unsqueeze(1)).flatten(1))


def small(seed):
    torch.manual_seed(seed)
    return Small(), (torch.randn(5, 12),)


def computed(lowered):
    """Whether every tensor is PyTorch's; waits order all accesses."""
    machine = Machine(lowered.program, races=True)
    machine.run()
    return all(np.array_equal(machine.get(name).view(np.uint32), np.ascontiguousarray(values).view(np.uint32))
               for name, values in lowered.expected.items())


def yields(lowered):
    """Numbers of the YIELDs."""
    return [number for number, each in enumerate(lowered.program.instructions) if each.opcode == Opcode.YIELD]


def test_a_yield_behind_each_layer():
    model, inputs = small(0)
    plain, made = (lower(model, inputs, SYSTEM.share(8), yields=each) for each in (False, True))
    assert computed(made) and not yields(plain)
    layers = made.program.layers
    assert yields(made) == [layer.stop for layer in layers[:-1]] and len(layers) > 3
    assert [layer.first for layer in layers[1:]] == [layer.stop + 1 for layer in layers[:-1]]
    assert len(made.program.instructions) <= len(plain.program.instructions) + len(yields(made))


def test_jobs_yield_behind_each_turn():
    models, inputs = zip(*map(small, (1, 2)), strict=True)
    made = lower_job(models, inputs, SYSTEM.share(8), yields=True)
    alone = lower(models[0], inputs[0], SYSTEM.share(8), yields=True)
    assert computed(made) and len(yields(made)) == len(yields(alone))
