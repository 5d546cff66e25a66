"""Builds a design for cocotb, runs a bench on it and counts what ran."""

import contextlib
import json
import os
import sys
import uuid
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from hbfp import entries, files

from ..accelerator.device import VERILATE as VERILATE_ACCELERATOR
from ..manifest import Manifest
from ..simulate.verilator import (
    TOP,
    VERILATE,
    BuildError,
    check_system_tools,
    find_tool,
    host,
    renamed,
    runtime_objects,
)
from .comparison import WrongBits
from .corners import reachable
from .sizes import smaller

#: Options that the cocotb runner or the need for random reset values sets otherwise.
_RUNNER_SETS = {"--cc", "--prefix", "Vdut", "--x-initial", "fast", "--x-assign", "--noassert"}
#: A bench simulates for seconds: what counts is that the model is built soon.
_MAKE = "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1"
#: An accelerator is larger than the longest bench on it is long.
_MAKE_ACCELERATOR = _MAKE.replace("OPT_FAST=-O1", "OPT_FAST=-O0")
#: The simulator itself is linked from objects that all models share: most of the time that a small one takes to build.
_SHARED = "VM_GLOBAL_FAST= VM_GLOBAL_SLOW="
#: A small model in one file: most of what a compiler does is to read the headers, once for each file.
_ONE_FILE = "VM_PARALLEL_BUILDS=0"
#: Bytes of Verilog up to which a model is small, if its array is one of those that benches run on.
_SMALL = 300_000
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Result:
    """What a bench did.

    Attributes
    ----------
    ran, failed : int
        Tests that ran, and those of them that failed.
    wrong : int
        Failed tests that found a wrong bit; the others found a broken protocol or another fault.
    compared : int
        Elements of results that were compared.
    failures : list of (str, str)
        Name and message of each failed test.
    corners : dict
        Corner that was asked for -> times seen.
    log : Path
        Everything that the simulator and the tests printed.
    """
    ran: int
    failed: int
    wrong: int
    compared: int
    failures: list[tuple[str, str]]
    corners: dict[str, int]
    log: Path

    @property
    def missing(self) -> list[str]:
        """Corners that were not seen, of those asked for."""
        return [name for name, count in self.corners.items() if not count]

    @property
    def passed(self) -> bool:
        """Whether tests ran and compared something, none failed, and no corner is missing."""
        return self.ran > 0 and self.compared > 0 and not self.failed and not self.missing


def _failures(results):
    """Name, type and first line of the message of each failed test in a results file."""
    found = []
    for case in ElementTree.parse(results).iter("testcase"):
        for failure in [*case.iter("failure"), *case.iter("error")]:
            kind = failure.get("type") or failure.get("error_type") or ""
            text = failure.get("error_msg") or failure.get("message") or failure.text or kind
            found.append((case.get("name"), kind, text.strip().split("\n")[0]))
    return found


@contextlib.contextmanager
def _environment(values):
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def before_reset(seed: int) -> list[str]:
    """Arguments of the simulator that give every register a random value before reset, fixed by ``seed``.

    ``--x-initial unique`` alone starts all of them at zero. A seed of 0 would let the simulator choose.
    """
    return ["+verilator+rand+reset+2", f"+verilator+seed+{seed % (2**31 - 1) + 1}"]


def _variables(tool, flags=()):
    """Environment of a Verilator and of the makefile that it writes."""
    found = {key: value for key, value in tool.environment().items() if os.environ.get(key) != value}
    found["MAKEFLAGS"] = " ".join([found.get("MAKEFLAGS", ""), *flags, f"-j{os.cpu_count()}"]).strip()
    return found


