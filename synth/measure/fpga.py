"""``python -m synth fpga``: LUTs, carries, DSP blocks, flip-flops, block RAMs and clocks, as ratios to FP32 too."""

import json
import re
from dataclasses import asdict, dataclass, fields, replace
from functools import partial

from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from golden.spec.command import Parser, run
from golden.spec.options import design_from_values
from golden.spec.values import OptionError, choice, make_folder, several, words_of, writable_folder
from hbfp import files

from ..command.options import jobs, progress_bar
from ..tools import recipes, yosys
from ..tools.errors import FAILURES
from . import partition, placement
from .area import BESIDE, _figures, _owners, baseline, generate, synthesise

EXAMPLES = """\
examples:
  python -m synth fpga --dsp yes                       ECP5: elements, groups and 8 x 8 cores (with --dsp no: long)
  python -m synth fpga --family ice40 --clock element
  python -m synth fpga --family xc7 --units core --mantissa 8 --against fp32
"""
UNITS = ("element", "group", "core")
ARITHMETICS = ("int", "bf16", "fp32")
#: Column -> regular expression of the cells in it, by family.
CELLS = {
    "ecp5": {"luts": "LUT4", "carries": "CCU2C", "dsps": "MULT18X18D|ALU54B", "flipflops": "TRELLIS_FF",
             "rams": "DP16KD|PDPW16KD"},
    "ice40": {"luts": "SB_LUT4", "carries": "SB_CARRY", "dsps": "SB_MAC16", "flipflops": "SB_DFF.*",
              "rams": "SB_RAM40_4K.*"},
    "xc7": {"luts": "LUT[1-6]", "carries": "CARRY4", "dsps": "DSP48E1", "flipflops": "FD[A-Z]+",
            "rams": "RAMB18E1|RAMB36E1"},
}
NAMES = {"luts": "LUTs", "carries": "carries", "dsps": "DSP blocks", "flipflops": "flip-flops", "rams": "block RAMs"}


@dataclass
class Counts:
    """Cells of an FPGA by column of the table; a LUT has four inputs, on xc7 up to six."""
    luts: int = 0
    carries: int = 0
    dsps: int = 0
    flipflops: int = 0
    rams: int = 0

    def add(self, other, times=1):
        """Add ``times`` as much of another."""
        for entry in fields(self):
            setattr(self, entry.name, getattr(self, entry.name) + times * getattr(other, entry.name))


def counts(types, family):
    """Counts of cells by type, as ``stat`` gives them."""
    return Counts(**{column: sum(count for name, count in types.items() if re.fullmatch(pattern, name))
                     for column, pattern in CELLS[family].items()})


@dataclass
class Row:
    """One design in one unit, with or without DSP blocks; ``clock`` in MHz, in words why not, or None."""
    unit: str
    name: str
    recipe: str
    counts: Counts
    clock: float | str | None = None


def designs(values, mantissas, against):
    """Name -> design: block formats by width, then the baselines by :func:`synth.measure.area.baseline`."""
    found = {f"hbfp{width}": design_from_values(values | {"mantissa": width}) for width in mantissas}
    first = list(found.values())[-1]
    for name in against:
        found[f"int{first.format.mantissa}" if name == "int" else name] = baseline(first, name)
    return found


def part(design, unit):
    """Design and unit of the generator for one of :data:`UNITS`: an element is a group of one."""
    return (replace(design, group=(1, 1)), "group") if unit == "element" else (design, unit)


def parts(design, unit):
    """(unit of the netlist, how often it is there) for all but the side unit; memories are counted here."""
    found = partition.units(*generate(*part(design, unit)))
    owners = _owners(found)
    for each in found:
        times = sum(count for name, count in owners[each.top].items() if name not in BESIDE)
        if times:
            yield each, times


def count(design, unit, recipe):
    """Counts of one of :data:`UNITS`: every distinct module by itself, times its number."""
    total = Counts()
    for each, times in parts(design, unit):
        types = _figures(synthesise(each, recipe) / "stat.json", each.top, None).types
        total.add(counts(types, recipe.removesuffix("-logic")), times)
    return total


def measure(found, units, kinds, clocked, jobs, progress):
    """Rows of every design in every unit; ``clocked`` units are placed and routed as well."""
    todo = {(each.verilog, recipe): (each, recipe) for design in found.values() for unit in units for recipe in kinds
            for each, _ in parts(design, unit)}
    work = sorted(todo.values(), key=lambda job: len(job[0].verilog), reverse=True)
    routes = [(*part(design, unit), recipe) for unit in units if unit in clocked for recipe in kinds
              for design in found.values()]
    calls = [delayed(_synthesise)(*job) for job in work] + [delayed(placement.clock)(*route) for route in routes]
    for n, _ in enumerate(Parallel(n_jobs=jobs, return_as="generator_unordered")(calls)):
        progress(n + 1, len(calls))
    return [Row(unit, name, recipe, count(design, unit, recipe),
                placement.clock(*part(design, unit), recipe) if unit in clocked else None)
            for unit in units for recipe in kinds for name, design in found.items()]


def _synthesise(unit, recipe):
    synthesise(unit, recipe)


def reference(rows, row):
    """The FP32 row that a row is held against, or None."""
    return next((other for other in rows if other.name == "fp32" and (other.unit, other.recipe) == (
        row.unit, row.recipe)), None)


