# amaranth: UnusedElaboratable=no
"""Whole tiny cores in Amaranth's simulator against the golden products.

Covers: rtl/accumulate/shared_accumulator.py, rtl/accumulate/shared_control.py, rtl/accumulate/block_sum.py,
rtl/accumulate/turn.py.
"""

import numpy as np
import pytest

import golden.fp32 as fp32
from golden.bfp import encode
from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.convert.encode import encoded_layout
from rtl.core.core import Core
from rtl.core.sequencer import command_layout
from rtl.lib.layout import ArrayLayout
from rtl.number.streams import result_layout
from tests.cases import sweep

from ..drive import Bench, Pauses, pack, unpack
from ..tiles import Operands

NAN = 0x7FC00000
#: (accumulate, mantissa, block, rows, cols, extras): segments, ragged edges, long blocks, narrow exponents.
DESIGNS = {
    "2x2": ("fp32", 4, (1, 2), 2, 2, {}),
    "3x5": ("fp32", 8, (1, 3), 3, 5, {}),
    "segments": ("fp32", 8, (1, 2), 4, 4, {}),
    "segments-aligned": ("aligned", 4, (1, 2), 4, 4, {"guard": 2, "growth": 4}),
    "long": ("fp32", 3, (1, 4), 2, 3, {}),
    "long-aligned": ("aligned", 8, (4, 4), 2, 2, {}),
    "idle-rows": ("fp32", 6, (1, 2), 5, 2, {"ragged": True}),
    "uneven-long": ("aligned", 6, (1, 5), 2, 2, {"ragged": True}),
    "one-bank": ("fp32", 8, (1, 2), 2, 3, {"banks": 1}),
    "one-bank-aligned": ("aligned", 8, (4, 4), 2, 2, {"banks": 1}),
    "one-bank-segments": ("aligned", 4, (1, 2), 4, 4, {"banks": 1, "growth": 4, "side_lanes": 2}),
    "one-bank-pipelined": ("fp32", 6, (1, 4), 2, 2, {"banks": 1, "pipeline": 3}),
    "one-tile": ("fp32", 8, (1, 4), 4, 4, {"weight_tiles": 1, "banks": 1, "group": (1, 1)}),
    "pipelined": ("fp32", 8, (1, 2), 2, 3, {"pipeline": 3}),
    "pipelined-segments": ("fp32", 4, (1, 4), 8, 2, {"pipeline": 4, "group": (1, 2)}),
    "pipelined-long": ("fp32", 6, (1, 4), 2, 2, {"pipeline": 5}),
    "fpga": ("fp32", 8, (1, 2), 2, 3, {"pipeline": 6, "fabric": "fpga"}),
    "fpga-segments": ("bf16", 4, (1, 2), 4, 2, {"pipeline": 1, "fabric": "fpga", "group": (1, 2), "side_lanes": 1}),
    "fpga-aligned": ("aligned", 6, (1, 4), 4, 2, {"pipeline": 2, "fabric": "fpga", "banks": 1}),
    "fpga-long": ("fp32", 6, (1, 4), 2, 2, {"pipeline": 2, "fabric": "fpga"}),
    "pipelined-aligned": ("aligned", 4, (1, 4), 8, 2, {"pipeline": 4, "group": (1, 2)}),
    "pipelined-elements": ("fp32", 4, (1, 7), 14, 2, {"pipeline": 7, "group": (1, 2)}),
    "pipelined-recoded": ("fp32", 4, (1, 4), 4, 2, {"pipeline": 7, "multiplier": "recoded", "group": (2, 2)}),
    "recoded": ("fp32", 4, (1, 2), 2, 2, {"multiplier": "recoded"}),
    "share": ("fp32", 8, (1, 8), 2, 4, {"share": 4, "group": (1, 2)}),
    "share-aligned": ("aligned", 8, (4, 4), 2, 4, {"share": 2}),
    "share-uneven": ("aligned", 6, (1, 5), 2, 4, {"share": 2, "ragged": True, "group": (2, 1)}),
    "share-fp24": ("fp24", 8, (1, 6), 2, 2, {"share": 2, "exponent": 5}),
    "share-bf16": ("bf16", 8, (1, 4), 2, 2, {"share": 2, "exponent": 13}),
    "share-pipelined": ("fp32", 8, (1, 4), 2, 2, {"share": 2, "pipeline": 7}),
    "share-pipelined-aligned": ("aligned", 6, (1, 8), 2, 4, {"share": 4, "pipeline": 3, "side_lanes": 2}),
    "share-recoded": ("fp32", 4, (1, 4), 2, 2, {"share": 2, "multiplier": "recoded"}),
    "narrow-exponent": ("fp32", 8, (1, 4), 4, 2, {"exponent": 6}),
    "wide": ("fp32", 4, (1, 4), 4, 4, {"wide": 6}),
    "wide-tiles": ("bf16", 5, (4, 4), 4, 4, {"wide": 7, "group": (1, 4)}),
    "wide-long": ("fp32", 4, (1, 4), 2, 2, {"wide": 6}),
}
STEPS = {"none": (0, 0, 0), "all": (1, 1, 1), "bias": (0, 1, 0), "scale-relu": (1, 0, 1)}


