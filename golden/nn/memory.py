"""Tensors as NumPy and the kernels read them: numbers in memory.

A tensor may stand for other numbers than its memory holds: the imaginary part of a conjugate has the negative bit, a
tensor of zeros that autograd makes has no memory at all, and a subclass may keep its numbers elsewhere.
"""

from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


def plain(x: torch.Tensor) -> torch.Tensor:
    """``x``, detached, with its numbers in memory; a copy only where they are not."""
    x = x.detach()
    return x.clone() if x._is_zerotensor() else x.resolve_conj().resolve_neg()


def array(x: torch.Tensor) -> np.ndarray:
    """The numbers of a tensor on the CPU; it shares the tensor's memory, unless that holds others."""
    return plain(x).numpy()


def foreign(x: torch.Tensor) -> str | None:
    """What keeps a tensor from being read as a matrix of numbers, or None."""
    if x.is_nested:
        return "a nested tensor"
    if x.layout != torch.strided:
        return f"a tensor of layout {str(x.layout).removeprefix('torch.')}"
    return f"a tensor of class {type(x).__name__}" if is_traceable_wrapper_subclass(x) else None


def check_dense(*operands: Any) -> None:
    """Raise ``TypeError`` with one line if an operand is no tensor, or one that is :func:`foreign`."""
    for x in operands:
        problem = foreign(x) if isinstance(x, torch.Tensor) else f"one of type {type(x).__name__}"
        if problem:
            raise TypeError(f"Operands of HBFP products must be dense tensors, not {problem}")
