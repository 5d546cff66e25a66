"""Two contexts are apart, in one cycle of a whole accelerator, from any state and for all that its units may ask for.

Control, registers, reader, writer, fetch, loads, stores and the ways into memories are the accelerator's own. What else
there is (decode and its queues, the units between memories and core, the core, the words of memories) is hollow: it
gives anything in any cycle, so that the laws hold for every program, and whatever a unit computes.

Promised by docs/design/11-accelerator.md: every access to V, X, W or P lies in the share of the context that has the
machine, and every burst in its DRAM or in its program; what does not is not done, and ends the program with its cause.
The machine changes hands only when units and queues have been reset. The host is taken to leave a context's settings
alone while its program is busy.
"""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from z3 import UGE, ULE, ULT, And, Concat, Extract, If, Implies, Not, Or

from hbfp.isa.instructions import BYTES, Unit
from hbfp.isa.registers import Cause
from hbfp.system import SHARES
from rtl.accelerator.accelerator import Accelerator
from rtl.accelerator.array_core import ArrayCore
from rtl.accelerator.arrays import Arrays
from rtl.accelerator.control import FIRST_BITS, SIZE_BITS, State
from rtl.accelerator.convert import Convert
from rtl.accelerator.counters import Counters
from rtl.accelerator.counters_apart import CountersApart
from rtl.accelerator.drain import DrainToV
from rtl.accelerator.front import Front
from rtl.accelerator.issue import Issue
from rtl.accelerator.multiply import Multiply
from rtl.accelerator.queue import NUMBER_BITS
from rtl.accelerator.vector import VectorOnV
from rtl.accelerator.weights import Weights
from rtl.lib.memory import Ram
from tests.cosim.accelerator.built import DISPATCHED, TWO
from tests.formal import test_walk
from tests.formal.prove import Laws, Step
from tests.formal.views import number, part

HOLLOW = (ArrayCore, Arrays, Convert, Counters, CountersApart, DrainToV, Front, Issue, Multiply, Ram, VectorOnV,
          Weights)
#: What the host writes before a program begins, and leaves until it ends.
SETTINGS = "program_low", "program_high", "base_low", "base_high", "limit", "instructions", "share_first", "share_size"
#: Bits of addresses in which no sum wraps round.
WIDE = 72
#: Memory and port -> the unit that has it.
USERS = {"x_memory.read": "multiply", "x_memory.write": "convert", "w_memory.read": "weights",
         "p_memory.read": "vector", "p_memory.write": "load"}


