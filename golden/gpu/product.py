"""Products of converted matrices on a GPU: which kernel, and with what tiles."""

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from ..matmul import check_aligned
from .convert import Lines
from .exact_kernel import exact
from .quick_kernel import quick
from .runtime import INTERPRETED, multiprocessors, on_hopper, shared_memory
from .sums import row_sums

if not INTERPRETED:
    from .copies import copied
    from .overlapped_kernel import overlapped

#: Rows and columns of a program's tile, and its warps: of bfloat16 numbers, and of integers.
_TILES = {True: (64, 128, 4), False: (128, 64, 4)}
#: Rows of each half of a tile where tensor cores run by themselves, and its columns: fewer where that many tiles would
#: leave multiprocessors without work.
_HALF, _COLUMNS, _FEWEST = 64, 128, 32
#: Copies of integers whose products follow each other without a halt; bfloat16 numbers have registers for two blocks.
_TURNS = 4
#: Results of so few numbers and so many blocks that their order takes longer than to write each block's sums; bytes of
#: these that are kept at a time.
_SMALL, _LONG, _KEPT = 49152, 512, 256 << 20
#: Programs of a multiprocessor that multiply in integers.
_EXACT = 4
#: Programs of so many rows of tiles share what they read.
_GROUP = 8


def product(a: Lines, b: Lines, accumulate: str = "fp32", *, guard: int = 4,
            growth: int | None = 8) -> torch.Tensor:
    """``a b^T`` of lines (S, M, K) and (S, N, K), S of ``b`` may be 1: (S, M, N) float32.

    The bits of :func:`golden.matmul.matmul_blocks`.
    """
    if accumulate == "aligned":
        check_aligned(a.fmt, b.fmt, a.scales.shape[1], guard, growth)
    y = torch.empty(*a.data.shape[:2], b.data.shape[1], device=a.data.device)
    if not y.numel():
        return y
    served = accumulate == "fp32" and a.form == b.form != "int16" and (a.form == "values" or a.fmt.terms % 32 == 0)
    if served and len(y) == 1 and y.numel() <= _SMALL and a.scales.shape[1] >= _LONG and a.side == b.side == 1:
        _by_blocks(a, b, y)
    elif served and on_hopper(y.device) and taken(a) and taken(b):
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


def _shared(a, b):
    """Whether one matrix is the second operand of all products."""
    return len(b.data) == 1 < len(a.data)


def _strides(a, b, y):
    return (*a.data.stride()[:2], a.scales.stride(1), 0 if _shared(a, b) else b.data.stride(0), b.data.stride(1),
            b.scales.stride(1), *y.stride()[:2])


def _exact(a, b, y, accumulate, guard, only_if_needed):
    stacks, m, n = y.shape
    side = 64 if not INTERPRETED else 32
    chunk = min(64, max(16, triton.next_power_of_2(a.fmt.terms)))
    tiles = stacks * triton.cdiv(m, side) * triton.cdiv(n, side)
    programs = tiles if INTERPRETED else min(tiles, _EXACT * multiprocessors(y.device))    # which most often return
    exact[programs,](
        a.data, a.scales, a.span, b.data, b.scales, b.span, y, stacks, m, n, a.data.shape[2], *_strides(a, b, y), guard,
        TERMS=a.fmt.terms, A_SIDE=a.side, B_SIDE=b.side, A_MAGNITUDE=a.fmt.magnitude, B_MAGNITUDE=b.fmt.magnitude,
        A_VALUES=a.form == "values", B_VALUES=b.form == "values", ACCUMULATE=accumulate,
        GRADUAL=a.fmt.subnormals == "gradual", ONLY_IF_NEEDED=only_if_needed, CHUNK=chunk, BLOCK_M=side, BLOCK_N=side,
        num_warps=4)


def _by_blocks(a, b, y):
    """Sums of all blocks at once, and then these in their order: where that is long beside the result."""
    total, terms, k = y.view(-1).zero_(), a.fmt.terms, a.data.shape[2]
    step = max(1, _KEPT // (4 * y.numel()))
    for first in range(0, a.scales.shape[1], step):
        parts = [_blocks(lines, first, min(first + step, k // terms)) for lines in (a, b)]
        if k // terms > first:
            sums = torch.empty(len(parts[0].data), *y.shape[1:], device=y.device)
            _quick(*parts, sums)
            row_sums(sums.view(len(sums), -1), total)
    if rest := k % terms:                              # what is no whole block
        sums = torch.empty_like(y)
        _quick(*(_blocks(lines, k // terms, k // terms + 1, rest) for lines in (a, b)), sums)
        row_sums(sums.view(1, -1), total)


def _blocks(lines, first, last, terms=None):
    """Blocks of lines (1, M, K) as lines of as many matrices (blocks, M, terms)."""
    whole, (_, count, _) = lines.fmt.terms, lines.data.shape
    data = lines.data.as_strided((last - first, count, terms or whole), (whole, lines.data.stride(1), 1),
                                 lines.data.storage_offset() + first * whole)
    grid = lines.scales.stride(1)
    scales = lines.scales.as_strided((last - first, 1, count), (grid, grid, 1),
                                     lines.scales.storage_offset() + first * grid)
    return Lines(data, scales, lines.span, lines.fmt)


def _overlapped(a, b, y):
    """Where tensor cores run by themselves; copies run as far ahead as there is shared memory."""
    stacks, m, n = y.shape
    k, terms, size, shared = a.data.shape[2], a.fmt.terms, a.data.element_size(), _shared(a, b)
    blocks = min(2, 128 // (terms * size))             # of a copy: more, of 16 terms, would take more registers
    columns = _columns(stacks * triton.cdiv(m, 2 * _HALF), n, multiprocessors(y.device))
    sides = (a, _HALF), (b, columns)
    left, right = (copied(lines.data, k, [side, blocks * terms], blocks * terms * size) for lines, side in sides)
    left_scales, right_scales = ((lines.scales for lines, _ in sides) if a.form == "values" else
                                 (copied(lines.scales, lines.scales.shape[2], [1, side], 0) for lines, side in sides))
    grid = triton.cdiv(m, 2 * _HALF) * triton.cdiv(n, columns), stacks
    overlapped[grid](left, right, left_scales, a.span, right_scales, b.span, y, m, n, k, 1.0, m, 0 if shared else n,
                     int(not shared), *y.stride()[:2], TERMS=terms, SUB=blocks,
                     TURNS=_TURNS if a.form == "int8" else 2 // blocks, VALUES=a.form == "values",
                     STAGES=shared_memory(y.device) // (blocks * terms * size * (2 * _HALF + columns)),
                     BLOCK_N=columns, GROUP=_GROUP, num_warps=4)


def _columns(strips, n, programs):
    """Columns of a tile, so that as many programs as can run have one each."""
    columns = min(_COLUMNS, max(_FEWEST, triton.next_power_of_2(n)))
    while columns > _FEWEST and strips * triton.cdiv(n, columns) <= programs // 2:
        columns //= 2
    return columns


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
