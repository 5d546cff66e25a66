"""Ports of memories: of those that ask, the first in the table that the RTL has, too.

Covers: golden/perf/accelerator/record.py, hbfp/isa/ports.py.
"""

from itertools import product

import pytest

from golden.perf.accelerator import ports
from golden.perf.accelerator.record import made
from hbfp.isa.instructions import Unit
from hbfp.isa.ports import PORTS, users


@pytest.mark.parametrize("name", PORTS)
def test_the_first_that_asks(name):
    state, number = made(ports.STATE), ports.NUMBER[name]
    for asking in product((False, True), repeat=len(Unit)):
        who = [unit for unit, asks in zip(Unit, asking, strict=True) if asks and unit in PORTS[name]]
        for unit in who:
            ports.ask(state, number, unit)
        ports.grant(state)
        first = next((unit for unit in PORTS[name] if unit in who), 0)
        assert state["grants"][number] == first and state["grants"].sum() == first
        assert [unit for unit in Unit if ports.granted(state, number, unit)] == [first] * (first > 0)


def test_what_never_waits_comes_first():
    """A pass of the vector unit stalls for no write, convert for none to W: these may not come later."""
    assert users("v_write")[0] == "vector" and users("w_write")[0] == users("w_scales")[0] == "convert"
    assert all(len(PORTS[name]) == 1 for name in ("x_read", "x_write", "w_read", "p_read", "p_write"))
