"""A small Verilated machine of pods: every bit against golden values, every cycle against the simulator.

Covers: cosim/pods/run.py, rtl/pods/pods.py, rtl/pods/bank.py, rtl/pods/post_processor.py, rtl/pods/rounds.py,
rtl/pods/tile_walk.py, golden/pods/words.py, golden/pods/execute.py, golden/pods/machine.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosim.pods.check import check
from cosim.pods.run import Pods
from golden.core import core
from golden.perf.pods.first_fit import first_fit
from golden.perf.pods.tiling import cut
from golden.pods.compiler import compiled
from golden.pods.execute import execute, outputs
from golden.pods.layers import Layer
from golden.pods.machine import WHOLE, machine
from hbfp.options import pods_from_values
from hbfp.program import ProgramError

pytestmark = pytest.mark.cosim
SMALL = {"rows": 2, "block": (1, 1), "group": (1, 2), "pods": 4, "bank": 64, "rounds": 128}


def mlp(rng, *sizes, m=10):
    """Layers that each read the one before, with all the steps that there are."""
    def some(*shape):
        return rng.normal(size=shape).astype(np.float32)
    count = len(sizes) - 1
    return [Layer(f"layer {n}", n - 1 if n else some(m, sizes[0]), some(*sizes[n:n + 2]),
                  some(sizes[n + 1]) if n % 2 else None, some(sizes[n + 1]) if n < 2 else None, n < count - 1)
            for n in range(count)]


@pytest.fixture(scope="module")
def pods():
    return Pods(pods_from_values(SMALL))


def compare(pods, name, job, written):
    """The check of a run."""
    values = execute(job.program, pods.design.core.format)
    return check(name, pods.design, job.program, written, values, job.outcome.cycles)


@pytest.mark.parametrize("chain", [WHOLE, 3, 1])
def test_every_bit_and_every_cycle(pods, chain):
    layers = mlp(np.random.default_rng(1), 14, 9, 12, 5)
    job = compiled(pods.design, layers, chain=chain)
    result = compare(pods, "mlp", job, pods.run(job.program))
    assert result.passed and not result.values.first and not result.cycles.first
    assert result.figures["cycles"] == result.figures["simulated"] == job.outcome.cycles
    assert result.values.compared > 500 and result.cycles.compared > 500


def test_short_products_share_rounds(pods):
    """Their tiles lie in different banks, which are read at once; numbered from bank 0 in each, they would wait."""
    rng = np.random.default_rng(3)
    layers = [Layer(f"head {n}", *rng.normal(size=(2, 2, 2)).astype(np.float32)) for n in range(4)]
    job = compiled(pods.design, layers)
    assert compare(pods, "heads", job, pods.run(job.program)).passed
    assert job.outcome.plan.round.tolist() == [0, 0, 0, 0]
    tiles = cut(job.outcome.tiles.gemms, [2] * 4, 2, 2, multiple=4)
    assert first_fit(tiles, job.outcome.machine, range(4), [0] * 4).round.tolist() == [0, 1, 2, 3]


def test_manifest_has_the_cycles_of_the_simulator(pods):
    target, latency = machine(pods.design), pods.manifest.latency
    assert latency == {"network": target.latency, "product": target.product_cycles, "result": target.sum_cycles,
                       "round": target.round(target.rows)}


def test_extremes(pods):
    """Inf and NaN, numbers that cancel, sums that overflow and underflow."""
    rng = np.random.default_rng(2)
    layers = mlp(rng, 12, 8, 8, m=8)
    x, w = layers[0].x, layers[0].w
    x[1], x[2], w[:, 3] = 3e38, 1e-38, 2e38
    x[3, 2], w[5, 6] = np.nan, np.inf
    w[:6, 1] = -w[6:, 1]
    job = compiled(pods.design, layers)
    assert compare(pods, "extremes", job, pods.run(job.program)).passed


@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_all_sizes(pods, seed):
    """Terms far apart and near each other, sums that almost cancel; in the last layer NaN and Inf in some columns."""
    rng = np.random.default_rng(seed)
    layers = mlp(rng, 14, 9, 12, 5)
    for layer in layers:
        layer.w[:] *= np.float32(2) ** rng.integers(-10, 11, layer.w.shape).astype(np.float32)
    x, last = layers[0].x, layers[-1].w
    x *= np.float32(2) ** rng.choice([0, 0, 0, -20, 20, -100, 60], x.shape).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = 0
    layers[0].w[7:] = -layers[0].w[:7] * (1 + np.float32(2) ** -rng.integers(5, 24, (7, 9)).astype(np.float32))
    last[seed, seed], last[seed + 2, (seed + 3) % 5] = np.nan, np.inf
    job = compiled(pods.design, layers, chain=[WHOLE, 3, 2, 1][seed])
    assert compare(pods, "sizes", job, pods.run(job.program)).passed


def test_differences_are_seen(pods):
    """Another weight, another place, another round: none goes unnoticed."""
    job = compiled(pods.design, mlp(np.random.default_rng(3), 14, 9, 5))
    spot, tile = next(iter(job.program.w.items()))
    other = tile.mantissa.copy()
    other[0, 0] ^= 1
    weight = replace(job.program, w={**job.program.w, spot: tile._replace(mantissa=other)})
    assert compare(pods, "weight", job, pods.run(weight)).values.mismatches > 0
    longer = compare(pods, "length", job, pods.run(replace(job.program, length=job.program.length + 1)))
    assert longer.cycles.mismatches > 0 and not longer.passed
    first = job.program.operations[0]
    moved = (replace(first[0], out=first[0].out._replace(address=first[0].out.address + 4)), *first[1:])
    place = replace(job.program, operations=[moved, *job.program.operations[1:]])
    assert compare(pods, "place", job, pods.run(place)).values.mismatches > 0


def test_a_run_for_another_machine(pods):
    """The compiler's words are refused, and so is a run whose key is another's: nothing begins, `error` is high."""
    job = compiled(pods.design, mlp(np.random.default_rng(4), 8, 4))
    other = pods_from_values(SMALL | {"bank": 32})
    with pytest.raises(ProgramError, match=f"^Program must be for machine {other.key:08x}, not for "
                                           f"{pods.design.key:08x}$"):
        job.program.require(other.key)
    written = pods.run(job.program, key=other.key)
    assert not len(written.begins) and not any(written.events.values()) and written.error and not written.busy
    assert not pods.run(job.program).error


def test_chains_are_the_core(pods):
    """Results have the bits of golden.core.core.matmul, layer by layer: the order of sums is that of one array."""
    layers = mlp(np.random.default_rng(5), 14, 9, 12, 5)
    job = compiled(pods.design, layers)
    design, x = pods.design.core, layers[0].x
    for layer in layers:
        x = core.matmul(design, x, layer.w, scale=layer.scale, bias=layer.bias, relu=layer.relu)
    shapes = [(10, layer.w.shape[1]) for layer in layers]
    got = outputs(job.program, execute(job.program, design.format), shapes)
    assert list(got) == [2] and (got[2].view(np.uint32) == x.view(np.uint32)).all()
