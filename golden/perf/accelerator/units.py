"""The units that instructions are for, each a module beside; a new one is such a module and its entry here.

A module has ``UNIT``, its number; ``STATE``, its record; ``fresh(accelerator, latency)``, that at reset; ``ask(m)``,
which asks for ports of memories, and ``step(m)``, the end of a cycle. These find the instruction that is offered in the
record of the unit's queue, and say there whether the unit takes, begins and completes one. Units look at no register
that another unit's ``step`` changes, so that their order does not matter.
"""

from hbfp.isa.instructions import Unit
from hbfp.system import Accelerator

from . import convert, core, drain, load, multiply, store, vector, weights
from .record import Record, made, part, record

UNITS = (load, store, convert, weights, multiply, drain, vector)
assert sorted(unit.UNIT for unit in UNITS) == list(Unit)


def _name(unit):
    return Unit(unit.UNIT).name.lower()


#: The core and the units: what is reset where a program ends or yields.
STATE = record(core=core.STATE, **{_name(unit): unit.STATE for unit in UNITS})


def fresh(accelerator: Accelerator, latency: dict[str, int]) -> Record:
    """The state at reset."""
    return made(STATE, core=core.fresh(accelerator.core, latency),
                **{_name(unit): unit.fresh(accelerator, latency) for unit in UNITS})


def _each(functions):
    """One compiled function that calls all of these."""
    first = functions[0]
    if len(functions) == 1:
        return first
    others = _each(functions[1:])

    @part
    def every(m):
        first(m)
        others(m)
    return every


ask = _each([unit.ask for unit in UNITS])
step = _each([unit.step for unit in UNITS])
