"""The host of a ring of descriptors: it lays them in DRAM and says how many there are."""

from collections.abc import Callable

from hbfp.golden.perf.dispatch.twin import Request
from hbfp.golden.spec.descriptors import Window, pack
from hbfp.isa.descriptors import NUMBER

from .device import Device
from .host import halves, read, write


class Ring:
    """A ring of 2^log descriptors, each at the begin of a beat.

    Parameters
    ----------
    device : Device
    address : int
        A multiple of its bytes.
    log : int
    window : Window
        Places that requests may have.
    spoil : callable, optional
        From a descriptor's number and bytes to what is laid in DRAM.

    Attributes
    ----------
    tail : int
        Descriptors that were laid.
    """

    def __init__(self, device: Device, address: int, log: int, window: Window,
                 spoil: Callable[[int, bytes], bytes] = lambda number, data: data) -> None:
        self.device, self.address, self.log, self.window, self.spoil = device, address, log, window, spoil
        self.tail = self.head = 0

    def open(self) -> None:
        """Say where it is, and what requests may name."""
        for name, value in (halves(ring=self.device.first + self.address) | {
                "ring_first": self.window.first, "ring_last": self.window.last, "ring_tail": self.tail,
                "ring_size": self.log}).items():
            write(self.device, name, value)

    def place(self, number: int) -> int:
        """Address of the descriptor of a number."""
        return self.address + number % (1 << self.log) * self.window.beat

    def lay(self, request: Request) -> bool:
        """Lay a descriptor; whether there was a place."""
        if self.tail - self.head == 1 << self.log:
            self.head += (read(self.device, "ring_head") - self.head) % (1 << NUMBER)
            if self.tail - self.head == 1 << self.log:
                return False
        data = self.spoil(self.tail, pack(tuple(request), self.tail))
        self.device.memory[self.place(self.tail):][:len(data)] = bytearray(data)
        self.tail += 1
        return True

    def tell(self) -> None:
        """Let the device read all that are laid."""
        write(self.device, "ring_tail", self.tail % (1 << NUMBER))
