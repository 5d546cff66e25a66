"""What memories have of DRAM: what one layer brought there, or stored from there, the next need not bring again.

A word of V has that of DRAM from a load or a store of whole words on until either is written. Parts of words are not
followed. X and W have what was converted until that is overwritten, or what it was converted from.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hbfp.isa.instructions import Memory, Opcode
from hbfp.system import Accelerator

from .schedule import Emission, Ring, Span

_NOTHING = -1


class Held:
    """For each word of V the address in DRAM, in bytes, of the word that it has, as far as that is known.

    Parameters
    ----------
    accelerator : Accelerator
    """

    def __init__(self, accelerator: Accelerator) -> None:
        self.beat = accelerator.beat
        self._has = np.full(accelerator.v_words, _NOTHING, np.int64)
        self._converted: dict[Any, tuple[Span, Span]] = {}

    def note(self, opcode: Opcode, values: Mapping[str, int], writes: Iterable[Span]) -> None:
        """Follow an instruction."""
        for span in writes:
            if self._converted and span.memory != "V":
                for key in [key for key, both in self._converted.items()
                            if _overlap(span, both[0]) or _overlap(span, both[1])]:
                    del self._converted[key]
            if span.memory == "V":
                self.forget(span)
            elif span.memory == "DRAM":
                self._has[(self._has > span.start - self.beat) & (self._has < span.stop)] = _NOTHING
        if opcode == Opcode.STORE or opcode == Opcode.LOAD and values.get("memory") == Memory.V:
            if not values.get("elements") and not values.get("request"):
                words, addresses = self._moved(values)
                self._has[words] = addresses

    def keep(self, key: Any, span: Span, source: Span) -> None:
        """A span of X or W has what was converted from bytes of DRAM, in a way that ``key`` says."""
        self._converted[key] = span, source

    def kept(self, key: Any) -> Span | None:
        """Where that is; None where it is not."""
        return self._converted[key][0] if key in self._converted else None

    def forget(self, span: Span) -> None:
        """Words of V have something else."""
        self._has[span.start:span.stop] = _NOTHING

    def forget_all(self) -> None:
        """Nothing is known of any word."""
        self._has[:] = _NOTHING
        self._converted.clear()

    def find(self, loads: Sequence[Emission], words: int, ring: Ring) -> Span | None:
        """Where in V are the words that loads would bring to addresses 0 to ``words - 1``; None: not as one piece.

        They are among those that a ring gives out.
        """
        if any(each.values.get("elements") for each in loads):
            return None
        offset = next((each.values["offset"] for each in reversed(loads) if not each.values["base"]), _NOTHING)
        places = np.flatnonzero(self._has[ring.start:max(ring.start, ring.stop - words + 1)] == offset).tolist()
        if not places or offset == _NOTHING:
            return None
        wanted = np.full(words, _NOTHING, np.int64)
        for each in loads:
            targets, addresses = self._moved(each.values)
            wanted[targets] = addresses
        if (wanted == _NOTHING).any():
            return None
        for start in places:
            if (self._has[ring.start + start:ring.start + start + words] == wanted).all():
                return Span("V", ring.start + start, ring.start + start + words)
        return None

    def _moved(self, values):
        """Words of V that a transfer of whole words moves, and their addresses in DRAM."""
        places = np.arange(values.get("count0", 1))
        words, addresses = places + values["base"], self.beat * places + values["offset"]
        for loop in (1, 2):
            if (size := values.get(f"count{loop}", 1)) > 1:
                places = np.arange(size)[:, None]
                words = (values.get(f"buffer{loop}", 0) * places + words).ravel()
                addresses = (values.get(f"dram{loop}", 0) * places + addresses).ravel()
        return words, addresses


def _overlap(one, other):
    return one.memory == other.memory and one.start < other.stop and other.start < one.stop
