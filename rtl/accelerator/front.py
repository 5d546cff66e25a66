"""The dispatcher in front of the contexts: requests from registers, batches and quanta to the control, completions."""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out, Signature

from hbfp.golden.spec.dispatch import Cause, DispatchUnit
from hbfp.isa.registers import BY_NAME, WORD

from ..dispatch.dispatcher import Dispatcher
from ..dispatch.shapes import completion_layout
from ..lib.component import Component
from ..lib.fifo import Fifo
from ..lib.layout import StructLayout
from ..lib.names import parameter
from .control import start_signature
from .layouts import requests_layout
from .ring import REASON, front_signature
from .sizes import Sizes

#: Bits of its counters.
COUNT = 48
#: Registers that it reads as the host has written them.
SETTINGS = ("request_input", "request_output", "request_tag", "policy", "timeout", "patience", "count_select")


def unit(depth, stamped=0):
    """The dispatcher that is inside."""
    return DispatchUnit(depth=depth, address=WORD, tag=WORD, time=WORD, counter=COUNT, stamped=stamped)


def settings_layout():
    """What the host has written."""
    return StructLayout({name: WORD for name in SETTINGS})


def answers_signature(ringed=False):
    """What the host does beside writing settings, and what it reads, as the registers see it.

    ``push``: the request in the settings goes into the queue, only while that is not ``full``; ``takes``, ``clears``,
    ``selects``: it takes a completion, clears the errors, has selected a counter. ``status``: completion, error, batch,
    quantum, overdue. ``reason``, with a ring: why the descriptor of the completion was refused.
    """
    return Signature({
        **({"reason": In(REASON)} if ringed else {}),
        "settings": Out(settings_layout()), "push": Out(1), "takes": Out(1), "clears": Out(1), "selects": Out(1),
        "full": In(1), "status": In(5), "dispatch_error": In(len(Cause)), "now": In(WORD), "completion": In(2),
        "completed": In(completion_layout(unit(2))), "tally": In(COUNT), "tally_known": In(1)})


def done_layout(ringed=False):
    """A completion, and whether its batch ended with an error; with a ring, why its descriptor was refused."""
    reason = {"reason": REASON} if ringed else {}
    return StructLayout({"completion": completion_layout(unit(2)), "failed": 1, **reason})


