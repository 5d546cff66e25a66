"""``python -m synth sweep``: designs crossed, every unit synthesised once, results kept as they come."""

import itertools
import json
import sys
from contextlib import contextmanager
from pathlib import Path

from joblib import Parallel, delayed, parallel_config
from rich.console import Console
from rich.table import Table

from golden.spec.options import OptionError, Parser, design_from_values

from . import netlist, report
from .area import baseline, generate, measure, measure_unit
from .errors import SynthError
from .study import BASELINES, Study

EXAMPLES = """\
examples:
  python -m synth sweep                                   mantissas 4, 6, 8 at 32 x 32
  python -m synth sweep --mantissa 2,3,4,5,6,8,12 --rows 8,16,24,32,64,128
  python -m synth sweep --mantissa 8 --group 1x1,2x1,4x1,8x1,4x4,8x4,8x8 --against fp32,int
  python -m synth sweep --accumulate fp32,aligned --recipe area,stock
  python -m synth sweep --scheduler tcp://host:8786       workers of a Dask cluster (pip install "hbfp[dask]")
"""
#: Option -> default list of the axes that are crossed; --recipe is one more.
AXES = {"mantissa": "4,6,8", "rows": "32", "block": "", "accumulate": "fp32", "group": ""}


def _pair(text):
    return tuple(int(side) for side in text.split("x"))


def points(axes):
    """The valid designs of a cross product, in order, and how many combinations contradict themselves.

    Raises
    ------
    OptionError
        If a value is not valid by itself.
    """
    designs, left_out = [], 0
    lists = [axes[name] or [None] for name in ("mantissa", "rows", "block", "accumulate", "group")]
    for mantissa, rows, block, accumulate, group in itertools.product(*lists):
        values = {"mantissa": mantissa, "rows": rows, "accumulate": accumulate, "multiplier": "recoded",
                  "block": block and block.replace("x", ","), "group": group and group.replace("x", ",")}
        try:
            designs.append(design_from_values(values))
        except OptionError as error:
            if ": must be" in str(error) and not any(word in str(error) for word in ("divide", "divided")):
                raise
            left_out += 1
    return designs, left_out


def _work(unit, recipe, library):
    """One unit into the cache; what went wrong comes back as text, so that the rest goes on."""
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
        raise SynthError(f"--scheduler {scheduler}: needs Dask, pip install 'hbfp[dask]'") from None
    try:
        client = Client(scheduler, timeout=10)
    except (OSError, ValueError):
        raise SynthError(f"--scheduler {scheduler}: no Dask scheduler answers there") from None
    with client, parallel_config(backend="dask", client=client):
        yield


def run(designs, steps, against, jobs, scheduler=None, progress=None):
    """Studies of ``designs`` under each (recipe, library) of ``steps``.

    Every distinct unit is one job; those in the cache cost nothing, so a sweep that was stopped goes on where it was.

    Raises
    ------
    SynthError
        If a unit fails: the first complaint, after all others are done.
    """
    every = {}
    for design in designs:
        for each in [design, *(baseline(design, name) for name in against)]:
            for unit in netlist.units(*generate(each)):
                if unit.kind != "ram":
                    for recipe, library in steps:
                        every[recipe, library and library.sha256, unit.verilog] = (unit, recipe, library)
    todo = sorted(every.values(), key=lambda job: len(job[0].verilog), reverse=True)
    complaints = []
    with _backend(jobs, scheduler):
        results = Parallel(return_as="generator_unordered")(delayed(_work)(*job) for job in todo)
        for n, complaint in enumerate(results):
            complaints += [complaint] if complaint else []
            if progress:
                progress(n + 1, len(todo))
    if complaints:
        raise SynthError(complaints[0])
    return [Study(measure(design, recipe, library), {name: measure(baseline(design, name), recipe, library)
                                                     for name in against})
            for recipe, library in steps for design in designs]


def table(studies):
    """One row per design: areas and ratios of its core."""
    result = Table(title="NAND2-equivalents per MAC; baseline core over core", title_justify="left")
    for head in ("W", "array", "block", "group", "sums", "recipe"):
        result.add_column(head)
    for head in ("element", "core", *(f"{name} /" for name in studies[0].baselines)):
        result.add_column(head, justify="right")
    for study in studies:
        design, scopes = study.report.design, study.report.scopes()
        result.add_row(str(design["format"]["mantissa"]), f"{design['rows']} x {design['cols']}",
                       "{} x {}".format(*design["format"]["block"]), "{} x {}".format(*design["group"]),
                       design["accumulate"], study.report.recipe, f"{scopes['element']:.1f}", f"{scopes['core']:.1f}",
                       *(f"{ratios['core']:.2f}" for ratios in study.ratios.values()))
    return result


def _axes(args):
    axes = {name: [word for word in getattr(args, name).split(",") if word] for name in AXES}
    for name in ("block", "group"):
        for word in axes[name]:
            try:
                if len(_pair(word)) != 2:
                    raise ValueError
            except ValueError:
                raise OptionError(f"--{name} {word}: must be two numbers such as 8x4") from None
    return axes


def main(argv):
    """Run the command; return its exit status."""
    from .__main__ import _progress, add_flow_options, check_flow_options, choose_library, write
    parser = Parser(prog="python -m synth sweep", epilog=EXAMPLES, description="Areas of many designs.")
    for name, default in AXES.items():
        parser.add_argument(f"--{name}", metavar="LIST", default=default,
                            help=f"values with commas between (default: {default or 'as python -m gen'})")
    add_flow_options(parser)
    parser.add_argument("--against", metavar="NAMES", default="fp32,int", help=f"baselines: {','.join(BASELINES)}")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler; needs the extra `dask`")
    parser.add_argument("--out", metavar="DIR", default="build/sweep", help="folder for tables and pictures")
    args = parser.parse_args(argv)
    recipes = args.recipe.split(",") if args.recipe else [None]
    console = Console()
    try:
        steps = []
        for args.recipe in recipes:
            check_flow_options(args)
            library, recipe = choose_library(args)
            steps.append((recipe, library))
        against = [name for name in args.against.split(",") if name]
        for name in against:
            if name not in BASELINES:
                raise OptionError(f"--against {name}: must be of {', '.join(BASELINES)}")
        designs, left_out = points(_axes(args))
        if not designs:
            raise OptionError("no combination is a valid design")
    except OptionError as error:
        parser.error(str(error))
    except SynthError as error:
        print(f"python -m synth sweep: error: {error}", file=sys.stderr)
        return 1
    try:
        with _progress(console) as bar:
            task = bar.add_task(f"Yosys, {len(designs)} designs")
            studies = run(designs, steps, against, args.jobs, args.scheduler,
                          lambda n, total: bar.update(task, completed=n, total=total))
        folder = Path(args.out)
        folder.mkdir(parents=True, exist_ok=True)
    except (SynthError, OSError) as error:
        print(f"python -m synth sweep: error: {error}", file=sys.stderr)
        return 1
    write(folder / "sweep.json", json.dumps([study.as_dict() for study in studies], indent=1) + "\n")
    write(folder / "sweep.csv", report.csv_text(studies))
    console.print(table(studies))
    if left_out:
        console.print(f"[dim]{left_out} combinations left out: block, group and rows contradict each other[/dim]")
    from .page import write_page
    written = write_page(folder, studies)
    console.print(", ".join(str(path) for path in (folder / "sweep.json", folder / "sweep.csv", *written)))
    return 0


