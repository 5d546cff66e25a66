"""How long a network that was never run waits for its first answer: ``python -m benchmarks.first_answer``.

    python -m benchmarks.first_answer --json first.json

Whole commands, in a build folder of their own that is empty at first: the golden machine, which needs no Verilog; the
Verilog, which is emitted, verilated and compiled for it; and both once more, when that is there. Seconds by the clock,
and of processors, which other work on the machine changes less; the second time is the best of three.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser

from rich.console import Console
from rich.table import Table

from .tables import add_json, write

#: A small network, on a small accelerator.
RUN = ("-m", "cosim", "run", "docs/examples/network.py", "--rows", "8", "--block", "1,8")
REPEATS = 3


def timed(folder: str, *more: str) -> tuple[float, float]:
    """Seconds by the clock and of processors of one command, which keeps what it builds in a folder."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *RUN, *more], check=True, capture_output=True, env=os.environ | {
        "HBFP_BUILD": folder})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begun, sum(
        getattr(after, part) - getattr(before, part) for part in ("ru_utime", "ru_stime"))


def main(argv: list[str] | None = None) -> int:
    """Print the table; return the exit status."""
    parser = ArgumentParser(prog="python -m benchmarks.first_answer", description=__doc__.partition("\n")[0])
    add_json(parser)
    args = parser.parse_args(argv)
    table = Table(title="python " + " ".join(RUN), title_justify="left")
    for head in ("by", "first, s", "of processors", "again, s", "again, of processors"):
        table.add_column(head, justify="left" if head == "by" else "right")
    with tempfile.TemporaryDirectory() as folder:
        for name, more in (("machine", ("--machine",)), ("verilog", ())):
            first = timed(folder, *more)
            again = min(timed(folder, *more) for _ in range(REPEATS))
            table.add_row(name, *(f"{value:.1f}" for value in (*first, *again)))
    Console().print(table)
    write(args.json, table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
