"""Compiles the kernels that :mod:`benchmarks.gpu` measures: in processes side by side, for one by one takes minutes.

    python -m benchmarks.gpu_warm conversions            one task, as the benchmark starts it
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

#: GiB of a device's memory that a task may need.
ROOM = 24
COMMAND = (sys.executable, "-m", "benchmarks.gpu_warm")


def tasks(parts: Iterable[str]) -> list[str]:
    """What is compiled for parts of the benchmark: those parts, or ``MODEL KIND`` of a training step."""
    from .gpu_models import KINDS, MODELS
    parts = list(parts)
    steps = [f"{model} {kind}" for model in MODELS for kind, (formats, _) in KINDS.items() if formats is not None]
    return (steps if "training" in parts else []) + [part for part in ("conversions", "products") if part in parts]


def warm(work: Sequence[str], room: int, tell: Callable[[str], object], command: Sequence[str] = COMMAND) -> None:
    """Do tasks, as many at once as there are processors and ``room`` in GiB; ``tell`` what failed, which stops none."""
    def one(task):
        done = subprocess.run([*command, task], capture_output=True, text=True)
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return f"{task} was not compiled before: {last[:120]}" if done.returncode else None
    with ThreadPoolExecutor(max(1, min(os.cpu_count() or 1, room // ROOM))) as pool:
        for line in filter(None, pool.map(one, work)):
            tell(line)


def main(argv: list[str] | None = None) -> int:
    """Do one task."""
    task, = sys.argv[1:] if argv is None else argv
    if task in ("conversions", "products"):
        from . import gpu
        getattr(gpu, task)({"copy": 1.0, "bf16": 1.0, "fp32": 1.0})
    else:
        from .gpu_models import once
        once(*task.split(" ", 1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
