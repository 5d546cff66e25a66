"""``python -m gen``: a design in, Verilog and its manifest out."""

if __name__ == "__main__":
    from hbfp import loading

    loading.watch("gen")    # before all that takes a while to load

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from functools import partial

from amaranth.hdl import Elaboratable

from hbfp import describe
from hbfp.command import Parser, run
from hbfp.files import output
from hbfp.golden.spec.dispatch import ADDRESS_RANGE, COUNTER_RANGE, DEPTH_RANGE, STAMPED_RANGE, TAG_RANGE, TIME_RANGE
from hbfp.golden.spec.networks import COPIES, PORTS_RANGE
from hbfp.golden.spec.networks import WIDTH_RANGE as PAYLOAD_RANGE
from hbfp.golden.spec.vector import BEATS_RANGE, LANES_RANGE, REGISTERS_RANGE
from hbfp.options import OPTIONS, add_design_options, design_from_args, system_from_args
from hbfp.system import Accelerator
from hbfp.values import choice, flag, number, refuse, shown, whole, writable_folder

from . import sdc
from .readable import DEFAULT, TEXTS
from .tops import TOPS, make_top
from .units import CORE_UNITS, FREE_UNITS, make_part, make_unit, options_of
from .write import texts, write_files

EXAMPLES = """\
examples:
  python -m gen --mantissa 8 --rows 32            the default design, 32 x 32
  python -m gen --mantissa 4 --rows 16 --cols 64 --block 16,16 --accumulate aligned
  python -m gen --arithmetic fp32 --rows 32       the FP32 baseline with the same dataflow
  python -m gen --preset hbfp6 --out build/hbfp6
  python -m gen --unit encode --mantissa 6        one part alone: the FP32 -> HBFP converter
  python -m gen --unit dot_product --block 1,128  a dot-product unit of 128 terms; its FP32 twin: --arithmetic fp32
  python -m gen --unit fp32.fma --pipeline 3      an FP32 unit; --subnormals flush or gradual
  python -m gen --unit vector --lanes 16          the vector unit
  python -m gen --unit vector --functions exp,log --function-lanes 2    evaluators that lanes share
  python -m gen --top accelerator --rows 16       the accelerator: memories, DMA and instructions around a core
  python -m gen soc --board ulx3s --rows 8 --block 1,8    a CPU and its memory around one, by LiteX
  python -m gen --unit dispatch --depth 256       the request dispatcher
  python -m gen --top pods --pods 8 --rows 8      many arrays behind networks
  python -m gen --unit butterfly --pods 64 --copies 2    a network between pods and banks; also crossbar, benes
  python -m gen --pipeline 3 --period 6.8         constraints for synthesis (SDC) beside the Verilog
  python -m gen --config design.toml              keys as the options: mantissa = 6, block = [1, 16]
"""


#: What ``--memories`` may be: as Verilog, or left out, for a memory compiler's macros.
MEMORIES = ("inside", "blackbox")
#: Options of the vector units, and of networks.
VECTOR_OPTIONS, NETWORK_OPTIONS = ("lanes", "beats", "registers"), ("pods", "copies", "width")
#: Options that a vector unit has as an accelerator has them.
SHARED_OPTIONS = ("function_lanes", "functions")
#: Options of parts that belong to no design: what they are, and their range.
PART_OPTIONS = {"lanes": ("elements a cycle", LANES_RANGE), "beats": ("beats of the longest row", BEATS_RANGE),
                "registers": ("rows that the unit holds", REGISTERS_RANGE),
                "address": ("bits of an address", ADDRESS_RANGE), "tag": ("bits of a request's tag", TAG_RANGE),
                "time": ("bits of a time in cycles", TIME_RANGE), "counter": ("bits of a counter", COUNTER_RANGE),
                "stamped": ("1: others may say from when on a request counts", STAMPED_RANGE),
                "pods": ("ports, one for each pod: a power of two", PORTS_RANGE),
                "copies": ("copies of the butterfly: a power of two", (COPIES[0], COPIES[-1])),
                "width": ("bits of a payload", PAYLOAD_RANGE)}


