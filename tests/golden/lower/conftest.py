"""The fixture of tests whose programs have the cost that a table says."""

import pytest

from golden.machine.machine import Machine
from golden.perf.accelerator import model

from . import costs as kept


@pytest.fixture
def costs(request, monkeypatch):
    """Of all programs that run on the golden machine within a test; see :mod:`tests.golden.lower.costs`."""
    programs, run = [], Machine.run

    def noted(machine):
        programs.append(machine.program)
        run(machine)
    monkeypatch.setattr(Machine, "run", noted)
    monkeypatch.setattr(model, "LIMIT", kept.LIMIT)        # so that one that never ends fails soon
    yield
    if not programs or request.node.get_closest_marker("slow"):
        return
    test, found = request.node.nodeid.removeprefix("tests/golden/lower/"), kept.cost(programs)
    if (written := request.config.pluginmanager.get_plugin(kept.WRITTEN)) is not None:
        written.table[test] = found
    elif found != (known := kept.table().get(test)):
        pytest.fail(f"{found} instructions, cycles, bytes and bytes before, where the table has {known}: "
                    "python -m tests.golden.lower.costs writes it anew", pytrace=False)
