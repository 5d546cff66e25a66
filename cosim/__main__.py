"""``python -m cosim``: the same work on the Verilated core and on the golden model, compared bit for bit."""

from collections.abc import Sequence

if __name__ == "__main__":
    from hbfp import loading

    loading.watch("cosim")    # before all that takes a while to load

import sys
from importlib import import_module

from hbfp.extras import need

COMMANDS = ("board", "colocate", "dispatch", "gemms", "matrix", "operands", "pods", "programs", "random", "run",
            "train", "words")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, imported when it is called, as NumPy takes a moment; return its exit status."""
    need("rich", "amaranth", "cocotb")
    words = list(sys.argv[1:] if argv is None else argv)
    command = words.pop(0) if words[:1] and words[0] in COMMANDS else "core"
    return import_module(f".command.{command}", __package__).main(words)


if __name__ == "__main__":
    sys.exit(main())
