"""The machine code of kernels.cpp: what a wheel brings, or what a compiler makes of it when it is first used.

On x86-64 there are levels of machine code, each for all processors with its instructions; elsewhere it is made for the
processor at hand. Only the standard library is needed here: the wheel is built with it, too.
"""

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hbfp import entries, files
from hbfp.values import OptionError

_SOURCE = Path(__file__).with_name("kernels.cpp")
_HEADERS = sorted(_SOURCE.parent.glob("*.h"))
_FLAGS = ("-O3", "-funroll-loops", "-fno-math-errno", "-shared", "-fPIC", "-s", "-std=c++17")


@dataclass(frozen=True)
class Level:
    """Machine code for all processors that have some instructions.

    Attributes
    ----------
    name : str
    flags : tuple of str
        Of the compiler.
    needs : frozenset of str
        What /proc/cpuinfo calls the instructions.
    """
    name: str
    flags: tuple[str, ...]
    needs: frozenset[str]


_AVX2 = frozenset(("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"))
#: On x86-64, the best first; the flags are the levels v4 and v3 of its ABI.
LEVELS = (Level("avx512", ("-march=x86-64-v4",),
                _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
          Level("avx2", ("-march=x86-64-v3",), _AVX2))
#: Where there is no level.
NATIVE = Level("native", ("-march=native",), frozenset())
#: The environment variable that chooses a level, or ``0`` for NumPy.
CHOICE = "HBFP_KERNELS"


def _processor() -> str:
    """The line of /proc/cpuinfo that names the processor's instructions; nothing where there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def levels() -> list[Level]:
    """The levels that this machine has, the best first; :data:`NATIVE` where it has none of :data:`LEVELS`."""
    known = set(_processor().split())
    found = [level for level in LEVELS if level.needs <= known] if platform.machine() == "x86_64" else []
    return found or [NATIVE]


def level() -> Level | None:
    """The level to run, None for NumPy.

    Raises
    ------
    OptionError
        If ``HBFP_KERNELS`` asks for one that the machine does not have.
    """
    here, choice = levels(), os.environ.get(CHOICE) or "1"
    if choice == "0":
        return None
    chosen = here[0] if choice == "1" else next((each for each in here if each.name == choice), None)
    if chosen is None:
        raise OptionError(f"{CHOICE} {choice}: must be 0 for NumPy, 1 for the best or, on this machine, "
                          f"{' or '.join(each.name for each in here)}")
    return chosen


def name_of(which: Level) -> str:
    """The file of a level in a wheel: its name holds all of ours that decides the machine code."""
    return f"kernels-{which.name}-{files.key(*(path.read_bytes() for path in (_SOURCE, *_HEADERS)), *_FLAGS)}.so"


def build(which: Level, compiler: str, target: Path) -> None:
    """Compile a level into the file ``target``; RuntimeError with one line if that fails."""
    words = [compiler, *_FLAGS, *which.flags, "-o", str(target), str(_SOURCE)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.splitlines()
        said = [line for line in lines if "error" in line] or lines or [f"exit status {done.returncode}"]
        raise RuntimeError(f"{compiler} cannot build {_SOURCE.name}: {said[0]}")


def compiler() -> str | None:
    """The C++ compiler, or None."""
    return shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")


def file(which: Level) -> Path | None:
    """The library of a level: the one that was installed, else one that is compiled now; None without a compiler.

    Raises
    ------
    RuntimeError, OSError, subprocess.SubprocessError
        If it cannot be made.
    """
    shipped = _SOURCE.with_name(name_of(which))
    if shipped.exists():
        return shipped
    with_what = compiler()
    if with_what is None:
        return None
    version = subprocess.run([with_what, "--version"], capture_output=True, check=True).stdout
    key = files.key(shipped.name, *which.flags, version, _processor() if which is NATIVE else "")

    def make(folder):
        print(f"hbfp: compiling {_SOURCE.name} ({which.name}), once; that takes less than a minute", file=sys.stderr)
        build(which, with_what, folder / "kernels.so")

    return entries.entry(files.cache("kernels") / key, make) / "kernels.so"
