"""Golden FP32 arithmetic, operations a second on one thread.

    python -m benchmarks.fp32_speed [--count 4000000] [--repeat 5]

Random patterns; the addend of fma cancels half of the products. CPU time, best of --repeat.
"""

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import golden.fp32 as fp32

from .tables import add_json, write


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=4_000_000, help="operations a call")
    parser.add_argument("--repeat", type=int, default=5, help="calls; the best counts")
    add_json(parser)
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    a, b, c = rng.integers(0, 2 ** 32, (3, args.count), np.uint32)
    c = np.where(c & 1, c, fp32.mul(a, b) ^ np.uint32(1 << 31))
    table = Table("operation", "subnormals", "compiled, M/s", "plain NumPy, M/s")
    size = fp32.COMPILED_SIZE
    for name, operands in (("add", (a, b)), ("mul", (a, b)), ("fma", (a, b, c)), ("div", (a, b)), ("sqrt", (a,))):
        for subnormals in ("gradual", "flush"):
            speeds = []
            for limit, part in ((size, args.count), (1 << 60, args.count // 10)):
                fp32.COMPILED_SIZE, best = limit, float("inf")
                cut = [v[:part] for v in operands]
                for _ in range(args.repeat + 1):
                    start = time.process_time()
                    getattr(fp32, name)(*cut, subnormals=subnormals)
                    best = min(best, time.process_time() - start)
                speeds.append(part / best / 1e6)
            fp32.COMPILED_SIZE = size
            compiled = f"{speeds[0]:.0f}" if name in ("add", "mul", "fma") else ""
            table.add_row(name, subnormals, compiled, f"{speeds[1]:.1f}")
    Console().print(table)
    write(args.json, table)


if __name__ == "__main__":
    main()
