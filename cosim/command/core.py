"""``python -m cosim``: the same work on the Verilated core and on the golden model, compared bit for bit."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from rich.console import Console

from hbfp.command import BAD_INPUT, Parser, run
from hbfp.design import Design
from hbfp.files import output
from hbfp.golden.command.progress import Bars
from hbfp.options import add_design_options, design_from_args
from hbfp.values import OptionError, choice, refuse, whole, writable_file

from ..bench.sizes import PROTOCOL_LIMIT, plain_where_large, smaller
from ..emit import EmitError, emit, emit_netlist
from ..simulate.verilator import BuildError
from .report import finish

EXAMPLES = """\
examples:
  python -m cosim                                   everything for the default design, 32 x 32
  python -m cosim --mantissa 4 --rows 16 --bench workload
  python -m cosim --rows 4 --block 1,4 --bench core --waves
  python -m cosim --mantissa 4 --wide 6 --rows 16 --bench boosted
  python -m cosim --arithmetic bf16 --rows 16 --json build/bf16.json
  python -m cosim --unit encode --mantissa 6        the bench of one part
  python -m cosim --rows 8 --block 1,8 --netlist    after mapping: the protocol benches on the gates
  python -m cosim --unit array --rows 2 --block 1,2 --netlist area     with library cells, by their functions
  python -m cosim --sparse 2,4 --block 1,64 --bench sparse     pruned digits, dense and sparse commands side by side
  python -m cosim matrix --help                     the regression over widths, blocks and arrays
  python -m cosim dispatch                          the request dispatcher against its cycle-true twin
  python -m cosim random --count 100 --seed 1       random designs over all options, each judged by the benches
"""
BENCHES = ("core", "workload", "sparse", "boosted", "all")
#: ``--waves`` without a file: beside the pictures.
HERE = object()


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m cosim", description=__doc__, epilog=EXAMPLES)
    add_design_options(parser)
    run = parser.add_argument_group("run")
    run.add_argument("--bench", default="all", metavar="NAME",
                     help="core (protocols with cocotb; random and corner data), workload (the digits network), sparse "
                     "(the same with --sparse, pruned), all (of these), boosted (products of training with mixed "
                     "mantissas; takes --wide, and torch)")
    run.add_argument("--unit", default="core", metavar="NAME", help="a part alone, by the cocotb bench that it has: "
                     "array, align, encode, encode_lane")
    run.add_argument("--netlist", nargs="?", const="generic", metavar="RECIPE", help="run the cocotb benches on the "
                     "mapped netlist, at most 8 x 8; a recipe of python -m synth (default generic)")
    run.add_argument("--waves", nargs="?", const=HERE, metavar="FILE",
                     help="also write a VCD trace of a short product, and views of it for GTKWave and Surfer")
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
    if args.bench in ("workload", "sparse", "boosted") and (args.unit != "core" or args.netlist):
        raise OptionError(f"--bench {args.bench}: must be core with --unit or --netlist")
    if args.json is not None:
        args.json = writable_file("json", args.json)
    if args.waves not in (None, HERE):
        args.waves = writable_file("waves", args.waves)


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


def run_unit(args: argparse.Namespace, design: Design) -> int:
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


def _too_long(design, terms=None):
    """Why products of so many terms, or those of the digits network, do not fit a design's commands, if they do not."""
    from ..bench.tiling import most_terms
    from ..work.digits import SIZES

    terms, most = terms or max(SIZES[:-1]), most_terms(design)
    return f"its products are {terms} terms long, and a command holds {most}" if terms > most else ""


