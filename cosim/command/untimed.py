"""The option ``--machine``: the golden machine in place of the Verilog."""

from argparse import Namespace
from typing import Any

from hbfp.golden.perf.accelerator.command import LATENCY
from hbfp.values import OptionError

#: Options that need cycles, and what they are if nobody gives them.
_TIMED = {"latency": LATENCY, "bandwidth": None, "timeline": None, "trace": None, "waves": None, "beside": None}


def add_machine(group: Any) -> None:
    """Add the option ``--machine``."""
    group.add_argument("--machine", action="store_true", help="on the golden machine in place of the Verilog: no "
                       "cycles, and no Verilator")


def check_untimed(args: Namespace) -> None:
    """OptionError if something that needs cycles is asked of the golden machine."""
    for name, usual in _TIMED.items():
        if args.machine and getattr(args, name, usual) != usual:
            raise OptionError(f"--{name} must not be given with --machine, which has no cycles")
