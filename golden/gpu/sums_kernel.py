"""Sums over rows in their order on Hopper GPUs, in Gluon: copies run ahead while one warp adds."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma


@gluon.jit
def copied_row_sums(rows_desc, y, rows, columns, ON: gl.constexpr, STAGES: gl.constexpr, ROWS: gl.constexpr,
                    COLUMNS: gl.constexpr, num_warps: gl.constexpr):
    """``y`` (columns) = the sums over the rows, in ascending order, from 0 or, if ``ON``, from what it holds."""
    LANES: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    FLAT: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    first = gl.program_id(0) * COLUMNS
    column = first + gl.arange(0, COLUMNS, LANES)
    kept = gl.allocate_shared_memory(gl.float32, [STAGES, ROWS, COLUMNS], rows_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    read = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(read, count=1)
    for s in gl.static_range(STAGES):
        mbarrier.init(full.index(s), count=1)
    turns = gl.cdiv(rows, ROWS)
    for s in gl.static_range(STAGES):
        if s < turns:
            mbarrier.expect(full.index(s), rows_desc.block_type.nbytes)
            tma.async_copy_global_to_shared(rows_desc, [s * ROWS, first], full.index(s), kept.index(s))
    lines = kept._reinterpret(gl.float32, [STAGES * ROWS, COLUMNS], FLAT)
    total = gl.zeros([COLUMNS], gl.float32, LANES)
    if ON:
        total = gl.load(y + column, mask=column < columns, other=0.0)
    for turn in range(turns):
        stage = turn % STAGES
        mbarrier.wait(full.index(stage), (turn // STAGES) & 1)
        for row in gl.static_range(ROWS):
            total += lines.index(stage * ROWS + row).load(LANES)
        mbarrier.arrive(read, count=1)
        mbarrier.wait(read, turn & 1)
        if turn + STAGES < turns:
            mbarrier.expect(full.index(stage), rows_desc.block_type.nbytes)
            tma.async_copy_global_to_shared(rows_desc, [(turn + STAGES) * ROWS, first], full.index(stage),
                                            kept.index(stage))
    canonical = gl.full([COLUMNS], 0x7FC00000, gl.int32, LANES).to(gl.float32, bitcast=True)
    gl.store(y + column, gl.where(total == total, total, canonical), mask=column < columns)
