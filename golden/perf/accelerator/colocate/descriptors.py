"""A ring of descriptors in front of the dispatcher, cycle by cycle: when each is read, and what comes of it.

Written from docs/design/13-dispatched.md; the hardware is ``rtl/accelerator/ring.py`` and ``reader.py``, the DRAM that
of ``cosim/accelerator/dram.h``, which nobody else uses while a ring is read.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from hbfp.isa.descriptors import CHUNK, Refusal
from hbfp.system import Accelerator

from ...dispatch.twin import Request

#: Cycles behind a job in which the next does not begin.
GAP = 2


@dataclass(frozen=True)
class Reads:
    """How descriptors are read.

    Attributes
    ----------
    latency, bandwidth, beat : int
        Of the DRAM, and bytes of a beat, which has one descriptor.
    job, burst, reads : int
        Descriptors that a job has at most, beats of its longest burst, bursts under way at most.
    """
    latency: int
    bandwidth: int
    beat: int
    job: int
    burst: int
    reads: int

    @classmethod
    def of(cls, accelerator: Accelerator, latency: int, bandwidth: int) -> "Reads":
        """Those of an accelerator with a ring, and of a DRAM."""
        return cls(latency, bandwidth, accelerator.beat, accelerator.requests,
                   min(CHUNK, 1 << accelerator.burst.bit_length() - 1), accelerator.reads)

    @property
    def longest(self) -> int:
        """Cycles by which jobs put off a start at the most: a whole one, and one that begins as the dispatcher counts.
        """
        bursts, beat = -(-self.job // self.burst) + 1, -(-self.beat // self.bandwidth)
        alone = bursts * self.latency if self.reads == 1 else self.latency
        return 2 * (alone + self.job * beat + bursts + 4 + GAP)


@dataclass
class Ring:
    """What is read, from reset on.

    Attributes
    ----------
    reads : Reads
    places : int
        Of the dispatcher's queue.
    kinds : sequence of (Request, Refusal or None)
        The descriptor of each number, and why it is refused, if it is.
    tail : int
        Number of the descriptor behind the last that is there.
    owed : int
        Requests and completions that are held.
    head : int
        Number of the next that is given on.
    stamps : deque of int
        From when on those count that were stamped and not given on, from the next on.
    """
    reads: Reads
    places: int
    kinds: Sequence[tuple[Request, Refusal | None]]
    tail: int = 0
    owed: int = 0
    head: int = 0
    stamps: deque[int] = field(default_factory=deque)
    _asked: int = 0
    _to_ask: int = 0
    _to_come: int = 0
    _came: bool = False
    _gap: int = 0
    _offered: int = 0
    _bursts: deque[list[int]] = field(default_factory=deque)    # beats, and the cycle of the first
    _credit: int = 0
    _seen: int = -(1 << 60)    # cycle of the credit
    _ended: bool = False       # a burst ends in this cycle

    @property
    def busy(self) -> bool:
        """A job is under way."""
        return self._to_come > 0 or self._came

    @property
    def job(self) -> int:
        """Descriptors of the next job."""
        return min(len(self.stamps), self.reads.job)

    @property
    def stamping(self) -> bool:
        """Whether one is stamped in this cycle: there is one, and room for it."""
        return len(self.stamps) < min(self.tail - self.head, self.places - self.owed)

    @property
    def due(self) -> bool:
        """Whether a job is to begin."""
        return not self.busy and not self._gap and not self.stamping and self.job > 0

    @property
    def holds(self) -> bool:
        """Whether the dispatcher may choose nothing."""
        return self.due or self.busy

    @property
    def still(self) -> bool:
        """Whether nothing changes but by the tail and by room."""
        return not self.busy and not self._gap and not self.stamping

    @property
    def given(self) -> tuple[Request, Refusal | None] | None:
        """The descriptor that is given on, or refused, in this cycle."""
        return self.kinds[self.head] if self._came else None

    def step(self, now: int, begins: bool) -> None:
        """To the next cycle; ``begins``: the machine is free, and nothing starts."""
        reads, job, begins = self.reads, self.job, begins and self.due
        if self.stamping:
            self.stamps.append(now)
        arrives = self._beat(now)
        if self._gap:
            self._gap -= 1
        if self._came:
            self.head += 1
            self.stamps.popleft()
            if not self._to_come:
                self._gap = GAP
        self._came = arrives
        self._to_come -= arrives
        room = len(self._bursts) + (self._offered > 0) + self._ended < reads.reads
        if self._offered:
            self._bursts.append([self._offered, now + reads.latency])
            self._offered = 0
        if self._to_ask and room:
            beats = min(self._to_ask, reads.burst - self._asked % reads.burst)
            self._offered, self._to_ask, self._asked = beats, self._to_ask - beats, self._asked + beats
        if begins:
            self._to_ask = self._to_come = job

    def _beat(self, now):
        """Whether a beat comes in this cycle."""
        reads = self.reads
        self._ended = False
        more = reads.bandwidth * (now - self._seen)
        self._credit, self._seen = min(self._credit + more, reads.bandwidth + reads.beat - 1), now
        if not self._bursts or self._bursts[0][1] > now or self._credit < reads.beat:
            return False
        self._credit -= reads.beat
        self._bursts[0][0] -= 1
        if not self._bursts[0][0]:
            self._bursts.popleft()
            self._ended = True
        return True
