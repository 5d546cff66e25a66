"""DRAM from the base register up to the limit, in words of 4 bytes."""

from collections.abc import Iterable

import numpy as np

from hbfp.isa.registers import Cause
from hbfp.program import Region

from .errors import Fault, MachineError
from .memories import Memory

#: Addresses are computed modulo this.
WRAP = 1 << 32


class Dram(Memory):
    """Bytes that loads and stores reach; transfers are whole words of 4 bytes.

    Parameters
    ----------
    limit : int
        Bytes from the base register on.
    regions : iterable of Region
        What lies there at first; the rest is undefined.

    Attributes
    ----------
    data : uint32 array
        The words.
    """

    scale = 4

    def __init__(self, limit: int, regions: Iterable[Region] = ()) -> None:
        super().__init__("DRAM", -(-limit // 4))
        self.limit = limit
        self.data = np.zeros(self.words, np.uint32)
        for region in regions:
            self.put(region.address, region.data)

    def put(self, address: int, data: bytes) -> None:
        """Write bytes from outside; a word of which a part is written is defined."""
        self.data.view(np.uint8)[address:address + len(data)] = np.frombuffer(data, np.uint8)
        self.defined[address // 4:-(-(address + len(data)) // 4)] = True

    def get(self, address: int, size: int) -> bytes:
        """Read bytes from outside; MachineError if nothing has written one."""
        known = self.defined[address // 4:-(-(address + size) // 4), 0]
        if not known.all():
            raise MachineError(f"{self.at(address // 4 + int(np.argmin(known)))} is read, which nothing has written")
        return self.data.view(np.uint8)[address:address + size].tobytes()

    def words_at(self, addresses: np.ndarray, size: int, multiple: int) -> np.ndarray:
        """Numbers of the words of pieces of ``size`` bytes at byte ``addresses``; a last axis has the words of a piece.

        A Fault if an address is no multiple of ``multiple`` bytes, or a piece reaches beyond the limit.
        """
        addresses = np.asarray(addresses) % WRAP
        if (wrong := addresses[addresses % multiple != 0]).size:
            raise Fault(Cause.MISALIGNED, f"DRAM address {int(wrong.flat[0])} must be a multiple of {multiple}")
        if (beyond := addresses[addresses + size > self.limit]).size:
            raise Fault(Cause.ADDRESS, f"DRAM address {int(beyond.flat[0])} and the {size} bytes from it must lie "
                        f"below the limit of {self.limit}")
        return addresses[..., None] // 4 + np.arange(size // 4)

    def address(self, addresses: np.ndarray) -> np.ndarray:
        """The numbers of words as they are: :meth:`words_at` has checked them."""
        return addresses
