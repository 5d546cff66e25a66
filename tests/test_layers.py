"""Imports point one way, by folder."""

import ast
import pathlib
import sys
from functools import cache

import pytest

from hbfp.checkout import PARTS

ROOT = pathlib.Path(__file__).resolve().parents[1]
#: Folders of components, what others are made of first.
RTL = ("lib", "fixed", "fp32", "number", "convert", "array", "accumulate", "core", "vector", "dispatch", "pods",
       "accelerator")
#: Folder -> folders of ours that it may import, itself aside; the longest match counts.
MAY = {
    "hbfp": set(),
    "golden/spec": {"hbfp"},
    "golden": {"hbfp", "golden/spec", "golden/fast", "golden/number"},
    "golden/number": {"hbfp", "golden/spec"},
    "golden/core": {"hbfp", "golden/spec", "golden/number", "golden"},
    "golden/vector": {"hbfp", "golden/spec", "golden/number", "golden/fast", "golden"},
    "golden/command": {"hbfp"},
    "golden/fast": {"hbfp", "golden/spec", "golden/number"},
    "golden/formats": {"hbfp", "golden/spec", "golden/number"},
    "golden/gpu": {"hbfp", "golden/spec", "golden/number", "golden"},
    "golden/ops": {"hbfp", "golden/spec", "golden/vector", "golden"},
    "golden/nn": {"hbfp", "golden/spec", "golden/number", "golden/formats", "golden/vector", "golden", "golden/fast",
                  "golden/ops", "golden/gpu"},
    "golden/machine": {"hbfp", "golden/spec", "golden/number", "golden/core", "golden/vector", "golden"},
    "golden/lower": {"hbfp", "golden/spec", "golden/number", "golden/command", "golden/vector", "golden", "golden/ops",
                     "golden/nn", "golden/machine", "golden/study"},
    "golden/perf": {"hbfp", "golden/spec", "golden/number", "golden/command", "golden"},
    "golden/perf/pods/trace.py": {"hbfp", "golden/spec", "golden", "golden/ops", "golden/perf"},
    "golden/perf/pods/networks.py": {"hbfp", "golden/spec", "golden", "golden/lower", "golden/perf"},
    "golden/perf/accelerator": {"hbfp", "golden/spec", "golden/command", "golden", "golden/lower", "golden/machine",
                                "golden/perf"},
    "golden/perf/balance": {"hbfp", "golden/spec", "golden/command", "golden", "golden/lower", "golden/perf",
                            "golden/perf/accelerator"},
    "golden/pods": {"hbfp", "golden/spec", "golden/number", "golden/core", "golden", "golden/perf"},
    "golden/study": {"hbfp", "golden/spec", "golden/number", "golden/formats", "golden/command", "golden",
                     "golden/fast", "golden/nn"},
    "golden/tables": {"hbfp", "golden/spec", "golden"},
    "golden/__main__.py": {"hbfp", "golden/spec", "golden/study", "golden/perf", "golden/perf/accelerator",
                           "golden/perf/balance", "golden/lower", "golden/machine", "golden"},
    "rtl/lib": {"hbfp"},
    "rtl/fp32": {"hbfp", "golden/spec", "rtl/lib", "rtl/fixed"},
    "rtl/fixed": {"hbfp", "rtl/lib"},
    "rtl/number": {"hbfp", "golden/spec", "rtl/lib", "rtl/fp32", "rtl/fixed"},
    "rtl/convert": {"hbfp", "golden/spec", "rtl/lib"},
    "rtl/array": {"hbfp", "rtl/lib", "rtl/fp32", "rtl/fixed", "rtl/number", "rtl/convert"},
    "rtl/accumulate": {"hbfp", "rtl/lib", "rtl/fp32", "rtl/fixed", "rtl/number"},
    "rtl/core": {"hbfp", *(f"rtl/{part}" for part in RTL[:7])},
    "rtl/vector": {"hbfp", "golden/spec", "rtl/lib", "rtl/fp32", "rtl/convert"},
    "rtl/dispatch": {"hbfp", "golden/spec", "rtl/lib"},
    "rtl/pods": {"hbfp", "golden/spec", *(f"rtl/{part}" for part in RTL[:8])},
    "rtl/accelerator": {"hbfp", "golden/spec", *(f"rtl/{part}" for part in RTL[:-1])},
    "rtl": {"hbfp"},
    "gen": {"hbfp", "golden/spec", "rtl", *(f"rtl/{part}" for part in RTL)},
    "runtime": {"hbfp"},
    "cosim": {"hbfp", "golden/spec", "golden/number", "golden/core", "golden/command", "golden", "golden/machine",
              "golden/lower", "golden/perf", "golden/perf/accelerator", "golden/pods", "golden/study", "runtime"},
    "synth": {"hbfp", "golden/spec", "synth/command"},
    "synth/tools": {"hbfp", "golden/spec"},
    "synth/measure": {"hbfp", "golden/spec", "synth/tools"},
    "synth/power": {"hbfp", "golden/spec", "synth/tools", "synth/measure"},
    "synth/layout": {"hbfp", "synth/tools", "synth/measure", "synth/power"},
    "synth/compare": {"hbfp", "golden/spec", "synth/tools", "synth/measure", "synth/power"},
    "synth/report": {"hbfp", "golden/spec", "synth/tools", "synth/measure", "synth/power", "synth/compare"},
    "synth/command": {"hbfp", "golden/spec", "synth/tools", "synth/measure", "synth/power", "synth/layout",
                      "synth/compare", "synth/report"},
    "flow": {"hbfp", "golden/spec"},
}
#: Libraries that only one part may need, so that the others start without them.
ONLY = {"torch": {"golden/gpu", "golden/ops", "golden/nn", "golden/lower", "golden/study", "golden/perf/pods",
                  "golden/vision.py", "benchmarks", "tests"},
        "torchvision": {"golden/vision.py"}, "triton": {"golden/gpu", "benchmarks", "tests"},
        "litex": {"gen/soc", "runtime/bridge.py", "cosim/system"}, "litedram": {"gen/soc"}, "migen": {"gen/soc"},
        "amaranth": {"rtl", "gen", "tests", "benchmarks"}, "cocotb": {"cosim", "tests"},
        "filelock": {"hbfp"}, "platformdirs": {"hbfp"}}


