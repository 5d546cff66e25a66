"""Bit-exactness over widths, blocks, arrays, accumulations and roundings.

A cell is one combination. Rounding changes the converter alone, so a core is built once for all roundings: its
product is checked with operands of nearest even and stochastic rounding, its converter with nearest even; the
other converters are emitted and checked alone. Results are kept under the hash of the Verilog, so that a run goes on
where the last one ended.
"""

import os
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from hbfp import entries, files
from hbfp.design import ConflictError, Design
from hbfp.format import HBFPFormat
from hbfp.golden.core.device import Golden
from hbfp.golden.noise import mix

from ..bench.awkward import awkward, awkward_blocks
from ..bench.comparison import Comparison
from ..bench.reference import ConverterReference
from ..emit import EmitError, emit
from ..simulate.simulation import ProtocolError, Simulation
from . import results
from .device import Core
from .products import crossed, random_products

#: Mantissa bits, block, array, accumulation, then N and M of sparse weights where there are any, and rounding.
Cell = tuple[Any, ...]
#: Bits of mantissas; a pair is those of the array and those of wide ones, which need an even number of columns.
MANTISSAS = (2, 3, 4, 6, 8, 12, 16, (4, 6), (8, 12))
BLOCKS = ((1, 8), (1, 16), (1, 32), (8, 8), (16, 16), (24, 24))
ARRAYS = ((1, 1), (3, 5), (8, 8), (16, 16), (24, 24))
ACCUMULATES = ("fp32", "aligned")
ROUNDINGS = ("rne", "stochastic", "truncate")
#: Sparse weights, N of M, of the cells that have any: what they lie on has blocks shorter than, as long as and longer
#: than the rows.
SPARSE_ARRAYS, SPARSE_MANTISSAS, SPARSE = ((8, 8), (16, 16)), (4, 8, (4, 6)), ((2, 4), (1, 4), (4, 8))
#: Cells that together contain every value, most pairs, and every way in which a block can lie on the rows.
SELECTION = (
    (2, (1, 8), (1, 1), "fp32", "rne"), (3, (1, 16), (3, 5), "aligned", "stochastic"),
    (4, (1, 32), (8, 8), "fp32", "stochastic"), (6, (8, 8), (16, 16), "aligned", "rne"),
    (8, (16, 16), (8, 8), "aligned", "rne"), (12, (1, 8), (3, 5), "fp32", "stochastic"),
    (16, (1, 8), (8, 8), "aligned", "stochastic"), (2, (24, 24), (24, 24), "fp32", "rne"),
    (16, (16, 16), (1, 1), "aligned", "stochastic"), (8, (1, 32), (16, 16), "fp32", "stochastic"),
    ((4, 6), (16, 16), (8, 8), "aligned", "rne"), ((8, 12), (1, 8), (16, 16), "fp32", "truncate"),
    (2, (1, 16), (16, 16), "fp32", "truncate"), (6, (24, 24), (1, 1), "aligned", "truncate"),
)
#: Arrays by the names that the command line has for them.
NAMES = {f"{rows}x{cols}": (rows, cols) for rows, cols in ARRAYS}
#: Elements up to which multipliers are the recoded ones; of larger arrays Verilator makes too much C++.
RECODED_LIMIT = 16
#: What every result has.
FIELDS = {"passed", "compared", "first"}
#: Blocks sent through a converter that is checked alone.
CONVERSIONS = 400


def cells() -> list[Cell]:
    """All combinations, small arrays first."""
    return [(mantissa, block, array, accumulate, rounding)
            for array, mantissa, block, accumulate, rounding
            in product(ARRAYS, MANTISSAS, BLOCKS, ACCUMULATES, ROUNDINGS)
            if not (isinstance(mantissa, tuple) and array[1] % 2)]


def _widths(mantissa):
    """Mantissa bits of the array, and wide ones, 0 if there are none."""
    return mantissa if isinstance(mantissa, tuple) else (mantissa, 0)


def _bits(mantissa, wide):
    """Mantissa bits in words."""
    return f"W={mantissa}{f'+{wide}' if wide else ''}"


