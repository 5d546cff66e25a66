"""Components that have a stream, as small systems have them, and one cycle of each with what is inside cut away.

A stream is a port ``valid`` beside a port ``ready`` the other way, with what goes along: one of Amaranth's, or a
channel of AXI. Parts inside that have streams themselves, or no registers, are cut away: their outputs may be anything
that the laws of the one, or a function, allow. So a proof is of a component's own logic alone, whatever it holds.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from amaranth.hdl import Value
from amaranth.lib.wiring import In, Out
from z3 import And, BoolVal, Implies, Not, Or

from gen.emit import Emitter, netlists
from hbfp import files
from rtl.accelerator.walk import Walk
from rtl.lib.component import Component
from rtl.lib.memory import Ram
from tests import yosys
from tests.formal.prove import REGISTERS, Laws, Step

#: Ports that belong to what a stream offers, by component: the address of a piece.
_BESIDE = {(Walk, "o__"): ("address",)}
#: What goes along in a channel of AXI.
_CHANNEL = "addr", "len", "size", "burst", "lock", "cache", "prot", "qos", "id", "data", "strb", "last", "resp"
_CELL = re.compile(r"^  cell \\(\S+) \\(\S+)$", re.MULTILINE)
_CLOCKED = re.compile(r"^  wire (?:width 1 )?input \d+ +\\clk$", re.MULTILINE)


@dataclass(frozen=True)
class Stream:
    """A stream at the ports of a component.

    Attributes
    ----------
    name : str
        What the names of its ports begin with.
    with_it : tuple of str
        Ports that say what is offered.
    out : bool
        Whether the component offers.
    """
    name: str
    with_it: tuple[str, ...]
    out: bool

    def offers(self, state):
        """Something is offered and not taken."""
        return And(vars(state)[f"{self.name}valid"], Not(vars(state)[f"{self.name}ready"]))

    def stays(self, step):
        """The law of every stream: what is offered, and not taken, is offered in the next cycle, and is the same."""
        now, then = vars(step.now), vars(step.then)
        return Implies(self.offers(step.now), And(
            then[f"{self.name}valid"], *(then[name] == now[name] for name in self.with_it)))


def streams(component, place=""):
    """The streams of a component, with ``place`` before their names."""
    flows = {"__".join(map(str, path)): member.flow for path, member, _ in component.signature.flatten(component)}
    found = []
    for name, flow in flows.items():
        stem = name.removesuffix("valid")
        if stem != name and flows.get(f"{stem}ready", flow) != flow:
            beside = [each for each in flows if each.startswith(stem) and flows[each] == flow and each != name and (
                stem.endswith("__") or each.removeprefix(stem) in _CHANNEL)]
            beside += _BESIDE.get((type(component), stem), ())
            found.append(Stream(place + stem, tuple(place + each for each in beside), flow == Out))
    return found


class System:
    """What a component is made of.

    Parameters
    ----------
    top : Component

    Attributes
    ----------
    cells : dict of str to Component
        By the name of their module.
    streams : dict of str to list of Stream
        Those of the modules that have some.
    """

    def __init__(self, *tops):
        self._emitter = Emitter()
        for top in tops:
            if top.module not in self._emitter.cells:
                self._emitter.convert(top)
        self.cells = self._emitter.cells
        self.streams = {name: found for name, cell in self.cells.items() if (found := streams(cell))}

    @cached_property
    def _cut(self):
        """Modules that are cut away: those with streams, memories, and those without registers."""
        return {*self.streams, *(name for name, text in self._emitter.texts.items()
                                 if isinstance(self.cells[name], Ram) or not _CLOCKED.search(text))}

    def cuts(self, names, least=True):
        """The cycles of some modules: name -> :class:`Cut`; with the ``least`` of ports, those of streams and of a bit.
        """
        lines = ["read_rtlil all.il", "proc", "design -save all"]
        for name in names:
            ports = {"__".join(map(str, path)): value for path, _, value in self.cells[name].signature.flatten(
                self.cells[name])}
            offered = {port for each in self.streams[name] for port in each.with_it}
            kept = " ".join(f"top/{port} %d" for port, value in ports.items()
                            if port in offered or len(Value.cast(value)) == 1)
            black = " ".join(sorted(set(self.parts(name).values())))
            lines += ["design -load all", *([f"blackbox {black}"] if black else []), f"hierarchy -top {name}",
                      f"rename {name} top", "flatten", *([f"delete -port top/o:* {kept}"] if least else []),
                      "opt_clean", "expose -evert -sep . top/c:*", REGISTERS, f"write_smt2 -stbv -wires {name}.smt2"]
        with files.scratch() as folder:
            (folder / "all.il").write_text("\n".join(netlists(self._emitter)))
            yosys.run(folder, *lines)
            return {name: Cut((folder / f"{name}.smt2").read_text(), self, name) for name in names}

    def parts(self, name, place=""):
        """Parts of a module that are cut away: place -> the name of the part's module."""
        found = {}
        for module, within in _CELL.findall(self._emitter.texts[name]):
            if module in self._cut:
                found[f"{place}{within}."] = module
            elif module in self.cells:
                found |= self.parts(module, f"{place}{within}.")
        return found


class Cut:
    """One cycle of a component without its parts.

    Attributes
    ----------
    cell : Component
    step : Step
    own : list of Stream
        Its streams.
    parts : dict of str to (Component, list of Stream)
        Parts that are cut away, by place, and their streams.
    given : list of z3.BoolRef
        What parts keep to: what they offer stays, a memory keeps what it gives while it does not read, and what has no
        registers is a function.
    """

    def __init__(self, text, system, name):
        self.cell, self.step = system.cells[name], Step(text)
        self.own, self.parts, self.given = system.streams[name], {}, []
        now, then = vars(self.step.now), vars(self.step.then)
        for place, module in system.parts(name).items():
            part = system.cells[module]
            if module in system.streams:
                found = [each for each in streams(part, place) if f"{each.name}valid" in now]
                self.parts[place] = part, found
                self.given += [each.stays(self.step) for each in found if each.out]
            elif isinstance(part, Ram):
                if f"{place}r_data" in now:    # what nothing needs is not there
                    reads = now[f"{place}{'en' if part.params.single else 'r_en'}"]
                    self.given.append(Or(reads, then[f"{place}r_data"] == now[f"{place}r_data"]))
            else:
                ports = {flow: [f"{place}{'__'.join(map(str, path))}" for path, each, _ in part.signature.flatten(part)
                                if each.flow == flow] for flow in (In, Out)}
                same = {flow: And(BoolVal(True), *(then[port] == now[port] for port in found if port in now))
                        for flow, found in ports.items()}
                self.given.append(Implies(same[In], same[Out]))

    def stays(self, *names):
        """That inputs are in the next cycle what they are, those that there are."""
        now, then = vars(self.step.now), vars(self.step.then)
        return And(BoolVal(True), *(then[name] == now[name] for name in names if name in now))


def broken(component: Component, laws: Callable[[Cut], Laws]) -> set[str]:
    """Laws of a component, without its parts, that do not hold; it must not be that nothing can happen."""
    cut = System(component).cuts([component.module], least=False)[component.module]
    found = laws(cut)
    return set(cut.step.broken(replace(found, laws=found.laws | {"nothing": BoolVal(False)}))) ^ {"nothing"}
