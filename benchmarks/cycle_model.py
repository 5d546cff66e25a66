"""Speed of the cycle model, beside that of another commit: ``python -m benchmarks.cycle_model --against main``.

Processor seconds until it is compiled, and of a run, the best of --repeat; both sides take turns in one process, each
with the files of ``golden/perf/accelerator`` of its commit, and must find the same cycles.
"""

import argparse
import importlib.util
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "golden/perf/accelerator"


def model_of(commit, folder):
    """The module ``model`` of a commit, beside today's; its files go below ``folder``."""
    archive = subprocess.run(["git", "archive", commit, FOLDER], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    place, name = Path(folder) / FOLDER, "hbfp.golden.perf.against"
    spec = importlib.util.spec_from_file_location(name, place / "__init__.py", submodule_search_locations=[str(place)])
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return importlib.import_module(f"{name}.model")


def seconds(call):
    """Processor seconds of a call, and what it gives."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def main():
    """Print a row for each side; the exit status is 1 if their cycles differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="gemm-256x512x512", help="what python -m golden perf takes")
    parser.add_argument("--against", default="main", metavar="COMMIT")
    parser.add_argument("--repeat", type=int, default=5, metavar="N")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder    # so that both are compiled; before Numba is loaded
        from golden.lower.command import lowered
        from golden.perf.accelerator import model
        from hbfp.design import Design
        from hbfp.system import Accelerator
        from rtl.core.core import latencies

        system = Accelerator(core=Design(rows=16))
        program, latency = lowered(options.model, system).program, latencies(system.core)
        sides = {options.against: model_of(options.against, folder), "now": model}
        first, best, found = {}, dict.fromkeys(sides, float("inf")), {}
        for turn in range(options.repeat + 1):
            for name, side in sides.items():
                took, found[name] = seconds(lambda side=side: side.times(program, latency, 32, system.beat).cycles)
                if turn:
                    best[name] = min(best[name], took)
                else:
                    first[name] = took
    for name in sides:
        print(f"{name:>12}: {first[name] - best[name]:6.1f} s until compiled, {best[name]:7.3f} s for {found[name]:,} "
              f"cycles")
    ratio = [numbers["now"] / numbers[options.against] for numbers in (first, best)]
    print(f"now / {options.against}: {ratio[0]:.2f} with the compiler, {ratio[1]:.2f} without")
    return int(len(set(found.values())) > 1)


if __name__ == "__main__":
    raise SystemExit(main())