def layer(path):
    """The folder of :data:`MAY` that a file (or module path with slashes) lies in, or None."""
    found = [folder for folder in MAY if path == folder or path.startswith(folder + "/")]
    return max(found, key=len, default=None)


FILES = sorted(path for folder in {each.split("/")[0] for each in MAY} for path in (ROOT / folder).rglob("*.py")
               if layer(str(path.relative_to(ROOT))))


#: How files of one part name another.
LONG = tuple(f"hbfp.{part}" for part in PARTS)


@cache
def imports(path):
    """Lines and modules that a file imports, with dots resolved; names imported from a package count as modules."""
    return list(imported(path))


def imported(path):
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *((node.module,) if node.module else ())))
            module = module.removeprefix("hbfp.") if module.startswith(LONG) else module
            yield node.lineno, module
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def allowed(path, module):
    """Whether a file may import a module, as far as layers go."""
    mine, theirs = layer(str(path)), layer(module.replace(".", "/"))
    return theirs is None or theirs == mine or theirs in MAY[mine]


def found():
    """File, line and module of every import."""
    return [(path.relative_to(ROOT), line, module) for path in FILES for line, module in imports(path)]


def test_imports_point_one_way():
    # The package on the way to a subpackage is no import of its contents.
    assert [f"{name}:{line} imports {module}" for name, line, module in found()
            if not (module == "golden" and layer(str(name)) in ("rtl", "gen", "synth", "golden/spec"))
            and not allowed(name, module)] == []


