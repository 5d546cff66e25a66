"""Time and text of ``python -m gen`` against the array's size: ``python benchmarks/generator.py``.

Wall time and CPU time of whole commands, the best of three; bytes per row and column show how the text grows.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIDES = (16, 32, 64, 128)
REPEATS = 3


def emit(side, folder):
    """Wall seconds and CPU seconds of one command."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "gen", "--rows", str(side), "--out", folder], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - start, sum(getattr(after, part) - getattr(before, part)
                                            for part in ("ru_utime", "ru_stime"))


def main():
    """Print one row a size, and JSON after them."""
    rows = []
    print(f"{'array':>9} {'wall s':>7} {'cpu s':>7} {'bytes':>9} {'bytes / (rows + cols)':>22} {'modules':>8}")
    for side in SIDES:
        with tempfile.TemporaryDirectory() as folder:
            times = [emit(side, folder) for _ in range(REPEATS)]
            data = json.loads((Path(folder) / "manifest.json").read_text())
            size = (Path(folder) / data["verilog"]).stat().st_size
        wall, cpu = (min(column) for column in zip(*times, strict=True))
        rows.append({"side": side, "wall_s": round(wall, 2), "cpu_s": round(cpu, 2), "bytes": size,
                     "modules": len(data["modules"])})
        print(f"{side:>4} x {side:<3}{wall:>7.2f} {cpu:>7.2f} {size:>9,} {size / (2 * side):>22,.0f}"
              f" {len(data['modules']):>8}")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
