# amaranth: UnusedElaboratable=no
"""A converter of two widths: every lane and every stream gives the mantissas of the width that is asked for.

Covers: rtl/convert/encode_lane.py, rtl/convert/encode.py.
"""

import numpy as np
import pytest

from golden.bfp import encode
from golden.noise import Stream
from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.convert.encode import Encode, elements_layout, encoded_layout
from rtl.convert.encode_lane import EncodeLane
from tests.cases import sweep

from ..drive import Bench, Pauses, evaluate, pack, unpack
from .test_encode import block_order, decisions, least, tensor

LANES = [
    (2, 3, {}), (4, 6, {}), (4, 7, {"rounding": "truncate"}), (8, 12, {}), (8, 15, {"exponent": 5}), (9, 16, {}),
    (4, 6, {"exponent": 8}), (4, 6, {"exponent": 6, "subnormals": "gradual"}), (2, 3, {"rounding": "truncate"}),
    (4, 6, {"rounding": "stochastic", "noise_bits": 8}), (8, 12, {"rounding": "stochastic", "exponent": 7}),
    (3, 5, {"rounding": "stochastic", "noise_bits": 1, "exponent": 5}),
]


@pytest.mark.parametrize("narrow, wide, options", sweep(5, LANES))
def test_lane_equals_golden_at_either_width(narrow, wide, options):
    formats = [HBFPFormat(mantissa=bits, block=(1, 2), **options) for bits in (narrow, wide)]
    rng = np.random.default_rng(1)
    low, high = formats[0].exponent_range
    fields = {0, 1, 2, 100, 127, 254} | {f for f in (low + 125, low + 126, low + 127, high + 125, high + 126,
                                                     high + 127, high + 134, high + 160) if 0 <= f <= 254}
    inputs = {name: [] for name in ("i", "top", "base", "wide", "least", "noise")}
    want = []
    for fmt in formats:
        for field in sorted(fields):
            bits = decisions(fmt, field)
            x = np.stack([bits, np.full_like(bits, field << 23)], -1).view(np.float32)
            noise = rng.integers(0, 2 ** fmt.noise_bits, x.shape) if fmt.rounding == "stochastic" else None
            blocks = encode(x, fmt, noise)
            top = int(blocks.exponent[0, 0]) + 126
            base = top + wide - fmt.mantissa
            inputs["i"] += bits.tolist()
            inputs["top"] += [top] * len(bits)
            inputs["base"] += [base] * len(bits)
            inputs["wide"] += [int(fmt.mantissa == wide)] * len(bits)
            inputs["least"] += [least(formats[1], base)] * len(bits)
            inputs["noise"] += noise[:, 0].tolist() if noise is not None else []
            want += blocks.mantissa[:, 0].tolist()
    if not inputs["noise"]:
        del inputs["noise"]
    got = evaluate(EncodeLane(formats[1], narrow=narrow), inputs, "o")
    assert got.tolist() == want
    assert formats[0].limit in want and -formats[1].limit in want and 0 in want


#: Shape of a block, rows, registers.
SHAPES = {"one-beat": ((1, 4), 4, 0), "cut": ((1, 4), 4, 2), "three-beats": ((1, 12), 4, 0), "tile": ((4, 4), 4, 0)}


@pytest.mark.parametrize("rounding, shape", sweep(5, [
    (rounding, shape) for rounding in ("rne", "stochastic", "truncate") for shape in SHAPES]))
def test_blocks_of_either_width_in_one_stream(shape, rounding):
    """The width changes from block to block; of a block's beats the last one says it."""
    block, rows, pipeline = SHAPES[shape]
    design = Design(format=HBFPFormat(mantissa=4, block=block, rounding=rounding), rows=rows, cols=2, wide=6,
                    pipeline=pipeline)
    a, b = block
    lanes, beats, rng = design.encode_lanes, design.encode_beats, np.random.default_rng(1)
    x = tensor((8 * a, 3 * b), design.format)
    asked = rng.integers(0, 2, (24, beats))
    noise = Stream(1, lanes).draw(x.shape, design.format) if rounding == "stochastic" else None
    either = [encode(x, fmt, noise) for fmt in (design.format, design.widest)]
    mantissa = np.where(asked[:, -1:], *(block_order(blocks.mantissa, design.format) for blocks in either[::-1]))
    words = block_order(x.view(np.uint32), design.format).reshape(-1, lanes)
    dut, layout = Encode.of(design), elements_layout(lanes, wide=True)
    bench = Bench(dut)
    bench.send(dut.i, [pack(layout, value=word, wide=bit) for word, bit in zip(words, asked.reshape(-1), strict=True)],
               Pauses(0.4, 6))
    got = bench.receive(dut.o, len(words), Pauses(0.4, 5))
    bench.run()
    beats_of = [unpack(encoded_layout(design), word) for word in got]
    assert [beat["mantissa"] for beat in beats_of] == mantissa.reshape(-1, lanes).tolist()
    assert [beat["exponent"][0] for beat in beats_of] == either[0].exponent.reshape(-1).repeat(beats).tolist()
    assert [beat["invalid"][0] for beat in beats_of] == either[0].invalid.reshape(-1).repeat(beats).tolist()
    assert len(set(asked[:, -1])) == 2
