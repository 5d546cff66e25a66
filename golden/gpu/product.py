"""Products of converted matrices on a GPU: which kernel, and with what tiles."""

from functools import lru_cache

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from ..matmul import check_aligned
from .convert import Lines
from .exact_kernel import exact
from .quick_kernel import quick
from .runtime import INTERPRETED, on_hopper, shared_memory

if not INTERPRETED:
    from triton.experimental.gluon.language import NVMMASharedLayout
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as Copied

    from .overlapped_kernel import overlapped

#: Rows and columns of a program's tile, and its warps: of bfloat16 numbers, and of integers.
_TILES = {True: (64, 128, 4), False: (128, 64, 4)}
#: Programs of so many rows of tiles share what they read.
_GROUP = 8


def product(a: Lines, b: Lines, accumulate: str = "fp32", *, guard: int = 4, growth: int = 8) -> torch.Tensor:
    """``a b^T`` of lines (S, M, K) and (S, N, K), S of ``b`` may be 1: (S, M, N) float32.

    The bits of :func:`golden.matmul.matmul_blocks`.
    """
    stacks, m, k = a.data.shape
    n = b.data.shape[1]
    if accumulate == "aligned":
        check_aligned(a.fmt, b.fmt, a.scales.shape[1], guard, growth)
    if not stacks * m * n:
        return torch.empty(stacks, m, n, device=a.data.device)
    y = torch.empty(stacks, m, n, device=a.data.device)
    served = accumulate == "fp32" and a.form == b.form != "int16" and (a.form == "values" or a.fmt.terms % 32 == 0)
    if served and on_hopper(y.device) and taken(a) and taken(b):
        _overlapped(a, b, y)
    elif served:
        _quick(a, b, y)
    _exact(a, b, y, accumulate, guard, served)
    return y


def taken(lines: Lines) -> bool:
    """Whether the kernel for asynchronous tensor cores takes an operand as it lies.

    The copy engine takes rows of up to 128 bytes, which are whole blocks, and lines that begin at multiples of 16
    bytes; integers have their scales copied, too, one for each line.
    """
    data, terms = lines.data, lines.fmt.terms
    whole = terms in (16, 32, 64, 128) and terms * data.element_size() <= 128
    dense = data.stride(2) == 1 and data.stride(0) == data.shape[1] * data.stride(1)
    scales = lines.form == "values" or lines.side == 1 and lines.scales.stride(1) % 4 == 0
    return whole and dense and scales and data.stride(1) * data.element_size() % 16 == 0


def _strides(a, b, y):
    share = len(b.data) == 1 < len(a.data)
    return (*a.data.stride()[:2], a.scales.stride(1), 0 if share else b.data.stride(0), b.data.stride(1),
            b.scales.stride(1), *y.stride()[:2])


def _exact(a, b, y, accumulate, guard, only_if_needed):
    stacks, m, n = y.shape
    side = 64 if not INTERPRETED else 32
    chunk = min(64, max(16, triton.next_power_of_2(a.fmt.terms)))
    exact[triton.cdiv(m, side), triton.cdiv(n, side), stacks](
        a.data, a.scales, a.span, b.data, b.scales, b.span, y, m, n, a.data.shape[2], *_strides(a, b, y), guard,
        TERMS=a.fmt.terms, A_SIDE=a.side, B_SIDE=b.side, A_MAGNITUDE=a.fmt.magnitude, B_MAGNITUDE=b.fmt.magnitude,
        A_VALUES=a.form == "values", B_VALUES=b.form == "values", ACCUMULATE=accumulate,
        GRADUAL=a.fmt.subnormals == "gradual", ONLY_IF_NEEDED=only_if_needed, CHUNK=chunk, BLOCK_M=side, BLOCK_N=side,
        num_warps=4)


def _overlapped(a, b, y, turn=0, stages=0, columns=128):
    """Products where tensor cores run by themselves: ``turn`` blocks are copied at a time, ``stages`` times ahead."""
    stacks, m, n = y.shape
    k, terms, size = a.data.shape[2], a.fmt.terms, a.data.element_size()
    turn = turn or min(2, max(1, 128 // (terms * size)))           # rows of 128 bytes: the copy engine's widest pattern
    stages = stages or shared_memory(y.device) // (turn * terms * size * (128 + columns))
    shared = len(b.data) == 1 < stacks
    left, right = (Copied(lines.data, [lines.data.shape[0] * lines.data.shape[1], k],
                           [lines.data.stride(1), 1], [side, turn * terms], _layout(turn * terms * size, size))
                   for lines, side in ((a, 64), (b, columns)))
    scales = a.scales, b.scales
    if a.form != "values":
        scales = (Copied(lines.scales, [lines.scales.shape[0] * lines.scales.shape[1], lines.scales.shape[2]],
                         [lines.scales.stride(1), 1], [1, side], _layout(0, 4))
                  for lines, side in ((a, 64), (b, columns)))
    left_scales, right_scales = scales
    grid = triton.cdiv(m, 128) * triton.cdiv(n, columns), stacks
    overlapped[grid](left, right, left_scales, a.span, right_scales, b.span, y, m, n, k, 1.0, m, 0 if shared else n,
                     int(not shared), *y.stride()[:2], TERMS=terms, SUB=turn, VALUES=a.form == "values", STAGES=stages,
                     BLOCK_N=columns, GROUP=_GROUP, num_warps=4)


@lru_cache
def _layout(width, size):
    """How the copy engine lays blocks down in shared memory."""
    return NVMMASharedLayout(swizzle_byte_width=min(128, width), element_bitwidth=8 * size, rank=2)


def _quick(a, b, y):
    stacks, m, n = y.shape
    k, terms, values = a.data.shape[2], a.fmt.terms, a.form == "values"
    chunk = next((size for size in (128, 64, 32, 16) if terms % size == 0 and not (size == 16 and not values)),
                 min(128, max(16, triton.next_power_of_2(terms))))
    rows, columns, warps = (32, 32, 4) if INTERPRETED else _TILES[values]
    by_descriptor = terms % chunk == 0 and not INTERPRETED and k >= chunk
    left, right = a.data, b.data
    if by_descriptor:
        left, right = (TensorDescriptor(t, list(t.shape), list(t.stride()), [1, side, chunk])
                       for t, side in ((left, rows), (right, columns)))
    room = 1 if INTERPRETED else shared_memory(y.device) // ((rows + columns) * max(terms, 16) * a.data.element_size())
    quick[triton.cdiv(m, rows) * triton.cdiv(n, columns), stacks](
        left, a.scales, a.span, right, b.scales, b.span, y, m, n, k, 1.0, *_strides(a, b, y), TERMS=terms, CHUNK=chunk,
        A_SIDE=a.side, B_SIDE=b.side, VALUES=values, BY_DESCRIPTOR=by_descriptor, EVEN=k % chunk == 0 == terms % chunk,
        WIDE=INTERPRETED and values, STAGES=max(1, min(4, room)), BLOCK_M=rows, BLOCK_N=columns, GROUP=_GROUP,
        num_warps=warps)
