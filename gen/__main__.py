"""``python -m gen``: a design in, Verilog and its manifest out."""

import gc
import json
import os
import sys
import tempfile
from errno import EISDIR
from pathlib import Path

from golden.spec.options import OPTIONS, OptionError, Parser, add_design_options, design_from_args

from .emit import Emitter, verilog
from .manifest import manifest
from .units import PARTS, UNITS, make_part, make_unit

EXAMPLES = """\
examples:
  python -m gen --mantissa 8 --rows 32            the default design, 32 x 32
  python -m gen --mantissa 4 --rows 16 --cols 64 --block 16,16 --accumulate aligned
  python -m gen --arithmetic fp32 --rows 32       the FP32 baseline with the same dataflow
  python -m gen --preset hbfp6 --out build/hbfp6
  python -m gen --unit encode --mantissa 6        one part alone: the FP32 -> HBFP converter
  python -m gen --unit dot_product --block 1,128  a dot-product unit of 128 terms; its FP32 twin: --arithmetic fp32
  python -m gen --unit fp32.fma --pipeline 3      an FP32 unit; --subnormals flush or gradual
  python -m gen --unit vector --lanes 16          the vector unit
  python -m gen --config design.toml              keys as the options: mantissa = 6, block = [1, 16]
"""


def write_files(folder, files):
    """Write ``files``, name -> text, into ``folder``: all of them or none.

    Raises
    ------
    OptionError
        If the folder cannot be made or written.
    """
    folder, done, made = Path(folder), [], []
    try:
        made = [parent for parent in [folder, *folder.parents] if not parent.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=".new-")
            done.append((temporary, folder / name))
            with os.fdopen(handle, "w") as file:
                file.write(text)
            os.chmod(temporary, 0o644)
        for name in files:    # looked at before the first is replaced
            if (folder / name).is_dir():
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        while done:
            os.replace(*done[0])
            done.pop(0)
    except OSError as error:
        for temporary, _ in done:
            Path(temporary).unlink(missing_ok=True)
        for parent in made:
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
        raise OptionError(f"--out {folder}: cannot be written ({error.strerror})") from None


def _emit(component, folder, design=None, more=None):
    """Convert a component and write its two files; return the manifest, ``more`` added."""
    emitter = Emitter()
    top = emitter.convert(component)
    text = verilog(emitter)
    data = manifest(emitter, top, text, design) | (more or {})
    write_files(folder, {data["verilog"]: text, "manifest.json": json.dumps(data, indent=1) + "\n"})
    return data


def emit(design, folder, unit="core"):
    """Emit a design, or one unit of it, into ``folder``; return the manifest."""
    return _emit(make_unit(unit, design), folder, design)


#: Options of the vector units alone.
PART_OPTIONS = {"lanes": "elements a cycle", "beats": "beats of the longest row",
                "registers": "rows that the unit holds"}


def emit_part(name, options, folder):
    """Emit an FP32 or vector unit into ``folder``; return the manifest."""
    component = make_part(name, options)
    latency = {"result": component.LATENCY} if hasattr(component, "LATENCY") else component.latencies(component.unit)
    return _emit(component, folder, more={"unit": name, "parameters": options, "latency": latency})


def _depth(word):
    """Registers between a unit's input and output; the unit knows how many it can have."""
    try:
        return int(word)
    except ValueError:
        raise OptionError(f"--pipeline {word}: must be a whole number") from None


def main(argv=None):
    """Run the command; return its exit status."""
    parser = Parser(prog="python -m gen", epilog=EXAMPLES,
                    description="Emit Verilog-2005 and manifest.json for a design.")
    add_design_options(parser)
    parser.add_argument("--unit", metavar="NAME", default="core", help=f"a part alone: {', '.join((*UNITS, *PARTS))}")
    for name, text in PART_OPTIONS.items():
        parser.add_argument(f"--{name}", metavar="N", type=int, help=f"vector units: {text}")
    parser.add_argument("--out", metavar="DIR", help="folder for the files (default: build/gen/NAME)")
    args = parser.parse_args(argv)
    gc.disable()    # millions of small objects live to the end: the collector would only walk them
    try:
        given = {name: getattr(args, name) for name in (*PART_OPTIONS, *OPTIONS, "preset", "config")
                 if getattr(args, name) is not None}
        if args.unit in PARTS:
            if "pipeline" in given:    # a design's option, too, which has other limits
                given["pipeline"] = _depth(given["pipeline"])
            folder = Path(args.out or Path("build/gen") / args.unit)
            data = emit_part(args.unit, given, folder)
            return report(folder, data)
        for name in PART_OPTIONS:
            if name in given:
                raise OptionError(f"--{name} {given[name]}: must not be given, {args.unit} has none")
        design = design_from_args(args)
        folder = Path(args.out or Path("build/gen") / (design.name if args.unit == "core" else args.unit))
        data = emit(design, folder, args.unit)
    except OptionError as error:
        parser.error(str(error))
    return report(folder, data)


def report(folder, data):
    """Say what was written; the exit status."""
    print(f"{folder / data['verilog']}: {len(data['modules'])} modules, top {data['top']}")
    print(f"{folder / 'manifest.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
