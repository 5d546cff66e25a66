"""An accelerator from Python, by the C library: the same calls on a simulated machine and on a board."""

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from hbfp.isa.registers import BY_NAME, SPAN, Cause
from hbfp.program import Program
from hbfp.system import Accelerator, Share

from . import library
from .transport import Distant, Transport

#: Reads of the status, each behind a sleep, after which a wait gives up, if nothing else is asked for.
PATIENCE = 1_000_000
#: Registers of a context that count, from ``cycles`` on.
COUNTERS = tuple(name for name, each in BY_NAME.items() if 0x84 <= each.address <= 0xDC)


class DeviceError(RuntimeError):
    """A call has failed; one line.

    Attributes
    ----------
    name : str
        Of the error, as hbfp.h has it: ``MACHINE``, ``TIMEOUT`` and so on.
    """

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


@dataclass(frozen=True)
class Ended:
    """What came of a program.

    Attributes
    ----------
    cycles : int
        In which it had the machine.
    counters : dict
        Name of the register -> value.
    """
    cycles: int
    counters: dict[str, int]


class Device:
    """An accelerator.

    Parameters
    ----------
    transport : Transport or Distant
        The way to it; the device closes it.
    accelerator : Accelerator
        What it is.
    interrupts : bool
        Whether programs raise the interrupt, which a wait for it sleeps until; else it polls, as it always does over a
        distant way, on whose board the interrupt is another CPU's.
    further : sequence of Path
        C files that are compiled into the library, whose functions :meth:`call` calls.

    Raises
    ------
    DeviceError
        If there is no such accelerator.
    CompilerError
        If the C library cannot be compiled.
    """

    def __init__(self, transport: Transport | Distant, accelerator: Accelerator, *, interrupts: bool = True,
                 further: Sequence[Path] = ()) -> None:
        self.transport, self.accelerator = transport, accelerator
        self._library = library.load(library.build(accelerator, *further))
        self._names = {code: name for name, code in library.errors().items()}
        self._raised: BaseException | None = None
        self._device = library.device_type(accelerator.contexts)()
        memory: np.ndarray | None = getattr(transport, "memory", None)
        where, size = (None, cast(Distant, transport).size) if memory is None else (memory.ctypes.data, len(memory))
        self._io = library.Io(None, library.READ(self._read), library.WRITE(self._write), library.SLEEP(self._sleep),
                              library.SYNC(), where, transport.address, size, library.COPY(self._put),
                              library.COPY(self._get))
        self.end = 0
        self.call("hbfp_open", ctypes.byref(self._device), ctypes.byref(self._io))
        self.call("hbfp_interrupts", ctypes.byref(self._device), int(interrupts and memory is not None))

    @property
    def handles(self) -> tuple[Any, Any]:
        """``struct hbfp_device *`` and ``struct hbfp_io *``, for further files."""
        return ctypes.byref(self._device), ctypes.byref(self._io)

    # What C calls must raise nothing: it is kept, and raised behind the call.

    def _read(self, _, address, value):
        try:
            value[0] = self.transport.read(address)
        except BaseException as error:
            return self._failed(error)
        return 0

    def _write(self, _, address, value):
        try:
            return self.transport.write(address, value)
        except BaseException as error:
            return self._failed(error)

    def _put(self, _, place, data, size):
        try:
            self.transport.put(place, ctypes.string_at(data, size))
        except BaseException as error:
            return self._failed(error)
        return 0

    def _get(self, _, place, data, size):
        try:
            ctypes.memmove(data, self.transport.get(place, size), size)
        except BaseException as error:
            return self._failed(error)
        return 0

    def _sleep(self, _):
        try:
            if self.transport.sleep():
                self.interrupt()
        except BaseException as error:
            self._failed(error)

    def _failed(self, error):
        self._raised = self._raised or error
        return -1

    def interrupt(self) -> bool:
        """The interrupt's handler; whether there was one. Whoever calls it without one does no harm."""
        return bool(self._library.hbfp_interrupt(ctypes.byref(self._device)))

    @property
    def taken(self) -> int:
        """Interrupts that were this device's."""
        return self._device.taken

    def call(self, name: str, *arguments: Any) -> None:
        """A function of the library, or of further files in it; DeviceError if it returns an error."""
        code = getattr(self._library, name)(*arguments)
        if self._raised is not None:
            error, self._raised = self._raised, None
            raise error
        if code:
            text = self._library.hbfp_error_text(code).decode()
            raise DeviceError(self._names[code], f"{name}: {text}{self._detail(self._names[code])}")

    def _detail(self, name):
        """What the device says of an error, in words."""
        about = self._device
        if name == "MEMORY":
            return f": {about.wanted} bytes are needed, and {about.found} are there"
        if name not in ("MACHINE", "DEVICE", "VERSION") or not about.wanted:
            return ""
        register = next((name for name, each in BY_NAME.items() if each.address == about.address), None)
        what = "the hash of what registers do not say" if register is None else f"register {register}"
        return f": {what} is 0x{about.found:x}, not 0x{about.wanted:x}"

    def cause_text(self, cause: int) -> str:
        """A cause of a program's error in words."""
        return self._library.hbfp_cause_text(cause).decode()

    def share(self, context: int, share: Share) -> None:
        """Give a context a share of the memories; of all at first."""
        self.call("hbfp_share", ctypes.byref(self._device), context, bytes(share.first), bytes(share.size))

    def load(self, program: Program | str | os.PathLike[str], context: int = 0, place: int | None = None) -> "Loaded":
        """Put a program into the memory, behind the one before or at a place, for a context."""
        data = program.to_bytes() if isinstance(program, Program) else Path(program).read_bytes()
        known = program if isinstance(program, Program) else None
        return Loaded(self, data, known, context, self.end if place is None else place)

    def close(self) -> None:
        """Let go of the accelerator; what runs goes on."""
        self.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Loaded:
    """A program in a context of a device, from :meth:`Device.load`."""

    def __init__(self, device: Device, data: bytes, known: Program | None, context: int, place: int) -> None:
        self.device, self.context, self._data = device, context, data    # C reads the file's bytes later, too
        self._program = library.Program()
        self.device.call("hbfp_load", self.handle, ctypes.byref(device._device), context, data, len(data), place)
        self.program = Program.from_bytes(data) if known is None else known
        device.end = max(device.end, self._program.end)

    @property
    def handle(self) -> Any:
        """``struct hbfp_program *``."""
        return ctypes.byref(self._program)

    def write(self, name: str, values: np.ndarray, further: int = 0) -> None:
        """Write a tensor's FP32 numbers, so many bytes behind its address."""
        values = np.ascontiguousarray(values, np.float32)
        self.device.call("hbfp_write", self.handle, name.encode(), further % (1 << 32), values.ctypes.data, values.size)

    def read(self, name: str, further: int = 0) -> np.ndarray:
        """A tensor's FP32 numbers, in its shape."""
        shape = self.program.tensors[name].shape if name in self.program.tensors else ()
        values = np.empty(shape, np.float32)
        self.device.call("hbfp_read", self.handle, name.encode(), further % (1 << 32), values.ctypes.data, values.size)
        return values

    def tell(self, arguments: Sequence[int], seed: int | None = None) -> None:
        """Give arguments their values, from number 1 on, and the seed of what is drawn."""
        for number, value in enumerate(arguments, 1):
            self.device.call("hbfp_argument", self.handle, number, value)
        if seed is not None:
            self._program.seed = seed

    def start(self) -> None:
        """Ring the doorbell."""
        self.device.call("hbfp_start", self.handle)

    def wait(self, patience: int = PATIENCE) -> Ended:
        """Wait for the end, ``patience`` sleeps at most.

        Raises
        ------
        DeviceError
            If it does not end in time (``TIMEOUT``), or has ended with an error (``PROGRAM``): its cause, and where.
        """
        return self.ended(lambda: self.device.call("hbfp_wait", self.handle, patience))

    def ended(self, call: Callable[[], None]) -> Ended:
        """What came of the program behind a call that waits for its end; raises as :meth:`wait`."""
        try:
            call()
        except DeviceError as error:
            if error.name != "PROGRAM":
                raise
            result = self._result()
            text = self.device.cause_text(result.cause)
            raise DeviceError("PROGRAM", f"The program has stopped at instruction {result.error_pc}: {text} "
                                         f"({Cause(result.cause).name.lower()})") from None
        return Ended(self._result().cycles, {name: self.register(name) for name in COUNTERS})

    def run(self, patience: int = PATIENCE) -> Ended:
        """:meth:`start` and :meth:`wait`."""
        self.start()
        return self.wait(patience)

    def stop(self) -> None:
        """Stop it, if it runs, and forget how it stands."""
        self.device.call("hbfp_stop", self.handle)

    def register(self, name: str) -> int:
        """A register of its context."""
        value = ctypes.c_uint32()
        self.device.call("hbfp_register", self.handle, BY_NAME[name].address % SPAN, ctypes.byref(value))
        return value.value

    def _result(self):
        result = library.Result()
        self.device.call("hbfp_result", self.handle, ctypes.byref(result))
        return result
