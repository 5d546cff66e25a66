"""``python -m synth netlist``: a design after mapping, as Verilog with the same top, ports and manifest."""

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path

from joblib import Parallel, delayed

from golden.spec.options import OptionError, Parser, add_design_options, design_from_args
from hbfp import files

from . import netlist, yosys
from .area import generate, synthesise
from .errors import SynthError

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
    return netlist.split((folder / "cells.v").read_text())


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
    parts = netlist.units(text, manifest)
    logic = [part for part in parts if part.kind != "ram"]
    folders = Parallel(n_jobs=jobs)(delayed(synthesise)(part, recipe, library) for part in logic)
    mapped = {part.top: (folder / "mapped.v").read_text() for part, folder in zip(logic, folders, strict=True)}
    text = assemble(parts, mapped, models(library) if library else {})
    about = {"recipe": recipe, "yosys": yosys.find()[1],
             "library": library and {"name": library.name, "sha256": library.sha256}}
    return text, manifest | {"netlist": about, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def main(argv):
    """Run the command; return its exit status."""
    from .__main__ import add_flow_options, check_flow_options, choose_library, least_area
    parser = Parser(prog="python -m synth netlist", epilog=EXAMPLES,
                    description="The mapped netlist of a design, for simulation: same top, ports and manifest.")
    add_design_options(parser)
    add_flow_options(parser)
    parser.add_argument("--unit", metavar="NAME", default="core", help="a part alone, as python -m gen --unit")
    parser.add_argument("--out", metavar="DIR", help="folder for the files (default: build/netlist/NAME)")
    args = parser.parse_args(argv)
    try:
        design = least_area(design_from_args(args), args)
        check_flow_options(args)
    except OptionError as error:
        parser.error(str(error))
    try:
        library, recipe = choose_library(args)
        text, manifest = gates(design, args.unit, recipe, library, args.jobs)
        folder = Path(args.out or Path("build/netlist") / (design.name if args.unit == "core" else args.unit))
        folder.mkdir(parents=True, exist_ok=True)
        files.write(folder / manifest["verilog"], text)
        files.write(folder / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    except (SynthError, OSError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 1
    print(f"{folder / manifest['verilog']}: {text.count('endmodule')} modules, top {manifest['top']}, "
          f"recipe {recipe}")
    return 0
