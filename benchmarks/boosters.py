"""What boosting the last epoch, and the first and last layer, each gives: ``python -m benchmarks.boosters``.

Test accuracy of HBFP4 with 6 bits in the last epoch alone, in the first and last layer alone, in both and nowhere; task
teacher. A finished run is kept under build/golden/runs.
"""

import argparse

from rich.console import Console
from rich.table import Table

from golden.study.experiment import Run
from golden.study.sweep import summary, sweep
from hbfp.format import HBFPFormat

#: What is boosted -> options of a run.
CASES = {"nothing": {}, "last epoch": dict(boost=6, ends=False), "first and last layer": dict(boost=6, last_epochs=0),
         "both": dict(boost=6)}


def main():
    """Train and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boosters", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="runs of each case (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: all cores)")
    args = parser.parse_args()
    fmt, console = HBFPFormat(mantissa=4, block=(1, 16)), Console()
    table = Table("6 bits in", "mean %", "deviation", "seeds")
    for name, options in CASES.items():
        runs = [Run(task="teacher", fmt=fmt, seed=seed, **options) for seed in range(args.seeds)]
        results = sweep(runs, "build/golden/runs", jobs=args.jobs, console=console)
        ((mean, deviation, seeds),) = summary(results).values()
        table.add_row(name, f"{mean:.2f}", f"{deviation:.2f}", str(seeds))
    console.print(table)


if __name__ == "__main__":
    main()
