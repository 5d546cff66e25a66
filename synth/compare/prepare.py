"""Brings what reports are made of into the cache: every distinct unit of many designs once, the largest first."""

from collections.abc import Iterable, Sequence
from contextlib import contextmanager

from joblib import Parallel, delayed, parallel_config

from hbfp.design import Design
from hbfp.values import refuse

from ..measure import partition
from ..measure.area import Progress, generate, measure_unit
from ..tools.errors import SynthError
from ..tools.library import Library


def prepare(designs: Iterable[Design], targets: Sequence[tuple[str, Library | None]], jobs: int = 2,
            progress: Progress | None = None, scheduler: str | None = None, go_on: bool = False) -> None:
    """Emit designs and synthesise their units; those in the cache cost nothing.

    Parameters
    ----------
    designs : list of Design
    targets : list of (str, Library or None)
        Recipes, each with its library.
    jobs : int
        Processes.
    progress : callable, optional
        ``progress(done, total, name)``.
    scheduler : str, optional
        Address of a Dask scheduler, whose workers take the place of processes here.
    go_on : bool
        Finish all others before a failure is reported, so that they are there the next time.

    Raises
    ------
    SynthError
        If a design or a unit fails: the first complaint.
    OptionError
        If the generator refuses a design, Dask is not installed, or no scheduler answers.
    """
    designs = list(dict.fromkeys(designs))
    with _processes(jobs, scheduler):
        _all(_emit, [(design,) for design in designs], progress, go_on)
        units = {unit.verilog: unit for design in designs for unit in partition.units(*generate(design))
                 if unit.kind != "ram"}
        largest_first = sorted(units.values(), key=lambda unit: len(unit.verilog), reverse=True)
        _all(_synthesise, [(unit, *target) for unit in largest_first for target in targets],
             progress, go_on)


@contextmanager
def _processes(jobs, scheduler):
    """Where joblib sends jobs: processes here, or the workers of a Dask scheduler, which must share this folder."""
    if scheduler is None:
        with parallel_config(backend="loky", n_jobs=jobs):
            yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise refuse("scheduler", scheduler, "needs Dask, pip install 'hbfp[dask]'") from None
    try:
        client = Client(scheduler, timeout=10)
    except (OSError, ValueError):
        raise refuse("scheduler", scheduler, "no Dask scheduler answers there") from None
    with client, parallel_config(backend="dask", client=client):
        yield


def _all(work, jobs, progress, go_on):
    """Run every job; each returns its name."""
    failures = []
    results = Parallel(return_as="generator_unordered")(delayed(_caught)(work, job, go_on) for job in jobs)
    for n, (name, failure) in enumerate(results):
        failures += [failure] if failure else []
        if progress:
            progress(n + 1, len(jobs), name)
    if failures:
        raise failures[0]


def _caught(work, job, go_on):
    """A job's name, and what went wrong with it where that is no reason to stop."""
    try:
        return work(*job), None
    except SynthError as error:
        if not go_on:
            raise
        return "", error


def _emit(design):
    generate(design)
    return design.name


def _synthesise(unit, recipe, library):
    measure_unit(unit, recipe, library)
    return unit.top
