"""Matrices as a Hopper GPU's copy engine takes tiles of them."""

from functools import lru_cache

import torch
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


def copied(stack: torch.Tensor, width: int, tile: list[int], swizzle: int) -> TensorDescriptor:
    """A stack of matrices, whose lines lie one behind the other, in tiles of (lines, numbers)."""
    return TensorDescriptor(stack, [stack.shape[0] * stack.shape[1], width], [stack.stride(1), 1], tile,
                            _layout(swizzle, 8 * stack.element_size()))


@lru_cache
def _layout(swizzle, bits):
    """How the copy engine lays tiles down in shared memory."""
    return NVMMASharedLayout(swizzle_byte_width=swizzle, element_bitwidth=bits, rank=2)
