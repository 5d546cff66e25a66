"""A serial line of LiteX's server that leads to an accelerator of this process."""

import numpy as np

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
