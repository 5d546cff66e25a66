"""``python -m synth netlist``: a design after mapping, as Verilog with the same top, ports and manifest."""

import hashlib
import json
import re
import shutil
from functools import partial

from joblib import Parallel, delayed

from golden.spec.command import Parser, run
from golden.spec.options import add_design_options
from golden.spec.values import make_folder, writable_folder
from hbfp import files

from ..command.options import add_flow_options, check_unit, jobs, least_area, step
from ..tools import yosys
from ..tools.errors import FAILURES
from . import partition
from .area import generate, synthesise

EXAMPLES = """\
examples:
  python -m synth netlist --rows 8 --recipe generic --out build/gates
  python -m synth netlist --unit encode --mantissa 6        with the cells of OSU018, if they are fetched
"""
_MODELS = "read_liberty cells.lib\nproc\nopt_clean\nwrite_verilog -noattr cells.v\n"


def models(library):
    """Name -> Verilog of each cell, from the functions that the Liberty file gives."""
    def make(folder):
        shutil.copyfile(library.path, folder / "cells.lib")
        yosys.run(_MODELS, folder)

    folder = files.entry(files.cache("synth") / ("cells-" + files.key(yosys.find()[1], _MODELS, library.sha256)), make)
    return partition.split((folder / "cells.v").read_text())


def assemble(parts, mapped, cells):
    """One Verilog text of all units: their netlists, memories as they were, models of the cells that they use.

    Parameters
    ----------
    parts : list of Unit
    mapped : dict
        Module name -> netlist, for all but memories.
    cells : dict
        Cell name -> model; empty for generic gates.
    """
    texts = [mapped.get(part.top, part.verilog) for part in parts]
    used = set(re.findall(r"^  (\w+) (?:\\\S+ |\w+) *\(", "\n".join(texts), re.MULTILINE))
    return "\n".join(["`timescale 1ns / 1ps", *texts, *(cells[name] for name in sorted(used & set(cells)))]) + "\n"


def gates(design, unit="core", recipe="generic", library=None, jobs=1):
    """Netlist and manifest of a design, or of a part of it.

    Every distinct module is mapped by itself, as areas are measured: what is simulated is what was counted.

    Returns
    -------
    text : str
    manifest : dict
        The design's own, with ``netlist`` added: recipe, Yosys, library.
    """
    text, manifest = generate(design, unit)
    parts = partition.units(text, manifest)
    logic = [part for part in parts if part.kind != "ram"]
    folders = Parallel(n_jobs=jobs)(delayed(synthesise)(part, recipe, library) for part in logic)
    mapped = {part.top: (folder / "mapped.v").read_text() for part, folder in zip(logic, folders, strict=True)}
    text = assemble(parts, mapped, models(library) if library else {})
    about = {"recipe": recipe, "yosys": yosys.find()[1],
             "library": library and {"name": library.name, "sha256": library.sha256}}
    return text, manifest | {"netlist": about, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def make_parser():
    """The command line."""
    parser = Parser(prog="python -m synth netlist", epilog=EXAMPLES,
                    description="The mapped netlist of a design, for simulation: same top, ports and manifest.")
    add_design_options(parser)
    add_flow_options(parser)
    parser.add_argument("--unit", metavar="NAME", default="core", help="a part alone, as python -m gen --unit")
    parser.add_argument("--out", metavar="DIR", help="folder for the files (default: build/netlist/NAME)")
    return parser


def prepare(args):
    """From parsed arguments to the work; OptionError if a value is not valid."""
    check_unit(args.unit)
    design, processes = least_area(args), jobs(args)
    recipe, library = step(args.recipe, args.liberty)
    folder = files.output("netlist", design.name if args.unit == "core" else args.unit)
    folder = writable_folder("out", folder if args.out is None else args.out)
    return partial(work, design, args.unit, recipe, library, processes, folder)


def work(design, unit, recipe, library, processes, folder):
    """Map a design or a part, write both files, say so."""
    text, manifest = gates(design, unit, recipe, library, processes)
    make_folder("out", folder)
    files.write(folder / manifest["verilog"], text)
    files.write(folder / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    print(f"{folder / manifest['verilog']}: {text.count('endmodule')} modules, top {manifest['top']}, "
          f"recipe {recipe}")


def main(argv):
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
