"""How a program on this machine reaches an accelerator: what every way has, and the one over mapped memory.

Another one is ``bridge.Litex``, over a serial line.
"""

import ctypes
import mmap
import os
import select
from pathlib import Path
from typing import Protocol, Self

import numpy as np

#: Bytes of registers that are mapped: all that any accelerator has.
REGISTERS = 4096


class Way(Protocol):
    """Registers and the interrupt of an accelerator.

    Attributes
    ----------
    address : int
        Where the accelerator sees the first byte of the DRAM that programs may have, a multiple of 4096.
    """
    address: int

    def read(self, address: int) -> int:
        """A register, by its byte address."""

    def write(self, address: int, value: int) -> int:
        """Write a register; 0 if the bus took it."""

    def sleep(self) -> bool:
        """Wait for an interrupt, or a while; whether there may have been one."""

    def close(self) -> None:
        """Let go of all."""


class Transport(Way, Protocol):
    """And its DRAM where this machine sees it.

    Attributes
    ----------
    memory : ndarray of uint8
        The DRAM that programs may have, contiguous.
    """
    memory: np.ndarray


class Distant(Way, Protocol):
    """And its DRAM where this machine does not see it: bytes of it are sent; and there is no interrupt.

    Attributes
    ----------
    size : int
        Bytes of the DRAM that programs may have.
    """
    size: int

    def put(self, place: int, data: bytes) -> None:
        """Write bytes from a place in it on."""

    def get(self, place: int, size: int) -> bytes:
        """Bytes from a place in it on."""


class Mapped:
    """Registers and DRAM in files that map them: /dev/mem, or /dev/uioN with an interrupt; on a board.

    Parameters
    ----------
    registers, memory : int
        Physical addresses of the registers and of the DRAM that programs may have, multiples of the page.
    size : int
        Bytes of that DRAM; Linux must leave them alone (``memmap`` or ``reserved-memory``).
    path : str or Path
        What has both.
    uio : str or Path, optional
        The UIO device whose interrupt is the accelerator's; without one, status is polled.
    address : int, optional
        Where the accelerator sees that DRAM, if not where the CPU does.
    patience : float
        Seconds that one wait for the interrupt takes at most.

    Raises
    ------
    OSError
        If a file cannot be opened or mapped.
    ValueError
        If an address is no multiple of the page.
    """

    def __init__(self, registers: int, memory: int, size: int, *, path: str | os.PathLike[str] = "/dev/mem",
                 uio: str | os.PathLike[str] | None = None, address: int | None = None, patience: float = 0.1) -> None:
        page = mmap.ALLOCATIONGRANULARITY
        for name, value in (("registers", registers), ("memory", memory)):
            if value % page:
                raise ValueError(f"Address of {name} must be a multiple of {page}, not 0x{value:x}")
        file = os.open(path, os.O_RDWR | os.O_SYNC)    # O_SYNC: /dev/mem is mapped past the caches
        try:
            self._registers = mmap.mmap(file, REGISTERS, offset=registers)
            self._memory = mmap.mmap(file, size, offset=memory)
        finally:
            os.close(file)
        self._words = (ctypes.c_uint32 * (REGISTERS // 4)).from_buffer(self._registers)
        self.memory: np.ndarray = np.frombuffer(self._memory, np.uint8)
        self.address, self.patience = memory if address is None else address, patience
        self._uio = None if uio is None else os.open(Path(uio), os.O_RDWR)

    def read(self, address: int) -> int:
        """As of :class:`Transport`."""
        return self._words[address // 4]

    def write(self, address: int, value: int) -> int:
        """As of :class:`Transport`."""
        self._words[address // 4] = value
        return 0

    def sleep(self) -> bool:
        """As of :class:`Transport`."""
        if self._uio is None:
            return False
        os.write(self._uio, (1).to_bytes(4, "little"))    # UIO masks it until it is told to let the next one through
        if not select.select([self._uio], [], [], self.patience)[0]:
            return False
        os.read(self._uio, 4)
        return True

    def close(self) -> None:
        """As of :class:`Transport`; arrays that were made of the memory end with it."""
        del self._words, self.memory
        for each in (self._registers, self._memory):
            each.close()
        if self._uio is not None:
            os.close(self._uio)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
