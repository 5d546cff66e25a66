"""Memories behind a unit's ports, in Amaranth's simulator: grants that may be refused, data that others replace."""

import numpy as np
from amaranth import Fragment, Module, ResetInserter, Signal
from amaranth.lib import stream
from amaranth.sim import Simulator

from hbfp.isa.instructions import EXTRAS, FIELDS
from rtl.accelerator.fields import held_fields, offered_fields
from rtl.accelerator.layouts import instruction_layout

from ..drive import Bench, Pauses, bits, pack


class Memory(dict):
    """Words at all addresses, made when they are asked for."""

    def __init__(self, width, seed=0):
        super().__init__()
        self.width, self.seed = width, seed

    def __missing__(self, address):
        rng = np.random.default_rng((address, self.seed))
        self[address] = int.from_bytes(rng.bytes(200), "little") % 2 ** self.width
        return self[address]


class Served(Bench):
    """A :class:`~tests.rtl.drive.Bench` of a unit whose memory ports are granted in some of the cycles.

    Parameters
    ----------
    dut : Component
    limit : int
    """

    def __init__(self, dut, limit=20000):
        self.dut, self.limit, self.reset = dut, limit, Signal()
        self._top = Module()
        self._top.submodules.dut = dut
        self._processes = []

    def instructions(self, opcode, unit=None):
        """A stream of whole instructions for a unit, by default the bench's, which gets fields as its queue would."""
        unit, m = unit or self.dut, self._top
        given = stream.Signature(instruction_layout(opcode)).create()
        m.d.comb += [unit.instruction.valid.eq(given.valid), given.ready.eq(unit.instruction.ready),
                     *(unit.instruction.payload[field.name].eq(given.payload[field.name])
                       for field in offered_fields(opcode, EXTRAS)
                       if field.name in unit.instruction.payload.shape().members)]
        with m.If(given.valid & given.ready):
            m.d.sync += [unit.held[field.name].eq(given.payload[field.name])
                         for field in held_fields(opcode, EXTRAS) if field.name in unit.held.shape().members]
        return given

    def hold(self, port, value):
        """Give a port one value for the whole run."""
        self._top.d.comb += port.eq(value)

    def _allow(self, port, pauses):
        """Grant a port's wishes while the signal is high, whether it has one or not."""
        allow = Signal()
        self._top.d.comb += port.grant.eq(allow)
        return allow, pauses or Pauses()

    def process(self, function, *args, background=False):
        """Run ``async function(ctx, *args)`` beside the others, in :meth:`run`."""
        self._processes.append((function, args, background))

    def run(self):
        """Make the simulator, since all ports are known now, and run it."""
        self.sim = Simulator(Fragment.get(ResetInserter(self.reset)(self._top), None))
        self.sim.add_clock(1e-6)
        for function, args, background in self._processes:
            super().process(function, *args, background=background)
        super().run()

    def read(self, port, words, pauses=None, shared=False, beside=None):
        """Serve a read port from a dict of address -> integer; ``beside`` is a further member and its dict.

        Where the memory is shared, the data of a grant is replaced by noise when its cycle is over. The list that is
        returned will hold the addresses that were read.
        """
        allow, pause = self._allow(port, pauses)
        log = []

        async def serve(ctx):
            while True:
                ctx.set(allow, not pause())
                _, _, en, grant, addr = await ctx.tick().sample(port.en, port.grant, port.addr)
                if en and grant:
                    log.append(addr)
                    ctx.set(bits(port.data), words[addr])
                    if beside:
                        ctx.set(bits(getattr(port, beside[0])), beside[1][addr])
                elif shared:
                    ctx.set(bits(port.data), (1 << len(bits(port.data))) - 1 - hash(len(log)) % 2 ** 20)
        self.process(serve, background=True)
        return log

    def write(self, port, pauses=None):
        """List that will hold the writes of a port: (cycle, address, data, mask or None)."""
        allow, pause = self._allow(port, pauses)
        log = []

        async def serve(ctx):
            cycle, mask = 0, getattr(port, "mask", port.en)
            while True:
                ctx.set(allow, not pause())
                _, _, en, grant, addr, data, part = await ctx.tick().sample(
                    port.en, port.grant, port.addr, bits(port.data), mask)
                if en and grant:
                    log.append((cycle, addr, data, part))
                cycle += 1
        self.process(serve, background=True)
        return log

    def until_done(self, count, after=4):
        """List that will hold the cycles of ``count`` pulses of ``done``, which the run has to reach."""
        log = []

        async def watch(ctx):
            cycle = 0
            while len(log) < count:
                *_, done = await ctx.tick().sample(self.dut.done)
                if done:
                    log.append(cycle)
                cycle += 1
            for _ in range(after):
                *_, done = await ctx.tick().sample(self.dut.done)
                assert not done, "one done too many"
        self.process(watch)
        return log


def word(opcode, **values):
    """The payload of an instruction from values of its fields; those absent are 0."""
    assert set(values) <= {field.name for field in FIELDS[opcode]}, values
    return pack(instruction_layout(opcode), **{field.name: values.get(field.name, 0) for field in FIELDS[opcode]})
