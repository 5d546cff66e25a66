"""Both networks behind the dispatcher of the Verilog: every bit, every cycle, and what goes wrong.

Covers: cosim/colocate/verilog.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosim.accelerator.device import Device, Timing
from cosim.accelerator.host import read
from cosim.colocate.run import on_verilog
from cosim.colocate.verilog import Host, Site
from cosim.emit import emit_accelerator
from golden.lower.rewriting import Rewritten
from golden.perf.accelerator.colocate.dispatched import quanta
from hbfp.isa.instructions import Opcode
from hbfp.isa.registers import Cause

from .both import MEMORY, SYSTEM, both

pytestmark = [pytest.mark.cosim, pytest.mark.slow]
TIMING = Timing(*MEMORY)
ARRIVALS = [2000, 2100, 2200, 2300, 9000, 20000, 20100, 20200, 20300, 20400, 20500, 20600]


@pytest.fixture(scope="module")
def manifest():
    return emit_accelerator(SYSTEM)


def hosted(manifest, given, site=None):
    """A device in its reset, and the host that has it."""
    site = site or Site(given.clients, given.plan.train and given.plan.train.program)
    trainer = given.trainer(site.training)
    device = Device(manifest.verilog, manifest.top, beat=SYSTEM.beat, memory=site.memory, burst=SYSTEM.burst,
                    contexts=2, timing=TIMING, level="-O0")
    return device, Host(device, site, given.clients, trainer, given.plan.policy)


@pytest.mark.parametrize("words", [False, True])
def test_every_bit_and_every_cycle(manifest, words):
    found, shown = on_verilog(manifest, both(ARRIVALS, words=words), timing=TIMING, level="-O0")
    assert found.answers.compared == 5 * len(ARRIVALS) and found.steps > 2 and found.weights.compared > 100
    assert found.passed and not found.late and not found.exceeded and shown.cause is None and not shown.refused


def test_on_several_arrays():
    """Four cores of 8 x 8: every bit, every cycle."""
    system = replace(SYSTEM, arrays=4)
    given = both(ARRIVALS, system=system)
    found, _ = on_verilog(emit_accelerator(system), given, timing=Timing(MEMORY[0], system.beat), level="-O0")
    assert found.answers.compared == 5 * len(ARRIVALS) and found.steps > 2 and found.weights.compared > 100
    assert found.passed and not found.late and not found.exceeded


def test_beside_training_and_alone(manifest):
    """Of each request, within a quantum and what changes take."""
    beside, alone = (on_verilog(manifest, both(ARRIVALS, train=train), timing=TIMING, level="-O0")[0]
                     for train in (True, False))
    assert beside.passed and alone.passed
    # Arrivals differ by the registers that a host writes for the training in between.
    assert np.abs(beside.latency - alone.latency).max() <= beside.plan.quantum + 200


@pytest.mark.parametrize("count", [60, 7000])
def test_faster_than_service(manifest, count):
    """A queue that is full refuses; what is refused comes again, in order, and nothing is lost, in a million cycles."""
    given = both([2000] * count)
    found, shown = on_verilog(manifest, given, timing=TIMING, level="-O0")
    assert shown.refused > 0 and found.refused == shown.refused
    assert found.passed and found.answers.compared == 5 * count
    ended = [each.finished for _, each in sorted(shown.completions.items())]
    assert ended == sorted(ended) and len(ended) == count


def test_reset_within_a_batch(manifest):
    """What was asked before is forgotten, and what is asked behind it is answered."""
    given = both(ARRIVALS, train=False)
    device, host = hosted(manifest, given)
    with device:
        first = Host(device, host.site, given.clients, None, replace(given.plan.policy, timeout=0))
        first.attach()
        device.idle(1500)
        for request in range(3):
            first.ask(request)
        while not read(device, "dispatch_status") >> 2 & 1:
            device.idle(1)
        device.idle(given.plan.service // 2)
        device.reset()
        assert read(device, "completion") == 0 and read(device, "dispatch_status") & 0b101 == 0
        shown = host.run(given.arrivals)
    assert sorted(shown.completions) == list(range(len(ARRIVALS)))
    assert shown.answers.compared == 5 * len(ARRIVALS) and not shown.answers.mismatches


def broken(given, change):
    """The same with another training program, and a host that does not compare it."""
    made = given.plan.train
    return replace(given, plan=replace(given.plan, train=Rewritten(change(made.program), made.numbers)))


def served(manifest, given, prepare=lambda device, host: None):
    """What came of it where the training goes wrong: inference within its bound, every answer right."""
    device, host = hosted(manifest, given)
    with device:
        prepare(device, host)
        shown = host.run(given.arrivals)
    assert sorted(shown.completions) == list(range(len(given.arrivals))) and not shown.failed
    assert shown.answers.compared and not shown.answers.mismatches
    latency = max(each.finished - each.arrived for each in shown.completions.values())
    return shown, latency


def test_training_without_yield(manifest):
    """It is stopped with a cause of its own, and inference goes on, in the models' cycles."""
    given = both(ARRIVALS)
    program, patience = given.step.lowered.program, given.plan.quantum + 100
    policy = replace(given.plan.policy, patience=patience)
    forever, latency = Rewritten(program, np.arange(len(program.instructions))), manifest.data.latency
    given = replace(given, plan=replace(given.plan, train=forever, policy=policy, pieces=given.plan.pieces[:1],
                                        quanta=quanta(program, latency, *MEMORY)))
    found, shown = on_verilog(manifest, given, timing=TIMING, level="-O0")
    assert shown.cause == Cause.OVERDUE and not shown.failed
    assert found.answers.compared and not found.answers.mismatches and not found.late and not found.exceeded


def test_a_bus_error_in_training(manifest):
    given = both(ARRIVALS)
    tensor = given.plan.train.program.tensors["loss"].address

    def poison(device, host):
        start = host.site.training.base + tensor
        device.poison(start, start + SYSTEM.beat)
    shown, latency = served(manifest, given, poison)
    assert shown.cause == Cause.BUS and latency <= given.plan.bound(SYSTEM.dispatch) + 4096


def test_an_error_of_the_training_program(manifest):
    """An address beyond its share, in the middle of a step."""
    given = both(ARRIVALS)

    def beyond(program):
        number = max(n for n, each in enumerate(program.instructions) if each.opcode == Opcode.LOAD)
        wrong = replace(program.instructions[number], values=program.instructions[number].values | {"base": 1 << 15})
        return program.rewritten({number: wrong})
    shown, latency = served(manifest, broken(given, beyond))
    assert shown.cause == Cause.ADDRESS and latency <= given.plan.bound(SYSTEM.dispatch) + 4096


def test_nan_in_training(manifest):
    """Weights become NaN, as PyTorch's do; nobody who is served notices."""
    given = both(ARRIVALS)
    given = replace(given, batches=(((inputs[0] * np.nan,), targets) for (inputs, targets) in given.batches))
    found, _ = on_verilog(manifest, given, timing=TIMING, level="-O0")
    assert found.passed and found.steps > 1
