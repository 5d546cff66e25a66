"""``python -m cosim board``: the driver in C runs a network on the simulated accelerator, compared with PyTorch.

The library of runtime/ is compiled for this machine, and reaches the Verilated accelerator through its registers, its
DRAM and its interrupt, as it does on a board. MODEL is as for python -m cosim run. With mlp, the default, a program in
C recognises the 360 test images of the digits (runtime/examples/digits.c): how many are right, and the cycles. With
--cpu that program is firmware of PicoRV32, a RISC-V CPU in Verilog beside the accelerator: bus and memory of both are
simulated, too. It needs the extra cpu. With --soc it is firmware of VexRiscv in the system of python -m gen soc, whose
bus, SDRAM controller and serial line are LiteX's, before a model of the SDRAM. That needs the extra soc, too. With
--soc --bridge a host drives the accelerator of that system by hbfp.Device, through litex_server and LiteX's bridge;
with --soc --wild one of two interrupts is lost on its way to the CPU, and others come without a reason.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from rich.console import Console

from hbfp.command import BAD_INPUT, Parser, run
from hbfp.files import write_json
from hbfp.golden.command.progress import Bars
from hbfp.golden.lower.command import lowered as lowered_network
from hbfp.golden.lower.names import zoo_text
from hbfp.golden.perf.accelerator.command import LATENCY, add_memory_options, memory_from_args
from hbfp.options import add_system_options, system_from_args
from hbfp.runtime.device import Device, DeviceError
from hbfp.runtime.library import CompilerError
from hbfp.system import Accelerator
from hbfp.values import OptionError, whole, writable_file, writing

from ..accelerator.board import Simulated, recognise
from ..accelerator.device import BusError, Timing
from ..accelerator.host import room
from ..accelerator.network import compared
from ..bench.comparison import Comparison
from ..emit import EmitError
from ..simulate.verilator import BuildError

EXAMPLES = """\
examples:
  python -m cosim board --rows 8 --block 1,8              digits, by a program in C
  python -m cosim board --rows 8 --block 1,8 --cpu        the same program on a simulated CPU
  python -m cosim board --rows 8 --block 1,8 --soc        the same with VexRiscv, LiteX's bus and SDRAM controller
  python -m cosim board --rows 8 --block 1,8 --soc --bridge    the same by a host, over TCP and a serial line
  python -m cosim board cnn --rows 8 --block 1,8 --poll   another network; the status is polled
