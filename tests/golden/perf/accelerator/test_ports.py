"""Ports of memories: of those that ask, the first in the table that the RTL has, too.

Covers: golden/perf/accelerator/record.py, hbfp/isa/ports.py.
"""

from itertools import product

import pytest

from golden.perf.accelerator import ports
from golden.perf.accelerator.record import made
from hbfp.isa.instructions import Unit
from hbfp.isa.ports import PATIENT, PORTS, users


@pytest.mark.parametrize("name", PORTS)
def test_the_first_that_asks(name):
    state, number = made(ports.STATE), ports.NUMBER[name]
    for asking in product((False, True), repeat=len(Unit)):
        who = [unit for unit, asks in zip(Unit, asking, strict=True) if asks and unit in PORTS[name]]
        for unit in who:
            ports.ask(state, number, unit, 0)
        ports.grant(state)
        first = next((unit for unit in PORTS[name] if unit in who), 0)
        assert state["grants"][number] == first and state["grants"].sum() == first
        assert [unit for unit in Unit if ports.granted(state, number, unit)] == [first] * (first > 0)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("read, write", [("v_read", "v_write"), ("x_read", "x_write"), ("w_read", "w_write"),
                                         ("w_scales_read", "w_scales"), ("w_index_read", "w_index"),
                                         ("p_read", "p_write")])
def test_a_bank_of_one_port_is_read_or_written(read, write, single):
    """The write goes first, unless it is a patient unit's; other banks, and memories of two ports, do both."""
    state, numbers = made(ports.STATE, single=single), (ports.NUMBER[read], ports.NUMBER[write])
    for reader, writer, same in product(PORTS[read], PORTS[write], (False, True)):
        ports.ask(state, numbers[0], reader, 1)
        ports.ask(state, numbers[1], writer, 1 if same else 0)
        ports.grant(state)
        got = [state["grants"][number] for number in numbers]
        patient = PATIENT.get(write) == writer
        assert got == ([reader, writer] if not (single and same) else [reader, 0] if patient else [0, writer])


def test_what_never_waits_comes_first():
    """A pass of the vector unit stalls for no write, convert for none to W: these may not come later."""
    assert users("v_write")[0] == "vector" and users("w_write")[0] == users("w_scales")[0] == "convert"
    assert all(len(PORTS[name]) == 1 for name in ("x_read", "x_write", "w_read", "p_read", "p_write"))
    assert not {"convert", "vector"} & {unit.name.lower() for unit in PATIENT.values()}
