"""The ports of the memories, cycle by cycle: who is granted one, by the table that the RTL has, too."""

import numpy as np
from numba import njit

from hbfp.isa.ports import PORTS

from .record import Record, record

#: Port -> its number; no port is 0.
NUMBER = {name: number for number, name in enumerate(PORTS, 1)}
_COUNT = len(PORTS) + 1
#: Users of each port in their order, then zeros.
_USERS = np.zeros((_COUNT, max(map(len, PORTS.values()))), np.int64)
for _name, _units in PORTS.items():
    _USERS[NUMBER[_name], :len(_units)] = _units

#: Of each port: who asks, bit u for unit u, and who has it, 0 for none.
STATE = record(wants=(np.int64, (_COUNT,)), grants=(np.int64, (_COUNT,)))


@njit
def ask(s: Record, port: int, unit: int) -> None:
    """A unit asks for a port in this cycle."""
    s.wants[port] |= 1 << unit


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
