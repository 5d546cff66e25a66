"""Runs a program file on an accelerator: the simulated one; with --registers one on a board, as root; with --litex one
behind a litex_server."""

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import hbfp
from hbfp.program import load
from hbfp.runtime.bridge import PORT, Litex, places
from hbfp.runtime.transport import Distant, Mapped, Transport
from hbfp.system import Accelerator


def transport(args: argparse.Namespace, accelerator: Accelerator, size: int) -> Transport | Distant:
    """The way to the accelerator: all that differs."""
    if args.litex is not None:
        host, _, port = args.litex.partition(":")
        registers, memory, there = places(args.header)
        return Litex(registers, memory, min(size, there), host, int(port or PORT))
    if args.registers is None:
        from hbfp.cosim.accelerator.board import Simulated  # needs Verilator; a board does not

        return Simulated(accelerator, size)
    return Mapped(args.registers, args.memory, size, path=args.path, uio=args.uio)


def run(args: argparse.Namespace) -> None:
    """Print the cycles, and a digest of each output, as ``python -m golden run`` does."""
    accelerator = load(args.program).accelerator
    with hbfp.Device(transport(args, accelerator, args.size), accelerator) as device:
        loaded = device.load(args.program)
        ended = loaded.run()
        print(f"{ended.cycles} cycles, of which the array multiplied in {ended.counters['multiply_busy']}")
        for name, tensor in loaded.program.tensors.items():
            if tensor.role == "output":
                values = loaded.read(name)
                print(f"{name}: {'x'.join(map(str, values.shape))} float32, sha256 "
                      f"{hashlib.sha256(values.tobytes()).hexdigest()}")


def main(words: Sequence[str] | None = None) -> None:
    """Run it; what fails is one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path, help="as python -m cosim run --program writes it")
    parser.add_argument("--registers", type=lambda text: int(text, 0), help="their physical address")
    parser.add_argument("--memory", type=lambda text: int(text, 0), help="that of DRAM that Linux does not use")
    parser.add_argument("--size", type=lambda text: int(text, 0), default=16 << 20, help="bytes of it")
    parser.add_argument("--path", type=Path, default="/dev/mem", help="what maps both")
    parser.add_argument("--uio", type=Path, help="the UIO device of the interrupt; without one, status is polled")
    parser.add_argument("--litex", metavar="HOST[:PORT]", help="a litex_server that is connected to the board's bridge")
    parser.add_argument("--header", type=Path, default="build/soc/hbfp_soc.h", help="of python -m gen soc")
    args = parser.parse_args(words)
    try:
        run(args)
    except (ModuleNotFoundError, OSError, RuntimeError, ValueError) as error:
        sys.exit(f"board.py: {error}")


if __name__ == "__main__":
    main()