"""
#: The network that the program in C is for.
DIGITS = "mlp"
#: How often it runs among wild interrupts.
RUNS = 20


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m cosim board", epilog=EXAMPLES,
                    description="\n".join((__doc__.split("\n\n", 1)[1], zoo_text())))
    parser.add_argument("model", metavar="MODEL", nargs="?", default=DIGITS,
                        help=f"FILE.py, or a name of the zoo, above (default {DIGITS})")
    add_system_options(parser, Accelerator, "accelerator")
    group = parser.add_argument_group("board")
    add_memory_options(group)
    group.add_argument("--poll", action="store_true", help="poll the status in place of waiting for the interrupt")
    group.add_argument("--cpu", action="store_true", help=f"let a simulated CPU run the program in C ({DIGITS} alone)")
    group.add_argument("--soc", action="store_true", help="let the CPU of a system of LiteX do that, with an SDRAM")
    group.add_argument("--bridge", action="store_true", help="with --soc: let a host do it, by litex_server")
    group.add_argument("--wild", metavar="SEED",
                       help=f"with --soc: lose some interrupts, raise others, and run the program {RUNS} times")
    group.add_argument("--program", metavar="FILE", help="also keep the program, as a board takes it")
    group.add_argument("--json", metavar="FILE", help="also write the results there")
    group.add_argument("--quiet", action="store_true", help="no progress bars")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    for name in ("program", "json"):
        if getattr(args, name) is not None:
            setattr(args, name, writable_file(name, getattr(args, name)))
    for name in ("cpu", "soc"):
        if getattr(args, name) and args.model != DIGITS:
            raise OptionError(f"--{name} must be given with {DIGITS} alone, for which the firmware is")
    if args.bridge and not args.soc:
        raise OptionError("--bridge must be given with --soc, whose bridge it is")
    if args.wild is not None:
        if not args.soc or args.bridge or args.poll:
            raise OptionError("--wild must be given with --soc, and without --bridge and --poll, which take no "
                              "interrupts")
        args.wild = whole("wild", args.wild, 1, 2**64 - 1)
    if args.soc:
        for name, usual in (("cpu", False), ("latency", LATENCY), ("bandwidth", None)):
            if getattr(args, name) != usual:
                raise OptionError(f"--{name} must not be given with --soc, which has a CPU and a memory of its own")
    accelerator = system_from_args(args, Accelerator)
    return partial(_work, args, accelerator, Timing(*memory_from_args(args, accelerator)))


def _work(args, accelerator, timing):
    """Lower, build, run, compare, tell; the exit status."""
    console = Console(highlight=False)
    bar = Bars(console, args.quiet)
    with bar.progress:
        bar("lower")
        lowered = lowered_network(args.model, accelerator)
        program = lowered.program
        if args.program is not None:
            with writing("program", args.program):
                program.save(args.program)
        bar("generate")
        building = bar("build the model")
        if args.cpu or args.soc:
            total, told = _on_cpu(args, lowered, timing, building)
        else:
            with Simulated(accelerator, room(program)[0], timing=timing, progress=building) as board:
                bar("run")
                total, told = (_digits if args.model == DIGITS else _network)(board, lowered, not args.poll)
    if "said" in told:
        console.print(told["said"], markup=False, soft_wrap=True, end="")
    for line in total.first[:5]:
        console.print(line, markup=False, soft_wrap=True)
    passed = total.compared > 0 and not total.mismatches and not told.get("code")
    right = f"{told['right']} of {told['images']} digits recognised; " if "right" in told else ""
    console.print(f"{right}{total.compared:,} numbers compared with PyTorch, {total.mismatches:,} differ; "
                  f"{told['cycles']:,} cycles: {'[green]passed' if passed else '[red]FAILED'}", soft_wrap=True)
    if args.json:
        with writing("json", args.json):
            write_json(args.json, told | {"model": args.model, "accelerator": accelerator.name, "passed": passed,
                                          "compared": total.compared, "mismatches": total.mismatches})
    return 0 if passed else 1


def _network(board, lowered, interrupts):
    """What the comparison and the run of any network say."""
    loaded = Device(board, lowered.program.accelerator, interrupts=interrupts).load(lowered.program)
    ended, total = loaded.run(), Comparison()
    for each in compared(lowered, False, loaded.read).values():
        total += each
    return total, {"cycles": ended.cycles}


def _digits(board, lowered, interrupts):
    """What they say of the digits, by the program in C."""
    found, scores = recognise(board, lowered.program, *_images(), interrupts)
    return _total(lowered, scores), {"cycles": found.cycles, "images": found.images, "right": found.right}


def _on_cpu(args, lowered, timing, progress):
    """What they say of the digits, by that program as firmware, or by a host over the bridge of a system of LiteX."""
    from ..system import bridged, run, soc

    images, classes = _images()
    if args.bridge:
        ran = bridged.recognise(lowered.program, images, progress=progress)
    else:
        wild = {} if args.wild is None else {"runs": RUNS, "wild": args.wild}
        recognised = partial(soc.recognise, **wild) if args.soc else partial(run.recognise, timing=timing)
        ran = recognised(lowered.program, images, classes, interrupts=not args.poll, progress=progress)
    said = ran.said
    if args.wild is not None:
        said += ("{raised:,} interrupts, of which {lost:,} were lost; {spurious:,} without a reason, at which the CPU "
                 "looked {taken:,} times\n").format(**ran.interrupts)
    return _total(lowered, ran.scores), {"cycles": ran.cycles, "said": said, "code": ran.code, **ran.interrupts}


def _images():
    """Images and classes of the digits."""
    from hbfp.golden.study.tasks import load  # takes torch

    _, _, images, classes = load("digits")
    return images.numpy(), classes.numpy()


def _total(lowered, scores):
    """A network's one output, compared."""
    (name, want), = ((name, values) for name, values in lowered.expected.items()
                     if lowered.program.tensors[name].role == "output")
    total = Comparison()
    total.add(name, scores, np.ascontiguousarray(want, np.float32))
    return total


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, {EmitError: BAD_INPUT, BuildError: BAD_INPUT, CompilerError: BAD_INPUT,
                                              BusError: 1, DeviceError: 1,
                                              ConnectionError: 1})
