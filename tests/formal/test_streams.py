# amaranth: UnusedElaboratable=no
"""What is offered stays, on every stream of every component, from any state and for all inputs.

The rule of streams, docs/design/01-core.md and AXI4's: what is offered and not taken is offered in the next cycle, too,
and is the same. Components are found by their ports in small systems, so that a new one is looked at as well; those
that keep to another rule are in :data:`~tests.formal.beside.OTHERS`, with the reason.
"""

import argparse
import importlib
import os
import pkgutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from z3 import Not

import hbfp.rtl
from gen.tops import make_top
from gen.units import make_unit
from hbfp import files
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.pods import PodsDesign
from hbfp.rtl.lib.component import Component
from tests.cosim.accelerator.built import ACCELERATOR, DISPATCHED
from tests.formal.beside import BESIDE, NEEDED, OTHERS
from tests.formal.prove import Laws
from tests.formal.streams import System, streams
from tests.rtl.lib.test_names import Register

_SMALL = {"rows": 4, "cols": 2, "depth": 4, "format": HBFPFormat(block=(1, 4))}
_SQUARE = HBFPFormat(block=(4, 4), rounding="stochastic")
_SPARSE = Design(**_SMALL, sparse=(2, 4))


def _core(**options):
    return make_top("core", Design(**_SMALL | options))


#: Small systems, by name, which together have every component with a stream.
SYSTEMS = {
    "core": lambda: [_core()],
    "core with registers": lambda: [_core(pipeline=1)],
    "core with one side lane and one bank": lambda: [_core(side_lanes=1, banks=1)],
    "core with registers and one side lane": lambda: [_core(side_lanes=1, pipeline=1)],
    "core that shares": lambda: [_core(format=HBFPFormat(block=(1, 8)), share=2)],
    "core with square blocks and noise": lambda: [_core(format=_SQUARE)],
    "core with registers, square blocks and noise": lambda: [_core(format=_SQUARE, pipeline=1)],
    "core with one tile of weights": lambda: [_core(pipeline=2, weight_tiles=1)],
    "sparse core": lambda: [make_top("core", _SPARSE), make_unit("prune", _SPARSE)],
    "vector unit with blocks": lambda: [make_unit("vector.hbfp", Design(**_SMALL))],
    "pods": lambda: [make_top("pods", PodsDesign(core=Design(
        rows=2, cols=2, format=HBFPFormat(block=(1, 1)), group=(1, 2)), pods=4, bank=4, rounds=4))],
    "accelerator of two arrays": lambda: [make_top("accelerator", replace(
        ACCELERATOR, core=replace(ACCELERATOR.core, cols=4, group=(8, 4)), arrays=2))],
    "dispatched accelerator": lambda: [make_top("accelerator", replace(DISPATCHED, dispatch=4, burst=2, reads=2))],
}
#: Those whose proofs are quick enough for each day.
QUICK = "core", "core with registers", "sparse core"


def cuts(name, known=()):
    """The cycles of the components of a system that have streams, but for modules that are known."""
    found = System(*SYSTEMS[name]())
    return found.cuts([module for module in found.streams if module not in known])


def laws(cut):
    """The laws of a component, of what it offers, to those parts that need it, too; and what must not be one."""
    kind = type(cut.cell)
    rules = [each for each in cut.own if each.out and (kind, each.name) not in OTHERS]
    needed = [each for each in cut.own if (kind, each.name) in NEEDED]
    for place, (cell, found) in cut.parts.items():
        rules += [each for each in found if (type(cell), each.name.removeprefix(place)) in NEEDED]
    always, given = BESIDE.get(kind, lambda _: ({}, []))(cut)
    given = [*cut.given, *given, *(each.stays(cut.step) for each in needed)]
    return Laws({each.name: each.stays(cut.step) for each in rules} | {
        f"{each.name} never waits": Not(each.offers(cut.step.now)) for each in rules}, always, given, None)


def broken(cut):
    """Laws of a component that do not hold; what never waits would keep to any."""
    found = laws(cut)
    return sorted(set(cut.step.broken(found, 120)) ^ {name for name in found.laws if name.endswith(" never waits")})


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
                                  for name in SYSTEMS])
def test_what_is_offered_stays(name):
    assert not any(broken(cut) for cut in cuts(name).values())


def met():
    """Components that the systems have: class -> those that differ."""
    found = Register()
    for tops in SYSTEMS.values():
        for top in tops():
            if top.module not in found.cells:
                found.note(top)
    kinds = {}
    for cell in found.cells.values():
        kinds.setdefault(type(cell), []).append(cell)
    return kinds


def test_every_component_with_a_stream_is_met():
    """Whatever has a stream is in the systems above; who keeps to another rule is named with one of its streams."""
    for module in pkgutil.walk_packages(hbfp.rtl.__path__, "hbfp.rtl."):
        importlib.import_module(module.name)
    kinds, left = met(), [Component]
    for kind in left:
        left += kind.__subclasses__()
    unmet = {kind for kind in left if kind.__module__.startswith("hbfp.rtl.")} - set(kinds)
    assert not {kind.__name__ for kind in unmet if hasattr(sys.modules[kind.__module__], "stream")}
    named = {(kind, each.name) for kind, cells in kinds.items() for cell in cells for each in streams(cell)}
    assert named.issuperset([*OTHERS, *NEEDED]) and set(kinds).issuperset(BESIDE)


class Hasty(Component):
    """Gives on what comes in every other cycle, without keeping it: who takes it late finds none, or another."""
    kind = "hasty"

    @staticmethod
    def ports(params):
        return {"i": In(stream.Signature(2)), "o": Out(stream.Signature(2))}

    def body(self, platform):
        m, stops = Module(), Signal()
        m.d.sync += stops.eq(~stops)
        m.d.comb += [self.o.valid.eq(self.i.valid & ~stops), self.o.payload.eq(self.i.payload),
                     self.i.ready.eq(self.o.ready & ~stops)]
        return m


def test_what_does_not_stay_is_seen():
    cut = System(Hasty()).cuts([Hasty().module])[Hasty().module]
    assert broken(cut) == ["o__"]


def main(argv=None):
    """Prove all, and say of how many components, and how long it takes."""
    parser = argparse.ArgumentParser(prog="python -m tests.formal.test_streams", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    args, known = parser.parse_args(argv), {}
    for name in SYSTEMS:
        for module, cut in cuts(name, known).items():
            known[module] = type(cut.cell), [each.name for each in cut.own if each.out]
            if names := broken(cut):
                sys.exit(f"{module}: {', '.join(names)}")
    offered = {(kind, name) for kind, names in known.values() for name in names}
    figures = {"modules": len(known), "components": len({kind for kind, _ in known.values()}),
               "offering": len({kind for kind, _ in offered}), "streams": len(offered), "others": len(OTHERS),
               "proved": len(offered - set(OTHERS)), "processor_seconds": sum(os.times()[:4])}
    print(*(f"{name}: {value:.0f}" for name, value in figures.items()), sep="\n")
    if args.json:
        files.write_json(args.json, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
