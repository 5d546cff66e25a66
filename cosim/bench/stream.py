"""Streams in cocotb: drivers with pauses, and monitors that enforce the rules.

The rules: a transfer happens in a cycle with valid and ready; an offered payload stays, unchanged, until it
is taken; valid does not wait for ready (the benches stall without end to see it); nothing comes after reset
unless asked for. Drivers and monitors act right after the rising edge, on the values before it.
"""

from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import numpy as np
from cocotb.triggers import RisingEdge

from ..manifest import Stream

#: A module as cocotb has it: its parts follow from the Verilog.
Dut = Any


class Handle:
    """The three ports of one stream."""

    def __init__(self, dut: Dut, name: str) -> None:
        self.name = name
        self.payload, self.valid, self.ready = (getattr(dut, f"{name}__{part}")
                                                for part in ("payload", "valid", "ready"))


class Pauses:
    """Random pauses: a share of the cycles, about ``burst`` cycles long each."""

    def __init__(self, rng: Random, share: float = 0.0, burst: float = 1) -> None:
        self.rng, self.share, self.burst, self.active = rng, share, burst, False

    def __call__(self) -> bool:
        """Whether this cycle pauses."""
        if not self.share:
            return False
        leave = 1 / self.burst
        enter = self.share * leave / (1 - self.share + self.share * leave)
        stays = self.active and self.rng.random() >= leave
        self.active = stays or self.rng.random() < enter
        return self.active


class Source:
    """Drives an input stream from a queue.

    Parameters
    ----------
    dut : cocotb handle
        Has ``clk`` and the stream.
    stream : cosim.manifest.Stream
        Which stream.
    pause : Pauses
        Idle pattern.
    """

    def __init__(self, dut: Dut, stream: Stream, pause: Pauses) -> None:
        self.dut, self.stream, self.pause = dut, stream, pause
        self.handle, self.offered = Handle(dut, stream.name), False
        self.queue: deque[int] = deque()
        self.handle.valid.value = 0

    def send(self, payloads: Iterable[np.ndarray]) -> None:
        """Queue payloads, uint8 (beats, stride)."""
        self.queue.extend(int.from_bytes(bytes(row), "little") for row in payloads)

    def clear(self) -> None:
        """Forget what is queued; for a reset."""
        self.queue.clear()
        self.offered = False
        self.handle.valid.value = 0

    def step(self) -> None:
        """One cycle, right after the edge."""
        handle = self.handle
        if self.offered and handle.ready.value:
            self.offered = False
        if not self.offered:
            self.offered = bool(self.queue) and not self.pause()
            handle.valid.value = int(self.offered)
            # Between offers the payload is noise: the core must not look at it.
            handle.payload.value = self.queue.popleft() if self.offered else self.pause.rng.getrandbits(
                self.stream.width)


class Sink:
    """Drives ready of an output stream, with a stall pattern."""

    def __init__(self, dut: Dut, stream: Stream, pause: Callable[[], bool]) -> None:
        self.handle, self.pause = Handle(dut, stream.name), pause
        self.handle.ready.value = 0

    def step(self) -> None:
        """One cycle, right after the edge."""
        self.handle.ready.value = int(not self.pause())

    def clear(self) -> None:
        """Stop taking; for a reset."""
        self.handle.ready.value = 0


class Monitor:
    """Watches one stream, enforces its rules and hands each payload on.

    Parameters
    ----------
    dut : cocotb handle
        Has the stream.
    stream : cosim.manifest.Stream
        Which stream.
    taken : callable
        Called with each transferred payload, an int.
    """

    def __init__(self, dut: Dut, stream: Stream, taken: Callable[[int], object]) -> None:
        self.handle, self.taken = Handle(dut, stream.name), taken
        self.held: int | None = None
        self.transfers = self.stalls = self.idles = 0

    def clear(self) -> None:
        """Forget a held payload; for a reset, which may withdraw it."""
        self.held = None

    def step(self) -> None:
        """One cycle, right after the edge."""
        handle = self.handle
        valid, ready = handle.valid.value, handle.ready.value
        assert valid.is_resolvable and ready.is_resolvable, f"{handle.name}: valid {valid}, ready {ready}"
        word = int(handle.payload.value) if valid else None
        assert self.held is None or word == self.held, f"{handle.name}: {self.held:x} withdrawn for {word}"
        self.held = None
        if word is None:
            self.idles += 1
        elif ready:
            self.transfers += 1
            self.taken(word)
        else:
            self.stalls += 1
            self.held = word


async def until(dut, monitors, done, patience):
    """Wait until ``done()``; AssertionError, with the streams that stand still, after ``patience`` cycles of nothing.

    Parameters
    ----------
    dut : cocotb handle
        Has ``clk``.
    monitors : dict
        Stream name -> :class:`Monitor`.
    done : callable
        Whether what is waited for has happened.
    patience : int
        Cycles without a transfer on any stream that are too many.
    """
    moved, quiet = -1, 0
    while not done():
        await RisingEdge(dut.clk)
        total = sum(monitor.transfers for monitor in monitors.values())
        quiet = quiet + 1 if total == moved else 0
        moved = total
        assert quiet < patience, f"no transfer for {patience} cycles: {', '.join(_states(monitors))}"


def _states(monitors):
    """What each stream waits for."""
    for name, monitor in monitors.items():
        valid, ready = monitor.handle.valid.value, monitor.handle.ready.value
        if not (valid and ready):
            yield f"{name} is {'not taken' if valid else 'not offered' if ready else 'idle'}"


async def clocked(dut, *parts):
    """Step all parts after every rising edge, for ever; monitors must come before drivers."""
    while True:
        await RisingEdge(dut.clk)
        for part in parts:
            part.step()
