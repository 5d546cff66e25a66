"""Random dispatchers in random scenes: in every cycle what the twin gives, and what the page promises.

Sizes, policies that change, loads, paces and faults are drawn, few by default and the same in every run; with
HBFP_FUZZ=300 there are so many. A failure is made as small as it can be, and prints the command that repeats it.
"""

import os

from amaranth import Fragment, ResetInserter, Signal
from amaranth.sim import Simulator
from hypothesis import HealthCheck, given, note, settings

from golden.perf.dispatch.twin import Completion, Inputs, Outputs, Request, Start, Twin
from golden.spec.dispatch import Policy
from rtl.dispatch.dispatcher import Dispatcher

from .page import Page
from .scenes import Scene, Surroundings, scenes

COUNT = int(os.environ.get("HBFP_FUZZ", "20"))
AGAIN = f"again: HBFP_FUZZ={COUNT} python -m pytest 'tests/rtl/dispatch/test_scenes.py::{{}}'"
#: Cycles in which all that was accepted is served, by far.
LONGEST = 20_000
#: Cycles after which counters have all that is done.
SETTLED = 40


def offered(ctx, stream, made):
    """What a stream offers, or None."""
    return made(stream.payload) if ctx.get(stream.valid) else None


class Ports:
    """Ports of a dispatcher in a simulation, by the twin's names."""

    def __init__(self, part, ctx):
        self.part, self.ctx, self.last = part, ctx, {}

    def put(self, given: Inputs | None):
        """Set the inputs of a cycle; None is a reset."""
        part, values = self.part, {"clear": 0}
        if given is not None:
            policy = vars(given.policy)
            values = {"clear": given.clear, **{f"policy.{name}": value for name, value in policy.items()},
                      **{f"o_{name}.ready": getattr(given, f"{name}_ready") for name in (
                          "start", "item", "completion", "counter")}}
            for name in ("request", "done", "counter"):
                values[f"i_{name}.valid"] = getattr(given, name) is not None
            if given.request is not None:
                values |= {f"i_request.payload.{name}": value for name, value in given.request._asdict().items()}
            if given.done is not None:
                values["i_done.payload.training"] = given.done
            if given.counter is not None:
                values["i_counter.payload"] = given.counter
            if part.params.stamped:
                values["told"] = given.arrived is not None
                values["arrived"] = (given.arrived or 0) % (2 * 2 ** part.params.time)
        for name, value in values.items():
            if self.last.get(name) != value:
                port = part
                for each in name.split("."):
                    port = getattr(port, each)
                self.ctx.set(port, int(value))
        self.last |= values

    def get(self) -> Outputs:
        """The outputs of this cycle."""
        part, get = self.part, self.ctx.get

        def fields(made, *names):
            return lambda payload: made(*(get(getattr(payload, name)) for name in names))
        return Outputs(
            *(bool(get(getattr(part, f"i_{name}").ready)) for name in ("request", "done", "counter")),
            offered(self.ctx, part.o_start, lambda payload: Start(bool(get(payload.training)), get(payload.count))),
            offered(self.ctx, part.o_item, fields(Request, "input", "output", "tag")),
            offered(self.ctx, part.o_completion, fields(Completion, "tag", "arrived", "started", "finished")),
            offered(self.ctx, part.o_counter, get), get(part.now), bool(get(part.overdue)), get(part.error))


async def play(ctx, part, reset, scene):
    """A scene, and then whatever it takes until all requests are done; counters are read at the end."""
    ports, surroundings = Ports(part, ctx), Surroundings(scene)
    twin, page = Twin(scene.unit), Page(scene.unit)

    async def cycle(inputs):
        nonlocal twin, page
        ports.put(inputs)
        ctx.set(reset, inputs is None)
        seen = None
        if inputs is None:
            twin, page = Twin(scene.unit), Page(scene.unit)
        else:
            seen = ports.get()
            assert seen == twin.step(inputs), f"cycle {page.now}"
            page.see(inputs, seen)
            surroundings.see(inputs, seen)
        await ctx.tick()
        return seen

    def inputs():
        return surroundings.inputs(bool(ctx.get(part.o_start.valid)))
    while not surroundings.over:
        await cycle(inputs())
    surroundings.finish()
    for _ in range(LONGEST):
        if not page.held and page.running is None and not surroundings.pending:
            break
        await cycle(inputs())
    assert not page.held and page.running is None, "a request was not served"
    off, found = Policy(inference=False, training=False, batch=1), {}
    for _ in range(SETTLED + scene.unit.counters):
        await cycle(Inputs(policy=off))
    expected = page.counters()
    for address in expected:
        taken, value = False, None
        while value is None:
            seen = await cycle(Inputs(counter=None if taken else address, policy=off))
            taken, value = taken or seen.counter_ready, seen.counter
        found[address] = value
    idle = found.pop(5), expected.pop(5)
    assert found == expected, "counters"
    assert page.odd or idle[1] <= idle[0], "idle cycles"    # those of pauses behind the last start, too


def played(scene: Scene, made=Dispatcher):
    """Simulate a scene; AssertionError where a port is not the twin's, or breaks a promise of the page."""
    part, reset = made(**scene.unit.parameters), Signal()
    simulator = Simulator(Fragment.get(ResetInserter(reset)(part), None))
    simulator.add_clock(1e-6)

    async def bench(ctx):
        await play(ctx, part, reset, scene)
    simulator.add_testbench(bench)
    simulator.run()


@settings(max_examples=COUNT, suppress_health_check=list(HealthCheck))
@given(scenes())
def test_scenes(scene):
    note(AGAIN.format("test_scenes"))
    played(scene)
