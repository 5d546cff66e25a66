"""Verdicts on the first designs of a random sequence, kept so that a run goes on where the last one ended."""

import hashlib
import os
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from hbfp import files
from hbfp.checkout import folder

from ..emit import EmitError, emit
from . import results
from .random_designs import check, draw, parts

#: What every result has.
FIELDS = {"verdict", "name", "compared", "mismatches", "problems", "asked", "seen", "benches"}


def sources() -> list[Path]:
    """What a verdict follows from beside the Verilog: sources of the benches, the golden model and descriptions."""
    return [path for package, pattern in (("hbfp.cosim", "**/*"), ("hbfp.golden", "**/*"), ("hbfp.isa", "*"),
                                          ("hbfp", "*"))
            for path in sorted(folder(package).glob(pattern)) if path.suffix in (".py", ".cpp", ".h", ".json")]


@cache
def benches() -> str:
    """Hash of :func:`sources`."""
    total = hashlib.sha256()
    for path in sources():
        total.update(path.read_bytes())
    return total.hexdigest()


def results_file() -> Path:
    """Where results are kept."""
    return files.build() / "cosim" / "random.json"


def _known(entry, design):
    """Whether a result is that of today's Verilog and today's benches."""
    if not entry or entry["benches"] != benches() or entry["verdict"] == "not built":
        return False
    try:
        return [emit(design, unit=None if unit == "core" else unit).data.sha256
                for unit in parts(design)] == entry.get("sha256")
    except EmitError:
        return False


def run_random(count: int, seed: int, *, broken: bool = False, jobs: int | None = None, keep: bool = False,
               progress: Callable[[int, int, dict[str, Any]], object] | None = None) -> dict[str, dict[str, Any]]:
    """Judge the first ``count`` designs of a seed, but those whose verdict is known; results by key, in order.

    Parameters
    ----------
    count, seed : int
        How many designs, of which sequence; the seed is also that of data and pauses.
    broken : bool
        Plant a fault in each.
    jobs : int, optional
        Designs at a time; all cores by default.
    keep : bool
        Keep what was built.
    progress : callable, optional
        Called with (done, total, entry) for each design, known or not.
    """
    from joblib import Parallel, delayed

    path, kind = results_file(), "broken" if broken else "whole"
    known = results.load(path, FIELDS)
    work = {f"{kind} seed {seed} number {number}": (number, draw(seed, number)) for number in range(count)}
    done = 0

    def judge(key, number, design):
        entry = known.get(key)
        if not _known(entry, design):
            fault = random.Random(f"{seed} {number} fault") if broken else None
            entry = check(design, seed, fault=fault, keep=keep)
            entry |= {"design": design.as_dict(), "name": design.name, "benches": benches()}
            results.store(path, key, entry, FIELDS)
        return key, entry

    runner = Parallel(n_jobs=jobs or os.cpu_count(), return_as="generator_unordered")
    for key, entry in runner(delayed(judge)(key, *item) for key, item in work.items()):
        known[key] = entry
        done += 1
        if progress:
            progress(done, count, entry)
    return {key: known[key] for key in work}
