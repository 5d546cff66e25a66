"""A trace of a short run for a waveform viewer."""

from pathlib import Path

import numpy as np

from hbfp import files
from hbfp.golden.core.device import Golden

from ..bench.awkward import awkward
from ..bench.tiling import most_terms
from ..manifest import Manifest
from ..simulate.simulation import Pause, Simulation
from ..simulate.verilator import Progress
from .device import Core


def write_waves(manifest: Manifest, path: Path, *, seed: int = 1, progress: Progress | None = None) -> Path:
    """Write a VCD file: X converted where there is a converter, then a product twice, without pauses and with them.

    Parameters
    ----------
    manifest : Manifest
        The design.
    path : Path
        File to write; Surfer and GTKWave open it.
    seed : int
        Seed of data and pauses.
    progress : callable, optional
        Called with (done, total) as the model that can trace is built.

    Returns
    -------
    Path
        The file.
    """
    rng = np.random.default_rng(seed)
    with (files.replacing(path) as temporary,
          Simulation(manifest, level="-O1", trace=temporary, seed=seed, progress=progress) as simulation):
        core = Core(simulation)
        design = core.design
        count, terms = min(8, design.depth), min(design.rows + 1, most_terms(design))
        shapes = (count, terms), (terms, design.cols)
        if design.arithmetic == "int":
            x, w = (rng.integers(-design.format.limit, design.format.limit + 1, shape) for shape in shapes)
        else:
            x, w = awkward(rng, shapes[0], design.format), awkward(rng, shapes[1], design.format, -2)
        if design.blocked:
            core.encode(x)
            x, w = Golden(design).encode(x), Golden(design).encode(w, -2)
        for share in (0.0, 0.4):
            core.pauses = dict.fromkeys(simulation.streams, Pause(share, 2))
            core.matmul(x, w)
    return path
