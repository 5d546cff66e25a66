"""A board over LiteX's bridge: registers and DRAM by ``litex_server``, which is a master of the board's bus.

It speaks what litex.tools.litex_client speaks, whose reads give zeros where the connection breaks: here it is an error.
"""

import os
import re
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from hbfp.extras import lacking

#: Words of a burst. LiteX's bridge forgets one that takes longer than 100 ms: at 115200 baud these take 44.
BURST = 128
#: Port of litex_server, unless it was told another one.
PORT = 1234
#: Bytes of the SDRAM that firmware has for what it is told: the first page.
FIRMWARE = 4096


def places(header: str | os.PathLike[str]) -> tuple[int, int, int]:
    """Addresses of registers and memory, and its bytes, from the ``hbfp_soc.h`` of ``python -m gen soc``.

    The memory is what lies behind the page that the system's firmware reads; ValueError if the file is another one.
    """
    found = dict(re.findall(r"^#define HBFP_SOC_(\w+) (0x[0-9A-F]+)u$", Path(header).read_text(), re.MULTILINE))
    if not {"REGISTERS", "MEMORY", "MEMORY_BYTES"} <= found.keys():
        raise ValueError(f"{header} is no hbfp_soc.h of python -m gen soc")
    registers, memory, size = (int(found[name], 16) for name in ("REGISTERS", "MEMORY", "MEMORY_BYTES"))
    return registers, memory + FIRMWARE, size - FIRMWARE


class Litex:
    """Registers and DRAM of a system of LiteX, through a server that is connected to its bridge.

    There is no interrupt: the status is polled. What is written into the DRAM is written in bursts, of each of which
    the last word is read back.

    Parameters
    ----------
    registers, memory : int
        Addresses on the system's bus, of the registers and of the DRAM that programs may have.
    size : int
        Bytes of that DRAM.
    host, port
        Of ``litex_server``.
    address : int, optional
        Where the accelerator sees that DRAM, if not where the bus does.
    patience : float
        Seconds that the server has for a connection, and for an answer.
    pause : float
        Seconds between two looks at the status.

    Raises
    ------
    ModuleNotFoundError
        If LiteX is missing.
    ConnectionError
        If there is no server, as from every call once it is gone or does not answer; one line.
    """

    def __init__(self, registers: int, memory: int, size: int, host: str = "localhost", port: int = PORT, *,
                 address: int | None = None, patience: float = 5.0, pause: float = 0.001) -> None:
        if (line := lacking("litex")) is not None:
            raise ModuleNotFoundError(line, name="litex")
        from litex.tools.remote import etherbone

        self._etherbone, self._registers, self._memory = etherbone, registers, memory
        self.size, self.address, self.pause = size, memory if address is None else address, pause
        self._name, self._patience = f"litex_server at {host}:{port}", patience
        try:
            self._socket = socket.create_connection((host, port), patience)
        except OSError as error:
            raise ConnectionError(f"No {self._name}: {error}") from None
        try:
            said = self._socket.recv(128)    # name of its way to the board, and its own address
        except OSError:
            said = b""
        if not said.startswith(b"Comm") or said.startswith(b"CommPCIe"):    # over PCIe addresses are others
            self.close()
            raise ConnectionError(f"What answers at {host}:{port} is no litex_server of a serial line or Ethernet")

    def _exchange(self, reads: Sequence[int], address: int = 0, words: Sequence[int] = ()) -> list[int]:
        """Write words from an address on, then read those at others."""
        record, packet = self._etherbone.EtherboneRecord(), self._etherbone.EtherbonePacket()
        if words:
            record.writes = self._etherbone.EtherboneWrites(base_addr=address, datas=list(words))
        if reads:
            record.reads = self._etherbone.EtherboneReads(addrs=list(reads))
        packet.records = [record]
        packet.encode()
        both = self._etherbone.EtherboneIPC()
        try:
            both.send_packet(self._socket, packet)
            if not reads:
                return []
            if answer := both.receive_packet(self._socket, 4):
                packet = self._etherbone.EtherbonePacket(init=answer)
                packet.decode()
                if packet.records[0].wcount == len(reads):
                    return packet.records[0].writes.get_datas()
        except OSError:
            pass
        self.close()    # an answer that comes later would be taken for another one
        raise ConnectionError(f"{self._name} is gone, or has not answered for {self._patience:g} s")

    def read(self, address: int) -> int:
        """As of :class:`~runtime.transport.Transport`."""
        return self._exchange([self._registers + address])[0]

    def write(self, address: int, value: int) -> int:
        """As of :class:`~runtime.transport.Transport`."""
        self._exchange((), self._registers + address, [value])
        return 0

    def put(self, place: int, data: bytes) -> None:
        """As of :class:`~runtime.transport.Distant`.

        Raises
        ------
        OSError
            If the memory does not keep what is written.
        """
        first, end = place - place % 4, place + len(data)
        data = self.get(first, place - first) + data + self.get(end, -end % 4)
        words = np.frombuffer(data, "<u4").tolist()
        for at in range(0, len(words), BURST):
            burst, address = words[at:at + BURST], self._memory + first + 4 * at
            last = address + 4 * (len(burst) - 1)
            if (found := self._exchange([last], address, burst)[0]) != burst[-1]:
                raise OSError(f"The memory at 0x{last:x} has 0x{found:x}, where 0x{burst[-1]:x} was written")

    def get(self, place: int, size: int) -> bytes:
        """As of :class:`~runtime.transport.Distant`."""
        first, end = place - place % 4, place + size + -(place + size) % 4
        words = list[int]()
        for at in range(first, end if size else first, 4 * BURST):
            words += self._exchange(range(self._memory + at, self._memory + min(end, at + 4 * BURST), 4))
        return np.array(words, "<u4").tobytes()[place - first:place - first + size]

    def sleep(self) -> bool:
        """As of :class:`~runtime.transport.Transport`: a while, as nothing tells of an interrupt."""
        time.sleep(self.pause)
        return False

    def close(self) -> None:
        """Let go of the server."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
