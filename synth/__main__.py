"""``python -m synth``: the area of a design, and what FP32 would take instead."""

from collections.abc import Sequence

if __name__ == "__main__":
    from hbfp import loading

    loading.watch("synth")    # before all that takes a while to load

import sys

from hbfp.extras import need

from .command import accelerator, bitstream, core, corners, fetch, fpga, layout, netlist, power, soc, sweep

COMMANDS = {"accelerator": accelerator, "fetch": fetch, "sweep": sweep, "fpga": fpga, "bitstream": bitstream,
            "corners": corners, "layout": layout, "netlist": netlist, "power": power, "soc": soc}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    need("amaranth")
    argv = sys.argv[1:] if argv is None else argv
    command = COMMANDS.get(argv[0]) if argv else None
    return command.main(argv[1:]) if command else core.main(argv)


if __name__ == "__main__":
    sys.exit(main())