def ratios(rows, row):
    """Column -> FP32 over this row; the clock the other way round. Columns without both are left out."""
    base = reference(rows, row)
    if base is None:
        return {}
    own, theirs = asdict(row.counts), asdict(base.counts)
    found = {column: theirs[column] / own[column] for column in own if own[column] and theirs[column]}
    if isinstance(row.clock, float) and isinstance(base.clock, float):
        found["clock"] = row.clock / base.clock
    return found


def table(rows, family, title):
    """All rows; behind each number FP32's over it (for clocks, over FP32's)."""
    result = Table(title=title, title_justify="left", caption_justify="left", caption=(
        "in brackets FP32 / row, for clocks row / FP32; the side unit is left out"
        + ("; a carry cell takes the place of two LUTs more" if family == "ecp5" else "")))
    for head in ("unit", "", "DSP"):
        result.add_column(head)
    shown = [*NAMES, *(["clock"] if any(row.clock is not None for row in rows) else [])]
    for column in shown:
        result.add_column(NAMES.get(column, "MHz"), justify="right")
    last = None
    for row in rows:
        if last not in (None, (row.unit, row.recipe)):
            result.add_section()
        last = row.unit, row.recipe
        ratio = ratios(rows, row)
        numbers = asdict(row.counts) | {"clock": row.clock}
        texts = [f"{value:,}" if isinstance(value, int | float) else str(value or "") for value in
                 (numbers[column] for column in shown)]
        result.add_row(row.unit, row.name, "no" if row.recipe.endswith("-logic") else "yes", *(
            f"{text} ({ratio[column]:.2f})" if column in ratio and row.name != "fp32" else text
            for column, text in zip(shown, texts, strict=True)))
    return result


def make_parser():
    """The command line."""
    parser = Parser(prog="python -m synth fpga", epilog=EXAMPLES,
                    description="Counts of FPGA cells by Yosys, clocks by nextpnr; against FP32 of the same generator.")
    parser.add_argument("--family", metavar="NAME", default="ecp5", help="ecp5 (default), ice40 or xc7 (no clock)")
    parser.add_argument("--dsp", metavar="NAME", default="both", help="yes, no or both (default)")
    parser.add_argument("--units", metavar="LIST", default=",".join(UNITS), help="element,group,core (default all)")
    parser.add_argument("--clock", metavar="LIST", default="", help="units that are placed and routed (default none)")
    parser.add_argument("--mantissa", metavar="LIST", default="4,6,8", help="of the block formats (default 4,6,8)")
    parser.add_argument("--against", metavar="LIST", default=",".join(ARITHMETICS), help="of int, bf16, fp32 (all)")
    parser.add_argument("--rows", metavar="N", default="8", help="of a square core (default 8)")
    parser.add_argument("--group", metavar="A,B", help="as python -m gen")
    parser.add_argument("--multiplier", metavar="NAME", default="plain", help="plain (default) or recoded")
    parser.add_argument("--jobs", metavar="N", default=2, help="processes (default 2)")
    parser.add_argument("--out", metavar="DIR", default=str(files.output("fpga")), help="folder of FAMILY.json")
    return parser


def prepare(args):
    """From parsed arguments to the work; OptionError if a value is not valid."""
    family = choice("family", args.family, recipes.FAMILIES)
    kinds = {"yes": [family], "no": [family + "-logic"], "both": [family, family + "-logic"]}
    kinds = kinds[choice("dsp", args.dsp, kinds)]
    args.jobs = jobs(args)
    units, clocked = (several(name, getattr(args, name), UNITS) for name in ("units", "clock"))
    words_of("units", args.units)
    values = {"rows": args.rows, "group": args.group, "multiplier": args.multiplier}
    found = designs(values, words_of("mantissa", args.mantissa), several("against", args.against, ARITHMETICS))
    folder = writable_folder("out", args.out)
    if clocked and placement.device(family) and not placement.find(family):
        raise OptionError(f"--clock: needs nextpnr: pip install yowasp-nextpnr-{family}")
    return partial(work, args, family, kinds, found, units, clocked, folder)


def work(args, family, kinds, found, units, clocked, folder):
    """Measure all designs and write the table, in sight of the user."""
    console = Console()
    with progress_bar(console) as bar:
        task = bar.add_task(f"Yosys{' and nextpnr' if clocked else ''}, {family}")
        rows = measure(found, units, kinds, clocked, args.jobs,
                       lambda n, total: bar.update(task, completed=n, total=total))
    tools = {"yosys": yosys.find()[1]}
    if clocked and placement.find(family):
        tools["nextpnr"] = placement.find(family)[1]
    devices = {kind: placement.device(kind)[0] for kind in kinds if placement.device(kind)}
    data = {"family": family, "devices": devices, "tools": tools, "multiplier": args.multiplier,
            "designs": {name: each.as_dict() for name, each in found.items()},
            "rows": [asdict(row) | {"ratios": ratios(rows, row)} for row in rows]}
    make_folder("out", folder)
    files.write(folder / f"{family}.json", json.dumps(data, indent=1) + "\n")
    console.print(table(rows, family, f"{family}, {args.rows} x {args.rows}"))
    console.print(f"{folder / f'{family}.json'}; " + ", ".join(f"{name} {version}" for name, version in tools.items()))


def main(argv):
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
