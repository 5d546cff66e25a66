# amaranth: UnusedElaboratable=no
"""A ring of descriptors at the bus: what is read, given on and refused, and when, against the models' ring.

Covers: hbfp/isa/descriptors.py.
"""

import random

import pytest
from amaranth import Module
from amaranth.lib.wiring import Component, In, Out, connect
from amaranth.sim import Simulator

from golden.perf.accelerator.colocate.descriptors import Reads, Ring
from golden.perf.dispatch.twin import Request
from golden.spec.descriptors import Window, judge, pack
from hbfp.isa.descriptors import BYTES, CHUNK, Refusal
from rtl.accelerator.axi import read_signature
from rtl.accelerator.reader import Reader
from rtl.accelerator.ring import Ring as Hardware
from rtl.accelerator.ring import front_signature
from tests.cases import sweep

PLACES, LOG = 8, 4
WINDOW = Window(64, 4096, 32)
FIRST = 0x1_2345_6600


class Attached(Component):
    """A ring at the bus, beside which nothing reads."""

    def __init__(self, burst, reads, job):
        self.reader = Reader(lanes=8, burst=burst, reads=reads, dispatch_ring=True)
        self.ring = Hardware(lanes=8, burst=1 << burst.bit_length() - 1, dispatch=PLACES, requests=job)
        bus = read_signature(32).members
        super().__init__({**bus, **front_signature(PLACES).members, "free": In(1), "head": Out(16), "abort": In(1),
                          "tail": In(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader, m.submodules.ring = reader, ring = self.reader, self.ring
        connect(m, ring.request, reader.ring)
        settings = {"ring_low": FIRST & 0xFFFFFFFF, "ring_high": FIRST >> 32, "ring_size": LOG,
                    "ring_first": WINDOW.first, "ring_last": WINDOW.last, "ring_tail": self.tail}
        m.d.comb += [
            *(ring.ring[name].eq(value) for name, value in settings.items()), ring.attached.eq(1),
            ring.free.eq(self.free), ring.valid.eq(reader.described), ring.data.eq(reader.rdata),
            ring.failed.eq(reader.rresp[1]), self.head.eq(ring.head), reader.abort.eq(self.abort),
        ]
        for part, signature in ((reader, read_signature(32).members), (ring, front_signature(PLACES).members)):
            for name, member in signature.items():
                own, inner = getattr(self, name), getattr(part, name)
                one, other = (own, inner) if member.flow == Out else (inner, own)
                if hasattr(own, "as_value"):
                    one, other = one.as_value(), other.as_value()
                m.d.comb += one.eq(other)
        return m


def laid(pick, number):
    """A descriptor, good or not, and what is to come of it."""
    words = [pick.randrange(0, 4096 + 64, 32), pick.randrange(64, 4128, 32), pick.getrandbits(32)]
    if pick.random() < 0.1:
        words[pick.randrange(2)] += pick.choice((1, 4, 16))
    data = pack(tuple(words), number)
    if pick.random() < 0.2:
        data = (int.from_bytes(data, "little") ^ 1 << pick.randrange(128)).to_bytes(BYTES, "little")
    failed = pick.random() < 0.1
    return data, failed, judge(data, number, WINDOW, failed)


def request(data, failed, number):
    """What a descriptor says; one that did not come is told by its number."""
    found = Request(*(int.from_bytes(data[4 * n:4 * n + 4], "little") for n in range(3)))
    return found._replace(tag=number) if failed else found


@pytest.mark.parametrize("seed", sweep(16, range(24)))
def test_it_is_the_models_ring(seed):
    """Random tails, room, times at which nobody has the machine; DRAM of any speed."""
    pick = random.Random(seed)
    burst, job, latency = pick.choice((1, 3, 8, 32)), pick.choice((1, 3, 5)), pick.randint(1, 12)
    reads, bandwidth = pick.randint(1, 4), pick.choice((32, 64, 9))
    part, clock = Attached(burst, reads, job), (1 << 33) - 500
    chunk = min(CHUNK, 1 << burst.bit_length() - 1)
    every = [laid(pick, number) for number in range(300)]
    wanted = Ring(Reads(latency, bandwidth, 32, job, chunk, reads), PLACES,
                  [(request(data, failed, number), why) for number, (data, failed, why) in enumerate(every)])
    seen = []

    async def bench(ctx):
        bursts, shown, credit, tail, owed, asked, free = [], None, 0, 0, 0, 0, True
        for cycle in range(3000):
            credit = min(credit + bandwidth, bandwidth + 31)
            if shown is None and bursts and bursts[0][1] <= cycle and credit >= 32:
                credit -= 32
                shown = *every[bursts[0][0].pop(0)][:2], not bursts[0][0]
                if not bursts[0][0]:
                    bursts.pop(0)
            if pick.random() < 0.1:
                free = not free
            starting = pick.random() < 0.1
            ctx.set(part.free, free)
            ctx.set(part.abort, not free and pick.random() < 0.5)
            ctx.set(part.starting, starting)
            ctx.set(part.room, max(PLACES - owed, 0))
            ctx.set(part.tail, tail)
            ctx.set(part.clock, clock + cycle)
            ctx.set(part.arready, 1)
            ctx.set(part.rvalid, shown is not None)
            if shown:
                data, failed, last = shown
                ctx.set(part.rdata, int.from_bytes(data, "little") | pick.getrandbits(128) << 128)
                ctx.set(part.rresp, 2 * failed)
                ctx.set(part.rlast, last)
            wanted.tail, wanted.owed = tail, owed
            assert ctx.get(part.holds) == wanted.holds, cycle
            assert ctx.get(part.head) == wanted.head % (1 << 16)
            given = wanted.given
            assert (ctx.get(part.good), ctx.get(part.refused)) == (
                given is not None and given[1] is None, given is not None and given[1] is not None), cycle
            if given:
                found = ctx.get(part.descriptor.as_value())
                assert found & (1 << 96) - 1 == sum(value << 32 * n for n, value in enumerate(given[0]))
                assert ctx.get(part.why) == (given[1] or 0)
                assert ctx.get(part.arrived) == (clock + wanted.stamps[0]) % (1 << 33)
                seen.append(given[1])
                owed += 1
            wanted.step(cycle, free and not starting)
            if ctx.get(part.arvalid):
                place, beats = ctx.get(part.araddr), ctx.get(part.arlen) + 1
                assert place == FIRST + asked % (1 << LOG) * 32 and beats <= chunk - asked % chunk
                bursts.append((list(range(asked, asked + beats)), cycle + latency))
                asked += beats
            shown = None
            owed -= owed > 0 and pick.random() < 0.1
            if tail < len(every) and pick.random() < 0.2:
                tail = min(tail + pick.randint(1, 4), wanted.head + (1 << LOG), len(every))
            await ctx.tick()

    simulator = Simulator(part)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(seen) > 60 and set(seen) >= {None, Refusal.BUS, Refusal.CHECK}