def _owner(name):
    return "vector units" if name in VECTOR_OPTIONS else "networks" if name in NETWORK_OPTIONS else "dispatcher"


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m gen", epilog=EXAMPLES,
                    description="Emit Verilog-2005 and manifest.json for a design.")
    add_design_options(parser)
    parser.add_argument("--top", metavar="NAME", default="core",
                        help=f"what is built: {', '.join(TOPS)} (default core)")
    parser.add_argument("--unit", metavar="NAME", default="core",
                        help=f"a part alone: {', '.join((*CORE_UNITS, *FREE_UNITS))}")
    for name, (text, (low, high)) in PART_OPTIONS.items():
        parser.add_argument(flag(name), metavar="N", help=f"{_owner(name)}: {text}, {low} to {high}")
    known = {*OPTIONS, *PART_OPTIONS}
    for name, top in TOPS.items():
        describe.add_arguments(parser.add_argument_group(f"--top {name}"), top.description, without=known)
        known |= set(top.options)
    parser.add_argument("--memories", metavar="NAME", default="inside",
                        help=f"bodies of memories: {', '.join(MEMORIES)}, with a list in the manifest (default inside)")
    parser.add_argument("--text", metavar="NAME", default=DEFAULT,
                        help="readable: as a person would write it; plain: one operator a line, on which areas are "
                             f"measured (default {DEFAULT})")
    parser.add_argument("--period", metavar="NS", help="clock period in ns: write constraints (SDC), too")
    parser.add_argument("--out", metavar="DIR", help="folder for the files (default: build/gen/NAME)")
    return parser


def _folder(args, name):
    """Where the files go."""
    return writable_folder("out", output("gen", name) if args.out is None else args.out)


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    top = TOPS[choice("top", args.top, TOPS)]
    work = _prepare(args, top)
    if args.period is not None:
        work = partial(work, period=number("period", args.period, *sdc.PERIOD_RANGE))
    work = partial(work, style=choice("text", args.text, TEXTS))
    return partial(work, blackbox=True) if choice("memories", args.memories, MEMORIES) == "blackbox" else work


def _prepare(args, top):
    """The same, with memories inside."""
    if args.top != "core" and args.unit != "core":
        raise refuse("unit", args.unit, f"must not be given with --top {args.top}")
    others = {name for each in TOPS.values() for name in each.options} | set(PART_OPTIONS)
    if args.top != "core":
        _without(args, others - set(top.options), f"--top {args.top}")
        return _prepare_top(args, top)
    if args.unit in FREE_UNITS:
        _without(args, others - set(PART_OPTIONS) - set(options_of(args.unit)), args.unit)
        return _prepare_part(args)
    _without(args, others, shown(args.unit))
    design = design_from_args(args)
    folder = _folder(args, design.name if args.unit == "core" else args.unit)
    return partial(_write, make_unit(args.unit, design), folder, design)


def _without(args, names, what):
    """Refuse options that ``what`` has not."""
    for name in sorted(names):
        if getattr(args, name) is not None:
            raise refuse(name, getattr(args, name), f"must not be given, {what} has none")


def _prepare_top(args, top):
    """The same for a system of cores: its own options are a part's parameters in the manifest."""
    system = system_from_args(args, top.description)
    parameters = {name: getattr(system, name) for name in top.options}
    return partial(_write, make_top(args.top, system), _folder(args, system.name), system.core, unit=args.top,
                   parameters=parameters, beside=top.beside(system), **top.facts(system))


def _prepare_part(args):
    """The same for a unit that belongs to no design."""
    given = {name: getattr(args, name) for name in (*PART_OPTIONS, *SHARED_OPTIONS, *OPTIONS, "preset", "config")
             if getattr(args, name) is not None}
    for name, (_, limits) in PART_OPTIONS.items():
        if name in given:
            given[name] = whole(name, given[name], *limits)
    for name in set(SHARED_OPTIONS) & given.keys():
        given[name] = describe.declared(Accelerator)[name][0].read(name, given[name])
    if "depth" in given:
        given["depth"] = whole("depth", given["depth"], *DEPTH_RANGE)
    if "pipeline" in given:    # the unit knows how many registers it can have
        given["pipeline"] = whole("pipeline", given["pipeline"])
    component, folder = make_part(args.unit, given), _folder(args, args.unit)
    return partial(_write, component, folder, unit=args.unit, parameters=given)


def _write(component, folder, design=None, beside=None, **more):
    """Emit into a folder and say what was written."""
    gc.disable()    # millions of small objects live to the end: the collector would only walk them
    found, files = texts(component, design, beside=beside, **more)
    write_files(folder, files)
    verilog, *others = files
    print(f"{folder / verilog}: {len(found.modules)} modules, top {found.top}")
    for name in others:
        print(f"{folder / name}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["soc"]:
        from .soc.command import main as soc

        return soc(words[1:])
    return run(make_parser(), prepare, words)


if __name__ == "__main__":
    # Parts of a design that is refused, or that Ctrl-C stops half-way, are used nowhere; users need not know.
    Elaboratable._MustUse__silence = True
    sys.exit(main())
