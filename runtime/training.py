"""Steps of training on a device, by the C library."""

import ctypes
from collections.abc import Sequence

import numpy as np

from . import library
from .device import PATIENCE, Ended, Loaded


class Training:
    """A program whose runs are steps: of two places in DRAM for batch, parameters and state, each reads one and writes
    the other, in turns.

    Parameters
    ----------
    loaded : Loaded
        The program of a step.
    place : range
        The first place: bytes from where the program's data begin; the second follows.
    """

    def __init__(self, loaded: Loaded, place: range) -> None:
        self.loaded = loaded
        self._training = library.Training(ctypes.pointer(loaded._program), place.start, len(place), 0)

    @property
    def done(self) -> int:
        """Steps that have ended well."""
        return self._training.step

    def further(self, name: str) -> int:
        """How far behind its address a tensor lies in the next step, modulo 2^32."""
        further = ctypes.c_uint32()
        self.loaded.device.call("hbfp_further", ctypes.byref(self._training), name.encode(), ctypes.byref(further))
        return further.value

    def write(self, name: str, values: np.ndarray) -> None:
        """Write a tensor where the next step reads it, such as a batch."""
        self.loaded.write(name, values, self.further(name))

    def read(self, name: str) -> np.ndarray:
        """A tensor where the next step reads it: a parameter as the last step has left it."""
        return self.loaded.read(name, self.further(name))

    def step(self, told: Sequence[int] = (), seed: int = 0, patience: int = PATIENCE) -> Ended:
        """Do a step that is told the optimiser's numbers, as bits of FP32; one that fails is done again."""
        self.loaded.tell((), seed)
        numbers = (ctypes.c_uint32 * len(told))(*told)
        return self.loaded.ended(lambda: self.loaded.device.call(
            "hbfp_step", ctypes.byref(self._training), numbers, len(told), patience))
