"""A Verilated accelerator with its DRAM and its host: registers, programs, faults; one call for many cycles."""

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..simulate.model import Model
from ..simulate.verilator import Progress, build_library

_SOURCES = ("driver.cpp", "dram.h")
#: What Verilator warns of: the name of the port `interrupt`, and what Yosys writes of arrays that are no power of two
#: long, and of bounds that a signal cannot reach.
VERILATE = ("-Wno-SYMRSVDWORD", "-Wno-CASEINCOMPLETE", "-Wno-UNSIGNED", "-Wno-CMPCONST")
#: Cycles within which a register answers; behind a reset the largest memories are cleared first.
ANSWER = (1 << 18) + 1000
_INTERRUPT, _LIMIT, _BROKEN = range(3)
#: Events of a run, as ``struct Event`` of driver.cpp has them: masks have bit u - 1 for unit u; ``running``:
#: 0, or 1 and the number of the context that has the machine; ``reads`` and ``writes`` count beats of the DRAM.
EVENT = np.dtype([("cycle", "<u8"), ("started", "<u4"), ("completed", "<u4"), ("waiting", "<u4"), ("running", "<u4"),
                  ("reads", "<u4"), ("writes", "<u4")], align=True)


def with_more(sources: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The C++ of a device with other files, which include its driver as ``driver.h``."""
    return {"driver.h" if name == "driver.cpp" else name: text for name, text in sources.items()} | dict(more)


class BusError(RuntimeError):
    """The accelerator broke a rule of AXI, or a register did not answer."""


@dataclass(frozen=True)
class Timing:
    """Speed of the DRAM: cycles from a read's address to its first beat; bytes a cycle, both directions together.

    The rule in full stands at the head of ``dram.h``.
    """
    latency: int = 32
    bandwidth: int = 64


class Device(Model):
    """One Verilated accelerator, held in reset once.

    Parameters
    ----------
    verilog : Path
        The emitted text.
    top : str
        Its top module: aclk, aresetn, interrupt, AXI4-Lite of 32 bits at ``s_axil_...``, AXI4 at ``m_axi_...``.
    beat : int
        Bytes of the data bus.
    memory : ndarray of uint8
        The DRAM, from address 0 on unless :meth:`place` says so; what the accelerator writes is there at once.
    burst : int
        Beats that a burst has at most.
    timing : Timing
        Speed of the DRAM; by default that of :class:`Timing`.
    traced : bool
        Whether the top has trace_started, trace_completed, trace_waiting, trace_running.
    contexts : int
        Contexts of the accelerator; with two the top has trace_context, too.
    level : str
        ``-O3`` runs fastest, ``-O1`` builds fastest.
    waves : Path, optional
        Write a VCD file.
    progress : callable, optional
        Called with (done, total) as a build goes on.

    Raises
    ------
    ValueError
        If the memory is not one contiguous row of bytes.
    BuildError
        If a tool is missing or fails.
    OSError
        If the VCD file cannot be written.
    BusError
        If a rule of AXI is broken in the reset.
    """

    def __init__(self, verilog: str | os.PathLike[str], top: str, *, beat: int, memory: np.ndarray, burst: int = 256,
                 timing: Timing | None = None, traced: bool = True, contexts: int = 1, level: str = "-O3",
                 waves: str | os.PathLike[str] | None = None, progress: Progress | None = None) -> None:
        if memory.dtype != np.uint8 or memory.ndim != 1 or not memory.flags.c_contiguous:
            raise ValueError(f"The memory must be bytes in one row, not {memory.dtype} of {memory.shape}")
        timing = timing or Timing()
        folder = Path(__file__).parent
        sources = {name: (folder / name).read_text() for name in _SOURCES}
        sources["ports.h"] = f"#define BEAT {beat}\n#define TRACE {int(traced)}\n#define CONTEXTS {contexts}\n"
        self.library = self._built(Path(verilog), top, sources, level=level, trace=waves is not None,
                                   verilate=VERILATE, progress=progress)
        self.memory, self.first = memory, 0    # the model writes into it
        self.beat, self.traced, self.contexts = beat, traced, contexts
        self._open(self.library, _functions(), memory.ctypes.data, len(memory), burst)
        self._library.sim_timing(self._handle, timing.latency, timing.bandwidth)
        if waves is not None:
            self._trace(waves)
        self.reset()

    def _built(self, verilog, top, sources, **options):
        """The library of a text and the C++ that drives it."""
        return build_library(verilog, top, sources, **options)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Beats read and written so far, and the cycle of the last beat that changed the DRAM."""
        counts = (ctypes.c_uint64 * 3)()
        self._library.sim_counts(self._handle, counts)
        return tuple(counts)

    def place(self, first: int) -> None:
        """Let the DRAM begin at ``first``, an address of 64 bits, from the next cycle on; what else is done counts from
        there."""
        self.first = first
        self._library.sim_place(self._handle, first)

    def set_timing(self, timing: Timing) -> None:
        """Give the DRAM another speed, from the next cycle on."""
        self._library.sim_timing(self._handle, timing.latency, timing.bandwidth)

    def set_pauses(self, share: float, seed: int = 1) -> None:
        """Let each channel of the DRAM and the host stand still in that share of cycles, 0 to below 1, by a seed."""
        self._library.sim_pauses(self._handle, round(share * (2**32 - 1)), seed)

    def poison(self, begin: int, end: int) -> None:
        """Answer reads and writes of these bytes with an error."""
        self._library.sim_fault(self._handle, begin, end, 0)

    def silence(self, begin: int, end: int) -> None:
        """Never answer bursts of reads that touch these bytes."""
        self._library.sim_fault(self._handle, begin, end, 1)

    def heal(self) -> None:
        """Take back all of :meth:`poison` and :meth:`silence`."""
        for silent in (0, 1):
            self._library.sim_fault(self._handle, 0, 0, silent)

    def reset(self, cycles: int = 4) -> None:
        """Hold ``aresetn`` low for some cycles; the DRAM forgets what was under way, and keeps its contents."""
        self._library.sim_reset(self._handle, cycles)
        self._complain()

    def write(self, address: int, value: int) -> int:
        """Write a register; return its response, 0 if it is OKAY.

        Raises
        ------
        BusError
            If none comes in :data:`ANSWER` cycles, or a rule of AXI is broken.
        """
        code = self._library.sim_write(self._handle, address, value, ANSWER)
        self._complain()
        if code < 0:
            raise BusError(f"Cycle {self.cycle}: no answer to a write of register 0x{address:x} in {ANSWER} cycles")
        return code

    def read(self, address: int) -> int:
        """The value of a register.

        Raises
        ------
        BusError
            If none comes in :data:`ANSWER` cycles, its response is an error, or a rule of AXI is broken.
        """
        value = ctypes.c_uint32()
        code = self._library.sim_read(self._handle, address, ctypes.byref(value), ANSWER)
        self._complain()
        if code < 0:
            raise BusError(f"Cycle {self.cycle}: no answer to a read of register 0x{address:x} in {ANSWER} cycles")
        if code:
            raise BusError(f"Cycle {self.cycle}: register 0x{address:x} answered a read with response {code}")
        return value.value

    def run(self, limit: int) -> bool:
        """Go on until ``interrupt`` is high, for at most ``limit`` cycles; return whether it is.

        Raises
        ------
        BusError
            If a rule of AXI is broken.
        """
        return self._run(limit, 1)

    def idle(self, cycles: int) -> None:
        """Go on for some cycles, whatever ``interrupt`` is.

        Raises
        ------
        BusError
            If a rule of AXI is broken.
        """
        self._run(cycles, 0)

    def _run(self, limit, until_interrupt):
        status = self._library.sim_run(self._handle, limit, until_interrupt)
        self._complain()
        return status == _INTERRUPT

    def record(self, on: bool = True) -> None:
        """Begin to keep events, or stop; those kept are forgotten."""
        self._library.sim_record(self._handle, int(on))

    def events(self) -> np.ndarray:
        """What was kept: an array of :data:`EVENT`, a row for each cycle in which something happened."""
        count = ctypes.c_uint64()
        start = self._library.sim_events(self._handle, ctypes.byref(count))
        if not count.value:
            return np.empty(0, EVENT)
        raw = ctypes.string_at(start, count.value * EVENT.itemsize)
        return np.frombuffer(raw, EVENT).copy()

    def _complain(self):
        text = ctypes.create_string_buffer(160)
        cycle = self._library.sim_complaint(self._handle, text)
        if text.value:
            raise BusError(f"Cycle {cycle}: {text.value.decode()}")


def _functions():
    """The functions of the library: name, result, arguments."""
    handle, u64, u32, number = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int
    text, counts = ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64)
    return (
        ("open", handle, [handle, u64, u32]), ("close", None, [handle]), ("place", None, [handle, u64]),
        ("timing", None, [handle, u64, u64]),
        ("pauses", None, [handle, u32, u32]),
        ("fault", None, [handle, u64, u64, number]), ("reset", None, [handle, u32]),
        ("write", number, [handle, u32, u32, u64]), ("read", number, [handle, u32, ctypes.POINTER(u32), u64]),
        ("run", number, [handle, u64, number]), ("record", None, [handle, number]),
        ("events", handle, [handle, counts]), ("cycle", u64, [handle]), ("counts", None, [handle, counts]),
        ("complaint", u64, [handle, text]), ("trace", number, [handle, text]))
