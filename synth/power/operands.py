"""Operands that a core's ports see of a workload, from ``python -m cosim operands``."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hbfp import entries, files, generator
from hbfp.checkout import folder
from hbfp.design import Design
from hbfp.values import OptionError

from ..tools.errors import SynthError

#: Packages that decide what is recorded.
_READ = ("hbfp.cosim.bench", "hbfp.cosim.work", "hbfp.golden.core", "hbfp.golden.number", "hbfp.golden.lower",
         "hbfp.golden.study")


@cache
def _key() -> str:
    paths = sorted(path for package in _READ for path in folder(package).rglob("*.py"))
    return files.key(generator.key(), *(path.read_bytes() for path in paths))


def operands(design: Design, workload: str) -> dict[str, np.ndarray]:
    """The arrays of :func:`cosim.work.operands.record`, from the cache or into it.

    Raises
    ------
    OptionError
        If there is no such workload, in the words of the command.
    SynthError
        If it fails.
    """
    text = Path(workload).read_bytes() if workload.endswith(".py") and Path(workload).is_file() else b""

    def make(place):
        words = [sys.executable, "-m", "hbfp.cosim", "operands", *design.words(), "--workload", workload,
                 "--out", str(place / "operands.npz")]
        done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        if done.returncode:
            line = (done.stderr.strip().splitlines() or ["python -m cosim operands: no message"])[-1]
            if done.returncode == generator.REFUSED:
                raise OptionError(line.partition(": error: ")[2] or line)
            raise SynthError(line)

    key = files.key(_key(), *design.words(), workload, text)
    with np.load(entries.entry(files.cache("synth") / f"operands-{key}", make) / "operands.npz") as data:
        return {name: data[name] for name in data}


def commands(recorded: dict[str, Any]) -> tuple[tuple[int, int], int]:
    """Beats of `i_x` between which energy is counted, and the multiply-accumulates of those: the first command fills
    the core, and the last one lets it run on.
    """
    beats, macs = recorded["commands"].T
    return (int(beats[0]), int(beats.sum() - beats[-1])), int(macs[1:-1].sum())
