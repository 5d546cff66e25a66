"""Requests as descriptors of a ring in DRAM, some of them corrupt: a host that lays them, and what is expected."""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from hbfp.golden.perf.accelerator.colocate.descriptors import Reads
from hbfp.golden.perf.dispatch.twin import Request
from hbfp.golden.spec.descriptors import Window, judge, pack
from hbfp.isa.descriptors import BYTES, CHECK, LEAST, MOST, Refusal

from ..accelerator.descriptors import Ring
from .clients import Clients
from .verilog import ANSWERED, Host

#: Places of a ring, if they are enough.
PLACES = 64
#: What a corrupt descriptor may be, that is laid in DRAM.
_KINDS = Refusal.CHECK, Refusal.RESERVED, Refusal.MISALIGNED, Refusal.OUTSIDE


@dataclass(frozen=True)
class Asked:
    """How requests come.

    Attributes
    ----------
    reads : Reads
    kinds : tuple of (Refusal or None)
        Of each request, why its descriptor is refused.
    seed : int
        Of what is corrupt.
    log : int
        Logarithm of the ring's places.
    """
    reads: Reads
    kinds: tuple[Refusal | None, ...]
    seed: int = 0
    log: int = PLACES.bit_length() - 1

    def __post_init__(self) -> None:
        assert LEAST <= self.log <= MOST

    @property
    def bytes(self) -> int:
        """Of the ring."""
        return self.reads.beat << self.log


def drawn(reads: Reads, count: int, fraction: float, seed: int = 0) -> Asked:
    """So many requests, of which a fraction, at random places, is corrupt in one way or another."""
    rng = np.random.default_rng(seed)
    kinds: list[Refusal | None] = [None] * count
    for place in rng.choice(count, round(fraction * count), replace=False).tolist():
        kinds[place] = _KINDS[int(rng.integers(len(_KINDS)))]
    return Asked(reads, tuple(kinds), seed)


def spoiled(data: bytes, number: int, kind: Refusal, window: Window, seed: int = 0) -> bytes:
    """A good descriptor made one that is refused for a reason; its tag stays."""
    rng = np.random.default_rng((seed, number))
    into, out, tag, last = struct.unpack("<4I", data)
    if kind is Refusal.CHECK:      # one bit of input, output or check is turned round
        bit = int(rng.integers(64 + CHECK))
        whole = int.from_bytes(data, "little") ^ 1 << (bit if bit < 64 else bit + 32)
        return whole.to_bytes(BYTES, "little")
    if kind is Refusal.RESERVED:
        return struct.pack("<4I", into, out, tag, last ^ 1 << int(rng.integers(CHECK, 32)))
    wrong = 4 if kind is Refusal.MISALIGNED else window.last + window.beat * int(rng.integers(1, 99)) - into
    if kind is Refusal.OUTSIDE and window.first and rng.random() < 0.5:
        wrong = int(rng.integers(window.first // window.beat)) * window.beat - into
    return pack((into + wrong, out, tag), number)


def window(clients: Clients) -> Window:
    """Places that requests of clients may have."""
    serving = clients.serving
    return Window(serving.addresses(0)[0], serving.addresses(clients.count - 1)[1],
                  serving.program.accelerator.beat)


class RingHost(Host):
    """A host that brings requests by descriptors; parameters as of :class:`Host`, and the ``asked``."""

    def __init__(self, *given: Any, asked: Asked) -> None:
        super().__init__(*given)
        self.asked, clients = asked, self.clients
        self.laid = Ring(self.device, self.site.ring, asked.log, window(clients), self._spoil)

    def _spoil(self, number, data):
        kind = self.asked.kinds[number]
        found = data if kind is None else spoiled(data, number, kind, self.laid.window, self.asked.seed)
        assert judge(found, number, self.laid.window) is kind
        return found

    def attach(self) -> None:
        """Say where programs and descriptors lie, and give the dispatcher the contexts."""
        super().attach()
        self.laid.open()

    def ask(self, request: int) -> bool:
        """Bring a request; whether there was a place in the ring."""
        if not self.laid.lay(Request(*self.clients.serving.addresses(request), request)):
            return False
        self.laid.tell()
        self.shown.told.append(self.device.cycle - ANSWERED - self.shown.offset)
        return True


def late(denied: dict[int, tuple[int, Refusal]], wanted: dict[int, tuple[int, Refusal]]) -> int:
    """Requests that were refused otherwise than wanted, in another cycle, or not."""
    return sum(denied.get(tag) != wanted.get(tag) for tag in denied.keys() | wanted.keys())

