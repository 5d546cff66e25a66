"""A host beside a simulated system of LiteX: hbfp.Device, TCP, litex_server, and the bridge's serial line."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import numpy as np

from hbfp.program import Program
from hbfp.runtime.bridge import Litex, places
from hbfp.runtime.device import Device

from ..accelerator.device import BusError
from ..simulate.verilator import Progress
from .running import Ran
from .soc import ROW, Soc, emit_soc, rom_of

#: Cycles within which the bridge must answer, and firmware have started the SDRAM; more than LiteX's bus waits for what
#: is not there.
LIMIT = 2_000_000
#: Seconds that a server has for a burst: a simulation takes its time.
PATIENCE = 300.0
#: What the SDRAM's register says while firmware starts it, and when its controller has it; cycles between two looks.
_STARTS, _STRETCH = (0xE, 1), 10_000


class Line:
    """A simulated serial line as pyserial has one; it runs the simulation while an answer is waited for."""

    def __init__(self, model: Soc) -> None:
        self.model = model

    def write(self, data: list[int]) -> int:
        """Send bytes; how many."""
        self.model.give(bytes(data))
        return len(data)

    def read(self, size: int) -> bytes:
        """Wait for bytes; BusError as of :meth:`Soc.answer`."""
        return self.model.answer(size, LIMIT)

    def inWaiting(self) -> int:    # pyserial's name
        """Bytes that nobody has asked for: none."""
        return 0

    def open(self) -> None:
        """It is open."""

    close = open


@contextmanager
def served(model: Soc, control: int) -> Iterator[int]:
    """The port of a litex_server before a system, whose SDRAM has been started: ``control`` is its register for that.

    Raises
    ------
    BusError
        If firmware does not start it.
    """
    from litex.tools.remote.comm_uart import CommUART

    class Comm(CommUART):    # LiteX looks at the name
        def __init__(self) -> None:
            self.port, self.debug, self.addr_bytes = Line(model), False, 4

    Comm.__name__ = "CommUART"
    comm = Comm()
    model.idle(_STRETCH)    # what comes during its reset is lost
    for wanted in _STARTS:
        while comm.read(control) != wanted:
            model.idle(_STRETCH)
            if model.cycle > LIMIT:
                raise BusError(f"Cycle {model.cycle}: the firmware has not started the SDRAM")
    with serving(comm) as port:
        yield port


@contextmanager
def serving(comm: Any) -> Iterator[int]:
    """The port of a litex_server for one client at a time, whose way to the board is ``comm``."""
    from litex.tools import litex_server

    litex_server.print = lambda *_: None    # it tells of all that comes and goes
    server = litex_server.RemoteServer(comm, "localhost", 0)
    server.open()

    def serve():
        with suppress(OSError, BusError):    # at the end; and the host sees that the server is gone
            server._serve_thread()
    threading.Thread(target=serve, daemon=True).start()
    with closing(server.socket) as listens:
        yield listens.getsockname()[1]
        listens.shutdown(socket.SHUT_RDWR)    # else who waits in accept() takes one more


def recognise(program: Program, images: np.ndarray, *, level: str = "-O3", progress: Progress | None = None) -> Ran:
    """Let a host recognise images with a network of one input and one output, in a system as of :mod:`.soc`.

    Firmware starts the SDRAM alone. What the host says and hears goes over the bridge.

    Raises
    ------
    BuildError, EmitError, BusError, DeviceError, ConnectionError
    """
    folder = emit_soc(program.accelerator)
    header = folder / "hbfp_soc.h"
    control = int(re.findall(r"_CONTROL (0x\w+)u", header.read_text())[0], 16)
    names = {tensor.role: name for name, tensor in program.tensors.items()}
    with Soc(folder, rom_of(program.accelerator, folder), np.zeros(ROW, np.uint8), level=level,
             progress=progress) as model:
        with served(model, control) as port, Device(Litex(*places(header), port=port, patience=PATIENCE, pause=0),
                                                    program.accelerator) as device:
            loaded = device.load(program)
            loaded.write(names["input"], images)
            loaded.run()
            scores = loaded.read(names["output"])
        return Ran("", 0, model.cycle, scores)