def test_libraries_stay_where_they_belong():
    assert [f"{name}:{line} imports {module}" for name, line, module in found()
            if not str(name).startswith(tuple(ONLY.get(module.split(".")[0], {""})))] == []


@pytest.mark.parametrize("path", [p for p in FILES if "golden/spec" in str(p)], ids=lambda path: path.name)
def test_spec_needs_the_standard_library_alone(path):
    for line, module in imports(path):
        allowed_here = {*sys.stdlib_module_names, "golden", "hbfp"}
        assert module.split(".")[0] in allowed_here, f"{path.name}:{line} imports {module}"


#: The one dependency of the lowest layer; and what the YoWASP runtime itself asks for the folder of its cache.
LOWEST = {"hbfp/files.py": {"filelock"}, "hbfp/yowasp.py": {"platformdirs"}}


@pytest.mark.parametrize("path", [p for p in FILES if layer(str(p.relative_to(ROOT))) == "hbfp"],
                         ids=lambda path: path.name)
def test_lowest_layer_needs_the_standard_library_and_locks_alone(path):
    own = LOWEST.get(str(path.relative_to(ROOT)), set())
    for line, module in imports(path):
        assert module.split(".")[0] in {*sys.stdlib_module_names, "hbfp", *own}, f"{path.name}:{line} imports {module}"


#: What a part imports under its short name alone.
ALIAS = {"hbfp.checkout", "hbfp.checkout.alias"}


def test_empty_packages_import_nothing():
    """``import golden.spec`` runs ``golden/__init__.py``: it must not pull the model in."""
    exempt = {"golden/nn", "golden/gpu", "hbfp"}    # users import golden.nn and golden.gpu; hbfp finds the parts
    for folder in {folder for folder in MAY if (ROOT / folder).is_dir()} - exempt:
        assert {module for _, module in imports(ROOT / folder / "__init__.py")} <= ALIAS, folder


def test_rules_see_what_they_forbid():
    for path, module, fine in [("rtl/array/pe.py", "golden.matmul", False), ("rtl/array/pe.py", "hbfp.design", True),
                               ("golden/bfp.py", "rtl.array.pe", False), ("hbfp/format.py", "golden.bfp", False),
                               ("cosim/work/device.py", "rtl.array.pe", False),
                               ("cosim/work/device.py", "golden.matmul", True),
                               ("synth/measure/area.py", "golden.bfp", False),
                               ("synth/measure/area.py", "gen.emit", False),
                               ("synth/measure/area.py", "synth.compare.clocks", False),
                               ("gen/emit.py", "golden.bfp", False), ("rtl/array/pe.py", "gen.emit", False),
                               ("runtime/device.py", "cosim.accelerator.board", False),
                               ("cosim/accelerator/board.py", "runtime.device", True),
                               ("golden/ops/table.py", "golden.nn.side", False),
                               ("golden/nn/ops.py", "golden.bfp", True), ("golden/bfp.py", "golden.nn.ops", False),
                               ("golden/nn/ops.py", "golden.study.sweep", False),
                               ("golden/bfp.py", "golden.fast.kernels", True),
                               ("golden/fast/kernels.py", "golden.bfp", False),
                               ("golden/number/blocks.py", "golden.fast.kernels", False),
                               ("golden/fp32.py", "golden.vector.unit", False),
                               ("golden/__main__.py", "golden.study.sweep", True),
                               ("hbfp/files.py", "golden.spec.format", False),
                               ("synth/measure/area.py", "hbfp.files", True),
                               ("rtl/fp32/raw.py", "golden.fp32", False), ("rtl/array/pe.py", "rtl.core.core", False),
                               ("rtl/core/core.py", "rtl.array.pe", True), ("gen/units.py", "rtl.core.core", True)]:
        assert allowed(pathlib.Path(path), module) == fine, (path, module)