class _Laws:
    """Laws of a whole accelerator of two contexts, about a step of it."""

    def __init__(self, system, step):
        self.system, self.step, self.now, self.then = system, step, step.now, step.then
        self.names = list(vars(step.now))
        self.load, self.store = (self._walk(loads) for loads in (True, False))
        self.ports = [name.removesuffix("__en") for name in self.names if re.match(r"[vxwp]_memory\.\w+__en$", name)]

    def _walk(self, loads):
        prefix = f"{'load' if loads else 'store'}.walk."
        now, then = (SimpleNamespace(**{name.removeprefix(prefix): value for name, value in vars(state).items()
                                        if name.startswith(prefix)}) for state in (self.now, self.then))
        return test_walk.laws_of(test_walk.walk_of(self.system, loads).params, SimpleNamespace(now=now, then=then))

    # What registers say.

    def of(self, name, then=False):
        """A signal, by the path of its part."""
        return vars(self.then if then else self.now)[name]

    def setting(self, name, context=None, then=False):
        """What the host has written for a context; by default for the one that has the machine."""
        own = [self.of(f"registers.{name}{end}_value", then) for end in ("", "_1")]
        return If(self.of("control.active"), own[1], own[0]) if context is None else own[context]

    def at(self, *states):
        return Or(*(self.of("control.state") == int(state) for state in states))

    @property
    def active(self):
        return self.of("control.active")

    def busy(self, context=None):
        """A context's program is busy; by default that of the one that has the machine."""
        own = [part(self.of("control.busy"), 1, place) == 1 for place in (0, 1)]
        return If(self.active, own[1], own[0]) if context is None else own[context]

    def share(self, place):
        """The first sixteenth of a memory, and how many the active context has."""
        first, size = self.setting("share_first"), self.setting("share_size")
        return (number(Extract(8 * place + FIRST_BITS - 1, 8 * place, first), 8),
                number(Extract(8 * place + SIZE_BITS - 1, 8 * place, size), 8))

    def wide(self, name, low):
        """A setting of two registers."""
        return number(Concat(self.setting(f"{name}_high"), self.setting(f"{name}_low")), 64) & -(1 << low) % (1 << 64)

    # What always holds.

    def fetches(self):
        clean = And(self.at(State.START), self.of("control.clean")) if self.system.dispatched else False
        return Or(self.at(State.RUN, State.TURN, State.HOLD), clean)

    def checked(self):
        """What control has looked at before it lets a program run."""
        origin = self.setting("program_low") & max(BYTES, self.system.beat) - 1
        return And(*(ULE(first + size, SHARES) for first, size in map(self.share, range(4))), origin == 0,
                   self.setting("base_low") & 4095 == 0, ULT(self.setting("instructions"), 1 << NUMBER_BITS))

    def program(self):
        """Beats of the active program."""
        beat, count = self.system.beat, number(self.setting("instructions"), WIDE)
        return (count + 1) >> 1 if beat > BYTES else count * (BYTES // beat)

    def always(self):
        low = (self.system.beat - 1).bit_length()
        address, left = number(self.of("fetch.address"), WIDE), number(self.of("fetch.left"), WIDE)
        origin, mask = number(self.wide("program", low), WIDE) >> low, (1 << 64 - low) - 1
        found = {
            "a program runs with settings that were looked at": Implies(self.fetches(), self.checked()),
            "fetch is within the program": Implies(self.of("fetch.began"), And(
                self.busy(), self.checked(), address + left & mask == origin + self.program() & mask,
                ULE(left, self.program()))),
            **{f"the next instruction of context {context}": Implies(self.busy(context), ULE(number(
                self.of(f"control.place{context}"), 32), self.setting("instructions", context))) for context in (0, 1)},
        }
        if self.system.dispatched:
            found["context 1 alone holds the machine"] = Implies(self.at(State.HOLD), self.active)
        for name, walk in (("load", self.load), ("store", self.store)):
            found |= {f"{name}: {what}": law for what, law in walk.always().items()}
            found[f"{name}: a program is busy"] = Or(walk.at(test_walk.State.START), self.busy())
        return found

    def given(self):
        """What the host and hollow parts keep to; that decode and queues do so are laws of theirs."""
        found = []
        for context in (0, 1):
            found += [Implies(self.busy(context), self.setting(name, context) == self.setting(name, context, True))
                      for name in SETTINGS]
        found.append(Implies(self.of("issue.takes"), number(self.of("control.place"), 32) != self.setting(
            "instructions")))
        for name, walk in (("load", self.load), ("store", self.store)):
            valid, ready, word = (f"{name}.walk.instruction__{each}" for each in ("valid", "ready", "payload"))
            found.append(Implies(And(self.at(State.RUN), self.of(valid), Not(self.of(ready))), And(
                self.of(valid, True), self.of(word, True) == self.of(word))))
            found.append(Implies(self.of(valid), And(*test_walk.legal(walk.fields, walk.params, name == "load"))))
        return found

    # Memories.

    def _rams(self, memory):
        """Of each part of a memory: what it is, whether it is accessed, whether written, and at which address."""
        for name in self.names:
            found = re.match(rf"({memory}_memory\.(.*))\.((?:r_|w_)?addr)$", name)
            if found:
                path, kind, which = found[1], found[2], found[3]
                writes = self.of(f"{path}.w_en")
                writes = writes if not hasattr(writes, "size") else writes != 0
                access = {"r_addr": lambda p=path: self.of(f"{p}.r_en"), "w_addr": lambda w=writes: w,
                          "addr": lambda p=path: self.of(f"{p}.en")}[which]()
                yield kind, path, access, {"r_addr": False, "w_addr": True, "addr": writes}[which], self.of(name)

    def shares(self):
        """Each access of each memory lies in the share of the context that has the machine."""
        found = {}
        for place, memory in enumerate("vxwp"):
            first, size = self.share(place)
            for _, path, access, _, address in self._rams(memory):
                sixteenth = number(Extract(address.size() - 1, address.size() - 4, address), 8)
                within = And(UGE(sixteenth, first), ULT(sixteenth, first + size))
                found[f"share: {path}, {str(address).split('.')[-1]}"] = Implies(
                    And(access, ULE(first + size, SHARES)), within)
        return found

    def _beyond(self, port):
        """An address that a port asks for is beyond the share."""
        memory, system = port[0], self.system
        total = {"v": system.v_words, "x": system.x_pieces, "w": system.w_words, "p": system.p_words}[memory]
        if port == "p_memory.write":
            total = 2 * total // system.lanes
        _, size = self.share("vxwp".index(memory))
        return UGE(number(self.of(f"{port}__addr"), 32), number(size, 32) * (total // SHARES))

    def refusals(self):
        """What is beyond a share is refused, and nothing is read or written for it."""
        found = {}
        for port in self.ports:
            memory, name = port[0], port.split(".")[1]
            asks, fault = self.of(f"{port}__en"), self.of(f"{port}__fault")
            beyond = self._beyond(port)
            part_of = {"write": "ram", "scales": "scales", "index": "index"}.get(name.split("_")[0])
            idle = [Not(And(access, writes if part_of else Not(writes)))
                    for kind, _, access, writes, _ in self._rams(memory)
                    if (not part_of or kind.startswith(part_of)) and writes is not (not part_of)]
            found[f"refused: {port}"] = And(
                Implies(And(asks, self.of(f"{port}__grant"), beyond), fault),
                Implies(fault, And(asks, beyond, *idle)))
        return found

    def causes(self):
        """A unit that asks for what is beyond, or a transfer beyond the limit, ends the program with that cause."""
        before, found = [], {}
        bus = self.of("control.bus_error")
        for unit in Unit:
            name = unit.name.lower()
            faults = [self.of(f"{port}__fault") for port in self.ports
                      if USERS.get(port, port.split("_")[-1]) == name]
            walk = {"load": self.load, "store": self.store}.get(name)
            misaligned, others = Or(False), [self.of(f"{name}.fault")] if f"{name}.fault" in self.names else []
            if walk:
                faults.append(walk.now.outside)
                misaligned = walk.now.misaligned
            if name == "multiply":
                others.append(self.of("core.error"))
            cause = part(self.of("control.cause", True), 4, 0), part(self.of("control.cause", True), 4, 1)
            pc = [part(self.of("control.error_pc", True), NUMBER_BITS, n) for n in (0, 1)]
            own = part(self.of("issue.number"), NUMBER_BITS, unit - 1)
            first = And(self.at(State.RUN), Or(*faults), Not(misaligned), Not(bus), *before)
            found[f"cause: {name}"] = Implies(first, And(
                self.of("control.state", True) == int(State.STOP),
                If(self.active, cause[1], cause[0]) == int(Cause.ADDRESS), If(self.active, pc[1], pc[0]) == own))
            before.append(Not(Or(*faults, misaligned, *others)))
        return found

    # The machine changes hands.

    def hands(self):
        state, then = self.of("control.state"), self.of("control.state", True)
        running = self.of("control.running")
        changes = self.active != self.of("control.active", True)
        return {
            "the machine changes hands in IDLE alone": Implies(changes, state == int(State.IDLE)),
            "units are reset between a program and IDLE": Implies(running, then != int(State.IDLE)),
            "units and queues are reset while no program runs": self.of("units_rst") == Not(running),
            "fetch is reset in IDLE": Implies(state == int(State.IDLE), self.of("ahead_rst")),
            "walks are reset": Implies(Not(running), And(*(self.of(f"{name}.walk.state", True) == int(
                test_walk.State.START) for name in ("load", "store")))),
        }

    # DRAM.

    def windows(self):
        """Each burst that is taken lies in the active context's DRAM, or, of fetch, in its program."""
        beat = self.system.beat
        low = (beat - 1).bit_length()
        limit = number(self.setting("limit"), WIDE) + beat - 1 & -beat % (1 << WIDE)
        loads, stores, fetches = (And(self.of(f"{name}__valid"), self.of(f"{name}__ready")) for name in (
            "reader.load", "writer.request", "reader.fetch"))
        rings = And(*(self.of(f"reader.ring__{each}") for each in ("valid", "ready"))
                    ) if self.system.dispatch_ring else False
        found, base = {}, self.wide("base", 12)
        for name, channel, taken, first, size in (
                ("load", "ar", loads, base, limit), ("store", "aw", stores, base, limit),
                ("fetch", "ar", fetches, self.wide("program", low), self.program() << low)):
            begin = number(self.of(f"m_axi_{channel}addr", True) - first, WIDE)
            end = begin + (number(self.of(f"m_axi_{channel}len", True), WIDE) + 1 << low)
            found[f"window: {name}"] = Implies(taken, And(self.of(f"m_axi_{channel}valid", True), ULE(end, size)))
        for channel, taken in (("ar", Or(loads, fetches, rings)), ("aw", stores)):
            valid, ready = (self.of(f"m_axi_{channel}{each}") for each in ("valid", "ready"))
            stays = And(valid, Not(ready), *(self.of(name, True) == self.of(name) for name in (
                f"m_axi_{channel}addr", f"m_axi_{channel}len")))
            found[f"no other burst: {channel}"] = Implies(self.of(f"m_axi_{channel}valid", True), Or(taken, stays))
        return found


def laws(system, step):
    """Laws of a whole accelerator."""
    found = _Laws(system, step)
    return Laws(found.shares() | found.refusals() | found.causes() | found.hands() | found.windows(), found.always(),
                found.given(), None)


def shell(system):
    """A step of a whole accelerator, whose units are hollow."""
    return Step.of(Accelerator.of(system), HOLLOW)


#: With a dispatcher; memories of one port, in banks; rows of several words of V.
OTHERS = {"dispatched": DISPATCHED, "banks": replace(TWO, memory_banks=2),
          "more rows": replace(TWO, core=replace(TWO.core, rows=16))}


@pytest.mark.parametrize("system", [pytest.param(TWO, id="two contexts"), *(
    pytest.param(system, id=name, marks=pytest.mark.slow) for name, system in OTHERS.items())])
def test_laws(system):
    step = shell(system)
    assert step.broken(laws(system, step), 300) == []
