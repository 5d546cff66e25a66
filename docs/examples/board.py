"""Runs a program file on an accelerator: the simulated one, or with --registers one on a board, as root."""

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path

import hbfp
from hbfp.program import load
from hbfp.runtime.transport import Mapped, Transport
from hbfp.system import Accelerator


def transport(args: argparse.Namespace, accelerator: Accelerator, size: int) -> Transport:
    """The way to the accelerator: all that differs."""
    if args.registers is None:
        from hbfp.cosim.accelerator.board import Simulated  # needs Verilator; a board does not

        return Simulated(accelerator, size)
    return Mapped(args.registers, args.memory, size, path=args.path, uio=args.uio)


def main(words: Sequence[str] | None = None) -> None:
    """Print the cycles, and a digest of each output, as ``python -m golden run`` does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path, help="as python -m cosim run --program writes it")
    parser.add_argument("--registers", type=lambda text: int(text, 0), help="their physical address")
    parser.add_argument("--memory", type=lambda text: int(text, 0), help="that of DRAM that Linux does not use")
    parser.add_argument("--size", type=lambda text: int(text, 0), default=16 << 20, help="bytes of it")
    parser.add_argument("--path", type=Path, default="/dev/mem", help="what maps both")
    parser.add_argument("--uio", type=Path, help="the UIO device of the interrupt; without one, status is polled")
    args = parser.parse_args(words)
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


if __name__ == "__main__":
    main()
