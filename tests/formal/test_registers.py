"""Registers in one cycle, from any state and for all inputs: rules of AXI4-Lite, and what is written and read.

What docs/design/11-accelerator.md promises of the bus: what is offered stays until it is taken; each write that is
taken, address and data in one cycle, has one answer, which comes in the next, and each read has one, two cycles later;
no answer comes unasked; and what is asked for is taken within two cycles, if the host leaves no answer waiting. Answers
come in the order of requests, since one write and one read are under way at most. That no output follows from an input
in its cycle is a walk through the netlist (tests/rtl/accelerator/test_axi.py).
"""

import pytest
from z3 import UGE, ULE, ULT, And, BitVecVal, BoolVal, Concat, Extract, If, Implies, Not, Or, is_bool

from hbfp.isa.registers import BY_NAME, CONTEXT, SPAN, WORD, Access, Cause, parameters, registers
from rtl.accelerator.axi import SLVERR
from rtl.accelerator.front import SETTINGS
from rtl.accelerator.queue import NUMBER_BITS
from rtl.accelerator.registers import Registers
from rtl.accelerator.ring import SETTINGS as RING
from tests.cosim.accelerator.built import ACCELERATOR, DISPATCHED, TWO
from tests.formal.prove import Laws, Step
from tests.formal.views import number, part

#: Cycles that a request waits at most while the host leaves no answer waiting.
PATIENCE = 2


