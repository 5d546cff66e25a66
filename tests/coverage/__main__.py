"""Counts what of an accelerator's Verilog the checks reach: lines, branches, bits that rise and fall.

``python -m tests.coverage DESIGN...``. Tests of ``make test`` that run on a design's Verilog run on one that Verilator
counts in, and behind them random programs (``--count``) and what else :mod:`tests.coverage.designs` names. Points that
nothing can reach are constant in the netlist or have another reason (:mod:`tests.coverage.reasons`); the others that
were not reached are listed with ``--missing``. Modules that designs share are counted once.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from cosim.simulate.verilator import TOP
from hbfp import entries, files
from hbfp.system import Accelerator
from tests.mutate.judge import WORDS

from .constants import constants
from .counting import Counting
from .designs import COUNTED, PRESETS
from .points import TOGGLE, Point, covered, modules, read
from .reasons import REASONS


@dataclass
class Count:
    """What is known of designs: how often each point was reached, lines of each module, bits that are constant."""
    points: Counter[Point] = field(default_factory=Counter)
    text: dict[str, list[str]] = field(default_factory=dict)
    constant: set[tuple[str, str, int]] = field(default_factory=set)

    def __add__(self, other: "Count") -> "Count":
        """Of both; a bit of a module that both have must be constant in both."""
        both = self.text.keys() & other.text.keys()
        if different := [module for module in both if self.text[module] != other.text[module]]:
            raise RuntimeError(f"{different[0]} has two texts")
        constant = self.constant & other.constant | {
            each for each in self.constant ^ other.constant if each[0] not in both}
        points = Counter(self.points)
        points.update(other.points)    # a sum would drop what was never reached
        return Count(points, self.text | other.text, constant)


#: What decides counts beside a design's text and the file that what runs stands in; and those of tests, which may be
#: of anything there.
SOURCES = ("cosim", "golden/machine", "golden/perf/accelerator", "hbfp/isa", "tests/cosim/accelerator",
           "tests/cosim/dispatch", "tests/coverage/counting.py")
TESTS = "tests/cosim", "tests/rtl/accelerator"


def count(name: str, programs: int) -> Count:
    """What is reached of a design; RuntimeError if a test or what runs on it fails.

    Counts stay in the cache as long as the text and the checks do, so that reasons can be looked for: those of tests
    by themselves, and those of each run, which another file's runs do not repeat; so do constants.
    """
    design = (COUNTED | PRESETS)[name]
    manifest = design.emitted()
    verilog = manifest.verilog.read_text()
    found, top = modules(verilog, manifest.top), name if isinstance(design.system, Accelerator) else manifest.top
    starts = {module: start for module, (start, _) in found.items()}
    points: Counter[Point] = Counter()
    for run in (*design.runs, *([None] if design.tests else ())):
        def make(folder, run=run):
            with tempfile.TemporaryDirectory() as place, Counting(Path(place)):
                _run(name, design, manifest, programs, run)
                points = read(sorted(Path(place).glob("*.dat")), starts, top)
            files.write(folder / "points.json", json.dumps([[*point, reached] for point, reached in points.items()]))
        own = [f"{run.__module__.replace('.', '/')}.py"] if run else TESTS
        every = (path for each in (*SOURCES, *own)
                 for path in [files.ROOT / each, *sorted((files.ROOT / each).rglob("*"))])
        key = files.key(verilog, name, programs, run.__name__ if run else design.tests, files.digest(
            path for path in every if path.suffix in (".py", ".h", ".cpp")))
        kept = entries.entry(files.cache("coverage") / f"{name.replace(' ', '_')}-{key}", make) / "points.json"
        points.update({Point(*point): reached for *point, reached in json.loads(kept.read_text())})
    key = files.key(verilog, files.digest([files.ROOT / "tests/coverage/constants.py"]))
    kept = entries.entry(files.cache("coverage") / f"constants-{key}", lambda folder: files.write(
        folder / "bits.json", json.dumps(sorted(constants(verilog, manifest.top)))))
    named = {module: top if module == TOP else module for module in found}
    return Count(points, {named[module]: lines for module, (_, lines) in found.items()}, {
        (named[module], *bit) for module, *bit in json.loads((kept / "bits.json").read_text())})


def _run(name, design, manifest, programs, run):
    """What runs on a design, or with None its tests."""
    if run is None and pytest.main([*WORDS, *design.tests]):
        raise RuntimeError(f"{name}: the tests fail")
    if run:
        begin = time.monotonic()
        run(manifest, design.system, programs)
        print(f"{name}: {run.__name__}, {time.monotonic() - begin:.0f} s", file=sys.stderr)


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.coverage", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", nargs="*", help=f"{'; '.join(COUNTED)} (default: all of them); or a "
                        f"preset: {', '.join(PRESETS)}")
    parser.add_argument("--count", type=int, default=500, help="random programs behind the tests (default 500)")
    parser.add_argument("--missing", type=int, default=0, metavar="N", help="list so many points that were not reached")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    args = parser.parse_args(argv)
    for name in args.design:
        if name not in COUNTED | PRESETS:
            parser.error(f"{name}: must be one of {', '.join(COUNTED | PRESETS)}")
    found = sum((count(name, args.count) for name in args.design or COUNTED), Count())
    kinds, missing, used = covered(found.points, found.text, REASONS, found.constant)
    for point in sorted(missing, key=lambda point: point.kind == TOGGLE)[:args.missing]:
        print(f"{point.module}: {point.kind} {point.what}: {found.text[point.module][point.line].strip()}")
    table = Table(title=f"What is reached of {len(found.text)} modules")
    for title in ("what", "points", "cannot be", "reached", "of those that can"):
        table.add_column(title, justify="left" if title == "what" else "right")
    for kind, each in kinds.items():
        table.add_row(kind, *(f"{number:,}" for number in (each.points, each.excluded, each.reached)),
                      f"{each.share:.2%}")
    Console().print(table)
    if args.json:
        rows = {kind: asdict(each) | {"share": 100 * each.share} for kind, each in kinds.items()}
        Path(args.json).write_text(json.dumps({
            "modules": len(found.text), "rows": rows,
            "reasons": {reason.name: {"title": reason.why, "points": number} for reason, number in used.most_common()}},
            indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
