"""Both networks on the Verilated accelerator behind its dispatcher: a host that brings requests when they come, rings a
doorbell for each step of the training, and takes completions.
"""

from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

from hbfp.golden.perf.dispatch.twin import Completion, Request
from hbfp.golden.spec.dispatch import Policy
from hbfp.isa.descriptors import Refusal
from hbfp.isa.registers import Cause
from hbfp.program import Program

from ..accelerator.beside import SHARES_OF_BOTH
from ..accelerator.device import Device
from ..accelerator.dispatched import answered, ask, attach
from ..accelerator.host import PAGE, UNDEFINED, finish, prepare, put, read, room, write
from ..accelerator.placed import Placed
from ..bench.comparison import Comparison
from .clients import Clients
from .trainer import Trainer

#: Of a status, and of ``interrupt_status``.
_ERROR, _ENDED = 2, 3
#: Cycles from the one that a register shows, or in which it is written, to the one behind the answer.
ANSWERED = 2


class Site:
    """DRAM of both programs: the serving one's with all requests, behind it the training one's.

    Parameters
    ----------
    clients : Clients
    train : Program or None
    ring : int
        Bytes of a ring of descriptors behind both, a power of two.

    Attributes
    ----------
    base, second, ring : int
        Where the data of the first begin, the second, and the ring.
    training : Placed or None
        The second.
    """

    def __init__(self, clients: Clients, train: Program | None, ring: int = 0) -> None:
        whole = clients.program([0])
        end, self.base = room(whole)
        self.second = -(-end // PAGE) * PAGE
        self.ring = end = self.second + (room(train)[0] if train else 0)
        if ring:
            self.ring = -(-end // ring) * ring
        self.memory = np.full(self.ring + ring, UNDEFINED, np.uint8)
        put(whole, self.memory)
        clients.put(self.put)
        self.training = None
        if train:
            put(train, self.memory[self.second:])
            self.training = Placed(self.memory, train, self.second + room(train)[1], self.second)

    def get(self, address: int, size: int) -> bytes:
        """Bytes of context 0's DRAM."""
        return self.memory[self.base + address:][:size].tobytes()

    def put(self, address: int, data: bytes) -> None:
        """Write bytes of context 0's DRAM."""
        self.memory[self.base + address:][:len(data)] = np.frombuffer(data, np.uint8)


@dataclass
class Shown:
    """What the device showed.

    Attributes
    ----------
    completions : dict of int to Completion
        Request -> its times, as the device stamped them.
    failed : list of int
        Requests whose batch ended with an error.
    refused : int
        How often a request was refused, and brought again.
    rung : list of int
        Cycles, on the dispatcher's clock, in which doorbells of the training were taken.
    cause : Cause or None
        Why the training stopped, if it did.
    told, taken : list of int
        With a ring, cycles in which the host wrote of each request that it is there, and took each completion.
    denied : dict of int to (int, Refusal)
        Request whose descriptor was refused -> when, and why.
    answers : Comparison
    events : ndarray
        As of :meth:`~cosim.accelerator.device.Device.events`.
    offset : int
        From the dispatcher's clock to the cycles of the events.
    """
    completions: dict[int, Completion] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)
    refused: int = 0
    rung: list[int] = field(default_factory=list)
    cause: Cause | None = None
    answers: Comparison = field(default_factory=Comparison)
    told: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    denied: dict[int, tuple[int, Refusal]] = field(default_factory=dict)
    events: np.ndarray | None = None
    offset: int = 0

    @property
    def done(self) -> int:
        """Requests that are answered or refused."""
        return len(self.completions) + len(self.denied)


class Host:
    """A host with its device, whose dispatcher has both contexts.

    Parameters
    ----------
    device : Device
    site : Site
    clients : Clients
    trainer : Trainer or None
    policy : Policy
    """

    def __init__(self, device: Device, site: Site, clients: Clients, trainer: Trainer | None, policy: Policy) -> None:
        self.device, self.site, self.clients, self.trainer, self.policy = device, site, clients, trainer, policy
        self.shown = Shown()

    def run(self, arrivals: np.ndarray) -> Shown:
        """Bring each request in its cycle, or as soon as the host has time; go on until all are answered, and the step
        that is under way has ended.

        Raises
        ------
        BusError
            If a rule of AXI is broken, or nothing goes on any more.
        """
        device, shown = self.device, self.shown
        self.attach()
        if self.trainer is not None:
            self.ring()
        device.record()
        begin, waiting = device.cycle, deque(enumerate(arrivals.tolist()))
        while shown.done < len(arrivals):
            if waiting:
                left = begin + waiting[0][1] - device.cycle
                if left <= 0:
                    if self.ask(waiting[0][0]):
                        waiting.popleft()
                    else:
                        shown.refused += 1
                        self.look()
                elif device.run(left):
                    self.look()
            else:
                finish(device)
                self.look()
        while self.trainer is not None and self.trainer.under_way and shown.cause is None:
            finish(device)
            self.look(further=False)
        shown.events = device.events()
        if self.trainer is not None and shown.cause is None:
            self.trainer.finish()
        return shown

    def attach(self) -> None:
        """Say where programs lie, and give the dispatcher the contexts."""
        device = self.device
        prepare(device, self.clients.program([0]), 0, share=SHARES_OF_BOTH[0])
        write(device, "interrupt_enable", 0)             # of context 0: completions tell
        attach(device, self.policy if self.trainer is not None else replace(self.policy, training=False))
        write(device, "dispatch_enable", 1)
        now = read(device, "now")
        self.shown.offset = device.cycle - ANSWERED - now
        if self.trainer is not None:
            prepare(device, self.trainer.made.program, 1, address=self.site.second, share=SHARES_OF_BOTH[1])

    def ring(self) -> None:
        """Let the next step of the training wait."""
        assert self.trainer is not None
        program = self.trainer.begin()
        for name, value in program.registers().items():
            write(self.device, name, value, 1)
        write(self.device, "control", 1, 1)
        self.shown.rung.append(self.device.cycle - ANSWERED - self.shown.offset)

    def ask(self, request: int) -> bool:
        """Bring a request; whether there was room for it."""
        return ask(self.device, Request(*self.clients.serving.addresses(request), request))

    def look(self, further: bool = True) -> None:
        """Take completions, and go on with the training: with another step only if asked for one."""
        device, shown = self.device, self.shown
        for each in answered(device):
            tag = each.completion.tag
            shown.taken.append(each.taken - ANSWERED - shown.offset)
            if each.refusal is not None:
                shown.denied[tag] = each.completion.finished, each.refusal
                continue
            shown.completions[tag] = each.completion
            if each.failed:
                shown.failed.append(tag)
            else:
                shown.answers += self.clients.compare(self.site.get, [tag])
        if self.trainer is not None and self.trainer.under_way and read(device, "interrupt_status", 1):
            write(device, "interrupt_status", _ENDED, 1)
            if read(device, "status", 1) & 1 << _ERROR:
                shown.cause = Cause(read(device, "cause", 1))
                return
            self.trainer.end()
            if further and shown.done < self.clients.count:
                self.ring()
