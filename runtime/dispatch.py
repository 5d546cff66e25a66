"""The dispatcher of a device, by the C library: what it may start, requests, and what became of them."""

import ctypes
from dataclasses import dataclass

from . import library
from .device import Device, DeviceError, Loaded


@dataclass(frozen=True)
class Policy:
    """What the dispatcher starts, and when; docs/dispatch.md.

    Attributes
    ----------
    batch : int
        Requests that make a batch due at once, and the most that it takes.
    timeout : int
        Cycles after which the oldest request makes a batch due.
    inference, training : bool
        Whether batches are started, and quanta of training.
    priority, closes : bool
        Whether a batch that is due goes first; whether one takes no requests that came later.
    share : int
        Sixteenths of the time that training has at most.
    patience : int
        Cycles after which a quantum that has not yielded is stopped; 0: never.
    """
    batch: int = 1
    timeout: int = 0
    inference: bool = True
    training: bool = False
    priority: bool = True
    closes: bool = False
    share: int = 16
    patience: int = 0


@dataclass(frozen=True)
class Completion:
    """A request that is done; times are cycles since reset.

    Attributes
    ----------
    failed : bool
        Whether its batch ended with an error.
    refused : int
        Why its descriptor was refused, or 0.
    """
    tag: int
    arrived: int
    started: int
    finished: int
    failed: bool
    refused: int


class Dispatcher:
    """The dispatcher of a device, which has its contexts from now on.

    Parameters
    ----------
    device : Device
    serving : Loaded
        The program of a batch, in context 0. That of training is started in context 1 as any other.
    policy : Policy

    Raises
    ------
    DeviceError
        If the policy is none.
    """

    def __init__(self, device: Device, serving: Loaded, policy: Policy) -> None:
        self.device, self._handle, self._ring = device, ctypes.byref(device._device), library.Ring()
        device.call("hbfp_prepare", serving.handle)
        device.call("hbfp_attach", self._handle, ctypes.byref(library.Policy(**{
            name: int(value) for name, value in vars(policy).items()})))

    def request(self, input: int, output: int, tag: int) -> bool:
        """Ask for an answer: places of both in bytes from where the serving program's data begin; whether there was
        room."""
        return self._asked("hbfp_request", self._handle, input, output, tag)

    def _asked(self, name, *arguments):
        """Whether there was room for what a function asks."""
        try:
            self.device.call(name, *arguments)
        except DeviceError as error:
            if error.name != "FULL":
                raise
            return False
        return True

    def ring(self, place: int, log: int, first: int = 0, last: int = 0xFFFFF000) -> None:
        """Take requests from a ring of 2^log descriptors in the memory, in place of :meth:`request`; their places must
        be from ``first`` to ``last``, multiples of a beat."""
        self.device.call("hbfp_ring", ctypes.byref(self._ring), self._handle, place, log, first, last)

    def lay(self, input: int, output: int, tag: int) -> bool:
        """Lay a request into the ring; whether there was a place."""
        return self._asked("hbfp_lay", ctypes.byref(self._ring), input, output, tag)

    def tell(self) -> None:
        """Let the device read all that were laid."""
        self.device.call("hbfp_tell", ctypes.byref(self._ring))

    def completions(self) -> list[Completion]:
        """Take all that are done."""
        found, one = list[Completion](), library.Completion()
        while True:
            try:
                self.device.call("hbfp_completion", self._handle, ctypes.byref(one))
            except DeviceError as error:
                if error.name != "EMPTY":
                    raise
                return found
            found.append(Completion(one.tag, one.arrived, one.started, one.finished, bool(one.failed), one.refused))

    def detach(self) -> None:
        """Let nothing be started any more; what is under way goes on to its end."""
        self.device.call("hbfp_detach", self._handle)
