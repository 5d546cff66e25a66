"""What is counted: designs by name, the tests of ``make test`` that run on each, and what runs on it beside them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cosim.dispatch.check import SMALL, STAMPED, words
from cosim.emit import emit_accelerator
from cosim.manifest import Manifest
from golden.spec.dispatch import DispatchUnit
from hbfp import generator
from hbfp.options import design_from_values
from hbfp.presets import SYSTEMS
from hbfp.system import Accelerator
from rtl.accelerator.front import unit
from tests.mutate.parts import DESIGNS

from . import directed, runs, wild


@dataclass(frozen=True)
class Counted:
    """A design; each of ``runs`` is called with its manifest, itself, and how many programs are asked for."""
    system: Accelerator | DispatchUnit
    runs: tuple[Callable[[Manifest, Any, int], None], ...]
    tests: tuple[str, ...] = ()

    def emitted(self) -> Manifest:
        """Its Verilog."""
        if isinstance(self.system, Accelerator):
            return emit_accelerator(self.system)
        return Manifest.load(generator.emitted("dispatch", words(self.system)))


_SMALL = runs.programs, runs.corners, runs.slaves, runs.numbers, runs.loops, runs.vectors
#: Those of a count, unless others are named.
COUNTED = {name: Counted(DESIGNS[name].system, each, DESIGNS[name].tests)
           for name, each in (("one context", _SMALL), ("dispatched", (*_SMALL, runs.late)))}
COUNTED |= {name: Counted(each, (runs.dispatched,)) for name, each in (
    ("its dispatcher", unit(COUNTED["dispatched"].system.dispatch, 1)), ("dispatcher", SMALL),
    ("dispatcher, told late", STAMPED))}
#: Accelerators as :mod:`hbfp.presets` has them, which take longer: without tests, and with instructions that
#: are anything in place of corners, each of which fills all memories.
PRESETS = {name: Counted(design_from_values(values, Accelerator), (
    runs.programs, runs.networks, runs.vectors, runs.functions, runs.told, runs.slaves, runs.numbers, runs.loops,
    wild.held, wild.faults, wild.far, directed.scalars, directed.doorbells, directed.drains, directed.waits))
    for name, values in SYSTEMS.items()}
