"""Clock cycles of the vector unit's programs for one row: ``python -m benchmarks.vector_cycles``.

Constants are counted too: a program that runs for many rows would set them once. The cycles are those of the Verilog:
``tests/rtl/vector/test_unit.py`` holds the count to the Verilated unit.
"""

import argparse

from rich.console import Console
from rich.table import Table

from golden.spec.vector import Kind, VectorUnit
from golden.vector import programs
from golden.vector.cycles import cycles

from .tables import add_json, write

PROGRAMS = {
    "bias + activation": lambda n: programs.bias_activation("gelu"),
    "softmax": lambda n: programs.softmax(),
    "layer norm": programs.layer_norm,
    "layer norm gradient": programs.layer_norm_gradient,
    "ReLU gradient": lambda n: programs.relu_gradient(),
    "GELU gradient": lambda n: programs.gelu_gradient(),
    "log softmax": lambda n: programs.log_softmax(),
    "log softmax gradient": lambda n: programs.log_softmax_gradient(),
    "SGD with momentum": lambda n: programs.sgd(0.1, 0.9),
    "Adam": lambda n: [*programs.adam_moments(), *programs.adam_step(0.001, 1)],
}


def main():
    """Count and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vector_cycles", description=__doc__.splitlines()[0],
                                     epilog="example: python -m benchmarks.vector_cycles --row 256 --pipeline 2")
    parser.add_argument("--row", type=int, default=64, help="elements of the row (default %(default)s)")
    parser.add_argument("--pipeline", type=int, default=4, help="registers inside the functions (default %(default)s)")
    add_json(parser)
    args = parser.parse_args()
    widths = [1, 4, 8, 16, 32, 64]
    table = Table("program", "passes", *(f"{lanes} lanes" for lanes in widths))
    try:
        units = [VectorUnit(lanes=lanes, beats=max(1, -(-args.row // lanes)), pipeline=args.pipeline)
                 for lanes in widths]
    except ValueError as error:
        parser.error(str(error))
    for name, make in PROGRAMS.items():
        program = make(args.row)
        table.add_row(name, str(sum(item.kind == Kind.VECTOR for item in program)),
                      *(str(cycles(program, unit, args.row)) for unit in units))
    Console(width=110).print(table)
    write(args.json, table)
    Console(width=110).print(f"the last pass: row / lanes + {units[0].pass_cycles} cycles, with a reduction "
                             "log2(lanes) + 1 more; those before it as docs/design/04-vector-unit.md says")


if __name__ == "__main__":
    main()
