"""``python -m synth sweep``: designs crossed, every unit synthesised once, results kept as they come."""

import itertools
import json
from contextlib import contextmanager
from functools import partial

from joblib import Parallel, delayed, parallel_config
from rich.table import Table

from golden.spec import command
from golden.spec.command import Parser
from golden.spec.values import OptionError, address, flag, make_folder, refuse, words_of, writable_folder
from hbfp import files

from ..command.options import add_flow_options, baselines, jobs, make_console, progress_bar, step
from ..measure import partition
from ..measure.area import baseline, generate, measure, measure_unit
from ..report import tables
from ..tools.errors import FAILURES, SynthError
from .clocks import pareto, variants
from .comparison import BASELINES, Study
from .design_space import AXES, PLANS, axes_of, is_plain, plan, points

EXAMPLES = """\
examples:
  python -m synth sweep                                   mantissas 4, 6, 8 at 32 x 32
  python -m synth sweep --plan table                      the README's table
  python -m synth sweep --plan study --clocks             arrays, blocks, groups, accumulations: 123 designs
  python -m synth sweep --mantissa 2,3,4,5,6,8,12 --rows 8,16,24,32,64,128
  python -m synth sweep --mantissa 8 --group 1x1,2x1,4x1,8x1,4x4,8x4,8x8 --pipeline 0,1
  python -m synth sweep --accumulate fp32,aligned --recipe area,stock --liberty a.lib,b.lib
  python -m synth sweep --scheduler tcp://host:8786       workers of a Dask cluster (pip install "hbfp[dask]")
"""


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


#: Head of a column -> its text, from a report; those of :data:`_ALWAYS` stand in every table, the others where they
#: differ between designs.
_COLUMNS = {
    "W": lambda report: str(report.design["format"]["mantissa"]),
    "array": lambda report: f"{report.design['rows']} x {report.design['cols']}",
    "block": lambda report: "{} x {}".format(*report.design["format"]["block"]),
    "group": lambda report: "{} x {}".format(*report.design["group"]),
    "sums": lambda report: report.design["accumulate"],
    "share": lambda report: str(report.design["share"]),
    "pipeline": lambda report: str(report.design["pipeline"]),
    "recipe": lambda report: report.recipe,
    "library": lambda report: report.library["name"] if report.library else "none",
}
_ALWAYS = ("W", "array", "block")


def table(studies):
    """One row per design: areas of its core, the smallest float cores and those of its own group over it, and it over
    integers."""
    texts = {head: [text(study.report) for study in studies] for head, text in _COLUMNS.items()}
    shown = {head: column for head, column in texts.items() if head in _ALWAYS or len(set(column)) > 1}
    names = list(studies[0].baselines)
    result = Table(title="NAND2-equivalents per MAC; ratios of whole cores", title_justify="left",
                   caption=_smallest_line(studies), caption_justify="left")
    for head in shown:
        result.add_column(head)
    heads = (["core / int"] if name == "int" else [f"{name} / core", "same group"] for name in names)
    for head in ("element", "core", *itertools.chain(*heads)):
        result.add_column(head, justify="right")
    for n, study in enumerate(studies):
        scopes = study.report.scopes()
        cells = itertools.chain(*(_ratio_cells(study, name) for name in names))
        result.add_row(*(column[n] for column in shown.values()), f"{scopes['element']:.1f}", f"{scopes['core']:.1f}",
                       *cells)
    return result


def _ratio_cells(study, name):
    """What the table says of one baseline; bold is the ratio to the smallest float core."""
    same, smallest = (ratios[name]["core"] for ratios in (study.ratios, study.smallest_ratios))
    return [f"{1 / same:.3f}"] if name == "int" else [f"[bold]{smallest:.2f}[/bold]", f"{same:.2f}"]


def _smallest_line(studies):
    """Which float cores are divided by the designs."""
    found = dict.fromkeys((BASELINES[name], tuple(other.design["group"]), other.scopes()["core"])
                          for study in studies for name, other in study.smallest.items() if name != "int")
    parts = [f"{text} {area:,.0f} in groups of {rows} x {cols}" for text, (rows, cols), area in found]
    return f"floats in the smallest group found: {'; '.join(parts)}" if 0 < len(parts) <= 4 else None


def make_parser():
    """The command line."""
    parser = Parser(prog="python -m synth sweep", epilog=EXAMPLES, description="Areas of many designs.")
    for name, default in AXES.items():
        parser.add_argument(f"--{name}", metavar="LIST",
                            help=f"values with commas between (default: {','.join(default) or 'as python -m gen'})")
    parser.add_argument("--plan", metavar="NAME", help=f"designs by name instead: {', '.join(PLANS)}")
    add_flow_options(parser)
    parser.add_argument("--against", metavar="NAMES", default="fp32,int", help=f"baselines: {','.join(BASELINES)}")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler; needs the extra `dask`")
    parser.add_argument("--clocks", action="store_true", help="clocks of groups and pipelines at 32 x 32 too (by "
                        "OpenSTA; about 30 units of a minute each)")
    parser.add_argument("--out", metavar="DIR", default=str(files.output("sweep")),
                        help="folder for tables and pictures")
    return parser


def prepare(args):
    """From parsed arguments to the work; OptionError if a value is not valid."""
    args.jobs, args.scheduler = jobs(args), address("scheduler", args.scheduler)
    recipes, libraries = ([None] if text is None else words_of(name, text)
                          for name, text in (("recipe", args.recipe), ("liberty", args.liberty)))
    steps = [step(recipe, path) for recipe, path in itertools.product(recipes, libraries)]
    lists = {name: getattr(args, name) for name in AXES}
    given = [flag(name) for name, words in lists.items() if words is not None]
    if args.plan is not None and given:
        raise refuse("plan", args.plan, f"names its designs itself, take away {', '.join(given)}")
    designs, left_out = points(axes_of(lists)) if args.plan is None else plan(args.plan)
    if not designs:
        raise OptionError("no combination is a valid design")
    against = baselines(args.against)
    return partial(work, args, designs, left_out, steps, against, writable_folder("out", args.out))


def work(args, designs, left_out, steps, against, folder):
    """Measure all designs, write tables and pictures, in sight of the user."""
    console = make_console()
    with progress_bar(console) as bar:
        task = bar.add_task(f"{len(designs)} designs")
        studies = run(designs, steps, against, args.jobs, args.scheduler,
                      lambda name, n, total: bar.update(task, completed=n, total=total,
                                                        description=f"{name}, {len(designs)} designs"))
        clocked = clock_points(designs, against, *steps[0], args.jobs, lambda n, total, name: bar.update(
            task, completed=n, total=total, description=f"clocks, {name}")) if args.clocks else ()
    make_folder("out", folder)
    files.write(folder / "sweep.json", json.dumps(as_dict(studies, clocked), indent=1) + "\n")
    files.write(folder / "sweep.csv", tables.csv_text(studies))
    console.print(table(studies))
    if left_out:
        console.print(f"[dim]{left_out} combinations left out: block, group and rows contradict each other[/dim]")
    from ..report.html import write_page
    written = write_page(folder, studies, clocked)
    console.print(", ".join(str(path) for path in (folder / "sweep.json", folder / "sweep.csv", *written)))


def main(argv):
    """Run the command; return its exit status."""
    return command.run(make_parser(), prepare, argv, FAILURES)