def run_core(args: argparse.Namespace, design: Design) -> int:
    """Protocols and data on a whole core; the exit status."""
    seed, plain = args.seed, plain_where_large(design)
    console, outcomes = Console(highlight=False), []
    folder = output("cosim", design.name).resolve()
    too_long = _too_long(plain)
    if too_long and args.bench == "all":
        console.print(f"The digits network is left out: {too_long}.", soft_wrap=True)
    bar = Bars(console, args.quiet)
    with bar.progress:
        step = bar("generate")
        manifest = emit(plain)
        step(1, 1)

        from ..simulate.simulation import Simulation  # NumPy and the golden model take a moment; complaints come before
        from ..work.device import Core
        from ..work.products import random_products

        core = Core(Simulation(manifest, seed=seed, progress=bar("build the model")))
        files = [("Verilog", manifest.verilog), ("manifest", manifest.path)]
        if plain != design:
            console.print("Full-size work runs on --multiplier plain: equal bits, and recoded ones are too large to "
                          "simulate; the protocol benches run on those.", soft_wrap=True)
        if args.bench in ("core", "all"):
            bar("protocols (cocotb)")
            outcomes.append(_protocols(design, seed, console))
            outcomes.append(random_products(core, seed=seed, progress=bar("random and corner data")))
        if args.bench == "workload" or args.bench == "all" and not too_long:
            outcome, drawn = _network(core, design, folder, bar)
            outcomes.append(outcome)
            files += drawn
        if design.takes_sparse and (args.bench == "sparse" or args.bench == "all" and not too_long):
            outcomes.append(_pruned_network(core, console, bar))
        if args.bench == "boosted":
            from ..work.boosted import boosted

            outcomes.append(boosted(core, progress=bar("products of training")))
        if args.waves is not None:
            from ..simulate.views import write_views
            from ..work.waves import write_waves

            path = folder / "waves.vcd" if args.waves is HERE else args.waves
            files.append(("waves", write_waves(manifest, path, progress=bar("build for waves"))))
            files += [("view", each) for each in write_views(manifest, path)]
    return finish(args, design, outcomes, files, console, manifest)


def _network(core, design, folder, bar):
    """The digits network: its outcome, and the pictures as pairs of name and path."""
    from ..work import pictures
    from ..work.network import workload

    core.bucket = 64
    outcome, shown = workload(core, progress=bar("digits network"))
    if not shown:
        return outcome, []
    title = (f"{design.name}: {outcome.notes['accuracy']:.1%} of {len(shown['images'])} held-out digits "
             f"(NumPy float32 {outcome.notes['accuracy_fp32']:.1%})")
    digits = pictures.digits(folder / "digits.png", title, **shown)
    title = f"{design.name}: products of the digits network"
    activity = pictures.activity(folder / "activity.png", title, core.activity, core.bucket)
    return outcome, [("digits", digits), ("activity", activity)]


def _pruned_network(core, console, bar):
    """The digits network with sparse weights: its outcome; what it shows is printed."""
    from ..work.sparse import lines, sparse_workload

    outcome = sparse_workload(core, progress=bar("pruned digits network"))
    for line in lines(outcome.notes) if outcome.notes else ():
        console.print(f"sparse: {line}", markup=False, soft_wrap=True)
    return outcome


def _check_boosted(design):
    """OptionError unless training with mixed mantissas runs on a design, bit for bit as in golden.nn."""
    if not design.wide:
        raise refuse("wide", design.wide, "must be more than 0 for --bench boosted")
    if design.format.rounding == "stochastic":
        raise refuse("rounding", "stochastic", "must be rne or truncate for --bench boosted")
    if design.aligned and design.guard != 4:
        raise refuse("guard", design.guard, "must be 4 for --bench boosted")
    from ..work.boosted import TERMS

    if too_long := _too_long(design, TERMS):
        raise refuse("growth", design.growth, f"must be more for --bench boosted: {too_long}")


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    _check(args)
    design = design_from_args(args)
    if args.bench == "sparse" and not design.takes_sparse:
        raise refuse("bench", "sparse", "must be given with --sparse N,M")
    if args.unit == "core" and not args.netlist:
        if args.bench == "boosted":
            _check_boosted(design)
        if args.bench in ("workload", "sparse") and (too_long := _too_long(design)):
            raise refuse("growth", design.growth, f"must be more for --bench {args.bench}: {too_long}")
        return partial(run_core, args, design)
    from ..bench.catalogue import check_unit

    check_unit(args.unit, design)
    return partial(run_unit, args, design)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT, BuildError: BAD_INPUT})
