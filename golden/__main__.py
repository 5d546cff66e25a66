"""``python -m golden``: numbers. Training in HBFP, sweeps over formats, error studies."""

if __name__ == "__main__":
    from hbfp import loading

    loading.watch("golden")    # before all that takes a while to load

import argparse
import sys
from collections.abc import Callable, Sequence

from hbfp.command import Parser, run

from .lower.command import add_lower, prepare_lower
from .machine.command import add_program, prepare_program, prepare_run
from .perf.accelerator.colocate.command import add_colocate, prepare_colocate
from .perf.accelerator.command import add_perf, prepare_perf
from .perf.balance.command import add_balance, prepare_balance
from .perf.command import add_dispatch, add_space, prepare_dispatch, prepare_space
from .perf.pods.command import add_pods, prepare_pods
from .perf.silicon_command import add_silicon, prepare_silicon
from .study.compare.command import add_compare, prepare_compare
from .study.error_command import add_error, prepare_error
from .study.layers_command import add_layers, prepare_layers
from .study.schedule_command import add_schedule, prepare_schedule
from .study.train_command import add_train, prepare_sweep, prepare_train
from .study.tune_command import add_tune, prepare_tune

EXAMPLES = """\
  python -m golden train --task teacher --mantissa 4 --block 1,16
  python -m golden train --task digits --mantissa 3 --block 1,16 --boost 6 --seed 2
  python -m golden train --task digits --formats fp32,hbfp8_64,hbfp4_64,hbfp4_64+6 --seeds 3
  python -m golden sweep --task teacher --seeds 5           fp32, hbfp8, 6, 4, 4 boosted, 3, 3 boosted
  python -m golden sweep --widths fp32,8,4,4+6 --scheduler tcp://host:8786
  python -m golden tune --trials 32 --mantissa 4,6,8        rates, widths and formats; models train as jobs
  python -m golden compare docs/examples/formats.py         which format for a model: accuracy, QSNR, bits, area
  python -m golden compare docs/examples/training.py --formats fp32,hbfp6,mxfp6,2:4-hbfp6 --post    weights of FP32
  python -m golden error                                    QSNR of 4, 6 and 8 bits, blocks 16 to 576
  python -m golden error --prune 2:4 --mantissa 4           pruning and quantising in both orders
  python -m golden layers --model mine.py --mantissa 4      errors of a model's operands, layer by layer
  python -m golden schedule --base 4 --boost 6              share of the arithmetic at each width
  python -m golden space --workload lstm --json space.json  throughput, power and area against latency
  python -m golden dispatch --load 0.5 --batch 14 --timeout 3 --quantum 0.05 --policy priority
  python -m golden silicon                                  area x time of training in 4 bits, boosted to 6
  python -m golden lower resnet20 --picture graph.svg       what each node of a network becomes on the accelerator
  python -m golden perf resnet20 --rows 16 --latency 100    cycles of a network on the accelerator, layer by layer
  python -m golden colocate resnet20 docs/examples/training.py --rows 16 --load 0.5
  python -m golden balance resnet50 bert-base --limit 3,10      lanes, memories, banks by area and cycles
  python -m golden program net.program --disassemble        instructions of the accelerator as text
  python -m golden run net.program --races                  execute them, untimed
  python -m golden pods --network resnet50 --pods 64 --interconnect butterfly-2
"""


#: What each command does: from parsed arguments to the work.
COMMANDS = {
    "train": prepare_train,
    "sweep": prepare_sweep,
    "tune": prepare_tune,
    "compare": prepare_compare,
    "error": prepare_error,
    "layers": prepare_layers,
    "schedule": prepare_schedule,
    "space": prepare_space,
    "dispatch": prepare_dispatch,
    "silicon": prepare_silicon,
    "pods": prepare_pods,
    "lower": prepare_lower,
    "perf": prepare_perf,
    "colocate": prepare_colocate,
    "balance": prepare_balance,
    "program": prepare_program,
    "run": prepare_run,
}


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m golden", description=__doc__, epilog=f"examples:\n{EXAMPLES}")
    commands = parser.add_subparsers(dest="command", metavar="|".join(COMMANDS), required=True)
    for add in (add_train, add_tune, add_compare, add_error, add_layers, add_schedule,
                add_space, add_dispatch, add_silicon, add_pods, add_lower, add_perf, add_colocate, add_balance,
                add_program):
        add(commands)
    for name, each in commands.choices.items():
        own = [line for line in EXAMPLES.splitlines() if line.split()[3] == name]
        each.epilog = "\n".join(["examples:", *own])
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], int | None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    return COMMANDS[args.command](args)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    return run(make_parser(), prepare, arguments)


if __name__ == "__main__":
    sys.exit(main())
