"""A generator for FuseSoC, named in ``generator.core``: runs ``python -m gen`` and makes a core of its Verilog.

FuseSoC calls it in an empty folder with one argument, a YAML file. Its ``parameters`` are options of ``python -m gen``
without dashes (``top: accelerator``, ``rows: 8``, ``block: [1, 8]``, ``ragged: true``), its ``vlnv`` is the name of the
core to be made. The Verilog and what goes with it are left in that folder, beside the core file.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])    # the checkout, which need not be installed
    from hbfp import loading

    loading.watch("gen.fusesoc")    # a library may be missing

import json
from functools import partial

import yaml

from hbfp import generator
from hbfp.command import BAD_INPUT, Parser, run
from hbfp.manifest import FILE
from hbfp.values import flag, readable_file, refuse

#: What Verilator says of the accelerator's Verilog and need not be heard: the name of the port `interrupt`; what Yosys
#: writes of arrays that are no power of two long, and of bounds that a signal cannot reach.
QUIET = ("SYMRSVDWORD", "CASEINCOMPLETE", "UNSIGNED", "CMPCONST")
#: File of those rules, beside the Verilog.
WAIVERS = "verilator.vlt"


def words(parameters: Mapping[str, Any]) -> list[str]:
    """The words of ``python -m gen`` for parameters: what is true stands alone, what is false is left out."""
    found = []
    for name, value in parameters.items():
        if value is not False:
            parts = value if isinstance(value, list) else [value]
            found += [flag(name)] if value is True else [flag(name), ",".join(map(str, parts))]
    return found


def waivers(verilog: str) -> str:
    """The text of :data:`WAIVERS` for a file of Verilog and no other."""
    return "".join(["`verilator_config\n", *(f'lint_off -rule {rule} -file "*{verilog}"\n' for rule in QUIET)])


def core_file(vlnv: str, verilog: str) -> str:
    """The text of the core file; JSON is YAML, too."""
    files = [{verilog: {"file_type": "verilogSource-2005"}}, {WAIVERS: {"file_type": "vlt"}}]
    core = {"name": vlnv, "filesets": {"rtl": {"files": files}}, "targets": {"default": {"filesets": ["rtl"]}}}
    return f"CAPI=2:\n{json.dumps(core, indent=1)}\n"


def prepare(args: argparse.Namespace) -> Callable[[], int]:
    """From parsed arguments to the work; OptionError if the file is not FuseSoC's."""
    try:
        data = yaml.safe_load(readable_file("input", args.input).read_bytes())
        vlnv, parameters = data["vlnv"], words(data["parameters"] or {})
        return partial(_make, vlnv, parameters, Path.cwd())
    except (yaml.YAMLError, TypeError, KeyError, AttributeError):
        raise refuse("input", args.input, "must be YAML with parameters, each with a name, and vlnv") from None


def _make(vlnv, parameters, folder):
    """Emit, and describe as a core what was emitted; the exit status."""
    try:
        generator.run(parameters, folder)
    except generator.GeneratorError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    verilog = json.loads((folder / FILE).read_text())["verilog"]
    (folder / WAIVERS).write_text(waivers(verilog))
    (folder / f"{vlnv.split(':')[2]}.core").write_text(core_file(vlnv, verilog))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = Parser(prog="python -m gen.fusesoc", description="Emit Verilog as a core of FuseSoC, which calls this.")
    parser.add_argument("input", metavar="FILE", help="YAML with parameters and vlnv, as FuseSoC writes it")
    return run(parser, prepare, argv)


if __name__ == "__main__":
    sys.exit(main())