class Front(Component):
    """Attaches a :class:`~rtl.dispatch.dispatcher.Dispatcher` to the control, as the executor, and to the registers.

    A start is taken while the control is ``free``; the requests of a batch come into registers one by one, each also
    into all places behind it, so that the last one fills those that are left. Completions go into a queue of as many
    as the dispatcher holds. Order of events: docs/design/13-dispatched.md.

    Members
    -------
    settings ... tally_known : ``In``, ``Out``
        See :func:`answers_signature`.
    attached ... failed : ``Out``, ``In``
        See :class:`~rtl.accelerator.control.Control`.
    inputs, outputs : ``Out(requests_layout(requests))``
        Places of the batch that was started last.
    room ... why : ``Out``, ``In``
        With a ring: see :func:`~rtl.accelerator.ring.front_signature`.
    """
    kind, area, apart = "front", "accelerator control", True

    @dataclass(frozen=True)
    class Parameters(Sizes):
        dispatch: int = parameter("dq")
        requests: int = parameter("rq")
        dispatch_ring: bool = parameter("rg", False)

    @staticmethod
    def ports(params):
        places = Out(requests_layout(params.requests))
        ring = front_signature(params.dispatch).flip().members if params.dispatch_ring else {}
        return {**answers_signature(params.dispatch_ring).flip().members, **start_signature().flip().members, **ring,
                "inputs": places, "outputs": places}

    def body(self, platform):
        m, params, settings = Module(), self.params, self.settings
        m.submodules.dispatcher = inside = Dispatcher.made(unit(params.dispatch, int(params.dispatch_ring)))
        self._policy(m, inside)
        self._executor(m, inside)
        self._completions(m, inside)
        self._counters(m, inside)
        request = inside.i_request
        asked = {name: settings[f"request_{name}"] for name in ("input", "output", "tag")}
        push, full = self.push, ~request.ready
        if self.params.dispatch_ring:
            self._ring(m, inside)
            asked = {name: Mux(self.good, self.descriptor[name], value) for name, value in asked.items()}
            push, full = push | self.good, full | self.on
        m.d.comb += [
            request.valid.eq(push), *(request.payload[name].eq(value) for name, value in asked.items()),
            self.full.eq(full), inside.clear.eq(self.clears), self.dispatch_error.eq(inside.error),
            self.now.eq(inside.now), self.overdue.eq(inside.overdue),
        ]
        return m

    def _policy(self, m, inside):
        """The policy from its registers; nothing is started that is not attached, and no training that is not there."""
        fields = {field.name: self.settings.policy[field.low:field.low + field.width]
                  for field in BY_NAME["policy"].fields}
        policy = inside.policy
        may = self.attached & ~self.holds if self.params.dispatch_ring else self.attached
        m.d.comb += [
            self.attached.eq(fields["attached"]), policy.inference.eq(fields["inference"] & may),
            policy.training.eq(fields["training"] & may & self.trains),
            *(policy[name].eq(fields[name]) for name in ("priority", "share", "closes")),
            policy.batch.eq(Mux(fields["batch"] > self.params.requests, 0, fields["batch"])),
            policy.timeout.eq(self.settings.timeout), policy.patience.eq(self.settings.patience),
        ]

    def _executor(self, m, inside):
        """Starts, the places of a batch, and ends."""
        start, item = inside.o_start, inside.o_item
        left = Signal.like(start.payload.count)
        place = Signal(range(self.params.requests + 1))
        serves = Signal()
        trains = Signal()
        begins = start.valid & self.free
        m.d.comb += [
            start.ready.eq(self.free), self.batch.eq(begins & ~start.payload.training),
            self.quantum.eq(begins & start.payload.training), item.ready.eq(1), self.loaded.eq(left == 0),
            inside.i_done.valid.eq(self.over), inside.i_done.payload.training.eq(self.over_training),
            self.taken.eq(self.over & inside.i_done.ready), self.status[2].eq(serves), self.status[3].eq(trains),
            self.status[4].eq(inside.overdue),
        ]
        with m.If(self.batch):
            m.d.sync += [left.eq(start.payload.count), place.eq(0)]
        with m.Elif(item.valid):
            m.d.sync += [left.eq(left - 1), place.eq(place + 1)]
        m.d.sync += [serves.eq(self.batch | serves & ~(self.taken & ~self.over_training)),
                     trains.eq(self.quantum | trains & ~(self.taken & self.over_training))]
        for number in range(self.params.requests):
            kept = [Signal(WORD, name=f"{name}{number + 1}", reset_less=True) for name in ("input", "output")]
            with m.If(item.valid & (place <= number)):
                m.d.sync += Cat(kept).eq(Cat(item.payload.input, item.payload.output))
            m.d.comb += [self.inputs[number].eq(kept[0]), self.outputs[number].eq(kept[1])]

    def _ring(self, m, inside):
        """Room for descriptors: places for requests and completions that none has, also not one that is to come."""
        places = self.params.dispatch
        owed = Signal(range(2 * places + 1))    # requests and completions that are held
        request = inside.i_request
        m.d.comb += [
            self.starting.eq(inside.o_start.valid), self.room.eq(Mux(owed < places, places - owed, 0)),
            self.clock.eq(inside.clock), inside.told.eq(self.good), inside.arrived.eq(self.arrived),
        ]
        m.d.sync += owed.eq(owed + (request.valid & request.ready | self.refused) - (self.takes & self.completion[0]))

    def _completions(self, m, inside):
        """A queue of completions, each with what came of its batch."""
        layout = done_layout(self.params.dispatch_ring)
        m.submodules.completions = queue = Fifo(self.params.dispatch, layout.size)
        failed = Signal()
        entry = Signal(layout)
        head = Signal(layout)
        with m.If(self.taken & ~self.over_training):
            m.d.sync += failed.eq(self.failed)
        m.d.comb += [
            entry.completion.eq(inside.o_completion.payload), entry.failed.eq(failed),
            queue.i.payload.eq(Value.cast(entry)), queue.i.valid.eq(inside.o_completion.valid),
            inside.o_completion.ready.eq(queue.i.ready), Value.cast(head).eq(queue.o.payload),
            self.completed.eq(head.completion), self.completion.eq(Cat(queue.o.valid, head.failed & queue.o.valid)),
            queue.o.ready.eq(self.takes), self.status[:2].eq(Cat(queue.o.valid, inside.error.any())),
        ]
        if self.params.dispatch_ring:    # what was refused is answered at once, and goes before others
            tag, now = self.descriptor.tag, inside.now
            m.d.comb += self.reason.eq(Mux(queue.o.valid, head.reason, 0))
            with m.If(self.refused):
                m.d.comb += [
                    *(entry.completion[name].eq(tag if name == "tag" else now)
                      for name in layout["completion"].shape.members),
                    entry.failed.eq(0), entry.reason.eq(self.why), queue.i.valid.eq(1), inside.o_completion.ready.eq(0),
                ]

    def _counters(self, m, inside):
        """Reads the counter that is selected."""
        select = self.settings.count_select
        asks = Signal()
        address = inside.i_counter.payload
        m.d.comb += [inside.i_counter.valid.eq(asks), address.eq(select), inside.o_counter.ready.eq(1)]
        m.d.sync += asks.eq(self.selects | asks & ~inside.i_counter.ready)
        with m.If(self.selects):
            m.d.sync += self.tally_known.eq(0)
        with m.Elif(inside.o_counter.valid & ~asks):
            m.d.sync += [self.tally_known.eq(1),
                         self.tally.eq(Mux(select >> len(address) != 0, 0, inside.o_counter.payload))]