class _Laws:
    """Laws of :class:`~rtl.accelerator.registers.Registers` of an accelerator, about a step of it."""

    def __init__(self, system, step):
        self.system, self.now, self.then, now = system, step.now, step.then, step.now
        self.contexts, self.dispatched = range(system.contexts), system.dispatched
        self.map = registers(system.contexts, system.stochastic, system.dispatched, system.dispatch_ring)
        #: Transfers of this cycle.
        self.writes, self.reads = And(now.awvalid, now.awready), And(now.arvalid, now.arready)
        self.answers, self.gives = And(now.bvalid, now.bready), And(now.rvalid, now.rready)
        self.laws = (self._bus() | self._waiting() | self._written() | self._acts() | self._chosen() | self._read() | (
            self._dispatcher() if self.dispatched else {}))

    @staticmethod
    def owed(state):
        """Answers that the host is owed: of writes, and of reads."""
        return number(state.bvalid), number(state.pending) + number(state.rvalid)

    def always(self):
        now, (writes, reads) = self.now, self.owed(self.now)
        return {"one write and one read are under way at most": And(ULE(writes, 1), ULE(reads, 1)),
                "nothing is taken that is not offered": Implies(now.awready, And(now.awvalid, now.wvalid)),
                "a write is taken when the last is answered": Not(And(now.awready, now.bvalid)),
                "address and data are taken together": now.awready == now.wready}

    def given(self):
        """What the host keeps to: what it offers stays until it is taken."""
        now, then = self.now, self.then
        return [Implies(And(now.awvalid, Not(now.awready)), And(then.awvalid, then.awaddr == now.awaddr)),
                Implies(And(now.wvalid, Not(now.wready)), And(
                    then.wvalid, then.wdata == now.wdata, then.wstrb == now.wstrb)),
                Implies(And(now.arvalid, Not(now.arready)), And(then.arvalid, then.araddr == now.araddr))]

    def _bus(self):
        now, then = self.now, self.then
        (writes, reads), (writes_then, reads_then) = self.owed(now), self.owed(then)
        refused = And(self.writes, self._at("request_tag"), now.full) if self.dispatched else BoolVal(False)
        return {
            "an answer of a write stays": Implies(And(now.bvalid, Not(now.bready)), And(
                then.bvalid, then.bresp == now.bresp)),
            "an answer of a read stays": Implies(And(now.rvalid, Not(now.rready)), And(
                then.rvalid, then.rdata == now.rdata, then.rresp == now.rresp)),
            "each write has one answer": writes_then == writes + number(self.writes) - number(self.answers),
            "each read has one answer": reads_then == reads + number(self.reads) - number(self.gives),
            "no answer of a write is unasked": Implies(now.bvalid, writes != 0),
            "no answer of a read is unasked": Implies(now.rvalid, reads != 0),
            "a write is answered in the next cycle": Implies(self.writes, And(then.bvalid, then.bresp == If(
                refused, BitVecVal(SLVERR, 2), 0))),
            "a read is answered in two cycles": And(Implies(self.reads, And(then.pending, Not(then.rvalid))),
                                                    Implies(now.pending, then.rvalid), now.rresp == 0),
        }

    def _waiting(self):
        """What waits comes nearer in each cycle in which the host leaves no answer waiting."""
        now, then = self.now, self.then

        def to_read(state):
            return If(state.pending, 2, If(state.rvalid, 1, BitVecVal(0, 8)))

        def to_write(state):
            return If(state.awready, 0, If(state.bvalid, 2, BitVecVal(1, 8)))
        waits = And(now.awvalid, now.wvalid, Not(now.awready)), And(now.arvalid, Not(now.arready))
        left = And(now.bvalid, Not(now.bready)), And(now.rvalid, Not(now.rready))
        return {f"a {name} waits {PATIENCE} cycles at most": And(ULE(to(now), PATIENCE), Implies(
            And(wait, to(now) == 0), False), Implies(And(wait, Not(leaves)), ULT(to(then), to(now))))
            for name, to, wait, leaves in zip(("write", "read"), (to_write, to_read), waits, left, strict=True)}

    def _at(self, name):
        """A write is that of a register."""
        address = next(each.address for each in self.map if each.name == name)
        return Extract(self.now.awaddr.size() - 1, 2, self.now.awaddr) == address >> 2

    @staticmethod
    def _value(state, name):
        """What the host has written into a register: bits of a word."""
        return number(vars(state)[f"{name}_value"], WORD)

    def _kept(self):
        return [each for each in self.map if each.access is Access.WRITE]

    def _written(self):
        """Strobes count; bits of no field stay 0."""
        now, strobes = self.now, self._strobes()
        found = {}
        for one in self._kept():
            old, fields = self._value(now, one.name), one.fields
            known = sum((1 << each.width) - 1 << each.low for each in fields) if fields else (1 << WORD) - 1
            new = (now.wdata & strobes | old & ~strobes) & known
            found[f"written: {one.name}"] = self._value(self.then, one.name) == If(
                And(self.writes, self._at(one.name)), new, old)
        return found

    def _strobes(self):
        return Concat(*(If(part(self.now.wstrb, 1, n) == 1, BitVecVal(255, 8), 0) for n in reversed(range(4))))

    def bits_of(self, name, context, bits=1):
        """A context's own of a port that has them of each."""
        value = vars(self.now)[name]
        return number(value if is_bool(value) else part(value, bits, context), WORD)

    def _raised(self, state, context):
        return vars(state)[f"raised_{context}" if context else "raised"]

    def _acts(self):
        """Doorbells and stops, for one cycle; interrupts, which a one clears, unless they are raised anew."""
        now, found = self.now, {}
        for context in self.contexts:
            end = f"_{context}" if context else ""
            low = And(self.writes, part(now.wstrb, 1, 0) == 1)
            acts, clears = (number(Extract(1, 0, If(And(low, self._at(f"{name}{end}")), now.wdata, 0)), WORD)
                            for name in ("control", "interrupt_status"))
            asked = self.bits_of("start", context) | self.bits_of("stop", context) << 1
            raised = self.bits_of("ends", context) | self.bits_of("fails", context) << 1
            found |= {f"acts{end}": asked == acts,
                      f"interrupts{end}": number(self._raised(self.then, context), WORD) == (
                          number(self._raised(now, context), WORD) & ~clears | raised)}
        lines = [self._raised(now, context) & vars(now)[
            f"interrupt_enable{f'_{context}' if context else ''}_value"] != 0 for context in self.contexts]
        if self.dispatched:
            lines.append(now.dispatch_enable_value & Extract(1, 0, now.status) != 0)
        return found | {"the interrupt": now.interrupt == Or(*lines)}

    def _chosen(self):
        """What the machine is told of a context's registers: those of the active one."""
        now, found = self.now, {}
        for one in self._kept():
            if one.dispatched or one.address >= SPAN:
                continue
            value = self._value(now, one.name)
            if one.address >= CONTEXT and len(self.contexts) > 1:
                value = If(now.active, self._value(now, f"{one.name}_1"), value)
            found[f"told: {one.name}"] = number(vars(now)[one.name], WORD) == value
        return found

    def _shown(self):
        """Name -> what is read there in this cycle, of registers that are not 0."""
        now, known = self.now, parameters(self.system)
        found = {one.name: self._value(now, one.name) for one in self._kept()}
        for one in self.map:
            if one.name in known:
                found[one.name] = BitVecVal(known[one.name], WORD)
        for context in self.contexts:
            end = f"_{context}" if context else ""
            found |= {f"status{end}": sum(self.bits_of(name, context) << place for place, name in enumerate(
                          ("busy", "done", "error", "waiting"))),
                      f"cause{end}": self.bits_of("cause", context, max(Cause).bit_length()),
                      f"error_pc{end}": self.bits_of("error_pc", context, NUMBER_BITS),
                      f"interrupt_status{end}": number(self._raised(now, context), WORD)}
            first = BY_NAME["cycles"].address
            found |= {f"{one.name}{end}": If(now.count_known, now.count, 0) for one in self.map
                      if one.access is Access.READ and first <= one.address < SPAN}
        if self.dispatched:
            words = [part(now.completed, WORD, place) for place in range(4)]
            found |= dict(zip((f"completion_{name}" for name in ("tag", "arrived", "started", "finished")), words,
                              strict=True))
            found |= {"refused": now.refused, "dispatch_status": number(now.status, WORD),
                      "dispatch_error": number(now.dispatch_error, WORD), "now": now.now,
                      "completion": number(now.completion, WORD), "count_low": part(now.tally, WORD, 0),
                      "count_high": number(Extract(47, 32, now.tally), WORD) | number(now.tally_known, WORD) << 31}
        if self.system.dispatch_ring:
            found["completion"] |= number(now.reason, WORD) << 4
            found["ring_head"] = number(now.head, WORD)
        return found

    def _read(self):
        now, then, shown = self.now, self.then, self._shown()
        asked, first = Extract(now.araddr.size() - 1, 2, now.araddr), BY_NAME["cycles"].address >> 2
        word = BitVecVal(0, WORD)
        for one in self.map:
            if one.name in shown:
                word = If(now.address == one.address >> 2, shown[one.name], word)
        counted = And(*(Implies(asked == one.address >> 2, And(
            now.count_en, number(now.count_addr) == (one.address % SPAN >> 2) - first + one.address // SPAN * 32))
            for one in self.map if one.access is Access.READ and first <= one.address % SPAN >> 2 and (
                one.address < SPAN * len(self.contexts))))
        return {"where is read": then.address == If(self.reads, asked, now.address),
                "what is read": Implies(now.pending, then.rdata == word),
                "a counter is asked for": And(Implies(self.reads, counted), Implies(now.count_en, And(
                    self.reads, UGE(asked & SPAN // 4 - 1, first))))}

    def _dispatcher(self):
        """What the dispatcher is told: settings, a request that has room, a completion, errors, a counter."""
        now, then = self.now, self.then
        asks, low = And(self.writes, self._at("request_tag")), part(now.wstrb, 1, 0) == 1
        found = {"settings": And(*(part(now.settings, WORD, place) == self._value(now, name)
                                   for place, name in enumerate(SETTINGS))),
                 "a request": then.push == And(asks, Not(now.full)),
                 "requests that are refused": then.refused == now.refused + number(And(asks, now.full), WORD),
                 "a completion is taken": now.takes == And(self.writes, self._at("completion"), low, part(
                     now.wdata, 1, 0) == 1),
                 "errors are cleared": now.clears == And(self.writes, self._at("dispatch_error"), low, Extract(
                     3, 0, now.wdata) != 0),
                 "a counter is selected": then.selects == And(self.writes, self._at("count_select"))}
        if self.system.dispatch_ring:
            found["ring"] = And(*(part(now.ring, WORD, place) == self._value(now, name)
                                  for place, name in enumerate(RING)))
        return found


def laws(system, step):
    """Laws of an accelerator's registers."""
    found = _Laws(system, step)
    return Laws(found.laws, found.always(), found.given(), ("address",))


@pytest.mark.parametrize("system", [
    pytest.param(ACCELERATOR, id="one context", marks=pytest.mark.slow),
    pytest.param(TWO, id="two contexts", marks=pytest.mark.slow), pytest.param(DISPATCHED, id="dispatched")])
def test_laws(system):
    step = Step.of(Registers.of(system))
    assert step.broken(laws(system, step)) == []
