"""Firmware for PicoRV32 in C: compiled with the driver, and its segments in memory."""

import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import numpy as np

from hbfp import entries, files
from hbfp.checkout import folder
from hbfp.isa.rdl import header_of
from hbfp.system import Accelerator

from ..simulate.verilator import BuildError

#: The driver, and the firmware that recognises digits; and what of it is of one system, with its sections.
RUNTIME = folder("hbfp.runtime")
DIGITS = tuple(RUNTIME / "examples" / name for name in ("digits.c", "board.c"))
PICORV32, LITEX = RUNTIME / "examples" / "picorv32", RUNTIME / "examples" / "litex"
#: Debian's compiler; and Zig's, a wheel of PyPI, which is clang with another target. Of RV32IM, of 32 bits.
GCC = "riscv64-unknown-elf-gcc"
_GCC = (GCC, "-march=rv32im", "-mabi=ilp32", "-nostartfiles", "-nostdlib")
_ZIG = ("cc", "-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m", "-nostdlib")
_FLAGS = ("-std=c99", "-O2", "-ffreestanding", "-fno-builtin", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
          "-Wno-int-to-pointer-cast", "-static")
#: Of an ELF of 32 bits with the lowest byte first: its head, and one of its program headers, of which 1 is loaded.
_HEAD, _SEGMENT, _LOAD = struct.Struct("<16s2H5I6H"), struct.Struct("<8I"), 1


def compiler() -> list[str]:
    """The first words of a compiler for RV32IM: Debian's if it is there, else Zig's; BuildError without one."""
    if (found := shutil.which(GCC)) is not None:
        return [found, *_GCC[1:]]
    if find_spec("ziglang") is None:
        raise BuildError(f"{GCC} is missing: apt-get install gcc-riscv64-unknown-elf, or pip install 'hbfp[cpu]'")
    return [sys.executable, "-m", "ziglang", *_ZIG]


def build(accelerator: Accelerator, sources: Sequence[Path] = (*DIGITS, PICORV32 / "main.c"), *,
          sections: Path = PICORV32 / "sections.ld", headers: Mapping[str, str] = MappingProxyType({})) -> Path:
    """The ELF of firmware for an accelerator, in a cache; BuildError if it cannot be made.

    Parameters
    ----------
    accelerator : Accelerator
    sources : sequence of Path
        C files beside those of the driver.
    sections : Path
        Where its sections go.
    headers : dict of str to str
        Further ones: name -> text.
    """
    command, texts = compiler(), {"hbfp_accelerator.h": header_of(accelerator), **headers}
    every = [*sorted(RUNTIME.glob("*.c")), *sources]
    known = [path.read_bytes() for path in (*every, *sorted(RUNTIME.rglob("*.h")), sections)]

    def make(place):
        for name, text in texts.items():
            (place / name).write_text(text)
        words = [*command, *_FLAGS, f"-I{place}", f"-I{RUNTIME}", *every, f"-Wl,-T,{sections}", "-o",
                 place / "firmware.elf"]
        with open(place / "build.log", "wb") as log:
            if subprocess.run(list(map(str, words)), stdout=log, stderr=subprocess.STDOUT).returncode:
                raise BuildError(f"{Path(command[0]).name} failed on the firmware; see {place / 'build.log'}")

    key = files.key(*texts, *texts.values(), *known, *command, *_FLAGS)
    return entries.entry(files.cache("firmware") / key, make) / "firmware.elf"


def place(elf: bytes, memory: np.ndarray) -> None:
    """Put the segments of an ELF of 32 bits to their physical addresses; BuildError if they do not fit."""
    first, (size, count) = _HEAD.unpack_from(elf)[5], _HEAD.unpack_from(elf)[9:11]
    for number in range(count):
        kind, offset, _, address, stored, _, *_ = _SEGMENT.unpack_from(elf, first + number * size)
        if kind == _LOAD and stored:
            if address + stored > len(memory):
                raise BuildError(f"The firmware must fit into {len(memory)} bytes, not end at {address + stored}")
            memory[address:address + stored] = np.frombuffer(elf[offset:offset + stored], np.uint8)
