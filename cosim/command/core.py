"""``python -m cosim``: the same work on the Verilated core and on the golden model, compared bit for bit."""

import json
import math
from dataclasses import replace
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hbfp.command import BAD_INPUT, Parser, run
from hbfp.files import output, write
from hbfp.options import add_design_options, design_from_args
from hbfp.values import OptionError, choice, refuse, whole, writable_file, writing

from ..emit import EmitError, emit, emit_netlist
from ..simulate.verilator import BuildError

EXAMPLES = """\
examples:
  python -m cosim                                   everything for the default design, 32 x 32
  python -m cosim --mantissa 4 --rows 16 --bench workload
  python -m cosim --rows 4 --block 1,4 --bench core --waves
  python -m cosim --arithmetic bf16 --rows 16 --json build/bf16.json
  python -m cosim --unit encode --mantissa 6        the bench of one part
  python -m cosim --rows 8 --block 1,8 --netlist    after mapping: the protocol benches on the gates
  python -m cosim --unit array --rows 2 --block 1,2 --netlist area     with library cells, by their functions
  python -m cosim matrix --help                     the regression over widths, blocks and arrays
  python -m cosim dispatch                          the request dispatcher against its cycle-true twin
  python -m cosim random --count 100 --seed 1       random designs over all options, each judged by the benches
"""
BENCHES = ("core", "workload", "all")
#: ``--waves`` without a file: beside the pictures.
HERE = object()
#: Elements up to which the protocol benches run on the design itself; beyond, a smaller one stands for it.
PROTOCOL_LIMIT = 64
#: The same, and for all work, where multipliers are emitted bit by bit: a 32 x 32 array of those is 190 MB of C++.
RECODED_LIMIT = 16


def bulk_design(design):
    """The design that full-size work runs on: the same, with ``plain`` multipliers (equal bits) where it is large."""
    if design.recoded and design.rows * design.cols > RECODED_LIMIT:
        return replace(design, multiplier="plain")
    return design


