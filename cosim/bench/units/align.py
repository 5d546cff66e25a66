"""cocotb tests of the alignment unit, docs/numerics.md, section 5; run by :mod:`cosim.bench.runner`."""

import os
from collections.abc import Iterable, Mapping

import cocotb
import numpy as np
from cocotb.triggers import Timer

from hbfp.golden.number.rounding import shift_half_up

from ...manifest import Manifest
from ..comparison import WrongBits
from ..coverage import Coverage

MANIFEST = Manifest.load(os.environ["HBFP_MANIFEST"])
DESIGN = MANIFEST.design
SEED = int(os.environ.get("HBFP_SEED", "1"))
COLUMNS = DESIGN.scale_cols
SUM, EXPONENT = MANIFEST.ports["sum"].width // COLUMNS, MANIFEST.ports["exponent"].width
WIDTH = (MANIFEST.ports["acc"].width - EXPONENT - 1) // COLUMNS
STEPS = 4000


def operands(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Accumulators that leave room for one more sum; exponents mostly within a word's width of each other."""
    limit, top = 2 ** (SUM - 1) - 1, 2 ** (EXPONENT - 1)
    room = 2 ** (WIDTH - 1) - 1 - (limit << DESIGN.guard)

    def ends(most):
        return rng.choice(np.clip([0, 1, -1, most, -most], -most, most), STEPS)
    some = rng.random((4, STEPS)) < 0.3
    acc = np.where(some[0], ends(room), rng.integers(-room, room + 1, STEPS) >> rng.integers(0, WIDTH, STEPS))
    total = np.where(some[1], ends(limit), rng.integers(-limit, limit + 1, STEPS))
    apart = np.where(some[2], rng.integers(0, 2 * top, STEPS), rng.integers(0, min(2 * top, WIDTH + 3), STEPS))
    apart[::50] = 2 * top - 1
    low = rng.integers(-top, top - apart)
    behind = some[3]
    fresh = rng.random(STEPS) < 0.1
    # Whatever chance does: a sum of 1 that is moved by one place more than it has below it, to exactly one half.
    total[0], apart[0], low[0], behind[0], fresh[0] = 1, DESIGN.guard + 1, 0, True, False
    return {"acc": acc, "acc_exponent": low + apart * behind, "sum": total, "exponent": low + apart * ~behind,
            "fresh": fresh, "acc_invalid": rng.random(STEPS) < 0.1, "invalid": rng.random(STEPS) < 0.1}


def golden(v: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Accumulator after: sum, exponent, NaN."""
    acc, base = np.where(v["fresh"], 0, v["acc"]), np.where(v["fresh"], v["exponent"], v["acc_exponent"])
    ahead = v["exponent"] - base
    new = v["sum"] << DESIGN.guard
    moved = shift_half_up(acc, np.maximum(ahead, 0)) + shift_half_up(new, np.maximum(-ahead, 0))
    return moved, np.maximum(base, v["exponent"]), v["invalid"] | v["acc_invalid"] & ~v["fresh"]


def joined(values: Iterable[int], width: int) -> int:
    """The numbers of the columns as a port's value, ``width`` bits each."""
    return sum((int(value) & (1 << width) - 1) << n * width for n, value in enumerate(values))


def word(totals: Iterable[int], exponent: int, invalid: bool) -> int:
    """Accumulators as a port's value."""
    return (joined(totals, WIDTH) | (int(exponent) & (1 << EXPONENT) - 1) << COLUMNS * WIDTH
            | int(invalid) << COLUMNS * WIDTH + EXPONENT)


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def steps_equal_golden(dut):
    v = operands(np.random.default_rng(SEED))
    # Columns that share the exponents have operands of other steps: column 0 those of its own.
    accs, sums = (np.stack([np.roll(v[name], n) for n in range(COLUMNS)]) for name in ("acc", "sum"))
    total, exponent, invalid = golden({**v, "acc": accs, "sum": sums})
    for n in range(STEPS):
        dut.acc.value = word(accs[:, n], v["acc_exponent"][n], v["acc_invalid"][n])
        dut.sum.value, dut.exponent.value = joined(sums[:, n], SUM), int(v["exponent"][n])
        dut.fresh.value, dut.invalid.value = int(v["fresh"][n]), int(v["invalid"][n])
        await Timer(1, "ns")
        for _ in range(MANIFEST.latency["result"]):    # registers
            for level in (0, 1):
                dut.clk.value = level
                await Timer(1, "ns")
        got, want = int(dut.o.value), word(total[:, n], exponent[n], invalid[n])
        if got != want:
            case = {name: int(value[n]) for name, value in v.items()}
            raise WrongBits(f"{case}: {got:x} instead of {want:x}")
    coverage = Coverage(DESIGN, "align")
    ahead = np.where(v["fresh"], 0, v["exponent"] - v["acc_exponent"])
    moving = np.where(ahead > 0, v["acc"], v["sum"] << DESIGN.guard)
    cut = np.minimum(np.abs(ahead), 60)
    half = (cut > 0) & (moving & (1 << cut) - 1 == 1 << cut >> 1)
    for name, hit in (("accumulator moves", ahead > 0), ("sum moves", ahead < 0), ("fresh", v["fresh"]),
                      ("equal exponents", (ahead == 0) & ~v["fresh"]), ("moved out", np.abs(ahead) > WIDTH),
                      ("exactly half", half), ("fresh forgets NaN", v["fresh"] & v["acc_invalid"] & ~v["invalid"]),
                      ("NaN stays", ~v["fresh"] & v["acc_invalid"]), ("NaN enters", v["invalid"]),
                      ("largest distance", np.abs(ahead) == 2 ** EXPONENT - 1)):
        coverage.see(name, hit.sum())
    coverage.compared = STEPS
    coverage.save(os.environ["HBFP_COVERAGE"])
