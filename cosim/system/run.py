"""A program on a CPU beside the accelerator: firmware, network and images in one memory."""

import ctypes
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from hbfp import files
from hbfp.program import Program

from ..accelerator.device import VERILATE, Timing
from ..emit import emit_accelerator
from ..simulate.verilator import BuildError, Progress, build_library
from . import firmware
from .running import LIMIT, Ran, Running
from .task import Task
from .top import system

#: Where the firmware finds what it is to do.
BOARD = 0x10_0000
#: What Verilator says of picorv32.v.
_PICORV32 = ("-Wno-TIMESCALEMOD", "-Wno-PINMISSING")
#: Further ends of it.
_BROKEN, _TRAPPED, _OUTSIDE = range(LIMIT + 1, LIMIT + 4)


def picorv32() -> Path:
    """The CPU's Verilog, of a wheel of PyPI; BuildError without it."""
    found = find_spec("pythondata_cpu_picorv32")
    if found is None or found.origin is None:
        raise BuildError("pythondata-cpu-picorv32 is missing: pip install 'hbfp[cpu]'")
    return Path(found.origin).parent / "verilog" / "picorv32.v"


class System(Running):
    """A Verilated system of CPU and accelerator, behind its reset.

    Parameters
    ----------
    program : Program
        Whose accelerator it is.
    memory : ndarray of uint8
        From address 0 on, for both.
    timing : Timing
        Speed of the accelerator's way to it.
    level, progress
        As for :class:`~cosim.accelerator.device.Device`.

    Raises
    ------
    BuildError
        If a tool or the CPU is missing, or a tool fails.
    """

    def __init__(self, program: Program, memory: np.ndarray, *, timing: Timing | None = None, level: str = "-O3",
                 progress: Progress | None = None) -> None:
        accelerator, timing, self.memory = program.accelerator, timing or Timing(), memory
        text, top = system(emit_accelerator(accelerator), picorv32())
        verilog = files.build() / "designs" / f"{top[:100]}-{files.key(text)[:12]}.v"
        files.write(verilog, text.encode())
        here, dram = Path(__file__).parent, Path(__file__).parents[1] / "accelerator" / "dram.h"
        sources = {"driver.cpp": (here / "driver.cpp").read_text(), "dram.h": dram.read_text(),
                   "ports.h": f"#define BEAT {accelerator.beat}\n"}
        library = build_library(verilog, top, sources, level=level, verilate=(*VERILATE, *_PICORV32),
                                progress=progress)
        handle, text_, u64, u32 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint32
        self._open(library, (
            ("open", handle, [handle, u64, u32, u64, u64]), ("close", None, [handle]), ("cycle", u64, [handle]),
            ("run", ctypes.c_int, [handle, u64]), ("code", u32, [handle]), ("address", u32, [handle]),
            ("said", text_, [handle]), ("complaint", text_, [handle])),
            memory.ctypes.data, len(memory), accelerator.burst, timing.latency, timing.bandwidth)

    def _broken(self, status):
        """Why firmware has not ended: also what is illegal, and a rule of AXI that is broken."""
        address = self._library.sim_address(self._handle)
        return {_TRAPPED: "the CPU has stopped at an illegal instruction",
                _OUTSIDE: f"the CPU asks for address 0x{address:x}, where nothing is",
                _BROKEN: self._library.sim_complaint(self._handle).decode()}.get(status) or super()._broken(status)


def recognise(program: Program, images: np.ndarray, classes: np.ndarray, *, interrupts: bool = True,
              timing: Timing | None = None, level: str = "-O3", limit: int = 1_000_000_000,
              progress: Progress | None = None) -> Ran:
    """Let firmware on the CPU recognise images with a network of one input and one output.

    Parameters
    ----------
    program : Program
    images : ndarray of float32
        As the program's input has them.
    classes : ndarray of int
        Of each image.
    interrupts : bool
        Whether the CPU sleeps until the interrupt; else it polls.
    timing, level, progress
        As of :class:`System`.
    limit : int
        Cycles after which it must have ended.

    Raises
    ------
    BuildError, BusError
        As of :class:`System`.
    """
    task = Task(program, images, classes, interrupts)
    memory = task.laid(BOARD)
    firmware.place(firmware.build(program.accelerator).read_bytes(), memory)
    with System(program, memory, timing=timing, level=level, progress=progress) as model:
        code, said = model.run(limit)
        return Ran(said, code, model.cycle, task.scores(memory, BOARD))
