"""What an accelerator computes beside products, on whole tensors: programs of the vector unit run over many rows.

A tensor is a ``uint32`` array of bit patterns. The last dimension is a row; only sums along it depend on the lanes.
These are the definitions that ``golden.nn.convert(side=...)`` follows and that programs of the accelerator execute.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hbfp.checks import check_kind, check_range
from hbfp.golden.spec.vector import LANES_RANGE, Source, Target, VectorInstruction, VectorUnit
from hbfp.system import Accelerator

from .. import fp32, functions
from ..fast import elements as fast
from ..fast import kernels
from ..number.arrays import check_broadcast, listed, patterns
from .programs import bits
from .unit import Machine, second_step


@dataclass(frozen=True)
class Side:
    """What the order of a sum depends on.

    Parameters
    ----------
    lanes : int
        Lanes of the vector unit, a power of two.

    Raises
    ------
    ValueError
        If the lanes are out of range or no power of two.
    """
    lanes: int = 16

    def __post_init__(self):
        check_range("Lanes", self.lanes, *LANES_RANGE)
        if self.lanes & self.lanes - 1:
            raise ValueError(f"Lanes must be a power of two, not {self.lanes}")

    @classmethod
    def of(cls, accelerator: Accelerator) -> "Side":
        """The side of an accelerator: its lanes."""
        return cls(lanes=accelerator.unit_lanes)

    def rows(self, program: list[VectorInstruction], *inputs: np.ndarray) -> np.ndarray:
        """The first row that a program gives for each row of ``inputs``, which broadcast to one shape."""
        return self.results(program, *_inputs(inputs))[0]

    def results(self, program: list[VectorInstruction], *inputs: np.ndarray) -> list[np.ndarray]:
        """All rows that a program gives for each row of ``inputs``; the length is at first that of the longest input.

        An input may have one number in place of a row, where the program has set the length to 1.
        """
        rows = [patterns(each, "Input") for each in inputs]
        length = max(each.shape[-1] for each in rows)
        unit = VectorUnit(lanes=self.lanes, beats=-(-length // self.lanes), registers=registers(program))
        machine = Machine(unit, rows[0].shape[:-1])
        machine.length = length
        return machine.run(program, rows)


#: The side of an accelerator of 16 x 16, the default.
DESIGN_SIDE = Side()


def _inputs(inputs):
    """Inputs of a program as patterns of one shape."""
    inputs = [patterns(each, "Input") for each in inputs]
    check_broadcast("Inputs", *inputs)
    return tuple(np.broadcast_arrays(*inputs))


def registers(program: Iterable[VectorInstruction]) -> int:
    """Registers that a vector unit must have for a program: one more than the highest that it names."""
    used = [operand.index for each in program for operand in (each.a, each.b, each.c)
            if operand.source == Source.REGISTER]
    used += [each.target_index for each in program if each.target == Target.REGISTER]
    return max(used, default=0) + 1


def elements(program: list[VectorInstruction], *inputs: np.ndarray) -> np.ndarray:
    """What a program without sums gives for each element of ``inputs``, which broadcast to one shape."""
    inputs, program = _inputs(inputs), listed(program, "Program")
    for each in program:
        check_kind("VectorInstruction", each, VectorInstruction)
    quick = None if kernels.library() is None else fast.compiled(tuple(program))
    if quick is not None and quick.rows == len(inputs):
        return second_step(quick.function, fast.run(quick, [np.ascontiguousarray(part, np.uint32) for part in inputs]))
    machine = Machine(VectorUnit(lanes=1, beats=1, registers=registers(program)), (inputs[0].size,))
    return machine.run(program, [part.reshape(-1, 1) for part in inputs])[0].reshape(inputs[0].shape)


def ascending(rows: np.ndarray) -> np.ndarray:
    """The sum of ``rows`` over their first dimension: from -0 on, each rounded and flushed as it is added."""
    rows = patterns(rows, "Rows")
    if kernels.library() is not None:
        return fast.ascending(np.ascontiguousarray(rows, np.uint32))
    total = np.full(rows.shape[1:], 0x80000000, np.uint32)
    for row in rows:
        total = fp32.add(total, row, subnormals="flush")
    return total


def batch_norm_factors(gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, variance: np.ndarray,
                       eps: float) -> tuple[np.ndarray, np.ndarray]:
    """Factor and addend of each channel of a batch norm in evaluation.

    They are gamma * rsqrt(variance + eps), and beta - mean * that.

    Each operation rounds and flushes. A host computes them once.
    """
    root = functions.rsqrt(fp32.add(variance, np.uint32(bits(eps)), subnormals="flush"))
    factor = fp32.mul(gamma, root, subnormals="flush")
    product = fp32.mul(mean, factor, subnormals="flush")
    return factor, fp32.sub(beta, product, subnormals="flush")
