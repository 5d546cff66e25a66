# amaranth: UnusedElaboratable=no
"""FP32 -> HBFP equals golden.bfp.encode; docs/numerics.md, sections 2 and 6.

Covers: rtl/convert/encode_lane.py, rtl/lib/layout.py.
"""

import numpy as np
import pytest

from golden.bfp import encode
from golden.noise import Stream, mix
from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.convert.encode import Encode, encoded_layout
from rtl.convert.encode_lane import EncodeLane
from rtl.lib.layout import ArrayLayout
from tests.cases import sweep

from ..drive import Bench, Pauses, evaluate, pack, unpack

INF, NAN = 0x7F800000, 0x7FC00001
LANES = [
    {"mantissa": 2}, {"mantissa": 3}, {"mantissa": 8}, {"mantissa": 16}, {"mantissa": 8, "rounding": "truncate"},
    {"mantissa": 2, "rounding": "truncate"}, {"mantissa": 5, "subnormals": "gradual"},
    {"mantissa": 16, "subnormals": "gradual", "exponent": 5}, {"mantissa": 8, "exponent": 5},
    {"mantissa": 8, "exponent": 6}, {"mantissa": 4, "exponent": 7, "rounding": "truncate"},
    {"mantissa": 6, "exponent": 8, "subnormals": "gradual"}, {"mantissa": 8, "exponent": 9},
    {"mantissa": 8, "exponent": 16}, {"mantissa": 4, "rounding": "stochastic", "noise_bits": 8},
    {"mantissa": 16, "rounding": "stochastic", "noise_bits": 24},
    {"mantissa": 8, "rounding": "stochastic", "noise_bits": 1, "exponent": 5},
    {"mantissa": 2, "rounding": "stochastic", "noise_bits": 12, "subnormals": "gradual"},
]


def least(fmt, top):
    """Smallest field within the distances that a shifter of whole powers of two reaches; of field 0 only if gradual."""
    looked_at = {"rne": 1, "truncate": 0, "stochastic": fmt.noise_bits}[fmt.rounding]
    reach = 2 ** (fmt.magnitude + looked_at - 1).bit_length() - 1
    return max(top - reach, int(fmt.subnormals == "flush"))


def show(options):
    return "-".join(f"{name[0]}{value}" for name, value in options.items())


def decisions(fmt, field):
    """FP32 bits on both sides of every decision, of blocks with this largest exponent field."""
    m, fractions = fmt.magnitude, set()
    for cut in range(0, 24):
        for base in (0, 1 << cut, 3 << cut, (1 << 23) - (1 << cut), 5 << max(cut - 2, 0)):
            fractions |= {base - 1, base, base + 1}
    fractions = [f for f in sorted(fractions) if 0 <= f < 1 << 23]
    kept = max(24 - m, 0)
    distances = {0, 1, 2, m - 1, m, m + 1, m + 2, kept, 24, 25, 31, 32, 33, 64, 128, 254}
    distances |= {d + fmt.noise_bits for d in (m - 1, m, m + 1)} if fmt.rounding == "stochastic" else set()
    fields = sorted({field - d for d in distances if field - d >= 0} | {0, 1} & set(range(field + 1)))
    rng = np.random.default_rng(field)
    values = [f << 23 | fraction for f in fields for fraction in rng.choice(fractions, 14).tolist()]
    values += [f << 23 | fraction for f in fields[-3:] for fraction in (0, 1, (1 << 23) - 1)]
    return np.array(values, np.uint32) | (rng.integers(0, 2, len(values), np.uint32) << 31)


def lane(fmt):
    """Inputs of a lane, by their names, and what is expected."""
    rng = np.random.default_rng(1)
    low, high = fmt.exponent_range
    fields = {0, 1, 2, 100, 127, 254} | {f for f in (low + 125, low + 126, low + 127, high + 125, high + 126,
                                                     high + 127, high + 134, high + 160) if 0 <= f <= 254}
    values, tops, want, noises = [], [], [], []
    for field in sorted(fields):
        bits = decisions(fmt, field)
        x = np.stack([bits, np.full_like(bits, field << 23)], -1).view(np.float32)    # the second sets the block
        noise = None
        if fmt.rounding == "stochastic":
            most = 2 ** fmt.noise_bits - 1
            noise = rng.integers(0, most + 1, x.shape)
            noise = np.where(rng.random(x.shape) < 0.3, rng.choice([0, most], x.shape), noise)
            noises += noise[:, 0].tolist()
        blocks = encode(x, fmt, noise)
        values += bits.tolist()
        tops += [int(blocks.exponent[0, 0]) + 126] * len(bits)
        want += blocks.mantissa[:, 0].tolist()
    inputs = {"i": values, "top": tops, "least": [least(fmt, top) for top in tops]}
    return inputs | ({"noise": noises} if noises else {}), want


