"""Changes one place after the other, and says whether the tests of ``make test`` see it: ``python -m tests.mutate``.

A part of the accelerator, such as ``reader``, is changed in its netlist, in a design with one context, or with a
dispatcher (``dispatched_reader``); laws judge first where a part has some (``tests/formal``). A change that no test
sees is left out if it is proved to change nothing. What came of a change is kept below ``build/mutants`` until its
module is another; what survives is judged again when a test is.
A file, such as ``rtl/lib/fifo.py``, is changed in its text (:mod:`tests.mutate.text`).
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

from rich.console import Console
from rich.progress import track
from rich.table import Table

from hbfp import files
from tests.test_mirror import MODULES

from . import text
from .emitted import Emitted
from .netlist import Mutant
from .parts import DESIGNS, PARTS, Words
from .units import UNITS

#: What came of a change: a test failed; none did, and it is proved to change nothing, or not.
VERDICTS = SEEN, EQUAL, SURVIVED = "seen", "equal", "survived"
#: No test sees it, and no proof was tried as yet.
LEFT = "left"

#: Seconds that a law of a change may take, on a busy machine.
LONG = 600


class Kept:
    """Verdicts of the changes of a design that are known, in a file."""

    def __init__(self, name: str) -> None:
        self.design, self.path = DESIGNS[name], files.build() / "mutants" / f"{name}.json"
        laws = {Path(test.__file__) for part in PARTS.values() if name in part.designs for test in part.laws.values()}
        tests = {files.ROOT / test.split("::")[0] for test in (*self.design.tests, *(unit.test for unit in UNITS))}
        self.tests = files.digest(sorted(tests | laws))
        self.found = json.loads(self.path.read_text()) if self.path.exists() else {}

    def recall(self, mutant: Mutant) -> bool:
        """Whether the verdict of a change is known; the change has it then."""
        verdict, test, tests, module = self.found.get(mutant.words, ("", "", "", ""))
        if module != self.design.netlist.digest(mutant.module) or (
                verdict in (LEFT, SURVIVED) and tests != self.tests):
            return False
        mutant.verdict, mutant.test = verdict, test
        return True

    def keep(self, mutant: Mutant) -> None:
        """Write down what came of a change."""
        self.found[mutant.words] = (mutant.verdict, mutant.test, self.tests,
                                    self.design.netlist.digest(mutant.module))
        files.write_json(self.path, self.found)


def changes(parts: list[str], count: int, seed: int) -> dict[str, dict[str, list[Mutant]]]:
    """Design -> part -> its changes; ``count`` of each part in all."""
    found: dict[str, dict[str, list[Mutant]]] = {}
    for part in parts:
        designs = PARTS[part].designs
        for number, design in enumerate(designs):
            share = (count + len(designs) - 1 - number) // len(designs)
            if share:
                found.setdefault(design, {})[part] = PARTS[part].drawn(DESIGNS[design].netlist, share, seed)
    return found


def by_law(design: Emitted | Words, tests: list[tuple[str, ModuleType | SimpleNamespace]],
           mutants: list[Mutant]) -> Iterator[Mutant]:
    """Judge changes of a module by the laws that tests have of it, or of modules that have it in them; those decided.

    Each of these is as it was if its laws hold and it may be another one, and if it has lost a register of which laws
    are. A change is none if it is none in all of them.

    Raises
    ------
    RuntimeError
        If laws are broken without a change.
    """
    known = Counter()
    for module, test in tests:
        hollow = getattr(test, "HOLLOW", ())
        plain = design.netlist.step(module, hollow)
        if broken := plain.broken(test.laws(design.system, plain), LONG):
            raise RuntimeError(f"{test.__name__}: {', '.join(broken)} without a change")
        left = [mutant for mutant in mutants if mutant.verdict != SEEN]
        for mutant, step in zip(left, design.netlist.steps([each.words for each in left], module, hollow), strict=True):
            try:
                laws = test.laws(design.system, step)
            except (AttributeError, KeyError):
                continue
            if not step.holds(laws, LONG):
                mutant.verdict, mutant.test = SEEN, test.__name__
                yield mutant
            elif plain.same(step, laws.always) or hollow and design.netlist.step(module).same(
                    next(design.netlist.steps([mutant.words], module)), laws.always):
                known[mutant.words] += 1
    for mutant in mutants:
        if known[mutant.words] == len(tests) > 0:
            mutant.verdict = EQUAL
            yield mutant


def judged(name: str, parts: dict[str, list[Mutant]], console: Console) -> list[tuple[Kept, str, Mutant]]:
    """Judge the changes of a design; those that are to be proved equal, with their part."""
    kept, every = Kept(name), [(part, mutant) for part, mutants in parts.items() for mutant in mutants]
    for _, mutant in every:
        kept.recall(mutant)
    modules: dict[tuple[str, str], list[Mutant]] = {}
    for part, mutant in every:
        if mutant.verdict in ("", LEFT):
            modules.setdefault((part, mutant.module), []).append(mutant)
    for (part, module), mutants in track(modules.items(), f"{name}, laws", console=console, transient=True):
        for mutant in by_law(DESIGNS[name], PARTS[part].of_laws(DESIGNS[name].netlist, module), mutants):
            kept.keep(mutant)
    open_ = [mutant for _, mutant in every if not mutant.verdict]
    if open_:
        judge = DESIGNS[name].judges(open_)
        for number, mutant in enumerate(track(open_, name, console=console, transient=True), 1):
            mutant.test = judge(number)
            mutant.verdict = SEEN if mutant.test else LEFT
            kept.keep(mutant)
    return [(kept, part, mutant) for part, mutant in every if mutant.verdict == LEFT]


def netlists(parts: list[str], count: int, seed: int, console: Console) -> dict[str, dict]:
    """Judge changes of parts; the figures of each and its survivors."""
    found, rows = changes(parts, count, seed), {}
    left = [(name, *each) for name, chosen in found.items() for each in judged(name, chosen, console)]
    for name, kept, part, mutant in track(left, "proofs", console=console, transient=True):
        equal = DESIGNS[name].netlist.equal(mutant, PARTS[part].kinds)
        mutant.verdict = EQUAL if equal else SURVIVED
        kept.keep(mutant)
    table = Table("part", "changes", *VERDICTS, "seen, %")
    for part in parts:
        mutants = [(name, mutant) for name, chosen in found.items() for mutant in chosen.get(part, ())]
        counts = Counter(mutant.verdict for _, mutant in mutants)
        share = counts[SEEN] / max(1, counts[SEEN] + counts[SURVIVED])
        rows[part] = {"changes": len(mutants), **{each: counts[each] for each in VERDICTS}, "share": share,
                      "survivors": [[name, mutant.words, mutant.source] for name, mutant in mutants
                                    if mutant.verdict == SURVIVED]}
        table.add_row(part, str(len(mutants)), *(str(counts[each]) for each in VERDICTS), f"{100 * share:.1f}")
        for name, words, source in rows[part]["survivors"]:
            console.print(f"{part}, {name}: {words}  {source}", markup=False, soft_wrap=True)
    console.print(table)
    return rows


def main(argv: list[str] | None = None) -> int:
    """Run the command; the exit status is 1 if a change of a file survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=[*PARTS, *MODULES], metavar="PART|FILE",
                        help=f"{', '.join(PARTS)}, or a file such as rtl/lib/fifo.py")
    parser.add_argument("--count", type=int, default=20, metavar="N", help="changes of each (default 20)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="which of them (default 0)")
    parser.add_argument("--limit", type=float, default=1200, metavar="SECONDS", help="for the tests of one of a file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all of it there")
    args, console = parser.parse_args(argv), Console(highlight=False)
    if args.count < 1:
        parser.error(f"--count {args.count}: must be 1 or more")
    parts, modules = [each for each in args.what if each in PARTS], [each for each in args.what if each not in PARTS]
    found = {"parts": netlists(parts, args.count, args.seed, console) if parts else {},
             "files": text.judged(modules, args.count, args.seed, args.limit, console) if modules else {}}
    if args.json:
        files.write_json(args.json, found)
    return int(any(each["verdict"] == text.SURVIVED for rows in found["files"].values() for each in rows))


if __name__ == "__main__":
    sys.exit(main())
