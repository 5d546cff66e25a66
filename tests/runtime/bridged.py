"""A server of LiteX whose serial line leads to an accelerator of this process."""

import socket
import threading
from contextlib import closing, contextmanager, suppress

import numpy as np
from litex.tools.litex_server import RemoteServer

REGISTERS, MEMORY = 0x9000_0000, 0x4000_1000


class CommUART:
    """What litex_server has of a serial line: registers of a transport, its memory, and ones where nothing is.

    Attributes
    ----------
    bursts : list
        Of each transfer: "read" or "write", its address and its words.
    """

    def __init__(self, way):
        self.way, self.bursts, self.stuck = way, [], False

    def open(self):
        pass

    close = open

    def _words(self, address):
        """The memory's words from an address on, or None."""
        place = address - MEMORY
        return self.way.memory[place:].view(np.uint32) if 0 <= place < len(self.way.memory) else None

    def read(self, address, length=None, burst="incr"):
        assert burst == "incr"
        self.bursts.append(("read", address, length))
        if REGISTERS <= address < REGISTERS + 4096:
            return [self.way.read(address - REGISTERS + 4 * n) for n in range(length)]
        words = self._words(address)
        return [0xFFFFFFFF] * length if words is None else words[:length].tolist()

    def write(self, address, data, burst="incr"):
        self.bursts.append(("write", address, len(data)))
        if REGISTERS <= address < REGISTERS + 4096:
            for n, value in enumerate(data):
                self.way.write(address - REGISTERS + 4 * n, value)
        elif (words := self._words(address)) is not None and not self.stuck:
            words[:len(data)] = data


@contextmanager
def served(comm):
    """The port of a server for one client at a time."""
    server = RemoteServer(comm, "localhost", 0)
    server.open()

    def serve():
        with suppress(OSError):    # at the end, when nothing listens any more
            server._serve_thread()
    threading.Thread(target=serve, daemon=True).start()
    with closing(server.socket) as listens:
        yield listens.getsockname()[1]
        listens.shutdown(socket.SHUT_RDWR)    # else who waits in accept() takes one more
