# amaranth: UnusedElaboratable=no
"""A ring of descriptors never gives on what has no room, and never while something else starts: for all inputs."""

import pytest
from amaranth import Module, Signal
from amaranth.lib.wiring import Component, In, Out

from rtl.accelerator.ring import Ring
from tests.formal.prove import reachable

PLACES, JOB = 2, 2


class Watched(Component):
    """A ring whose host, bus and dispatcher do as they like; ``lost``: something is given on without room, or nobody
    has asked for it, or a start and a job are under way at once. ``careless``: there is always room."""

    def __init__(self, careless=False):
        self.careless = careless
        super().__init__({"tail": In(16), "free": In(1), "starts": In(1), "comes": In(1), "ready": In(1),
                          "takes": In(1), "data": In(128), "failed": In(1), "lost": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring = ring = Ring(lanes=4, burst=2, dispatch=PLACES, requests=JOB)
        owed, under_way, offered = Signal(4), Signal(4), Signal()
        told = ring.good | ring.refused
        comes = self.comes & under_way.any()
        asks = ring.request.valid & self.ready
        m.d.comb += [
            ring.ring.ring_size.eq(4), ring.ring.ring_last.eq(-1), ring.ring.ring_tail.eq(self.tail),
            ring.attached.eq(1), ring.free.eq(self.free), ring.starting.eq(offered), ring.request.ready.eq(self.ready),
            ring.room.eq(PLACES if self.careless else PLACES - owed), ring.valid.eq(comes), ring.data.eq(self.data),
            ring.failed.eq(self.failed),
            self.lost.eq((told & (owed == PLACES)) | (ring.good & ring.refused) | (offered & under_way.any())),
        ]
        m.d.sync += [
            owed.eq(owed + told - (self.takes & owed.any())),
            under_way.eq(under_way - comes),
            # Whatever it would choose, the dispatcher chooses nothing while it is held; a start lasts until free.
            offered.eq((offered & ~self.free) | (self.starts & ~ring.holds & ~offered)),
        ]
        with m.If(asks):
            m.d.sync += under_way.eq(under_way + ring.request.payload.beats - comes)
        return m


@pytest.mark.slow
def test_what_is_given_on_has_room():
    assert not reachable(Watched(), "a ring of descriptors", "lost", 40)


@pytest.mark.slow
def test_it_would_be_found():
    assert reachable(Watched(careless=True), "a ring that always has room", "lost", 20)
