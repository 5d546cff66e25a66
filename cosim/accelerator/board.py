"""The simulated accelerator as a transport of :class:`hbfp.Device`: what drives it drives a board, too."""

import ctypes
from typing import Self

import numpy as np

from hbfp.checkout import folder
from hbfp.program import Program
from hbfp.runtime.device import Device as Hbfp
from hbfp.runtime.transport import Transport
from hbfp.system import Accelerator

from ..emit import emit_accelerator
from ..simulate.verilator import Progress
from .device import Device, Timing
from .host import UNDEFINED

#: Cycles that one wait for the interrupt takes at most.
STRETCH = 1000


class Simulated:
    """A Verilated accelerator with a DRAM.

    Parameters
    ----------
    accelerator : Accelerator
        It is emitted and built, if it is not yet.
    size : int
        Bytes of DRAM.
    address : int
        Where the accelerator sees the first of them.
    timing : Timing
        Speed of the DRAM.
    level, progress
        As for :class:`~cosim.accelerator.device.Device`.

    Attributes
    ----------
    device : Device
        The simulation, with what a test may do to it.

    Raises
    ------
    BuildError, BusError
        As of :class:`~cosim.accelerator.device.Device`.
    """

    def __init__(self, accelerator: Accelerator, size: int, *, address: int = 0, timing: Timing | None = None,
                 level: str = "-O3", progress: Progress | None = None) -> None:
        manifest = emit_accelerator(accelerator)
        self.memory, self.address = np.full(size, UNDEFINED, np.uint8), address
        self.device = Device(manifest.verilog, manifest.top, beat=accelerator.beat, memory=self.memory,
                             burst=accelerator.burst, contexts=accelerator.contexts, timing=timing, level=level,
                             progress=progress)
        self.device.place(address)

    def read(self, address: int) -> int:
        """A register."""
        return self.device.read(address)

    def write(self, address: int, value: int) -> int:
        """Write a register; the response."""
        return self.device.write(address, value)

    def sleep(self) -> bool:
        """Go on until the interrupt, :data:`STRETCH` cycles at most; whether it came."""
        return self.device.run(STRETCH)

    def close(self) -> None:
        """Free the model."""
        self.device.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


#: The C program that recognises digits.
DIGITS = folder("hbfp.runtime") / "examples" / "digits.c"


class Digits(ctypes.Structure):
    """``struct digits`` of that program."""
    _fields_ = [("images", ctypes.c_uint32), ("right", ctypes.c_uint32), ("cycles", ctypes.c_uint32)]


def recognise(transport: Transport, program: Program, images: np.ndarray, classes: np.ndarray,
              interrupts: bool = True) -> tuple[Digits, np.ndarray]:
    """Let the C program recognise images with a network of one input and one output.

    Parameters
    ----------
    transport : Transport
    program : Program
    images : ndarray of float32
        As the program's input has them.
    classes : ndarray of int
        Of each image.
    interrupts : bool
        Whether it waits for the interrupt; else it polls.

    Returns
    -------
    Digits, ndarray of float32
        What it says of them, and the network's output.

    Raises
    ------
    DeviceError
        If it fails.
    """
    output, = (each for each in program.tensors.values() if each.role == "output")
    scores, data = np.empty(output.shape, np.float32), program.to_bytes()
    device, found = Hbfp(transport, program.accelerator, further=(DIGITS,)), Digits()
    images, known = np.ascontiguousarray(images, np.float32), np.ascontiguousarray(classes, np.uint8)
    device.call("digits", ctypes.byref(found), *device.handles, data, ctypes.c_size_t(len(data)),
                *(ctypes.c_void_p(each.ctypes.data) for each in (images, known, scores)), int(interrupts), 1)
    return found, scores
