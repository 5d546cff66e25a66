"""Many designs against their baselines: every unit synthesised once, results kept as they come."""

import itertools
from contextlib import contextmanager

from joblib import Parallel, delayed, parallel_config

from golden.spec.values import refuse

from ..measure import partition
from ..measure.area import baseline, generate, measure, measure_unit
from ..tools.errors import SynthError
from .clocks import pareto, variants
from .comparison import Study
from .design_space import is_plain


def _emit(design):
    """Emit a design into the cache; what went wrong comes back as text, so that the rest goes on."""
    try:
        generate(design)
    except SynthError as error:
        return str(error)
    return None


def _work(unit, recipe, library):
    """One unit into the cache, likewise."""
    try:
        measure_unit(unit, recipe, library)
    except SynthError as error:
        return str(error)
    return None


@contextmanager
def _backend(jobs, scheduler):
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


def _all(work, jobs, name, progress):
    """Run every job; raise the first complaint after all others are done."""
    complaints = []
    results = Parallel(return_as="generator_unordered")(delayed(work)(*job) for job in jobs)
    for n, complaint in enumerate(results):
        complaints += [complaint] if complaint else []
        if progress:
            progress(name, n + 1, len(jobs))
    if complaints:
        raise SynthError(complaints[0])


def run(designs, steps, against, jobs, scheduler=None, progress=None):
    """Studies of ``designs`` under each (recipe, library) of ``steps``.

    A float baseline is measured in every group of :data:`synth.compare.clocks.FLOAT_GROUPS`, so that none is
    larger than it need be.

    Every distinct unit is one job; those in the cache cost nothing, so a sweep that was stopped goes on where it was.

    Raises
    ------
    SynthError
        If a unit fails: the first complaint, after all others are done.
    """
    designs = list(dict.fromkeys(designs))
    everyone = list(dict.fromkeys(each for design in designs
                                  for each in [design, *itertools.chain(*_baselines(design, against).values())]))
    with _backend(jobs, scheduler):
        _all(_emit, [(design,) for design in everyone], "Amaranth", progress)
        every = {}
        for design in everyone:
            for unit in partition.units(*generate(design)):
                if unit.kind != "ram":
                    for recipe, library in steps:
                        every[recipe, library and library.sha256, unit.verilog] = (unit, recipe, library)
        todo = sorted(every.values(), key=lambda job: len(job[0].verilog), reverse=True)
        _all(_work, todo, "Yosys", progress)
    return [_study(design, recipe, library, against) for recipe, library in steps for design in designs]


def _baselines(design, against):
    """Arithmetic -> its core in the design's group, and those in other groups."""
    own = {name: baseline(design, name) for name in against}
    return {name: list(dict.fromkeys([each, *variants(each, depths=(0,))])) for name, each in own.items()}


def _study(design, recipe, library, against):
    """The study of a design whose units are in the cache."""
    same, smallest = {}, {}
    for name, cores in _baselines(design, against).items():
        reports = [measure(core, recipe, library) for core in cores]
        same[name], smallest[name] = reports[0], min(reports, key=lambda report: report.scopes()["core"])
    return Study(measure(design, recipe, library), same, smallest=smallest)


def clock_points(designs, against, recipe, library, jobs, progress=None):
    """Areas and clocks of the default designs of one array over groups, and of float baselines over pipelines."""
    plain = [design for design in designs if is_plain(design.as_dict())]
    some = [design for design in plain if design.rows == 32] or plain[:1]
    every = [each for design in some for each in variants(design)]
    every += [each for name in against if name != "int" for design in some for each in variants(baseline(design, name))]
    return pareto(list(dict.fromkeys(every)), recipe, library, jobs, progress)


def as_dict(studies, clocked=()):
    """Plain data: what ``sweep.json`` holds; a baseline that many designs share is there once."""
    baselines, entries = {}, []
    for study in studies:
        names = {"baselines": {}, "smallest": {}}
        for field, by_arithmetic in names.items():
            for arithmetic, other in getattr(study, field).items():
                library = other.library["name"] if other.library else "no library"
                by_arithmetic[arithmetic] = f"{other.name}, {other.recipe}, {library}"
                baselines.setdefault(by_arithmetic[arithmetic], other.as_dict())
        entries.append(study.as_dict() | names)
    return {"studies": entries, "baselines": baselines, "pareto": [point.as_dict() for point in clocked]}
