"""The products of :mod:`golden.gpu.quick_kernel` for Hopper GPUs, in Gluon: tensor cores and additions at once.

While the tensor cores multiply one block, the sums of the block before are added, in registers of their own. Triton by
itself waits for each block.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from . import shared_kernel

#: The same rules, compiled as parts of a kernel in Gluon.
in_range, tile = gluon.jit(shared_kernel.in_range.fn), gluon.jit(shared_kernel.tile.fn)


@gluon.jit
def _wide(rows, HIGH: gl.constexpr, WIDE: gl.constexpr):
    """A number for each row, for all of its columns."""
    return gl.expand_dims(rows, 1).broadcast_to(HIGH, WIDE)


@gluon.jit
def _tall(columns, HIGH: gl.constexpr, WIDE: gl.constexpr):
    """A number for each column, for all of its rows."""
    return gl.expand_dims(columns, 0).broadcast_to(HIGH, WIDE)


@gluon.jit
def _produce(a_desc, b_desc, a_scales, b_scales, a_upper, a_lower, b_turns, upper, lower, right, full, empty, turns,
             row, column, a_block, b_block, a_line, b_line, HALF: gl.constexpr, WIDTH: gl.constexpr,
             STAGES: gl.constexpr, VALUES: gl.constexpr):
    """Copy the operands' blocks, turn by turn, to where both consumers have read."""
    for turn in range(turns):
        stage = turn % STAGES
        mbarrier.wait(empty.index(stage), ((turn // STAGES) & 1) ^ 1)
        bar = full.index(stage)
        if VALUES:
            mbarrier.expect(bar, 2 * a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        else:
            mbarrier.expect(bar, 2 * a_desc.block_type.nbytes + b_desc.block_type.nbytes
                            + 2 * a_scales.block_type.nbytes + b_scales.block_type.nbytes)
            tma.async_copy_global_to_shared(a_scales, [a_block + turn, a_line], bar, upper.index(stage))
            tma.async_copy_global_to_shared(a_scales, [a_block + turn, a_line + HALF], bar, lower.index(stage))
            tma.async_copy_global_to_shared(b_scales, [b_block + turn, b_line], bar, right.index(stage))
        tma.async_copy_global_to_shared(a_desc, [row, turn * WIDTH], bar, a_upper.index(stage))
        tma.async_copy_global_to_shared(b_desc, [column, turn * WIDTH], bar, b_turns.index(stage))
        tma.async_copy_global_to_shared(a_desc, [row + HALF, turn * WIDTH], bar, a_lower.index(stage))


@gluon.jit
def _multiplied(a_turns, b_turns, nothing, full, first, U: gl.constexpr, TERMS: gl.constexpr, SUB: gl.constexpr,
                STAGES: gl.constexpr):
    """Begin to multiply a block, the ``U``-th from a turn on."""
    turn = first + U // SUB
    stage = turn % STAGES
    if U % SUB == 0:
        mbarrier.wait(full.index(stage), (turn // STAGES) & 1)
    return warpgroup_mma(a_turns.index(stage).slice(U % SUB * TERMS, TERMS, 1),
                         b_turns.index(stage).slice(U % SUB * TERMS, TERMS, 1).permute((1, 0)), nothing, use_acc=False,
                         is_async=True)


@gluon.jit
def _added(acc, done, factor, a_parts, b_parts, empty, first, U: gl.constexpr, SUB: gl.constexpr, STAGES: gl.constexpr,
           VALUES: gl.constexpr, HALF: gl.constexpr, BLOCK_N: gl.constexpr):
    """``acc`` and the sums of a block, the ``U``-th from a turn on; what has been read may be overwritten."""
    stage = (first + U // SUB) % STAGES
    if VALUES:
        if U % SUB == SUB - 1:
            mbarrier.arrive(empty.index(stage), count=1)
        y = gl.fma(done, factor, acc)
    else:
        # Of the bits of 1.5 * 2^23 + S, times the row's power of two, less 1.5 * 2^23 times it: nothing rounds.
        a_scale = a_parts.index(stage).load(gl.SliceLayout(1, acc.type.layout))
        b_scale = b_parts.index(stage).load(gl.SliceLayout(0, acc.type.layout))
        mbarrier.arrive(empty.index(stage), count=1)
        near = (done + 0x4B400000).to(gl.float32, bitcast=True)
        whole = gl.fma(near, _wide(a_scale, HALF, BLOCK_N), _wide(a_scale * -12582912.0, HALF, BLOCK_N))
        y = gl.fma(whole, _tall(b_scale, HALF, BLOCK_N), acc)
    return y


@gluon.jit
def _consume(a_turns, b_turns, a_lines, b_lines, full, empty, y, m, n, turns, one, row, column, y_line,
             TERMS: gl.constexpr, SUB: gl.constexpr, TURNS: gl.constexpr, VALUES: gl.constexpr, STAGES: gl.constexpr,
             HALF: gl.constexpr, BLOCK_N: gl.constexpr):
    """Half a tile of the result: four warps."""
    MMA: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1],
                                                  instr_shape=[16, BLOCK_N, 16 if VALUES else 32])
    KIND: gl.constexpr = gl.float32 if VALUES else gl.int32
    rows = row + gl.arange(0, HALF, gl.SliceLayout(1, MMA))
    columns = column + gl.arange(0, BLOCK_N, gl.SliceLayout(0, MMA))
    acc = gl.zeros([HALF, BLOCK_N], gl.float32, MMA)
    nothing = gl.zeros([HALF, BLOCK_N], KIND, MMA)
    factor = acc + one
    LINE: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    if VALUES:
        a_parts, b_parts = full, full
    else:
        a_parts = a_lines._reinterpret(gl.float32, [STAGES, HALF], LINE)
        b_parts = b_lines._reinterpret(gl.float32, [STAGES, BLOCK_N], LINE)
    for group in range(gl.cdiv(turns, TURNS)):
        first = group * TURNS
        if first + TURNS <= turns:
            latest = _multiplied(a_turns, b_turns, nothing, full, first, 0, TERMS, SUB, STAGES)
            for u in gl.static_range(1, TURNS * SUB + 1):      # written out: no product goes on through a loop's end
                sums = latest
                if u < TURNS * SUB:
                    latest = _multiplied(a_turns, b_turns, nothing, full, first, u, TERMS, SUB, STAGES)
                    done = warpgroup_mma_wait(1, deps=[sums])
                else:
                    done = warpgroup_mma_wait(0, deps=[sums])
                acc = _added(acc, done, factor, a_parts, b_parts, empty, first, u - 1, SUB, STAGES, VALUES, HALF,
                             BLOCK_N)
        else:
            for turn in range(first, turns):
                for u in gl.static_range(SUB):
                    sums = _multiplied(a_turns, b_turns, nothing, full, turn, u, TERMS, SUB, STAGES)
                    done = warpgroup_mma_wait(0, deps=[sums])
                    acc = _added(acc, done, factor, a_parts, b_parts, empty, turn, u, SUB, STAGES, VALUES, HALF,
                                 BLOCK_N)
    canonical = gl.full([HALF, BLOCK_N], 0x7FC00000, gl.int32, MMA).to(gl.float32, bitcast=True)
    acc = gl.where(acc == acc, acc, canonical)
    gl.store(y + rows.to(gl.int64)[:, None] * y_line + columns[None, :], acc,
             mask=(rows < m)[:, None] & (columns < n)[None, :])


@gluon.jit
def overlapped(a_desc, b_desc, a_scales, a_span, b_scales, b_span, y, m, n, k, one, a_lines, b_lines, b_shared,
               y_stack, y_line, TERMS: gl.constexpr, SUB: gl.constexpr, TURNS: gl.constexpr, VALUES: gl.constexpr,
               STAGES: gl.constexpr, BLOCK_N: gl.constexpr, GROUP: gl.constexpr, num_warps: gl.constexpr):
    """``y = a b^T`` of lines (S M, K) and (S N, K); ``SUB`` blocks are copied at a time, in a turn.

    One warp copies, two groups of four multiply 64 rows each and add. Lines behind a matrix's last are the next one's:
    what they give is not stored. ``one`` is 1.0: see :func:`golden.gpu.quick_kernel.quick`.
    """
    HALF: gl.constexpr = 64
    stack = gl.program_id(1)
    tile_row, tile_column = tile(m, n, 2 * HALF, BLOCK_N, GROUP)
    row, column = tile_row * (2 * HALF), tile_column * BLOCK_N
    blocks = gl.cdiv(k, TERMS)
    served = in_range(a_span, b_span, TERMS)          # else nothing is multiplied, and nothing stored
    turns = gl.where(served, gl.cdiv(blocks, SUB), 0)
    lines = gl.where(served, m, 0)

    a_upper = gl.allocate_shared_memory(a_desc.dtype, [STAGES, HALF, SUB * TERMS], a_desc.layout)
    a_lower = gl.allocate_shared_memory(a_desc.dtype, [STAGES, HALF, SUB * TERMS], a_desc.layout)
    b_turns = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BLOCK_N, SUB * TERMS], b_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for s in gl.static_range(STAGES):
        mbarrier.init(full.index(s), count=1)
        mbarrier.init(empty.index(s), count=2)
    if VALUES:
        upper, lower, right = full, full, full
    else:
        upper = gl.allocate_shared_memory(gl.float32, [STAGES, 1, HALF], a_scales.layout)
        lower = gl.allocate_shared_memory(gl.float32, [STAGES, 1, HALF], a_scales.layout)
        right = gl.allocate_shared_memory(gl.float32, [STAGES, 1, BLOCK_N], b_scales.layout)
    y += stack.to(gl.int64) * y_stack
    gl.warp_specialize([
        (_consume, (a_upper, b_turns, upper, right, full, empty, y, lines, n, turns, one, row, column, y_line, TERMS,
                    SUB, TURNS, VALUES, STAGES, HALF, BLOCK_N)),
        (_consume, (a_lower, b_turns, lower, right, full, empty, y, lines, n, turns, one, row + HALF, column, y_line,
                    TERMS, SUB, TURNS, VALUES, STAGES, HALF, BLOCK_N)),
        (_produce, (a_desc, b_desc, a_scales, b_scales, a_upper, a_lower, b_turns, upper, lower, right, full, empty,
                    turns, stack * a_lines + row, stack * b_lines + column, stack * blocks, stack * blocks * b_shared,
                    row, column, HALF, SUB * TERMS, STAGES, VALUES)),
    ], [4, 1], [240, 24])
