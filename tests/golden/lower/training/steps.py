"""Steps of training on small golden machines, against PyTorch: what tests of layers share."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch

from golden.lower.training.step import lower_step
from golden.machine.dram import Dram
from golden.machine.layouts import pack, unpack
from golden.machine.machine import Machine
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator


@cache
def accelerator(rows=8, block=(1, 8), mantissa=8, accumulate="fp32", rounding="rne", wide=0, **sizes):
    """A small one, so that everything is cut."""
    fmt = HBFPFormat(mantissa=mantissa, block=block, rounding=rounding)
    return Accelerator(core=Design(format=fmt, rows=rows, accumulate=accumulate, depth=32, wide=wide),
                       **{"x_words": 256, "w_words": 512, "v_words": 256} | sizes)


MACHINES = {"8": accelerator(), "8-tiles": accelerator(block=(8, 8)), "8-aligned": accelerator(accumulate="aligned"),
            "16-tiles": accelerator(16, (16, 16), 4, v_words=1024, x_words=512),
            "16-long": accelerator(16, (1, 32), v_words=512)}


def sgd(**options):
    """An optimiser's maker."""
    return lambda parameters: torch.optim.SGD(parameters, **{"lr": 0.1, "momentum": 0.9} | options)


def get(device, name, shift):
    """A tensor of a machine's DRAM, so many bytes behind its address."""
    tensor = device.program.tensors[name]
    return unpack(device.accelerator, tensor, device.dram.get(tensor.address + shift, tensor.bytes(device.accelerator)))


def follow(model, loss, batches, machine=MACHINES["8"], optimiser=None, **options):
    """A step for each batch, of which all that changes has PyTorch's bits; the step, and what PyTorch gave last.

    Of the first step every tensor has.
    """
    return followed(lower_step(model, loss, optimiser or sgd(), batches[0], machine, **options), batches)


def followed(step, batches):
    """The same of a step, or of a job's, that is there."""
    program = step.lowered.program
    machine = program.accelerator
    dram = Dram(program.limit, program.memory)
    for number, batch in enumerate(batches):
        arguments = step.arguments()
        for name, values in step.writes(batch).items():
            dram.put(program.tensors[name].address + step.shift(name, arguments),
                     pack(machine, program.tensors[name], values))
        program = replace(program.rewritten(step.instructions(batch)), arguments=arguments, seed=step.key)
        device = Machine(program, races=True, dram=dram)
        device.run()
        inner = {name: values for name, values in step.lowered.expected.items()
                 if program.tensors[name].role != "input"} if number == 0 else {}
        expected = step.advance(batch)
        for name, values in (inner | expected).items():
            found = get(device, name, step.shift(name, arguments))
            np.testing.assert_array_equal(found.view(np.uint32), np.ascontiguousarray(values, np.float32).view(
                np.uint32), f"{number} {name}")
    return step, expected
