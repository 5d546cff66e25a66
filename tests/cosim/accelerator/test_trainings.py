"""Random trainings against PyTorch: on the golden machine and on the Verilog; what differs is told with its number.

Covers: cosim/work/random_trainers.py.
"""

import numpy as np
import pytest

from cosim.accelerator import trainings
from cosim.emit import emit_accelerator
from cosim.work.random_trainers import draw_trainer
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator
from tests.cases import sweep

from .built import ACCELERATOR, LEVEL


def machine(rows=8, block=(1, 8), mantissa=8, accumulate="fp32", rounding="rne", wide=0, **sizes):
    core = Design(format=HBFPFormat(mantissa=mantissa, block=block, rounding=rounding), rows=rows,
                  accumulate=accumulate, depth=32, wide=wide)
    return Accelerator(core=core, **{"x_words": 256, "w_words": 512, "v_words": 256} | sizes)


MACHINES = {
    "blocks": machine(), "tiles": machine(block=(8, 8)), "aligned": machine(accumulate="aligned"),
    "four": machine(4, (1, 4)), "four tiles": machine(4, (4, 4), rounding="stochastic"),
    "stochastic": machine(rounding="stochastic"), "stochastic tiles": machine(block=(8, 8), rounding="stochastic"),
    "wide": machine(mantissa=4, wide=6), "wide tiles": machine(mantissa=4, block=(8, 8), rounding="stochastic", wide=6),
    "long blocks": machine(block=(16, 16), vector_lanes=4, row_words=8, v_words=512)}


@pytest.mark.parametrize("name, seed", sweep(2, [("four", 11), ("tiles", 9), ("stochastic", 8), ("wide", 9)]))
def test_a_few(name, seed):
    found = trainings.run(None, MACHINES[name], [seed])
    assert (found.count, found.failures, found.none) == (1, {}, []) and found.numbers > 500


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_many(name):
    found = trainings.run(None, MACHINES[name], range(1000, 1025))
    assert not found.failures and not found.none and found.numbers > 50_000


def test_accelerators_that_train():
    drawn = [draw_trainer(1, number) for number in range(20)]
    assert not any(each.dispatch or each.dispatch_ring for each in drawn)    # Verilog has none before one context
    assert drawn[7] == draw_trainer(1, 7) and {each.core.rows for each in drawn} == {4, 8, 16}


def test_a_difference_is_told(monkeypatch):
    """A bit of a weight behind a step, and a program that ends too early."""
    own = trainings.Untimed.read

    def read(self, name, shift=0):
        values = own(self, name, shift)
        if name.endswith("weight after"):
            values.view(np.uint32)[(0,) * values.ndim] ^= 1
        return values
    monkeypatch.setattr(trainings.Untimed, "read", read)
    found = trainings.run(None, MACHINES["blocks"], [11, 12])
    assert found.count == 2 and 11 in found.failures
    assert "weight after: 1 of" in found.failures[11] and "Linear(" in found.failures[11]


def test_what_cannot_be_lowered_is_told(monkeypatch):
    from golden.lower.training import random_trainings
    monkeypatch.setattr(random_trainings, "lower_step", lambda *_, **__: {}["gone"])
    found = trainings.run(None, MACHINES["blocks"], [11])
    assert found.failures[11].startswith("KeyError: 'gone'; Sequential(") and found.numbers == 0


@pytest.mark.cosim
def test_verilog(monkeypatch):
    """Bits and cycles, which are not those of a DRAM that is slower."""
    manifest, own = emit_accelerator(ACCELERATOR), trainings.training.times
    found = trainings.run(manifest, ACCELERATOR, [11], level=LEVEL)
    assert not found.failures and found.count == 1 and found.numbers > 500
    monkeypatch.setattr(trainings.training, "times", lambda program, latency, slow, bandwidth: own(
        program, latency, slow + 9, bandwidth))
    found = trainings.run(manifest, ACCELERATOR, [11], level=LEVEL)
    assert found.failures[11].startswith("the cycle model says other cycles in steps [0, 1]; Sequential(")