def sparse_cells() -> list[Cell]:
    """Combinations with sparse weights, N and M before the rounding, without blocks that do not go with them."""
    found = []
    for array, mantissa, block, accumulate, sparse in product(SPARSE_ARRAYS, SPARSE_MANTISSAS, BLOCKS, ACCUMULATES,
                                                              SPARSE):
        try:
            design_of_cell(cell := (mantissa, block, array, accumulate, sparse, "rne"))
        except ConflictError:
            continue
        found.append(cell)
    return found


def name(cell: Cell) -> str:
    """A cell in words."""
    mantissa, block, array, accumulate, *sparse, rounding = cell
    bits, kept = _bits(*_widths(mantissa)), "".join(f" {n}:{m}" for n, m in sparse)
    return f"{bits} block {block[0]}x{block[1]} array {array[0]}x{array[1]} {accumulate}{kept} {rounding}"


def design_of_cell(cell: Cell) -> Design:
    """The cell's :class:`Design`; a block that does not fit the rows leaves some idle."""
    widths, block, (rows, cols), accumulate, *sparse, rounding = cell
    mantissa, wide = _widths(widths)
    more = {"sparse": sparse[0]} if sparse else {}
    fits = all(not block[1] % of or not of % block[1] for of in (rows, *(rows * m // n for n, m in sparse)))
    return Design(format=HBFPFormat(mantissa=mantissa, block=block, rounding=rounding), rows=rows, cols=cols,
                  accumulate=accumulate, depth=64, ragged=not fits,
                  multiplier="recoded" if rows * cols <= RECODED_LIMIT else "plain", wide=wide, **more)


def check_core(design: Design, *, level: str = "-O0", jobs: int | None = None,
               cache: Path | None = None) -> tuple[Comparison, Path]:
    """Products with operands of two roundings, and conversions to nearest even, of one core.

    Returns
    -------
    (Comparison, Path)
        What was compared, and the model's library.

    Raises
    ------
    EmitError, BuildError, ProtocolError
        If the generator or a tool fails, or the core breaks a rule of its streams.
    """
    nearest = replace(design, format=replace(design.format, rounding="rne"))
    manifest = emit(nearest)
    with Simulation(manifest, level=level, jobs=jobs, cache=cache) as simulation:
        core = Core(simulation)
        seed = zlib.crc32(manifest.top.encode())
        outcome = random_products(core, seed=seed)
        if outcome.failures:
            raise ProtocolError(outcome.failures[0])
        result = outcome.comparison
        random = Golden(replace(design, format=replace(design.format, rounding="stochastic")))
        rng = np.random.default_rng(seed)
        for pauses in list(crossed(simulation))[::4]:
            core.pauses = pauses
            shape = 9, 2 * max(design.rows, design.format.terms) + 1, design.cols + 1
            a = random.encode(awkward(rng, shape[:2], design.format))
            b = random.encode(awkward(rng, shape[1:], design.format, -2), -2)
            result.add("product of stochastic operands", core.matmul(a, b), random.matmul(a, b))
        return result, simulation.library


def check_converter(design: Design, *, level: str = "-O1", jobs: int | None = None,
                    cache: Path | None = None) -> tuple[Comparison, Path]:
    """Check the design's converter, emitted alone; returns and raises as :func:`check_core`."""
    result = Comparison()
    manifest = emit(design, unit="encode")
    rng = np.random.default_rng(zlib.crc32(manifest.top.encode()))
    with Simulation(manifest, level=level, jobs=jobs, cache=cache) as simulation:
        into, out = simulation.streams["i"], simulation.streams["o"]
        for seed, pauses in enumerate(list(crossed(simulation))[::2], 1):
            simulation.reset()
            if seed > 1 and "i_seed" in simulation.streams:    # 1 is what the reset leaves
                word = simulation.streams["i_seed"].pack(value=np.array([mix(seed)]))
                simulation.run({"i_seed": word}, {}, pauses=pauses)
            value = awkward_blocks(rng, CONVERSIONS // 5, design.encode_beats * design.encode_lanes, design.format)
            value = value.reshape(-1, design.encode_lanes)
            wide = rng.integers(0, 2, len(value)) if design.wide else None
            fields = {"value": value} | ({"wide": wide} if design.wide else {})
            run = simulation.run({"i": into.pack(**fields)}, {"o": len(value)}, pauses=pauses)
            want, got = ConverterReference(design, seed).result(value, wide), out.unpack(run.payloads["o"])
            for field, expected in want.items():
                result.add(f"converter {field}", got[field].reshape(expected.shape).astype(expected.dtype), expected)
        return result, simulation.library


def _unit_of(cell):
    """What has to be built for a cell: a core, shared by roundings, or a converter, shared by much more."""
    design = design_of_cell(cell)
    if cell[-1] == "rne":
        return "core", design
    return "converter", replace(design, cols=2 if design.wide else 1, group=None, accumulate="fp32")


def _check(kind, design, keep):
    """One build and its check, as plain data for the results."""
    # A model that nobody keeps is built where nobody else looks for it.
    cache = None if keep else files.cache("matrix")
    try:
        manifest = emit(design, unit=None if kind == "core" else "encode")
        result, library = (check_core if kind == "core" else check_converter)(design, jobs=1, cache=cache)
    except (RuntimeError, AssertionError, OSError) as error:
        return {"passed": False, "compared": 0, "first": [f"{type(error).__name__}: {error}"]}
    if not keep:
        entries.remove(library.parent)
    return {"passed": bool(result.compared) and not result.mismatches, "compared": result.compared,
            "first": result.first[:3], "sha256": manifest.data.sha256}


def results_file() -> Path:
    """Where results are kept."""
    return files.build() / "cosim" / "matrix.json"


def _known(entries, key, kind, design):
    """Whether a result for the very Verilog that the generator gives today is there."""
    entry = entries.get(key)
    if not entry or not entry["passed"] or "sha256" not in entry:
        return False
    try:
        return emit(design, unit=None if kind == "core" else "encode").data.sha256 == entry["sha256"]
    except EmitError:
        return False


def run_cells(chosen: Iterable[Cell], *, jobs: int | None = None, keep: bool = False,
              progress: Callable[[int, int, int], object] | None = None, path: Path | None = None
              ) -> dict[str, dict[str, Any]]:
    """Check all builds that the cells need, but those known to pass; returns results by name of the build.

    Parameters
    ----------
    chosen : list
        Cells.
    jobs : int, optional
        Builds at a time; all cores by default.
    keep : bool
        Keep the built models.
    progress : callable, optional
        Called with (done, total, failed) builds.
    path : Path, optional
        Results file; by default :func:`results_file`.
    """
    from joblib import Parallel, delayed

    path = path or results_file()
    known = results.load(path, FIELDS)
    work: dict[str, tuple[str, Design]] = {}
    for cell in chosen:
        kind, design = _unit_of(cell)
        work.setdefault(build_name(kind, design), (kind, design))
    done = failed = 0
    todo = []
    for key, (kind, design) in work.items():
        if _known(known, key, kind, design):
            done += 1
        else:
            todo.append((key, kind, design))
    if progress:
        progress(done, len(work), failed)

    def task(key, kind, design):
        # Another run may be at it: then its result will do.
        with files.lock(path.parent / "matrix" / files.key(key)):
            found = results.load(path, FIELDS)
            if not _known(found, key, kind, design):
                found[key] = _check(kind, design, keep)
                results.store(path, key, found[key], FIELDS)
        return key, found[key]

    runner = Parallel(n_jobs=jobs or os.cpu_count(), return_as="generator_unordered")
    for key, entry in runner(delayed(task)(*item) for item in todo):
        known[key] = entry
        done += 1
        failed += not entry["passed"]
        if progress:
            progress(done, len(work), failed)
    return {key: known[key] for key in work}


def build_name(kind: str, design: Design) -> str:
    """Key of a build in the results."""
    fmt, bits = design.format, _bits(design.format.mantissa, design.wide)
    block = f"{fmt.block[0]}x{fmt.block[1]}"
    if kind == "converter":
        return f"converter {bits} block {block} lanes {design.encode_lanes} {fmt.rounding}"
    kept = " {}:{}".format(*design.sparse) * design.takes_sparse
    return f"core {bits} block {block} array {design.rows}x{design.cols} {design.accumulate}{kept}"


def needs(cell: Cell) -> set[str]:
    """Builds that a cell rests on."""
    kind, design = _unit_of(cell)
    core = build_name("core", design_of_cell(cell))
    return {core} if kind == "core" else {core, build_name(kind, design)}
