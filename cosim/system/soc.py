"""A system of LiteX with VexRiscv, SDRAM and the accelerator, all of it Verilated, and firmware on it."""

import ctypes
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from hbfp import describe, files, generator
from hbfp.program import Program
from hbfp.system import Accelerator

from ..accelerator.device import VERILATE, BusError
from ..emit import EmitError
from ..simulate.verilator import Progress, build_library
from . import firmware
from .running import Ran, Running
from .task import Task

#: Where CPU and accelerator see the SDRAM; and in its first page, the word that says that all is there.
MEMORY, READY, AT_READY = 0x4000_0000, 0x4452_4148, 0xFFC
#: Bytes of the ROM; and of a row of all banks of the SDRAM.
_ROM, ROW = 0x4000, 4096
#: Verilog of others, which is not written for Verilator's rules of style.
_FOREIGN = ("-Wno-lint", "-Wno-style", "-Wno-COMBDLY")


def emit_soc(accelerator: Accelerator) -> Path:
    """The folder of a simulated system, made once; EmitError if LiteX is missing or the generator fails."""
    words = ["soc", "--simulated", *describe.words(accelerator)]
    try:
        by = version("litex")
    except PackageNotFoundError:
        by = "none"    # the generator says so
    try:
        return generator.emitted(f"soc{by}-{accelerator.name}", words)
    except generator.GeneratorError as error:
        raise EmitError(f"python -m gen {' '.join(words)}: {error}") from None


def opened(text: str) -> tuple[str, str]:
    """A system's Verilog whose memories the driver fills and reads, and the driver's names of them.

    What LiteX has at the start of them is in files; of the SDRAM there are four banks, the largest memories.
    """
    text = re.sub(r'initial begin\s+\$readmemh\([^;]*;\s+end\n', "", re.sub(r"^//.*\n", "", text, flags=re.MULTILINE))
    names = ["rom", *re.findall(r"^reg \[15:0\] (mem_\d+)\[0:4194303\];", text, re.MULTILINE)]
    assert len(names) == 5, names
    for name in names:
        text = re.sub(rf"^(reg \[\d+:0\] {name}\[0:\d+\]);", r"\1 /*verilator public_flat_rw*/;", text,
                      flags=re.MULTILINE)
    words = ("ROM", "BANK0", "BANK1", "BANK2", "BANK3")
    return text, "".join(f"#define {word} {name}\n" for word, name in zip(words, names, strict=True))


class Soc(Running):
    """A Verilated system, in its reset's end.

    Parameters
    ----------
    folder : Path
        As :func:`emit_soc` gives it.
    rom : ndarray of uint8
        What is in the ROM.
    memory : ndarray of uint8
        What is in the SDRAM at first.
    level, progress
        As for :class:`~cosim.accelerator.device.Device`.

    Raises
    ------
    BuildError
        If a tool is missing or fails.
    """

    def __init__(self, folder: Path, rom: np.ndarray, memory: np.ndarray, *, level: str = "-O3",
                 progress: Progress | None = None) -> None:
        text, names = opened((folder / "hbfp_soc.v").read_text())
        verilog = files.build() / "designs" / f"hbfp_soc-{files.key(text)[:12]}.v"
        files.write(verilog, text.encode())
        driver = Path(__file__).with_name("soc.cpp").read_text()
        library = build_library(verilog, "hbfp_soc", {"driver.cpp": names + driver}, level=level,
                                verilate=(*VERILATE, *_FOREIGN), progress=progress)
        handle, u64, u32, number = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int
        self._open(library, (
            ("open", handle, [handle, u64, handle, u64]), ("close", None, [handle]), ("cycle", u64, [handle]),
            ("run", number, [handle, u64]), ("code", u32, [handle]), ("said", ctypes.c_char_p, [handle]),
            ("fetch", None, [handle, handle, u64]), ("give", None, [handle, ctypes.c_char_p, u64]),
            ("wild", None, [handle, u64]), ("interrupts", None, [handle, ctypes.POINTER(u64)]),
            ("answer", number, [handle, handle, u64, u64])),
            rom.ctypes.data, len(rom) // 4, memory.ctypes.data, len(memory))

    def wild(self, seed: int) -> None:
        """Lose one of two interrupts on the way to the CPU, and raise others without a reason, by a seed from 1 on."""
        self._library.sim_wild(self._handle, seed)

    @property
    def interrupts(self) -> dict[str, int]:
        """How many were raised and lost so far, and had no reason; and how often a handler found none."""
        counts = (ctypes.c_uint64 * 4)()
        self._library.sim_interrupts(self._handle, counts)
        return dict(zip(("raised", "lost", "spurious", "taken"), counts, strict=True))

    def fetch(self, size: int) -> np.ndarray:
        """The first bytes of the SDRAM."""
        memory = np.empty(size, np.uint8)
        self._library.sim_fetch(self._handle, memory.ctypes.data, size)
        return memory

    def idle(self, cycles: int) -> None:
        """Go on, whatever firmware does."""
        self._library.sim_run(self._handle, cycles)

    def give(self, data: bytes) -> None:
        """Bytes for the bridge's serial line, as it comes to them."""
        self._library.sim_give(self._handle, data, len(data))

    def answer(self, size: int, limit: int) -> bytes:
        """So many bytes of the bridge; BusError if it has not sent them after ``limit`` cycles."""
        data = ctypes.create_string_buffer(size)
        if not self._library.sim_answer(self._handle, data, size, limit):
            raise BusError(f"Cycle {self.cycle}: the bridge does not answer")
        return data.raw


def rom_of(accelerator: Accelerator, folder: Path) -> np.ndarray:
    """What is in the ROM of a system that recognises digits."""
    elf = firmware.build(accelerator, (*firmware.DIGITS, firmware.LITEX / "main.c"),
                         sections=firmware.LITEX / "sections.ld",
                         headers={"hbfp_soc.h": (folder / "hbfp_soc.h").read_text()})
    rom = np.zeros(_ROM, np.uint8)
    firmware.place(elf.read_bytes(), rom)
    return rom


def recognise(program: Program, images: np.ndarray, classes: np.ndarray, *, interrupts: bool = True, runs: int = 1,
              wild: int | None = None, level: str = "-O3", limit: int = 1_000_000_000,
              progress: Progress | None = None) -> Ran:
    """Let firmware in the ROM of a system of LiteX recognise images, as :func:`cosim.system.run.recognise`.

    Program file, images and classes are in the SDRAM at first, as a host writes them over a serial line.

    Parameters
    ----------
    runs : int
        How often the program runs.
    wild : int, optional
        Seed of interrupts that are lost or have no reason, as of :meth:`Soc.wild`.

    Raises
    ------
    BuildError, EmitError, BusError
        As of :class:`Soc` and :func:`emit_soc`.
    """
    folder, task = emit_soc(program.accelerator), Task(program, images, classes, interrupts, runs)
    rom, memory = rom_of(program.accelerator, folder), task.laid(0, MEMORY)
    memory = np.pad(memory, (0, -len(memory) % ROW))
    memory[AT_READY:AT_READY + 4] = np.array([READY], "<u4").view(np.uint8)
    with Soc(folder, rom, memory, level=level, progress=progress) as model:
        if wild is not None:
            model.wild(wild)
        code, said = model.run(limit)
        return Ran(said, code, model.cycle, task.scores(model.fetch(len(memory)), 0), model.interrupts)
