"""Seconds of one 32 x 32 area report, from scratch and from the cache: ``python -m benchmarks.area_speed``."""

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hbfp import files

COMMAND = (sys.executable, "-m", "synth", "--mantissa", "8", "--against", "fp32")


def timed():
    """Wall and processor seconds of one report."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(COMMAND, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    """Measure with the cache set aside, then with what that run left."""
    cache = files.cache("synth")
    with tempfile.TemporaryDirectory(dir=".") as aside:
        kept = Path(aside) / "synth"
        if cache.exists():
            shutil.move(cache, kept)
        try:
            for what in ("from scratch", "from the cache"):
                print("{}: {:.1f} s, {:.1f} s of processors".format(what, *timed()))
        finally:
            if kept.exists():
                shutil.rmtree(cache, ignore_errors=True)
                shutil.move(kept, cache)


if __name__ == "__main__":
    main()
