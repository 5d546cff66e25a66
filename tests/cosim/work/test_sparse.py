"""The pruned digits network on a small core: bits, cycles, and the errors of either order."""

import numpy as np
import pytest

from cosim.emit import emit
from cosim.simulate.simulation import Simulation
from cosim.work.device import Core
from cosim.work.digits import SIZES, prepare, prepare_pruned
from cosim.work.sparse import lines, order_errors, sparse_workload
from golden.bfp import decode, encode
from golden.perf.cycles import product_cycles
from golden.sparsity import prune
from hbfp.design import Design
from hbfp.format import HBFPFormat


def test_fine_tuned_weights_stay_pruned():
    for n, m in ((2, 4), (1, 4)):
        for before, layer in zip(prepare()[0], prepare_pruned(n, m)[0], strict=True):
            assert np.array_equal(prune(layer.weight, n, m), layer.weight)
            assert (layer.weight != 0).mean() > 0.9 * n / m
            assert not np.array_equal(prune(before.weight, n, m), layer.weight)


@pytest.mark.cosim
def test_sparse_network_takes_half_of_the_cycles():
    design = Design(format=HBFPFormat(mantissa=6, block=(1, 8)), rows=4, cols=8, sparse=(2, 4), depth=64)
    manifest = emit(design)
    with Simulation(manifest, level="-O1") as simulation:
        outcome = sparse_workload(Core(simulation))
        with pytest.raises(ValueError, match="^Each group of 4 must hold at most 2 numbers that are not zero, not 4$"):
            Core(simulation).matmul(np.ones((1, 4), np.float32), np.ones((4, 1), np.float32), sparse=True)
    assert outcome.passed and outcome.comparison.compared > 2 * 360 * sum(SIZES)
    notes = outcome.notes
    for name in ("dense", "sparse"):
        want = sum(product_cycles(design, manifest.latency, 360, k, n, 1, sparse=name == "sparse")
                   for k, n in zip(SIZES, SIZES[1:], strict=False))
        assert notes[f"{name}_cycles"] == want
    assert 1.9 < notes["dense_cycles"] / notes["sparse_cycles"] < 2
    assert notes["accuracy"] > 0.95
    assert len(list(lines(notes))) == 5


def test_errors_of_both_orders():
    """Rounded weights tie: of those the lowest stays, which need not be the largest."""
    design = Design(format=HBFPFormat(mantissa=3, block=(1, 4)), rows=4, sparse=(2, 4))
    w = np.array([[3.1], [3.2], [3.3], [3.0]], np.float32)
    first, last = order_errors(design, w)
    want = decode(encode(prune(w, 2, 4), design.format, axis=0))
    assert first == np.linalg.norm(np.float64(want) - w) / np.linalg.norm(np.float64(w))
    assert want.ravel().tolist() == [0, 3, 3, 0] and last > first


def test_dense_cores_take_no_sparse_weights():
    class Simulated:
        class manifest:
            design = Design()

    message = "^Weights must be dense: hbfp_m8_e10_b1x32_r32_c32_g8x4_fp32 takes no sparse ones$"
    with pytest.raises(ValueError, match=message):
        Core(Simulated).matmul(None, None, sparse=True)
