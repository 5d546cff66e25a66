"""Area of the FP32 units against the best open ones, combinational, `area` recipe on OSU018.

    python -m synth fetch
    python -m benchmarks.fp32_area [--units fp32.add,fp32.fma] [--slow]

Limits are those that docs/design/02-fp32-arithmetic.md states with their sources. Divide maps for minutes, so only
--slow measures it.
"""

import argparse

from rich.console import Console
from rich.progress import track
from rich.table import Table

from hbfp.design import Design
from hbfp.format import HBFPFormat
from synth.measure.area import measure
from synth.tools import library

#: (unit, subnormals) -> limit in NAND2-equivalents, or None.
LIMITS = {
    ("fp32.add", "flush"): 1302, ("fp32.mul_add", "flush"): 4792, ("fp32.fma", "gradual"): 6480,
    ("fp32.bf16_mul_add", "flush"): 3853, ("fp32.from_int", "flush"): 378,
    ("fp32.add", "gradual"): None, ("fp32.mul", "flush"): None, ("fp32.mul", "gradual"): None,
    ("fp32.fma", "flush"): None, ("fp32.sqrt", "flush"): None, ("fp32.sqrt", "gradual"): None,
    ("fp32.from_int32", "gradual"): None, ("fp32.to_int32", "gradual"): None, ("fp32.to_bf16", "gradual"): None,
    ("fp32.from_bf16", "gradual"): None, ("fp32.compare", "gradual"): None, ("fp32.min", "gradual"): None,
    ("fp32.max", "gradual"): None, ("fp32.abs", "gradual"): None, ("fp32.neg", "gradual"): None,
    ("fp32.select", "gradual"): None,
}
SLOW = {("fp32.div", "flush"): None, ("fp32.div", "gradual"): None}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", help="names, comma between")
    parser.add_argument("--slow", action="store_true", help="also divide")
    args = parser.parse_args()
    limits = LIMITS | (SLOW if args.slow else {})
    if args.units:
        limits = {key: limit for key, limit in limits.items() if key[0] in args.units.split(",")}
    cells = library.default()
    if cells is None:
        parser.error("no cell library: run `python -m synth fetch` first")
    table = Table("unit", "subnormals", "NAND2-equivalents", "limit", "share of limit")
    for (unit, subnormals), limit in track(limits.items(), "measuring", transient=True):
        area = measure(Design(format=HBFPFormat(subnormals=subnormals)), "area", cells, unit).whole.area
        table.add_row(unit, subnormals, f"{area:.0f}", f"{limit or ''}", f"{area / limit:.0%}" if limit else "")
    Console().print(table)


if __name__ == "__main__":
    main()
