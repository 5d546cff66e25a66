"""cocotb tests of an array of integer elements; run by :mod:`cosim.bench.runner`.

A row of X enters every cycle and tiles of weights follow each other without a bubble; each sum must leave in its
cycle (:class:`rtl.array.array.Array`), equal to the golden dot product. Between tiles the weights are noise.
"""

import os
from collections.abc import Sequence

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from numpy.typing import ArrayLike

from hbfp.golden.matmul import mantissa_dot

from ...manifest import Manifest
from ..comparison import WrongBits
from ..coverage import Coverage
from ..stream import Dut

MANIFEST = Manifest.load(os.environ["HBFP_MANIFEST"])
DESIGN = MANIFEST.design
SEED = int(os.environ.get("HBFP_SEED", "1"))


def join(values: ArrayLike, width: int) -> int:
    """Integers side by side, the first lowest."""
    mask = (1 << width) - 1
    return sum((int(value) & mask) << n * width for n, value in enumerate(np.ravel(values)))


def cut(word: int, width: int, count: int) -> list[int]:
    """``count`` signed integers of a word."""
    parts = [word >> n * width & (1 << width) - 1 for n in range(count)]
    return [part - (part >> width - 1 << width) for part in parts]


def due(segment: int, column: int) -> int:
    """Cycles from a row of X to its sum."""
    kr, kc = DESIGN.group
    return MANIFEST.latency["result"] + segment * (DESIGN.height // kr) + column // kc


def operands(rng: np.random.Generator, gaps: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of X, tiles, and the row that each tile starts with: ends of the range among random numbers."""
    limit, starts = DESIGN.format.limit, np.cumsum([0, *gaps[:-1]])
    x = rng.integers(-limit, limit + 1, (sum(gaps), DESIGN.rows))
    w = rng.integers(-limit, limit + 1, (len(gaps), DESIGN.rows, DESIGN.cols))
    x[rng.random(len(x)) < 0.2] = limit
    x[rng.random(len(x)) < 0.1] = 0
    w[rng.random(len(w)) < 0.2] = limit
    w[rng.random(len(w)) < 0.2] = -limit
    # Whatever chance does: zero, largest and lowest sums.
    x[:4], w[0], w[1] = 0, limit, -limit
    x[1], x[starts[1]] = limit, limit
    return x, w, starts


async def play(dut, rng, x, w, starts):
    """Drive all of it; the sums of every cycle as (cycle, segment, column)."""
    kr, kc = DESIGN.group
    lane = DESIGN.lane_width
    words = {}    # (cycle, group column) -> weights of one group
    for n, start in enumerate(starts):
        for i in range(DESIGN.group_rows):
            for j in range(DESIGN.group_cols):
                words[start + i + j, j] = join(w[n, i * kr:(i + 1) * kr, j * kc:(j + 1) * kc], lane)
    dut.rst.value, dut.swap.value = 1, 0
    Clock(dut.clk, 10, unit="ns").start()
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    got = []
    for cycle in range(len(x) + due(DESIGN.segments - 1, DESIGN.cols - 1) + 1):
        row = x[cycle] if cycle < len(x) else rng.integers(-1, 2, DESIGN.rows)
        dut.x.value, dut.swap.value = join(row, lane), int(cycle in starts)
        for j in range(DESIGN.group_cols):
            noise = int.from_bytes(rng.bytes(-(-kr * kc * lane // 8))) % (1 << kr * kc * lane)
            getattr(dut, f"weight__{j}").value = words.get((cycle, j), noise)
        await RisingEdge(dut.clk)    # outputs are read as they were before it
        got.append([[value for j in range(DESIGN.group_cols) for value in sums(dut, s, j)]
                    for s in range(DESIGN.segments)])
    return np.array(got, np.int64)


def sums(dut: Dut, segment: int, j: int) -> list[int]:
    """Sums that leave a column group; 0 where a register has not been reached yet."""
    name, count = f"sums__{segment}__{j}", DESIGN.group[1]
    value = getattr(dut, name).value
    return cut(int(value), MANIFEST.ports[name].width // count, count) if value.is_resolvable else [0] * count


@cocotb.test(timeout_time=50, timeout_unit="ms")
@cocotb.parametrize(regular=(True, False))
async def sums_equal_golden(dut, regular):
    """Tiles as close as they may follow each other, or at random."""
    rng = np.random.default_rng([SEED, regular])
    closest = max(DESIGN.group_rows, 2)
    gaps = [closest] * 60 if regular else rng.integers(closest, closest + 9, 40).tolist()
    x, w, starts = operands(rng, gaps)
    got = await play(dut, rng, x, w, starts.tolist())
    coverage = Coverage(DESIGN, "array")
    tile = np.searchsorted(starts, np.arange(len(x)), "right") - 1
    most = DESIGN.height * DESIGN.format.limit ** 2
    for s in range(DESIGN.segments):
        part = slice(s * DESIGN.height, (s + 1) * DESIGN.height)
        want = mantissa_dot(x[:, None, part], w[tile][:, part].swapaxes(1, 2))
        for column in range(DESIGN.cols):
            first = due(s, column)
            wrong = np.flatnonzero(got[first:first + len(x), s, column] != want[:, column])
            if len(wrong):
                raise WrongBits(f"segment {s}, column {column}: {len(wrong)} of {len(x)} sums differ, the first of row "
                                f"{wrong[0]}: {got[first + wrong[0], s, column]} instead of {want[wrong[0], column]}")
        coverage.compared += want.size
        for corner, hit in (("largest sum", want == most), ("lowest sum", want == -most), ("zero sum", want == 0)):
            coverage.see(corner, hit.any())
    coverage.see("weights change" if regular else "swap at random", len(gaps))
    coverage.save(os.environ["HBFP_COVERAGE"])
