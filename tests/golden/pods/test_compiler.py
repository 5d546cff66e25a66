"""Programs for machines of pods: what becomes of layers, what is refused, and that files keep them.

Covers: golden/pods/layers.py, golden/pods/places.py, golden/pods/program.py, golden/pods/tiles.py,
golden/pods/execute.py.
"""

import re

import numpy as np
import pytest

from golden.core.core import matmul
from golden.pods.compiler import compiled
from golden.pods.execute import execute, outputs, product
from golden.pods.layers import Layer, fused
from golden.pods.machine import WHOLE
from golden.pods.program import from_text
from hbfp.format import HBFPFormat
from hbfp.options import pods_from_values
from hbfp.program import ProgramError
from tests.golden.perf.pods.check import verify

FMT = HBFPFormat(mantissa=8, block=(1, 4))
DESIGN = pods_from_values({"rows": 8, "block": (1, 4), "pods": 4, "bank": 256})


def some(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def mlp(seed=0, sizes=(20, 12, 9, 5), m=11, fmt=None):
    rng = np.random.default_rng(seed)
    return [Layer(f"l{n}", n - 1 if n else some(rng, m, sizes[0]), some(rng, *sizes[n:n + 2]),
                  bias=some(rng, sizes[n + 1]), relu=n < len(sizes) - 2, fmt=fmt) for n in range(len(sizes) - 1)]


def results(design, layers):
    """What the program of layers computes: layer -> results that are kept."""
    job = compiled(design, layers)
    shapes = [(gemm.m, gemm.n) for gemm in job.outcome.tiles.gemms]
    return outputs(job.program, execute(job.program, design.core.format), shapes)


def forward(design, layers, chain=WHOLE):
    """The last layer's results: from the core's golden model, or added up in chains."""
    x = layers[0].x
    for layer in layers:
        if chain == WHOLE:
            x = matmul(design.core, x, layer.w, scale=layer.scale, bias=layer.bias, relu=layer.relu)
        else:
            x = product(x, layer.w, design.core.format, chain * design.core.rows) + layer.bias
            x = np.maximum(x, 0) if layer.relu else x
    return x


def test_chains_differ_from_one_array():
    """Another order is another definition: there are numbers whose bits tell."""
    x, w = (some(np.random.default_rng(seed), *shape) for seed, shape in ((1, (8, 64)), (2, (64, 8))))
    x *= 2.0 ** np.random.default_rng(3).integers(-12, 12, (8, 64), np.int32)    # sums that round
    whole, chains = (product(x, w, FMT, terms) for terms in (64, 8))
    assert not same(whole, chains) and np.allclose(whole, chains, rtol=1e-3, atol=1e-3)


def same(got, want):
    return (got.view(np.uint32) == want.view(np.uint32)).all()


@pytest.mark.parametrize("interconnect", ["butterfly-1", "butterfly-2", "crossbar", "benes"])
@pytest.mark.parametrize("partition, chain", [(None, WHOLE), (3, WHOLE), (11, 2), (None, 1)])
def test_programs_compute_what_the_law_says(interconnect, partition, chain):
    design = pods_from_values({"rows": 8, "block": (1, 4), "pods": 4, "bank": 256, "interconnect": interconnect})
    layers = mlp()
    job = compiled(design, layers, partition, chain)
    verify(job.outcome.tiles, job.outcome.machine, job.outcome.plan)
    got = outputs(job.program, execute(job.program, design.core.format), [(11, 12), (11, 9), (11, 5)])
    assert list(got) == [2] and same(got[2], forward(design, layers, chain))


def test_places_are_used_again_and_hold_one_tile_at_a_time():
    """No sum is overwritten before it is read: all have room in a bank that is far too small for all at once."""
    design = pods_from_values({"rows": 8, "block": (1, 4), "pods": 4, "bank": 256})
    layers = [Layer("long", some(np.random.default_rng(1), 40, 200), some(np.random.default_rng(2), 200, 32))]
    operations = compiled(design, layers).outcome.tiles.operations
    assert operations * 8 / 4 > 2 * design.bank and same(results(design, layers)[0], forward(design, layers))


def test_a_file_keeps_a_program():
    job = compiled(DESIGN, mlp())
    again = from_text(job.program.text())
    assert again.text() == job.program.text()
    assert same(*(outputs(each, execute(each, FMT), [(11, 12), (11, 9), (11, 5)])[2] for each in (job.program, again)))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"key": 1}'])