def make(accumulate, mantissa, block, rows, cols, extras, depth=6):
    extras = dict(extras)
    fmt = HBFPFormat(mantissa=mantissa, block=block, exponent=extras.pop("exponent", 10))
    return Design(format=fmt, rows=rows, cols=cols, accumulate=accumulate, depth=depth, **extras)


def awkward(rng, shape, invalid=True):
    """Numbers of many magnitudes, zeros, the largest, a NaN and an Inf."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 7, shape)
    x *= 2.0 ** rng.choice([0, 0, 0, -70, 60], (shape[0], 1))
    x[rng.random(shape) < 0.1] = 0
    x = x.astype(np.float32)
    if invalid:
        x[rng.integers(shape[0]), rng.integers(shape[1])] = rng.choice([np.nan, np.inf, -np.inf])
    return x


def stepped(y, scale, bias, relu, steps):
    """Side unit of the golden model, on bits."""
    if steps[0]:
        y = fp32.mul(y, scale, subnormals="flush")
    if steps[1]:
        y = fp32.add(y, bias, subnormals="flush")
    if steps[2]:
        y = fp32.max(y, np.uint32(0))
    return y


def run(design, products, pauses=(0, 0, 0, 0), steps=(0, 0, 0), seed=0):
    """Outputs and expected bits of several products, one after the other, one command a column tile.

    A product is ``x, w``, or with a third part that says whether its weights are sparse. The last of ``pauses`` may be
    a function instead of a rate.
    """
    dut = Core.of(design)
    rng = np.random.default_rng(seed)
    commands, xs, ws, vs, want = [], [], [], [], []
    for x, w, *sparse in products:
        operands = Operands(design, x, w, *sparse)
        ws += operands.w_beats()
        for columns in operands.column_tiles:
            fields = {"rows": len(x), "tiles": len(operands.tiles)}
            y = np.zeros((len(x), design.cols), operands.want.dtype)
            y[:, :len(columns)] = operands.want[:, columns]
            if design.arithmetic != "int":
                fields |= dict(zip(("scale", "bias", "relu"), steps, strict=True))
                scale, bias = rng.standard_normal((2, design.cols)).astype(np.float32).view(np.uint32)
                for step, vector in zip(steps, (scale, bias), strict=False):
                    vs += [pack(ArrayLayout(32, design.cols), value=vector)] if step else []
                y = stepped(y, scale, bias, None, steps)
            if design.takes_sparse:
                fields["sparse"] = operands.sparse
            if design.wide:    # commands with mantissas of one digit
                fields |= {"wide_x": 0, "wide_w": 0}
            commands.append(pack(command_layout(design), **fields))
            xs += operands.x_beats()
            want += [(row[:len(columns)].tolist(), last) for row, last in zip(y, [0] * (len(x) - 1) + [1], strict=True)]
    bench = Bench(dut)
    bench.send(dut.i_cmd, commands)
    bench.send(dut.i_x, xs, Pauses(pauses[0], 1))
    bench.send(dut.i_w, ws, Pauses(pauses[1], 2))
    if vs:
        bench.send(dut.i_v, vs, Pauses(pauses[2], 3))
    words = bench.receive(dut.o, len(want), pauses[3] if callable(pauses[3]) else Pauses(pauses[3], 4))
    bench.run()
    got = []
    for word, (row, _) in zip(words, want, strict=True):
        beat = unpack(result_layout(design), word)
        got.append((beat["value"][:len(row)], beat["last"][0]))
    return got, want


def products(design, seed=1, rows=(6, 1, 2, 4, 5)):
    """Products of every number of rows, ragged along K and N."""
    rng = np.random.default_rng(seed)
    result = []
    for m in rows:
        k, n = rng.integers(1, 3 * design.format.terms + 2), rng.integers(1, design.cols + 2)
        result.append((awkward(rng, (m, k), m == 2), awkward(rng, (k, n), m == 5)))
    return result


@pytest.mark.parametrize("name", sweep(3, DESIGNS))
def test_products_equal_golden(name):
    design = make(*DESIGNS[name])
    got, want = run(design, products(design))
    assert got == want
    values = [v for row, _ in want for v in row]
    assert NAN in values and len(set(values)) > 10


PAUSES = {"all": (0.4, 0.4, 0.5, 0.5), "idle-x": (0.6, 0, 0, 0), "idle-w": (0, 0.8, 0, 0), "stall": (0, 0, 0, 0.7)}


@pytest.mark.parametrize("pauses", sweep(3, PAUSES))
def test_pauses_change_nothing(pauses):
    design = make(*DESIGNS["segments"])
    got, want = run(design, products(design), PAUSES[pauses], STEPS["all"])
    assert got == want


@pytest.mark.parametrize("name", sweep(3, ["share", "share-aligned", "share-pipelined"]))
@pytest.mark.parametrize("pauses", sweep(4, PAUSES))
def test_pauses_change_nothing_where_columns_share(name, pauses):
    design = make(*DESIGNS[name])
    got, want = run(design, products(design, rows=(6, 1, 1, 1, 2, 6, 4, 1, 5)), PAUSES[pauses], STEPS["all"])
    assert got == want


class Shut:
    """A way out that is open for a few cycles and then shut for as long as any row needs to its bank."""

    def __init__(self, cycles=30):
        self.cycles, self.rng, self.states = cycles, np.random.default_rng(7), []

    def __call__(self):
        if not self.states:
            self.states = [False] * int(self.rng.integers(1, 7)) + [True] * self.cycles
        return self.states.pop(0)


@pytest.mark.parametrize("name", sweep(4, ["one-bank-pipelined", "one-bank", "one-bank-segments", "one-bank-aligned"]))
def test_one_bank_keeps_what_a_shut_way_out_has_not_read(name):
    """Commands of one pass and of more, of few rows and of many, behind rows that stay in the bank for long."""
    design = make(*DESIGNS[name])
    got, want = run(design, products(design, 3, (6, 6, 1, 2, 6, 4, 5)), (0, 0, 0, Shut()), STEPS["bias"])
    assert got == want


@pytest.mark.parametrize("rows", sweep(2, [1, 2, 3]))
def test_few_rows_and_late_last_row(rows):
    """A row that comes late must be in its bank before the next pass adds to it."""
    design = make(*DESIGNS["2x2"])
    rng = np.random.default_rng(rows)
    x, w = rng.standard_normal((rows, 16)).astype(np.float32), rng.standard_normal((16, 2)).astype(np.float32)
    got, want = run(design, [(x, w)] * 4, (0.7, 0, 0, 0))
    assert got == want


@pytest.mark.parametrize("steps", sweep(2, ["bias", "all", "scale-relu", "none"]))
def test_side_unit_equals_golden(steps):
    design = make(*DESIGNS["2x2"])
    got, want = run(design, products(design, 2), (0, 0, 0.5, 0), STEPS[steps])
    assert got == want


@pytest.mark.parametrize("arithmetic, multiplier, pipeline", [
    ("fma", "plain", 0), ("int", "recoded", 0), ("bf16", "plain", 1), ("int8", "plain", 0), ("int8", "recoded", 0),
    *sweep(20, [("fp32", "plain", 0), ("bf16", "plain", 0), ("fp32", "plain", 3), ("fp32", "recoded", 1),
               ("int", "plain", 0), ("fp32", "recoded", 8), ("fma", "plain", 2), ("fma", "recoded", 4),
               ("bf16", "plain", 3), *((name, "recoded", 0) for name in ("fp32", "fma", "bf16"))])])
def test_baseline_equals_golden(arithmetic, multiplier, pipeline):
    group = (1, 2) if multiplier == "recoded" and not pipeline else None    # sums go from group to group
    design = Design(rows=2, cols=2, arithmetic=arithmetic, depth=4, multiplier=multiplier, pipeline=pipeline,
                    group=group)
    rng = np.random.default_rng(3)
    if arithmetic == "int":
        data = [tuple(rng.integers(-127, 128, shape) for shape in ((m, 5), (5, 3))) for m in (4, 1, 3)]
    else:
        few = multiplier == "recoded" and not pipeline    # rows of full adders take long here
        data = [tuple(awkward(rng, shape, False) for shape in ((m, 5), (5, 3))) for m in ((2,) if few else (4, 1, 3))]
        data[0][0][1], data[0][1][:, 0] = 2.0 ** -130, 1    # a subnormal sum, which IEEE keeps
    if arithmetic == "int8":
        data[0][0][0] = 117.0    # sums that are no zeros
    steps = (0, 0, 1) if arithmetic == "fma" else STEPS["none"]    # ReLU keeps subnormals
    got, want = run(design, data, (0.3, 0.3, 0, 0.3), steps)
    assert got == want
    subnormal = any(0 < value < 0x800000 for row, _ in want for value in row)
    assert arithmetic == "int" or subnormal == (arithmetic == "fma")


def test_conversion_beside_a_product():
    """The converter works on while the array does."""
    design = make(*DESIGNS["segments"])
    dut, x = Core.of(design), awkward(np.random.default_rng(5), (12, design.format.terms))
    blocks = encode(x, design.format)
    layout = ArrayLayout(32, design.encode_lanes)
    bench = Bench(dut)
    bench.send(dut.i_q, [pack(layout, value=row) for row in x.view(np.uint32).reshape(-1, design.encode_lanes)])
    got = bench.receive(dut.o_q, x.size // design.encode_lanes, Pauses(0.4))
    bench.run()
    beats = [unpack(encoded_layout(design), word) for word in got]
    assert np.array_equal(np.array([b["mantissa"] for b in beats]).reshape(x.shape), blocks.mantissa)
    assert [b["exponent"][0] for b in beats] == blocks.exponent.reshape(-1).tolist()
