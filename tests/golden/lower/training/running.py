"""Small accelerators, and steps of training on the golden machine beside PyTorch."""

from collections.abc import Sequence

import numpy as np
import torch

from golden.lower.training.capture import Batch
from golden.lower.training.reference import Loss, Make
from golden.lower.training.step import Step, lower_step
from golden.machine.dram import Dram
from golden.machine.layouts import pack
from golden.machine.machine import Machine
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator


def accelerator(rows: int, block: tuple[int, int], mantissa: int = 8, accumulate: str = "fp32",
                **sizes: int) -> Accelerator:
    """A small one, so that everything is cut."""
    fmt = HBFPFormat(mantissa=mantissa, block=block)
    return Accelerator(core=Design(format=fmt, rows=rows, accumulate=accumulate, depth=32),
                       **{"x_words": 256, "w_words": 512, "v_words": 256} | sizes)


def sgd(**options: float):
    """An optimiser of these options."""
    return lambda parameters: torch.optim.SGD(parameters, **{"lr": 0.1} | options)


def run(model: torch.nn.Module, loss: Loss, optimiser: Make, batches: Sequence[Batch], machine: Accelerator) -> Step:
    """Steps on the golden machine with its check for races: every tensor of the first, and of each what changes."""
    step = lower_step(model, loss, optimiser, batches[0], machine)
    program = step.lowered.program
    dram = Dram(program.limit, program.memory)
    for number, batch in enumerate(batches):
        for each, values in step.host.writes(batch).items():
            dram.put(program.tensors[each].address, pack(machine, program.tensors[each], values))
        device = Machine(program, races=True, dram=dram)
        device.run()
        inner = {name: values for name, values in step.lowered.expected.items()
                 if program.tensors[name].role != "input"} if number == 0 else {}
        for each, values in (inner | step.advance(batch)).items():
            np.testing.assert_array_equal(device.get(each).view(np.uint32), np.ascontiguousarray(
                values, np.float32).view(np.uint32), f"{number} {each}")
    return step