def test_no_program(text):
    with pytest.raises(ProgramError, match="^Program must be a file that this command has saved$"):
        from_text(text)


def test_fused_models_have_the_bits_of_each_alone():
    models = [mlp(seed) for seed in range(3)]
    got = results(DESIGN, fused(models))
    for b, model in enumerate(models):
        assert same(got[2 * 3 + b], forward(DESIGN, model))


@pytest.mark.parametrize("mantissa", [2, 4, 7])
def test_narrow_mantissas_on_a_wider_array(mantissa):
    """A product of a narrower format has the bits that its own array gives, and the program says so."""
    fmt = HBFPFormat(mantissa=mantissa, block=(1, 4))
    layer = mlp(sizes=(20, 12), fmt=fmt)
    own = pods_from_values({"rows": 8, "block": (1, 4), "mantissa": mantissa})
    assert same(results(DESIGN, layer)[0], forward(own, layer))
    assert compiled(DESIGN, layer).program.notes == (
        f"Mantissas of {mantissa} bits run in one pass on an array of 8",)
    assert not compiled(DESIGN, mlp()).program.notes


# --- Mistakes --------------------------------------------------------------------------------------


def layers_with(number, **changed):
    """The layers of an MLP with fields of one changed."""
    layers = mlp()
    layers[number] = Layer(**{name: getattr(layers[number], name) for name in Layer.__dataclass_fields__} | changed)
    return layers


W = np.zeros((7, 5), np.float32)


@pytest.mark.parametrize("layers, message", [
    (layers_with(2, w=W), "Layer l2 must have as many rows of W as columns of X, not 7 and 9"),
    (layers_with(0, x=0), "Layer l0 must read one of the layers before it, not number 0"),
    (layers_with(2, x=0, w=np.zeros((12, 5), np.float32)),
     "Layer l0 must be read by one layer alone: its results become tiles of X once"),
    (layers_with(1, fmt=HBFPFormat(mantissa=4, block=(1, 4))),
     "Layer l1 must have mantissas of 8 bits, not 4: its X is converted by the machine"),
    (layers_with(0, fmt=HBFPFormat(mantissa=9, block=(1, 4))),
     "Layer l0 must have mantissas of at most 8 bits, not 9"),
    (layers_with(0, fmt=HBFPFormat(rounding="truncate", block=(1, 4))),
     "Layer l0 must have exponents and rounding as the machine"),
], ids=str)
def test_layers_that_are_refused(layers, message):
    with pytest.raises(ProgramError, match=f"^{re.escape(message)}$"):
        compiled(DESIGN, layers)


@pytest.mark.parametrize("sizes, partition, message", [
    ({"bank": 16}, 17, "Bank of 16 rows must hold a tile of 17 rows"),
    ({"bank": 8}, None, "Bank of 8 rows must hold 2 tiles of 8 rows of X at once"),
    ({"bank": 64}, None, "Bank of 64 rows must hold 9 tiles of 8 rows of W at once"),
    ({"rounds": 4}, None, "Schedule memories of 4 rounds must hold 32"),
], ids=str)
def test_memories_that_are_too_small(sizes, partition, message):
    design = pods_from_values({"rows": 8, "block": (1, 4), "pods": 2} | sizes)
    layers = [Layer("a", W[:1].repeat(20, 0).repeat(8, 1), np.zeros((40, 32), np.float32))]
    with pytest.raises(ProgramError, match=f"^{message}$"):
        compiled(design, layers, partition)


@pytest.mark.parametrize("other, message", [
    (mlp()[:2], "Models cannot be fused: model 1 has 2 layers, model 0 has 3"),
    (layers_with(1, w=np.zeros((12, 8), np.float32)),
     "Models cannot be fused: layer l1 of model 1 has shape 11x12x8, that of model 0 11x12x9"),
    (layers_with(2, x=np.zeros((11, 9), np.float32)),
     "Models cannot be fused: layer l2 of model 1 reads another layer than that of model 0"),
], ids=str)
def test_models_that_cannot_be_fused(other, message):
    with pytest.raises(ProgramError, match=f"^{message}$"):
        fused([mlp(), other])
