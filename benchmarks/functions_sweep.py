"""Worst error of the FP32 functions over all 2^32 inputs: ``python -m benchmarks.functions_sweep``.

Error in ulp: how many representable numbers lie between the result and the correctly rounded one, zero and 2^-126
being neighbours (subnormals are flushed). The oracle is the host's double precision libm. Its value is widened by
2^-42 to both sides, far more than its own error, and the worse of the two roundings counts, so no error is
understated: where the exact value lies that close to a tie, one ulp too much may be counted.
"""

import argparse
import math
import time

import numba as nb
import numpy as np
from rich.console import Console
from rich.progress import Progress, TimeRemainingColumn
from rich.table import Table

from golden.fast.functions import evaluate
from golden.spec.tables import FUNCTIONS

from .tables import add_json, write

CHUNK = 1 << 22
BAND = 2.0 ** -42
TINY = 2.0 ** -126 * (1 - 2.0 ** -25)      # from here on a value rounds to 2^-126 or more

_jit = nb.njit(inline="always", error_model="numpy")
ORACLES = {
    "exp": _jit(lambda x: math.inf if x > 700 else math.exp(x)),
    "log": _jit(lambda x: math.nan if x < 0 else math.log(x) if x != 0 else -math.inf),
    "recip": _jit(lambda x: 1 / x),
    "rsqrt": _jit(lambda x: 1 / (math.nan if x < 0 else math.sqrt(x))),
    "tanh": _jit(lambda x: math.tanh(x)),
    "sigmoid": _jit(lambda x: 0.0 if x < -700 else 1 / (1 + math.exp(-x))),
    "silu": _jit(lambda x: -0.0 if x < -700 else x / (1 + math.exp(-x))),
    "gelu": _jit(lambda x: -0.0 if x < -30 else x * 0.5 * math.erfc(-x * math.sqrt(0.5))),
    "normcdf": _jit(lambda x: 0.5 * math.erfc(-x * math.sqrt(0.5))),
}


@_jit
def _order(bits):
    """Position of a number on the flushed line: zero is 0, +-2^-126 is +-1."""
    magnitude = np.int64(bits & 0x7FFFFFFF) - 0x7FFFFF
    magnitude = max(magnitude, 0)
    return -magnitude if bits >> 31 else magnitude


def _expect(oracle):
    """Loop that rounds the exact values of ``x``, a little low and a little high, to FP32; NaN stays."""
    @nb.njit(error_model="numpy")
    def expect(x, low, high):
        for i in range(x.size):
            value = np.float64(x[i])
            exact = oracle(math.copysign(0.0, value) if abs(value) < 2.0 ** -126 else value)
            low[i] = exact * (1 - BAND) if abs(exact) * (1 - BAND) >= TINY or math.isnan(exact) else 0.0
            high[i] = exact * (1 + BAND) if abs(exact) * (1 + BAND) >= TINY or math.isnan(exact) else 0.0
    return expect


@nb.njit
def _compare(got, low, high, counts):
    """Largest error in ulp and its place; ``counts`` grows. All are bit patterns."""
    worst, where = -1, 0
    for i in range(got.size):
        if (low[i] & 0x7FFFFFFF) > 0x7F800000:
            error = 0 if got[i] == 0x7FC00000 else 1 << 32
        elif (got[i] & 0x7FFFFFFF) > 0x7F800000:
            error = 1 << 32
        else:
            error = max(abs(_order(got[i]) - _order(low[i])), abs(_order(got[i]) - _order(high[i])))
        counts[min(error, counts.size - 1)] += 1
        if error > worst:
            worst, where = error, i
    return worst, where


def sweep(name, stride=1, advance=lambda step: None):
    """Worst error in ulp, an input that has it, and counts of errors 0, 1, 2, 3 and more."""
    expect, counts = _expect(ORACLES[name]), np.zeros(4, dtype=np.int64)
    worst, at = -1, 0
    for start in range(0, 1 << 32, CHUNK * stride):
        x = np.arange(start, min(start + CHUNK * stride, 1 << 32), stride, dtype=np.uint32)
        low, high = np.empty((2, x.size), dtype=np.float32)
        expect(x.view(np.float32), low, high)
        error, where = _compare(evaluate(name, x), low.view(np.uint32), high.view(np.uint32), counts)
        if error > worst:
            worst, at = error, int(x[where])
        advance(CHUNK * stride)
    return worst, at, counts


def main():
    """Sweep and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.functions_sweep", description=__doc__.splitlines()[0],
                                     epilog="example: python -m benchmarks.functions_sweep exp --stride 257")
    parser.add_argument("functions", nargs="*", metavar="function", help=f"of {', '.join(FUNCTIONS)}; default all")
    parser.add_argument("--stride", type=int, default=1, metavar="N", help="take every N-th input (odd is best)")
    add_json(parser)
    args = parser.parse_args()
    for name in args.functions:
        if name not in FUNCTIONS:
            parser.error(f"function must be one of {', '.join(FUNCTIONS)}, not {name!r}")
    if not 1 <= args.stride <= 1 << 20:
        parser.error(f"argument --stride: must be 1 to 1048576, not {args.stride}")
    table = Table("function", "inputs", "worst ulp", "at", "correctly rounded", "M inputs/s")
    with Progress(*Progress.get_default_columns(), TimeRemainingColumn()) as progress:
        for name in args.functions or FUNCTIONS:
            task, start = progress.add_task(name, total=1 << 32), time.perf_counter()
            worst, at, counts = sweep(name, args.stride, lambda step, task=task: progress.advance(task, step))
            total = int(counts.sum())
            table.add_row(name, str(total), str(worst), f"0x{at:08X}", f"{counts[0] / total:.4%}",
                          f"{total / (time.perf_counter() - start) / 1e6:.0f}")
    Console(width=110).print(table)
    write(args.json, table)


if __name__ == "__main__":
    main()
