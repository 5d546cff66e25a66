"""HBFP on a GPU, bit for bit: conversions and products as Triton kernels.

Nothing here needs Triton before it is called, or a GPU before it is called without Triton's interpreter.
"""

from hbfp import extras

if line := extras.lacking("torch"):
    raise ModuleNotFoundError(line, name="torch")

from .tensors import Blocks, encode, matmul

__all__ = ["Blocks", "encode", "matmul"]
