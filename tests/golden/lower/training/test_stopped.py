"""A step that is stopped anywhere leaves what the step before has left, and is done again with the same bits.

Covers: golden/lower/training/step.py.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.training.step import lower_step
from golden.machine.dram import Dram
from golden.machine.layouts import pack
from golden.machine.machine import Machine
from hbfp.isa.instructions import Opcode
from tests.cases import sweep

from .steps import MACHINES, get
from .test_sequences import Made

pytestmark = pytest.mark.filterwarnings("ignore")


def model():
    """With running statistics and a table, whose rows the host names."""
    return Made(lambda own, x: own.classes(own.norm(own.hidden(own.table(x).flatten(1)))), norm=nn.BatchNorm1d(12),
                table=nn.Embedding(7, 11), hidden=nn.Linear(33, 12))


@pytest.mark.parametrize("optimiser", sweep(2, [torch.optim.AdamW, torch.optim.SGD]))
def test_a_step_that_is_stopped_anywhere(optimiser):
    torch.manual_seed(0)
    machine, rng = MACHINES["8"], torch.Generator().manual_seed(1)
    batches = [((torch.randint(7, (6, 3), generator=rng),), (torch.randint(10, (6,), generator=rng),))
               for _ in range(3)]
    step = lower_step(model(), F.cross_entropy, lambda parameters: optimiser(parameters, lr=0.01), batches[0], machine)
    program, before = step.lowered.program, {}
    dram = Dram(program.limit, program.memory)
    for number, batch in enumerate(batches):
        arguments = step.arguments()
        for name, values in step.host.writes(batch).items():
            dram.put(program.tensors[name].address + step.shift(name, arguments),
                     pack(machine, program.tensors[name], values))
        program = replace(program.rewritten(step.host.instructions(batch)), arguments=arguments)
        stores = [place for place, each in enumerate(program.instructions) if each.opcode == Opcode.STORE]
        whole = len(program.instructions)
        for stop in ((stores[len(stores) // 3], whole), (stores[-1], whole), (stores[-3], whole))[number]:
            device = Machine(program, dram=dram)
            for place, each in enumerate(program.instructions[:stop]):
                device.step(place, each)
            for name, values in before.items():            # where this step reads them, by the name that they had
                own = name.removesuffix(" after")
                np.testing.assert_array_equal(get(device, own, step.shift(own, arguments)).view(np.uint32),
                                              values.view(np.uint32), f"{number} {stop} {name}")
        expected = step.advance(batch)
        for name, values in expected.items():
            np.testing.assert_array_equal(get(device, name, step.shift(name, arguments)).view(np.uint32),
                                          np.ascontiguousarray(values, np.float32).view(np.uint32), f"{number} {name}")
        before = {name: np.ascontiguousarray(values, np.float32).copy() for name, values in expected.items()
                  if name.endswith(" after")}
    assert {"norm.running_mean after", "table.weight after"} < before.keys() and len(before) > 8