@pytest.mark.parametrize("options", sweep(2, LANES), ids=show)
def test_lane_equals_golden(options):
    fmt = HBFPFormat(**options, block=(1, 2))
    inputs, want = lane(fmt)
    got = evaluate(EncodeLane(fmt), inputs, "o")
    assert got.tolist() == want
    assert fmt.limit in want and -fmt.limit in want and 0 in want


# --- The whole converter -------------------------------------------------------------------------


def tensor(shape, fmt, seed=1):
    """Rows of many magnitudes with zeros, subnormals, the largest numbers, NaN and Inf; some blocks all zero."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 3, shape)).astype(np.float32)
    x *= np.float32(2) ** rng.choice([0, 0, -60, 80, -126], (shape[0], 1)).astype(np.float32)
    x[rng.random(shape) < 0.15] = 0
    x[rng.random(shape) < 0.05] = np.float32(1e-42)
    flat = x.reshape(-1)
    flat[rng.integers(flat.size, size=2)] = np.array([INF, NAN], np.uint32).view(np.float32)
    x[-1] = 0
    return x


def block_order(array, fmt):
    """Elements as they enter the converter: blocks of the grid row-major, row-major inside."""
    a, b = fmt.block
    rows, cols = array.shape
    return array.reshape(rows // a, a, cols // b, b).swapaxes(1, 2).reshape(-1, a * b)


def convert(design, x, pauses=(0, 0)):
    """Beats of the hardware for a tensor."""
    dut, lanes = Encode.of(design), design.encode_lanes
    layout = ArrayLayout(32, lanes)
    words = [pack(layout, value=row) for row in block_order(x.view(np.uint32), design.format).reshape(-1, lanes)]
    bench = Bench(dut)
    bench.send(dut.i, words, Pauses(pauses[0], 6))
    got = bench.receive(dut.o, len(words), Pauses(pauses[1], 5))
    bench.run()
    return [unpack(encoded_layout(design), word) for word in got]


def expected(design, x, seed=1):
    """The same beats from the golden model."""
    fmt, lanes = design.format, design.encode_lanes
    noise = Stream(seed, lanes).draw(x.shape, fmt) if fmt.rounding == "stochastic" else None
    blocks = encode(x, fmt, noise)
    mantissa = block_order(blocks.mantissa, fmt).reshape(-1, lanes)
    scales = zip(blocks.exponent.reshape(-1).tolist(), blocks.invalid.reshape(-1).tolist(), strict=True)
    scales = [scale for scale in scales for _ in range(design.encode_beats)]
    return [{"mantissa": m.tolist(), "exponent": [e], "invalid": [int(i)]}
            for m, (e, i) in zip(mantissa, scales, strict=True)]


#: One beat a block, with a register and without, several, a tile; lanes that are no power of two, and fewer ones.
SHAPES = {"fewer": ((1, 8), 8, {"convert_lanes": 2}), "fewer-tile": ((4, 4), 4, {"convert_lanes": 2}),
          "one-beat": ((1, 4), 4), "cut": ((1, 4), 4, 2), "two-beats": ((1, 8), 4), "seven-beats": ((1, 7), 3),
          "tile": ((4, 4), 4), "odd-tile": ((3, 3), 3), "three-lanes": ((1, 6), 3)}
RULES = {"rne": {}, "truncate": {"rounding": "truncate"}, "gradual": {"subnormals": "gradual"},
         "stochastic": {"rounding": "stochastic"}, "narrow": {"exponent": 5}}


def make(shape, rule="rne", mantissa=8):
    block, rows, *more = SHAPES[shape]
    more = {"pipeline": more[0]} if more and isinstance(more[0], int) else dict(*more)
    return Design(format=HBFPFormat(mantissa=mantissa, block=block, **RULES[rule]), rows=rows, cols=1, ragged=True,
                  **more)


def data(design, seed=1):
    a, b = design.format.block
    return tensor((8 * a, 3 * b), design.format, seed)


@pytest.mark.parametrize("shape, rule", sweep(3, [(shape, rule) for shape in SHAPES for rule in ("rne", "stochastic")]))
def test_stream_equals_golden(shape, rule):
    design = make(shape, rule)
    x = data(design)
    want = expected(design, x)
    assert convert(design, x) == want
    assert any(beat["invalid"][0] for beat in want)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_equals_golden(rule):
    design = make("two-beats", rule, 5)
    x = data(design, 2)
    assert convert(design, x) == expected(design, x)


@pytest.mark.parametrize("shape, idle, stall", sweep(5, [
    (shape, *pauses) for shape in ("one-beat", "cut", "two-beats", "odd-tile", "fewer")
    for pauses in ((0.5, 0.5), (0.5, 0), (0.1, 0.8), (0, 0.5))]))
def test_pauses_change_nothing(shape, idle, stall):
    design = make(shape, "stochastic")
    x = data(design, 3)
    assert convert(design, x, pauses=(idle, stall)) == expected(design, x)


@pytest.mark.parametrize("shape", ["cut", "two-beats", "fewer", "fewer-tile"])
def test_one_beat_a_cycle(shape):
    """Neither side ever waits, once the first block is through."""
    design = make(shape)
    dut, beats = Encode.of(design), 40
    cycles = []

    async def play(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.valid, 1)
        for cycle in range(beats + 10):
            if cycle == beats:
                ctx.set(dut.i.valid, 0)
            _, _, ready, valid = await ctx.tick().sample(dut.i.ready, dut.o.valid)
            assert ready or cycle >= beats
            if valid:
                cycles.append(cycle)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    first = design.encode_beats - 1 + Encode.Parameters.of(design).latency
    assert cycles == list(range(first, first + beats))


@pytest.mark.parametrize("shape, cycles_after", [("one-beat", 1), ("cut", 2), ("tile", 3)])
def test_latency(shape, cycles_after):
    design = make(shape)
    assert Encode.Parameters.of(design).latency == cycles_after
    dut, cycles = Encode.of(design), []

    async def play(ctx):
        ctx.set(dut.o.ready, 1)
        for cycle in range(40):
            ctx.set(dut.i.valid, cycle < design.encode_beats)
            if (await ctx.tick().sample(dut.o.valid))[2]:
                cycles.append(cycle)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    first = design.encode_beats - 1 + Encode.Parameters.of(design).latency
    assert cycles == list(range(first, first + design.encode_beats))


def conversation(design, script):
    """Play ``(reset | seed | tensor)`` items one after the other; beats that the tensors gave."""
    dut, results = Encode.of(design), []
    layout = ArrayLayout(32, design.encode_lanes)

    async def play(ctx):
        ctx.set(dut.o.ready, 1)
        for kind, value in script:
            if kind == "reset":
                ctx.set(bench.reset, 1)
                await ctx.tick()
                ctx.set(bench.reset, 0)
            elif kind == "seed":
                ctx.set(dut.i_seed.payload, value)
                ctx.set(dut.i_seed.valid, 1)
                while not (await ctx.tick().sample(dut.i_seed.ready))[2]:
                    pass
                ctx.set(dut.i_seed.valid, 0)
            else:
                x, beats = value
                order = block_order(x.view(np.uint32), design.format).reshape(-1, design.encode_lanes)
                words = [pack(layout, value=row) for row in order][:beats]
                sent, got, limit = 0, [], len(words) if beats is None else 0
                while sent < len(words) or len(got) < limit:
                    ctx.set(dut.i.valid, sent < len(words))
                    ctx.set(dut.i.payload.as_value(), words[sent] if sent < len(words) else 0)
                    _, _, ready, valid, word = await ctx.tick().sample(dut.i.ready, dut.o.valid,
                                                                       dut.o.payload.as_value())
                    sent += ready and sent < len(words)
                    if valid:
                        got.append(unpack(encoded_layout(design), word))
                ctx.set(dut.i.valid, 0)
                results.append(got)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    return results


@pytest.mark.parametrize("cut", sweep(2, [1, 3, 6, 9]))
def test_reset_in_mid_stream(cut):
    """What follows a reset is as from the start: no half block, no old maximum, random words from the first."""
    design = make("tile", "stochastic")
    before, x = data(design, 4) * np.float32(2 ** 20), data(design, 5)
    got = conversation(design, [("x", (before, cut)), ("reset", None), ("x", (x, None))])
    assert got[-1] == expected(design, x)


@pytest.mark.parametrize("seed", sweep(3, [0, 7, 0xFFFFFFFF, 0x0AF4F978]))    # the last clears lane 0
def test_seed_restarts_the_noise(seed):
    design = make("two-beats", "stochastic")
    x = data(design, 6)
    got = conversation(design, [("x", (x, None)), ("seed", mix(seed)), ("x", (x, None))])
    assert got == [expected(design, x), expected(design, x, seed)]
    assert got[0] != got[1]