def smaller(design, limit=None):
    """A design of few elements with the same relation of block, rows and groups, for the protocol benches."""
    limit = limit or (RECODED_LIMIT if design.recoded else PROTOCOL_LIMIT)
    if design.rows * design.cols <= limit:
        return design
    side = math.isqrt(limit)
    fmt, rows = design.format, min(design.rows, side)
    terms = -(-fmt.terms * rows // design.rows)    # rounded up: no more segments, and as many passes of a block
    block = (terms, terms) if fmt.square else (1, terms)
    height = min(terms, rows)
    fits = not terms % rows or not rows % terms
    # Registers inside the adders need as many cycles between segments.
    pipeline = min(design.pipeline, height) if design.blocked and rows // height > 1 else design.pipeline
    group = (1, 1) if pipeline else None
    return replace(design, format=replace(fmt, block=block), rows=rows, cols=min(design.cols, side), group=group,
                   depth=min(design.depth, 64), share=min(design.share, side), ragged=design.ragged or not fits,
                   pipeline=pipeline)


def make_parser():
    """The command line."""
    parser = Parser(prog="python -m cosim", description=__doc__, epilog=EXAMPLES)
    add_design_options(parser)
    run = parser.add_argument_group("run")
    run.add_argument("--bench", default="all", metavar="NAME",
                     help="core (protocols with cocotb; random and corner data), workload (the digits network), all")
    run.add_argument("--unit", default="core", metavar="NAME", help="a part alone, by the cocotb bench that it has: "
                     "array, align, encode, encode_lane")
    run.add_argument("--netlist", nargs="?", const="generic", metavar="RECIPE", help="run the cocotb benches on the "
                     "mapped netlist, at most 8 x 8; a recipe of python -m synth (default generic)")
    run.add_argument("--waves", nargs="?", const=HERE, metavar="FILE",
                     help="also write a VCD trace of a short product, for Surfer or GTKWave")
    run.add_argument("--seed", default="1", metavar="N", help="of data and pauses, 0 to 4294967295 (default 1)")
    run.add_argument("--json", metavar="FILE", help="also write the results there")
    run.add_argument("--quiet", action="store_true", help="no progress bars")
    return parser


def _check(args):
    """Read the options that are not the design's; OptionError if one is not valid."""
    choice("bench", args.bench, BENCHES)
    args.seed = whole("seed", args.seed, 0, 2**32 - 1)
    if args.netlist == "":
        raise refuse("netlist", "", "must be a recipe of python -m synth netlist")
    if args.waves is not None and (args.unit != "core" or args.netlist):
        raise OptionError("--waves: must not be given with --unit or --netlist")
    if args.bench == "workload" and (args.unit != "core" or args.netlist):
        raise OptionError("--bench workload: must be core with --unit or --netlist")
    if args.json is not None:
        args.json = writable_file("json", args.json)
    if args.waves not in (None, HERE):
        args.waves = writable_file("waves", args.waves)


def _table(console, design, outcomes):
    table = Table(title=f"Co-simulation of {design.name}")
    for name, justify in (("bench", "left"), ("outputs compared", "right"), ("mismatches", "right"),
                          ("corners seen", "right"), ("cycles", "right"), ("million MAC/s", "right"), ("", "left")):
        table.add_column(name, justify=justify)
    for outcome in outcomes:
        speed = f"{outcome.macs / outcome.seconds / 1e6:.1f}" if outcome.macs and outcome.seconds else ""
        asked = len(outcome.corners)
        table.add_row(outcome.name, f"{outcome.comparison.compared:,}", f"{outcome.comparison.mismatches:,}",
                      f"{asked - len(outcome.missing)} of {asked}" if asked else "",
                      f"{outcome.cycles:,}" if outcome.cycles else "", speed,
                      "[green]passed" if outcome.passed else "[red]FAILED")
    console.print(table)


def _not_asked_for(outcome):
    """Lines about corners that the design cannot reach, those with one reason together."""
    for reason in dict.fromkeys(outcome.unreachable.values()):
        names = [name for name, why in outcome.unreachable.items() if why == reason]
        what = " and ".join(names) if len(names) <= 2 else f"{len(names)} corners"
        yield f"not asked for: {what}, because {reason}"


def _protocols(design, seed, console):
    """The cocotb benches, as an outcome."""
    from ..bench.catalogue import bench_outcome

    small = smaller(design)
    size = f"{small.rows} x {small.cols}"
    if small != design:
        console.print(f"Protocols are tested on {size}, block {'x'.join(map(str, small.format.block))}, otherwise "
                      "the same.", soft_wrap=True)
    outcome = bench_outcome(emit(small), seed=seed, name=f"protocols {size}")
    outcome.notes["design"] = small.name
    return outcome


def run_unit(args, design):
    """The bench of a part, or of a netlist; the exit status."""
    from ..bench.catalogue import bench_outcome

    console = Console(highlight=False)
    small = smaller(design, PROTOCOL_LIMIT) if args.unit in ("core", "array") else design
    if small != design:
        console.print(f"Tested on {small.rows} x {small.cols}, block {'x'.join(map(str, small.format.block))}, "
                      "otherwise the same.", soft_wrap=True)
    if args.netlist:
        manifest = emit_netlist(small, args.netlist, unit=args.unit)
    else:
        manifest = emit(small, unit=None if args.unit == "core" else args.unit)
    name = f"{args.unit}{f', netlist {args.netlist}' if args.netlist else ''}"
    outcomes = [bench_outcome(manifest, args.unit, args.seed, name)]
    return finish(args, design, outcomes, [("Verilog", manifest.verilog), ("manifest", manifest.path)], console)


def _too_long(design):
    """Why the digits network does not fit a design's commands, if it does not."""
    from ..bench.tiling import most_terms
    from ..work.digits import SIZES

    terms, most = max(SIZES[:-1]), most_terms(design)
    return f"its products are {terms} terms long, and a command holds {most}" if terms > most else ""


def run_core(args, design):
    """Protocols and data on a whole core; the exit status."""
    seed, bulk = args.seed, bulk_design(design)
    console, outcomes = Console(highlight=False), []
    too_long = _too_long(bulk)
    if too_long and args.bench == "all":
        console.print(f"The digits network is left out: {too_long}.", soft_wrap=True)
    columns = (TextColumn("{task.description:<32}"), BarColumn(), TextColumn("{task.completed}/{task.total}"),
               TimeElapsedColumn())
    with Progress(*columns, console=console, disable=args.quiet, transient=True) as progress:
        def bar(text):
            task = progress.add_task(text, total=None)
            return lambda done, total: progress.update(task, completed=done, total=total)

        step = bar("generate")
        manifest = emit(bulk)
        step(1, 1)

        from ..simulate.simulation import Simulation  # NumPy and the golden model take a moment; complaints come before
        from ..work.device import Core
        from ..work.products import random_products, workload

        core = Core(Simulation(manifest, seed=seed, progress=bar("build the model")))
        files = [("Verilog", manifest.verilog), ("manifest", manifest.path)]
        folder = output("cosim", design.name).resolve()
        if bulk != design:
            console.print("Full-size work runs on --multiplier plain: equal bits, and recoded ones are too large to "
                          "simulate; the protocol benches run on those.", soft_wrap=True)
        if args.bench in ("core", "all"):
            bar("protocols (cocotb)")
            outcomes.append(_protocols(design, seed, console))
            outcomes.append(random_products(core, seed=seed, progress=bar("random and corner data")))
        if args.bench == "workload" or args.bench == "all" and not too_long:
            from ..work import pictures

            core.bucket = 64
            outcome, shown = workload(core, progress=bar("digits network"))
            outcomes.append(outcome)
            if shown:
                title = (f"{design.name}: {outcome.notes['accuracy']:.1%} of {len(shown['images'])} held-out digits "
                         f"(NumPy float32 {outcome.notes['accuracy_fp32']:.1%})")
                files.append(("digits", pictures.digits(folder / "digits.png", title, **shown)))
                title = f"{design.name}: products of the digits network"
                files.append(("activity", pictures.activity(folder / "activity.png", title, core.activity,
                                                            core.bucket)))
        if args.waves is not None:
            from ..work.waves import write_waves

            path = folder / "waves.vcd" if args.waves is HERE else args.waves
            files.append(("waves", write_waves(manifest, path, progress=bar("build for waves"))))
    return finish(args, design, outcomes, files, console, manifest)


def finish(args, design, outcomes, files, console, manifest=None):
    """Print what came out, write it where asked for; the exit status."""
    _table(console, design, outcomes)
    for outcome in outcomes:
        for line in (*outcome.problems[:5], *_not_asked_for(outcome)):
            console.print(f"{outcome.name}: {line}", markup=False, soft_wrap=True)
    for name, path in files:
        console.print(f"{name + ':':<10}{path}", markup=False, soft_wrap=True)
    if args.json:
        about = {"top": manifest.top, "sha256": manifest.data.get("sha256")} if manifest else {}
        data = {"design": design.as_dict(), **about, "seed": args.seed,
                "outcomes": [outcome.as_dict() for outcome in outcomes],
                "passed": bool(outcomes) and all(outcome.passed for outcome in outcomes)}
        with writing("json", args.json):
            write(args.json, json.dumps(data, indent=1) + "\n")
    return 0 if outcomes and all(outcome.passed for outcome in outcomes) else 1


def prepare(args):
    """From parsed arguments to the work; OptionError if a value is not valid."""
    _check(args)
    design = design_from_args(args)
    if args.unit == "core" and not args.netlist:
        if args.bench == "workload" and (too_long := _too_long(design)):
            raise refuse("growth", design.growth, f"must be more for --bench workload: {too_long}")
        return partial(run_core, args, design)
    from ..bench.catalogue import check_unit

    check_unit(args.unit, design)
    return partial(run_unit, args, design)


def main(argv):
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT, BuildError: BAD_INPUT})
