"""Counts what of an accelerator's Verilog the checks reach: lines, branches, bits that rise and fall.

``python -m tests.coverage DESIGN...``. Tests of ``make test`` that run on a design's Verilog run on one that Verilator
counts in, and random programs behind them (``--count``). Points that nothing can reach have a reason
(:mod:`tests.coverage.reasons`); the others that were not reached are listed with ``--missing``. Modules that designs
share are counted once.
"""

import argparse
import ctypes
import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from cosim.accelerator import device, programs
from cosim.emit import emit_accelerator
from cosim.simulate.verilator import TOP, build_library
from tests.mutate.judge import WORDS
from tests.mutate.parts import DESIGNS, Programs

from .points import TOGGLE, Point, covered, modules, read
from .reasons import REASONS

#: Designs whose text is counted, with the tests that run on it.
COUNTED = {name: design for name, design in DESIGNS.items() if isinstance(design, Programs)}

#: A way out for what was counted, behind the driver.
WRITE = """\
#include "driver.h"
extern "C" API void sim_coverage(Simulation* sim, const char* path) { sim->context.coveragep()->write(path); }
"""


class Counting:
    """Accelerators that count what is reached while they are open, in files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, 0

    def __enter__(self):
        self.kept = device.Device._built, device.Device.close
        counting, (_, close) = self, self.kept

        def built(_, verilog, top, sources, *, trace, level, **options):
            return build_library(verilog, top, device.with_more(sources, {"coverage.cpp": WRITE}), level="-O1",
                                 coverage=True, **options)

        def closed(self):
            if self._handle:
                counting.files += 1
                write = self._library.sim_coverage
                write.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
                write(self._handle, str(counting.folder / f"{counting.files}.dat").encode())
            close(self)
        device.Device._built, device.Device.close = built, closed
        return self

    def __exit__(self, *_):
        device.Device._built, device.Device.close = self.kept


def count(name: str, programs_: int) -> tuple[Counter[Point], dict[str, list[str]]]:
    """The points of a design, and the lines of its modules; RuntimeError if a test or a program fails."""
    design = COUNTED[name]
    manifest = emit_accelerator(design.system)
    found = modules(manifest.verilog.read_text(), manifest.top)
    text = {(name if module == TOP else module): lines for module, (_, lines) in found.items()}
    with tempfile.TemporaryDirectory() as folder, Counting(Path(folder)):
        if pytest.main([*WORDS, *design.tests]):
            raise RuntimeError(f"{name}: the tests fail")
        if programs_:
            ran = programs.run(manifest, design.system, range(programs_))
            if ran.failures:
                raise RuntimeError(f"{name}: program {next(iter(ran.failures))} fails")
        starts = {module: start for module, (start, _) in found.items()}
        return read(sorted(Path(folder).glob("*.dat")), starts, name), text


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.coverage", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", nargs="*", help=", ".join(COUNTED) + " (default: all)")
    parser.add_argument("--count", type=int, default=500, help="random programs behind the tests (default 500)")
    parser.add_argument("--missing", type=int, default=0, metavar="N", help="list so many points that were not reached")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    args = parser.parse_args(argv)
    for name in args.design:
        if name not in COUNTED:
            parser.error(f"{name}: must be one of {', '.join(COUNTED)}")
    points: Counter[Point] = Counter()
    text: dict[str, list[str]] = {}
    for name in args.design or COUNTED:
        one, lines = count(name, args.count)
        points.update(one)
        text |= lines
    kinds, missing, used = covered(points, text, REASONS)
    for point in sorted(missing, key=lambda point: point.kind == TOGGLE)[:args.missing]:
        print(f"{point.module}: {point.kind} {point.what}: {text[point.module][point.line].strip()}")
    table = Table(title=f"What is reached of {len(text)} modules")
    for title in ("what", "points", "cannot be", "reached", "of those that can"):
        table.add_column(title, justify="left" if title == "what" else "right")
    for kind, each in kinds.items():
        table.add_row(kind, *(f"{number:,}" for number in (each.points, each.excluded, each.reached)),
                      f"{each.share:.2%}")
    Console().print(table)
    if args.json:
        rows = {kind: asdict(each) | {"share": 100 * each.share} for kind, each in kinds.items()}
        Path(args.json).write_text(json.dumps({
            "modules": len(text), "rows": rows,
            "reasons": {reason.why: number for reason, number in used.most_common()}}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
