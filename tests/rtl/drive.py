"""Drives components in Amaranth's simulator: streams with pauses, payloads as integers, arrays through logic."""

import numpy as np
from amaranth import Fragment, ResetInserter, Shape, Signal
from amaranth.hdl import Value
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.sim import Simulator


def fields(layout, offset=0, name=None):
    """``(name, offset, shape, count)`` of each field of a payload, arrays of arrays flattened."""
    if isinstance(layout, StructLayout):
        return [row for field, entry in layout for row in fields(entry.shape, offset + entry.offset, field)]
    count = 1
    while isinstance(layout, ArrayLayout):
        count, layout = count * layout.length, layout.elem_shape
    return [(name, offset, Shape.cast(layout), count)]


def pack(layout, **values):
    """A payload as one integer; a field is a number or any nesting of numbers, element 0 lowest."""
    word = 0
    for name, offset, shape, count in fields(layout):
        elements = np.asarray(values.pop(name or "value"), object).reshape(-1)
        assert len(elements) == count, f"{name}: {len(elements)} elements for {count}"
        for element in elements:
            word |= (int(element) & (1 << shape.width) - 1) << offset
            offset += shape.width
    assert not values, f"no fields {list(values)}"
    return word


def unpack(layout, word):
    """Fields of a payload: name -> list of numbers, signed where the field is."""
    result = {}
    for name, offset, shape, count in fields(layout):
        elements = [word >> offset + n * shape.width & (1 << shape.width) - 1 for n in range(count)]
        half = 1 << shape.width - 1
        result[name or "value"] = [(e ^ half) - half if shape.signed else e for e in elements]
    return result


def bits(value):
    """A port as plain bits, whatever its layout."""
    return Value.cast(value).as_unsigned()


async def wait(ctx, cycles):
    """Let cycles pass; unlike ``tick().repeat`` it can be abandoned."""
    for _ in range(cycles):
        await ctx.tick()


class Pauses:
    """Seeded coin flips: how often a side pauses."""

    def __init__(self, rate=0.0, seed=0):
        self.rate, self.rng = rate, np.random.default_rng(seed)

    def __call__(self):
        return self.rate and self.rng.random() < self.rate


async def offer(ctx, port, words, pauses=None):
    """What :meth:`Bench.send` does, as a part of a process."""
    payload, pause = bits(port.payload), pauses or Pauses()
    for word in words:
        while pause():
            ctx.set(port.valid, 0)
            ctx.set(payload, int(np.random.default_rng(word % 97).integers(2)) * (2 ** len(payload) - 1))
            await ctx.tick()
        ctx.set(payload, word)
        ctx.set(port.valid, 1)
        while not (await ctx.tick().sample(port.ready))[2]:
            pass
    ctx.set(port.valid, 0)


class Bench:
    """A simulation of one component with a reset, run until its foreground processes end.

    Parameters
    ----------
    dut : Component
        The part under test.
    limit : int
        Cycles after which the run fails.
    """

    def __init__(self, dut, limit=20000):
        self.dut, self.limit, self.reset = dut, limit, Signal()
        self.sim = Simulator(Fragment.get(ResetInserter(self.reset)(dut), None))
        self.sim.add_clock(1e-6)

    def process(self, function, *args, background=False):
        """Run ``async function(ctx, *args)`` beside the others."""
        async def testbench(ctx):
            await function(ctx, *args)
        self.sim.add_testbench(testbench, background=background)

    def send(self, port, words, pauses=None):
        """Offer integer payloads on an input stream, in order; a payload stays until it is taken."""
        self.process(offer, port, words, pauses)

    def receive(self, port, count, pauses=None):
        """List that will hold ``count`` payloads of an output stream, those since the last reset.

        What is offered must stay while stalled.
        """
        got = []

        async def receiver(ctx):
            payload, pause, held = bits(port.payload), pauses or Pauses(), None
            while len(got) < count:
                ready = not pause()
                ctx.set(port.ready, ready)
                _, _, valid, word, reset = await ctx.tick().sample(port.valid, payload, self.reset)
                if reset:
                    got.clear()
                    held = None
                    continue
                assert held is None or (valid and word == held), f"{held:#x} withdrawn"
                held = word if valid and not ready else None
                if valid and ready:
                    got.append(word)
            ctx.set(port.ready, 0)
        self.process(receiver)
        return got

    def run(self):
        """Run to the end of every process, or fail at the limit."""
        steps = 0
        while self.sim.advance():
            steps += 1
            assert steps < 2 * self.limit, f"nothing more happens after {self.limit} cycles"


def evaluate(dut, inputs, outputs):
    """Outputs of combinational logic.

    Parameters
    ----------
    dut : Component
    inputs : dict of str to array
        Port -> one integer for each evaluation (or one for all).
    outputs : str or sequence of str
        Ports to read.

    Returns
    -------
    ndarray of object
        (evaluations,) or (outputs, evaluations): bits, or signed numbers where the port is signed.
    """
    names = [outputs] if isinstance(outputs, str) else list(outputs)
    columns = np.broadcast_arrays(*(np.asarray(v, object) for v in inputs.values()))
    rows = np.stack([c.reshape(-1) for c in columns], -1)
    ports = [Value.cast(getattr(dut, name)) for name in inputs]
    reads = [Value.cast(getattr(dut, name)) for name in names]
    result = np.empty((len(names), len(rows)), object)

    async def testbench(ctx):
        last = [None] * len(ports)
        for n, row in enumerate(rows):
            for k, (port, value) in enumerate(zip(ports, row, strict=True)):
                if last[k] != value:
                    ctx.set(port, int(value))
                    last[k] = value
            for k, port in enumerate(reads):
                result[k, n] = ctx.get(port)
    sim = Simulator(dut)
    sim.add_testbench(testbench)
    sim.run()
    return result[0] if isinstance(outputs, str) else result


def stream(dut, inputs, output):
    """Results of a pipeline, as :func:`evaluate` gives those of combinational logic: operands change in every cycle.

    It has as many registers as its ``latencies["result"]`` says.
    """
    cycles = dut.latencies["result"]
    columns = np.broadcast_arrays(*(np.asarray(v, object) for v in inputs.values()))
    rows = np.stack([c.reshape(-1) for c in columns], -1)
    ports = [Value.cast(getattr(dut, name)) for name in inputs]
    got = []

    async def testbench(ctx):
        for n in range(len(rows) + cycles):
            for port, value in zip(ports, rows[n % len(rows)], strict=True):
                ctx.set(port, int(value))
            if n >= cycles:
                got.append(ctx.get(Value.cast(getattr(dut, output))))
            await ctx.tick()
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(testbench)
    sim.run()
    return np.array(got, object)
