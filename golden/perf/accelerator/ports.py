"""The ports of the memories, cycle by cycle: who is granted one, by the table that the RTL has, too."""

import numpy as np
from numba import njit

from hbfp.isa.instructions import Unit
from hbfp.isa.ports import PATIENT, PORTS

from .record import Record, record

#: Port -> its number; no port is 0.
NUMBER = {name: number for number, name in enumerate(PORTS, 1)}
_COUNT = len(PORTS) + 1
#: Users of each port in their order, then zeros.
_USERS = np.zeros((_COUNT, max(map(len, PORTS.values()))), np.int64)
for _name, _units in PORTS.items():
    _USERS[NUMBER[_name], :len(_units)] = _units

#: Whether memories have one port. Of each port: who asks, bit u for unit u, and for which bank of the memory; who has
#: it, 0 for none.
STATE = record("", "single", wants=(np.int64, (_COUNT,)), banks=(np.int64, (_COUNT, len(Unit) + 1)),
               grants=(np.int64, (_COUNT,)))
#: Ports by which a memory is read, and written; exponents and places of W are memories beside it.
_PATIENT = np.zeros(_COUNT, np.int64)
for _name, _unit in PATIENT.items():
    _PATIENT[NUMBER[_name]] = _unit
_PAIRS = (*((NUMBER[f"{name}_read"], NUMBER[f"{name}_write"]) for name in "vxwp"),
          *((NUMBER[f"w_{name}_read"], NUMBER[f"w_{name}"]) for name in ("scales", "index")))


@njit
def ask(s: Record, port: int, unit: int, bank: int) -> None:
    """A unit asks for a port in this cycle."""
    s.wants[port] |= 1 << unit
    s.banks[port, unit] = bank


@njit
def granted(s: Record, port: int, unit: int) -> bool:
    """Whether it has it."""
    return s.grants[port] == unit


@njit
def grant(s: Record) -> None:
    """Who has which port in this cycle, of those that have asked."""
    for port in range(1, _COUNT):
        s.grants[port] = 0
        if s.wants[port] != 0:
            for unit in _USERS[port]:
                if s.wants[port] >> unit & 1:
                    s.grants[port] = unit
                    break
            s.wants[port] = 0
    if s.single:
        for read, write in _PAIRS:
            reader, writer = s.grants[read], s.grants[write]
            if reader != 0 and writer != 0 and s.banks[read, reader] == s.banks[write, writer]:
                s.grants[write if _PATIENT[write] == writer else read] = 0
