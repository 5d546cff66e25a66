"""The C library of an accelerator, compiled for this machine, and its types and functions by ctypes."""

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

from hbfp import entries, files
from hbfp.isa.rdl import header_of
from hbfp.system import Accelerator

#: The C files, and what they include beside the header of an accelerator.
FOLDER = Path(__file__).parent
SOURCES, HEADERS = sorted(FOLDER.glob("*.c")), sorted(FOLDER.glob("*.h"))
#: Of the compiler, here and on a board. A loop that copies stays one, as there may be no memcpy.
FLAGS = ("-std=c99", "-O2", "-ffreestanding", "-fno-tree-loop-distribute-patterns", "-Wall", "-Wextra", "-Wpedantic",
         "-Wconversion", "-Wshadow", "-Wmissing-prototypes", "-Werror")


class CompilerError(RuntimeError):
    """There is no C compiler, or it fails; one line."""


def compiler() -> str:
    """The C compiler: that of the environment variable CC, or cc."""
    name = os.environ.get("CC") or "cc"
    if (found := shutil.which(name)) is None:
        raise CompilerError(f"{name} is missing: apt-get install gcc, or CC=NAME")
    return found


def build(accelerator: Accelerator, *more: Path) -> Path:
    """The shared library of an accelerator, in a cache, with ``more`` C files in it; CompilerError if that fails."""
    program, text = compiler(), header_of(accelerator)
    version = subprocess.run([program, "--version"], capture_output=True, check=True).stdout
    sources = [*SOURCES, *more]
    known = [data for path in (*sources, *HEADERS) for data in (path.name, path.read_bytes())]

    def make(folder):
        (folder / "hbfp_accelerator.h").write_text(text)
        words = [program, *FLAGS, "-shared", "-fPIC", f"-I{folder}", f"-I{FOLDER}", *map(str, sources), "-o",
                 str(folder / "hbfp.so")]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if "error" in line] or [f"status {done.returncode}"]
            raise CompilerError(f"{program} cannot build the runtime: {said[0]}")

    return entries.entry(files.cache("runtime") / files.key(text, *known, *FLAGS, version), make) / "hbfp.so"


def errors() -> dict[str, int]:
    """Name -> code of what calls return, as hbfp.h has them."""
    names = re.findall(r"^    X\((\w+), ", (FOLDER / "hbfp.h").read_text(), re.MULTILINE)
    return {name: code for code, name in enumerate(names)}


_U32, _SIZE, _POINTER, _NUMBER = ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
READ = ctypes.CFUNCTYPE(_NUMBER, _POINTER, _U32, ctypes.POINTER(_U32))
WRITE = ctypes.CFUNCTYPE(_NUMBER, _POINTER, _U32, _U32)
SLEEP = ctypes.CFUNCTYPE(None, _POINTER)
SYNC = ctypes.CFUNCTYPE(None, _POINTER, _NUMBER)
COPY = ctypes.CFUNCTYPE(_NUMBER, _POINTER, _SIZE, _POINTER, _SIZE)


class Io(ctypes.Structure):
    """``struct hbfp_io``."""
    _fields_ = [("self", _POINTER), ("read", READ), ("write", WRITE), ("sleep", SLEEP), ("sync", SYNC),
                ("memory", _POINTER), ("address", ctypes.c_uint64), ("bytes", _SIZE), ("put", COPY), ("get", COPY)]


def device_type(contexts: int) -> type[ctypes.Structure]:
    """``struct hbfp_device`` of a machine of so many contexts."""
    return type("Device", (ctypes.Structure,), {"_fields_": [
        ("io", ctypes.POINTER(Io)), ("interrupts", _U32), ("taken", _U32), ("shares", _U32 * 2 * contexts),
        ("address", ctypes.c_uint64), ("found", ctypes.c_uint64), ("wanted", ctypes.c_uint64)]})


class File(ctypes.Structure):
    """``struct hbfp_file``."""
    _fields_ = [("index", _POINTER), ("instructions", _POINTER), ("memory", _POINTER), ("index_bytes", _U32),
                ("instruction_bytes", _U32), ("memory_bytes", _U32)]


class Program(ctypes.Structure):
    """``struct hbfp_program``."""
    _fields_ = [("device", _POINTER), ("file", File), ("context", _U32), ("told", _U32), ("arguments", _U32 * 8),
                ("seed", _U32), ("watchdog", _U32), ("place", _SIZE), ("base", _SIZE), ("end", _SIZE)]


class Result(ctypes.Structure):
    """``struct hbfp_result``."""
    _fields_ = [("cycles", _U32), ("cause", _U32), ("error_pc", _U32)]


class Training(ctypes.Structure):
    """``struct hbfp_training``."""
    _fields_ = [("program", ctypes.POINTER(Program)), ("place", _U32), ("bytes", _U32), ("step", _U32)]


class Policy(ctypes.Structure):
    """``struct hbfp_policy``."""
    _fields_ = [(name, _U32) for name in ("inference", "training", "priority", "closes", "batch", "share", "timeout",
                                          "patience")]


class Ring(ctypes.Structure):
    """``struct hbfp_ring``."""
    _fields_ = [("device", _POINTER), ("place", _SIZE), *((name, _U32) for name in ("log", "beat", "head", "tail"))]


class Completion(ctypes.Structure):
    """``struct hbfp_completion``."""
    _fields_ = [(name, _U32) for name in ("tag", "arrived", "started", "finished", "failed", "refused")]


def load(path: Path) -> ctypes.CDLL:
    """The library, whose functions know what they take; most return an error's code."""
    library = ctypes.CDLL(str(path))
    name, handle = ctypes.c_char_p, ctypes.c_void_p
    for function, taken in {
            "open": [handle, handle], "interrupts": [handle, _NUMBER], "interrupt": [handle],
            "share": [handle, _U32, name, name], "load": [handle, handle, _U32, name, _SIZE, _SIZE],
            "argument": [handle, _U32, _U32], "prepare": [handle], "start": [handle], "wait": [handle, _U32],
            "stop": [handle], "result": [handle, handle], "register": [handle, _U32, handle],
            "write": [handle, name, _U32, handle, _SIZE], "read": [handle, name, _U32, handle, _SIZE],
            "further": [handle, name, handle], "step": [handle, handle, _U32, _U32], "attach": [handle, handle],
            "detach": [handle], "request": [handle, _U32, _U32, _U32], "completion": [handle, handle],
            "ring": [handle, handle, _SIZE, _U32, _U32, _U32], "lay": [handle, _U32, _U32, _U32],
            "tell": [handle]}.items():
        if found := getattr(library, f"hbfp_{function}", None):    # some machines have no dispatcher
            found.argtypes = taken
    for function in ("error_text", "cause_text"):
        getattr(library, f"hbfp_{function}").restype = ctypes.c_char_p
    return library
