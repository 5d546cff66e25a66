"""Numbers of stochastic rounding on a GPU: docs/numerics.md, section 6, by position and of the converter's lanes."""

import triton
import triton.language as tl


@triton.jit
def _turned(word, BY: tl.constexpr):
    return (word << BY) | (word >> (32 - BY))


@triton.jit
def group_states(key, group, ROUNDS: tl.constexpr, TURNS: tl.constexpr, STEP: tl.constexpr):
    """States of 64 bits of groups of places, uint32."""
    y = group
    x = tl.zeros_like(group) + key
    for _ in tl.static_range(ROUNDS):
        x, y = y ^ (_turned(x, TURNS[0]) & _turned(x, TURNS[1])) ^ _turned(x, TURNS[2]) ^ STEP, x
    return (x.to(tl.uint64) << 32) | y.to(tl.uint64)


@triton.jit
def group_numbers(state, lane, TAPS: tl.constexpr, STRIDE: tl.constexpr):
    """The numbers, 0 to 255, of groups (G) for lanes (L) of each: (G, L) uint32."""
    place = (lane * STRIDE).to(tl.uint64)[None, :]
    found = tl.zeros([state.shape[0], lane.shape[0]], tl.uint32)
    for bit in tl.static_range(8):
        total = (state >> TAPS[3 * bit]) | (state << (64 - TAPS[3 * bit]))
        total ^= (state >> TAPS[3 * bit + 1]) | (state << (64 - TAPS[3 * bit + 1]))
        total ^= (state >> TAPS[3 * bit + 2]) | (state << (64 - TAPS[3 * bit + 2]))
        found = (found << 1) | ((total[:, None] >> place) & 1).to(tl.uint32)
    return found


@triton.jit(do_not_specialize=["key", "start"])
def by_position(out, key, start, rows, columns, groups, CUT: tl.constexpr, ROUNDS: tl.constexpr, TURNS: tl.constexpr,
                STEP: tl.constexpr, TAPS: tl.constexpr, STRIDE: tl.constexpr, GROUP: tl.constexpr,
                GROUPS: tl.constexpr):
    """Numbers of a matrix (rows, columns) uint8, without their lowest ``CUT`` bits.

    A row has ``groups`` groups of ``GROUP`` places; that of the first number has the number ``start``.
    """
    index = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    row, lane = index // groups, tl.arange(0, GROUP)
    group = ((start + index) & ((1 << 32) // GROUP - 1)).to(tl.uint32)
    state = group_states(key.to(tl.uint32, bitcast=True), group, ROUNDS, TURNS, STEP)
    number = group_numbers(state, lane, TAPS, STRIDE) >> CUT
    column = (index % groups * GROUP)[:, None] + lane[None, :]
    tl.store(out + (row * columns)[:, None] + column, number.to(tl.uint8),
             mask=(row < rows)[:, None] & (column < columns))


@triton.jit
def _moved(state, jumps, level, lane, lanes):
    """States 2^level steps on."""
    moved = tl.zeros_like(state)
    for bit in tl.static_range(32):
        column = tl.load(jumps + (level * 32 + bit) * lanes + lane, mask=lane < lanes, other=0)
        moved ^= tl.where(((state >> bit) & 1) == 1, column.to(tl.uint32, bitcast=True), 0)
    return moved


@triton.jit
def of_lanes(out, before, after, shifts, jumps, beats, lanes, steps, high, KEPT: tl.constexpr, LOW: tl.constexpr,
             MORE: tl.constexpr, WIDTH: tl.constexpr):
    """The top ``KEPT`` bits of the next states of xorshift32 generators, (beats, lanes); ``after``: the last ones.

    A program has 2^``MORE`` chunks of 2^``LOW`` beats, of which ``steps`` are needed. Their states at the start follow
    from those ``before`` by matrices over GF(2), of 1, 2, 4 ... steps: ``jumps``, (levels, 32 columns, lanes), of which
    those below ``high`` are needed. ``shifts`` are (3, lanes).
    """
    lane = tl.arange(0, WIDTH)
    real = lane < lanes
    start = tl.load(before + lane, mask=real, other=0).to(tl.uint32, bitcast=True)
    if tl.program_id(0) == 0:
        last = start
        for level in range(high):
            if (beats >> level) & 1:
                last = _moved(last, jumps, level, lane, lanes)
        tl.store(after + lane, last.to(tl.int32, bitcast=True), mask=real)
    first = tl.program_id(0).to(tl.int64) << (LOW + MORE)
    for level in range(LOW + MORE, high):
        if (first >> level) & 1:
            start = _moved(start, jumps, level, lane, lanes)
    chunk = tl.arange(0, 1 << MORE)[:, None]
    state, lane = tl.zeros([1 << MORE, WIDTH], tl.uint32) + start[None, :], lane[None, :]
    for level in tl.static_range(MORE):
        state = tl.where(((chunk >> level) & 1) == 1, _moved(state, jumps, LOW + level, lane, lanes), state)
    a = tl.load(shifts + lane, mask=lane < lanes, other=0).to(tl.uint32)
    b = tl.load(shifts + lanes + lane, mask=lane < lanes, other=0).to(tl.uint32)
    c = tl.load(shifts + 2 * lanes + lane, mask=lane < lanes, other=0).to(tl.uint32)
    out += first * lanes
    left = tl.minimum(beats - first, 1 << 30).to(tl.int32)
    beat = chunk << LOW
    for _ in range(steps):
        state ^= state << a
        state ^= state >> b
        state ^= state << c
        number = (state >> (32 - KEPT)).to(out.dtype.element_ty)
        tl.store(out + (beat * lanes + lane), number, mask=(beat < left) & (lane < lanes))
        beat += 1