def _program(manifest, tool, runner):
    """The folder in the cache with the built simulator of a design, ``sim/dut``."""
    from cocotb_tools.config import libs_dir  # slow to import

    text = renamed(manifest.verilog.read_bytes(), manifest.top)
    small = len(text) <= _SMALL and smaller(manifest.design) == manifest.design
    flags = [_MAKE_ACCELERATOR if manifest.data.accelerator else _MAKE, _SHARED, *([_ONE_FILE] if small else [])]
    options = [option for option in VERILATE if option not in _RUNNER_SETS] + ["--x-initial", "unique"]
    if manifest.data.accelerator:
        options += VERILATE_ACCELERATOR
    # The runner makes every signal visible, which breaks a netlist into single gates; benches see ports alone.
    visible = "".join(f'public_flat_rw -module "{TOP}" -var "{name}"\n'
                      for name in sorted({*manifest.ports, "clk", "rst"}))
    options.append("--no-public-flat-rw")
    if manifest.data.netlist:
        # Bit by bit: bits of one port that depend on others look like a loop. Modules apart: a third less C++.
        options += ["-Wno-UNOPTFLAT", "-fno-inline"]

    def make(folder):
        runtime = " ".join(map(str, runtime_objects(tool, vpi=True)))
        source, ports = folder / "dut.v", folder / "ports.vlt"
        ports.write_text(f"`verilator_config\n{visible}")
        source.write_bytes(text)
        with _environment(_variables(tool, flags)):
            try:
                runner.build(sources=[source], hdl_toplevel=TOP, build_dir=folder / "sim",
                             build_args=[*options, "-LDFLAGS", runtime, str(ports)], log_file=folder / "build.log")
            except (RuntimeError, SystemExit) as error:
                raise BuildError(f"cocotb build failed; see {folder / 'build.log'}") from error
        for path in (folder / "sim").iterdir():    # the program is all that is needed from here on
            if path.name != TOP:
                path.unlink()

    # The program finds cocotb's libraries where they lie now: in an environment, which may belong to another Python.
    key = files.key(text, *options, visible, tool.version, version("cocotb"), libs_dir, *flags, host("-O1"))
    return entries.entry(files.cache("cosim") / f"cocotb-{key}", make)


def _places(log):
    """Where a run leaves its corners and the results of its tests, beside its log."""
    return log.with_suffix(".corners.json"), log.with_suffix(".xml")


def _result(log, asked, every_test):
    """What a run left beside its log, with the corners that were asked for; only runs of every test count any."""
    from cocotb_tools.runner import get_results

    corners, results = _places(log)
    ran, failed = get_results(results) if results.exists() else (0, 0)
    if ran:    # cocotb counts skipped tests as run
        ran -= sum(1 for _ in ElementTree.parse(results).iter("skipped"))
    saved = json.loads(corners.read_text()) if corners.exists() else {"compared": 0, "corners": {}}
    seen = saved["corners"] if every_test else {}
    found = _failures(results) if failed else []
    return Result(ran, failed, sum(kind.endswith(WrongBits.__name__) for _, kind, _ in found), saved["compared"],
                  [(name, text) for name, _, text in found], dict.fromkeys(asked, 0) | seen, log)


def run_bench(manifest: Manifest, module: str = "hbfp.cosim.bench.units.core", *, seed: int = 1,
              tests: str | None = None) -> Result:
    """Run the tests of a cocotb module on a design.

    Parameters
    ----------
    manifest : Manifest
        The design.
    module : str
        Python module with the tests.
    seed : int
        Seed of all random data.
    tests : str, optional
        Regular expression: run only tests that match; corners are then not asked for.

    Returns
    -------
    Result

    Raises
    ------
    BuildError
        If a tool is missing or the build fails.
    """
    from cocotb_tools.runner import get_runner  # slow to import

    check_system_tools()
    tool, runner = find_tool(), get_runner("verilator")
    folder = _program(manifest, tool, runner)
    log = folder / f"run-{uuid.uuid4().hex[:8]}.log"
    corners, results = _places(log)
    variables = {"HBFP_MANIFEST": str(manifest.path.resolve()), "HBFP_SEED": str(seed),
                 "HBFP_COVERAGE": str(corners), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    with _environment(_variables(tool) | variables):
        with contextlib.suppress(RuntimeError, SystemExit):    # failures are in the results
            runner.test(hdl_toplevel=TOP, hdl_toplevel_lang="verilog", test_module=module,
                        build_dir=folder / "sim", test_dir=folder, results_xml=str(results), log_file=log,
                        test_filter=tests, seed=seed, plusargs=before_reset(seed))
    # Benches of parts save the names of corners that they did not see, too.
    asked = reachable(manifest.design) if module == "hbfp.cosim.bench.units.core" and not tests else ()
    return _result(log, asked, every_test=not tests)
