"""Memories of the machine, with what of them is defined; nothing has an initial value."""

from collections.abc import Callable
from copy import copy

import numpy as np

from hbfp.isa.registers import Cause
from hbfp.system import Accelerator, Share

from .errors import Fault, MachineError

#: Addresses of V, X, W and P are computed modulo this, of elements of V modulo 16 times this.
WRAP = 1 << 18
#: The NaN that undefined words have, so that a comparison shows them.
UNDEFINED = np.uint32(0x7FC0DEAD)


class Memory:
    """Words that are checked when they are used.

    Parameters
    ----------
    name : str
        For messages.
    words : int
        How many words it has.
    parts : int
        Parts of a word that can be written alone: lanes of V, else 1.

    Attributes
    ----------
    defined : bool array, (words, parts)
        What has been written.
    watch : callable or None
        Called with (memory, addresses, whether it is a write) at each access.
    """

    #: What an address is multiplied by in messages.
    scale = 1

    def __init__(self, name: str, words: int, parts: int = 1) -> None:
        self.name, self.words = name, words
        self.defined = np.zeros((words, parts), bool)
        self.watch: Callable[[Memory, np.ndarray, bool], None] | None = None

    def part(self, start: int, stop: int) -> "Memory":
        """The words from ``start`` to ``stop - 1`` as a memory of their own; what is defined stays common."""
        found = Memory(self.name, stop - start)
        found.defined = self.defined[start:stop]
        return found

    def at(self, address: int) -> str:
        """An address as messages name it."""
        return f"{self.name} at {int(address) * self.scale}"

    def address(self, addresses: np.ndarray) -> np.ndarray:
        """Addresses modulo :data:`WRAP`; a Fault if one lies beyond the memory."""
        return self._inside(np.asarray(addresses) % WRAP)

    def _inside(self, addresses):
        if addresses.size and (last := int(addresses.max())) >= self.words:
            raise Fault(Cause.ADDRESS, f"address {last} must be below the {self.words} of {self.name}")
        return addresses

    def reads(self, addresses: np.ndarray, parts: slice = slice(None)) -> np.ndarray:
        """Addresses of words that are read, of which ``parts`` are used; MachineError if one of these is undefined."""
        addresses = self.address(addresses)
        missing = ~self.defined[addresses, parts].all(-1)
        if missing.any():
            raise MachineError(f"{self.at(addresses[missing].flat[0])} is read, which nothing has written")
        self._watched(addresses, False)
        return addresses

    def writes(self, addresses: np.ndarray) -> np.ndarray:
        """Addresses of whole words that are written; MachineError if one is written twice."""
        addresses = self.address(addresses)
        once(self, addresses)
        self.defined[addresses] = True
        self._watched(addresses, True)
        return addresses

    def write_parts(self, addresses: np.ndarray, parts: np.ndarray) -> None:
        """Note that one part of each word is written, each once; a Fault if a word lies beyond the memory."""
        addresses = self._inside(addresses)
        every = np.sort(addresses * self.defined.shape[1] + parts, axis=None)
        if (twice := every[1:][every[1:] == every[:-1]]).size:
            raise MachineError(f"{self.at(twice[0] // self.defined.shape[1])} is written more than once by one "
                               "instruction, in one lane")
        self.defined[addresses, parts] = True
        self._watched(addresses, True)

    def _watched(self, addresses, write):
        if self.watch is not None:
            self.watch(self, np.unique(addresses), write)


def once(memory: Memory, addresses: np.ndarray) -> None:
    """Raise MachineError if an instruction writes an address more than once."""
    ordered = np.sort(addresses, axis=None)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if twice.size:
        raise MachineError(f"{memory.at(twice[0])} is written more than once by one instruction")


class Memories:
    """V, X, W and P of an accelerator.

    Attributes
    ----------
    v : Memory
        ``v_data`` (words, lanes), uint32.
    x : Memory
        Words are pieces of a row of the core, or all of it. ``x_data`` (pieces, lanes), ``x_exponent`` and
        ``x_invalid`` (pieces, segments).
    w : Memory
        Words are rows. ``w_data`` (rows, columns), ``w_exponent`` and ``w_invalid`` (segments of rows, columns);
        ``w_index`` (rows, columns), -1 where weights are not sparse.
    p : Memory
        ``p_data`` (words,), uint64.
    """

    def __init__(self, accelerator: Accelerator) -> None:
        core = accelerator.core
        self.v = Memory("V", accelerator.v_words, accelerator.lanes)
        self.x, self.w = Memory("X", accelerator.x_pieces), Memory("W", accelerator.w_words)
        self.p = Memory("P", accelerator.p_words)
        segments = accelerator.w_words // core.height, accelerator.lanes
        self.v_data = np.full((accelerator.v_words, accelerator.lanes), UNDEFINED, np.uint32)
        self.x_data = np.zeros((accelerator.x_pieces, accelerator.piece), np.int32)
        self.x_exponent = np.zeros((accelerator.x_pieces, accelerator.piece_segments), np.int32)
        self.x_invalid = np.zeros((accelerator.x_pieces, accelerator.piece_segments), bool)
        self.w_data = np.zeros((accelerator.w_words, accelerator.lanes), np.int32)
        self.w_exponent = np.zeros(segments, np.int32)
        self.w_invalid = np.zeros(segments, np.bool_)
        self.w_index = np.full_like(self.w_data, -1)
        self.p_data = np.zeros(accelerator.p_words, np.uint64)
        self.all = (self.v, self.x, self.w, self.p)

    def share(self, accelerator: Accelerator, share: Share) -> "Memories":
        """A context's share of each memory: views, whose words are those of these memories."""
        found = copy(self)
        for name, (start, stop) in share.words(accelerator).items():
            setattr(found, name, getattr(self, name).part(start, stop))
            for array in ("data", "exponent", "invalid", "index"):
                if (whole := getattr(self, f"{name}_{array}", None)) is not None:
                    each = getattr(self, name).words // len(whole)    # addresses of an element
                    setattr(found, f"{name}_{array}", whole[start // each:stop // each])
        found.all = (found.v, found.x, found.w, found.p)
        return found
