# amaranth: UnusedElaboratable=no
"""Convert writes what golden.bfp.encode gives, to X and W, by rows and by columns, in the cycles that it states.

Covers: rtl/accelerator/block_order.py, rtl/accelerator/transposer.py.
"""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from amaranth import Value

from golden.bfp import encode
from golden.machine import elements
from golden.machine.convert import convert
from golden.machine.memories import Memories
from golden.machine.random_instructions import Draw
from golden.position import numbers as drawn
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import NUMBERS, Accelerator
from rtl.accelerator.convert import Convert
from rtl.accelerator.layouts import x_piece_layout
from tests.cases import sweep

from ..drive import Pauses, pack, unpack
from .served import Served, word

SIDE = 8
#: Whether to W, and by columns.
KINDS = ((0, 0), (1, 0), (1, 1), (0, 1))
FORMATS = {
    "short": {"block": (1, 4)}, "whole": {"block": (1, 8)}, "long": {"block": (1, 16)}, "longer": {"block": (1, 24)},
    "small tiles": {"block": (4, 4)}, "tiles": {"block": (8, 8)}, "large tiles": {"block": (16, 16)},
    "hbfp4": {"block": (1, 8), "mantissa": 4, "rounding": "truncate"},
    "w12": {"block": (2, 2), "mantissa": 12}, "narrow exponents": {"block": (1, 8), "exponent": 6},
    "stochastic hbfp4": {"block": (1, 8), "mantissa": 4, "exponent": 6, "rounding": "stochastic"},
    "stochastic tiles": {"block": (16, 16), "rounding": "stochastic"},
    "stochastic": {"block": (1, 16), "rounding": "stochastic"},
    "wide": {"block": (1, 8), "mantissa": 4, "wide": 6}, "wide tiles": {"block": (8, 8), "mantissa": 4, "wide": 7},
    "wide long": {"block": (1, 16), "mantissa": 5, "wide": 6, "rounding": "stochastic"},
    "wide small tiles": {"block": (4, 4), "mantissa": 5, "wide": 9, "exponent": 6},
    "sparse": {"block": (1, 16), "sparse": (2, 4)}, "sparse tiles": {"block": (16, 16), "sparse": (2, 4)},
    "sparse few": {"block": (1, 32), "mantissa": 4, "sparse": (1, 4), "rounding": "stochastic"},
    "sparse wide": {"block": (1, 16), "mantissa": 4, "wide": 6, "sparse": (2, 4)},
    "sparse many": {"block": (32, 32), "mantissa": 5, "sparse": (4, 8)},
    "sparse wide tiles": {"block": (32, 32), "mantissa": 5, "wide": 9, "sparse": (4, 8), "rounding": "stochastic"},
    "wide large tiles": {"block": (16, 16), "mantissa": 4, "wide": 6, "rounding": "stochastic"},
    "registered": {"block": (1, 16), "rounding": "stochastic", "fabric": "fpga"},
    "registered tiles": {"block": (8, 8), "fabric": "fpga"},
    "registered wide": {"block": (1, 8), "mantissa": 4, "wide": 6, "fabric": "fpga"},
}
#: What the register of that name has.
SEED = 0x6A09E667


#: Numbers that share no exponents.
PLAIN = [name for name in NUMBERS if name != "hbfp"]


def system(wide=0, sparse=(1, 1), fabric="gates", **options):
    return Accelerator(core=Design(rows=SIDE, wide=wide, sparse=sparse, pipeline=4 * (fabric == "fpga"), fabric=fabric,
                                   format=HBFPFormat(**options)))


def numbers(rng, shape):
    """FP32 numbers over all exponents, with zeros, subnormals, and now and then an infinity or a NaN."""
    centre = rng.integers(20, 230)
    field = np.clip(centre + rng.integers(-9, 10, shape), 0, 254)
    field = np.where(rng.random(shape) < 0.15, 0, field)
    field = np.where(rng.random(shape) < 0.004, 255, field)
    return (rng.integers(0, 2, shape, np.uint32) << 31 | field.astype(np.uint32) << 23
            | rng.integers(0, 2 ** 23, shape, np.uint32)).view(np.float32)


def wanted(sizes, i, matrix):
    """What an instruction writes: X address -> (mantissas, exponents, flags), and W row, W segment -> likewise."""
    fmt, side, height = sizes.core.format, SIDE, sizes.core.height
    terms, segments = fmt.terms, sizes.core.segments
    x, rows, scales = {}, {}, {}
    columns, noise = i["columns"], ()
    if i.get("stochastic"):
        places = i["place"] + np.arange(i["rows"])[:, None] * i["place_row"] + np.arange(i["words"])
        noise = (drawn(i["key"] ^ SEED, places, SIDE).reshape(len(matrix), -1),)
    fmt = sizes.conversion(i.get("wide", 0), bool(noise))
    if i["to_w"] or columns:
        unit = max(side, terms) if columns else side
        matrix, *noise = (np.concatenate([each, np.zeros((-len(each) % unit, each.shape[1]), each.dtype)])
                          for each in (matrix, *noise))
    if i.get("prune"):
        kept = pruned(sizes, matrix)
        matrix = np.where([np.isin(np.arange(matrix.shape[1]), line) for line in kept], matrix, np.float32(0))
    blocks = encode(matrix, fmt, *noise, axis=0 if columns else -1) if sizes.core.blocked else elements.encode(
        sizes.core, matrix, fmt, axis=0 if columns else -1)

    def scale(r, c):
        r, c = instead(i, r, c)
        at = (r // terms, c // terms) if fmt.square else (r // terms, c) if columns else (r, c // terms)
        return int(blocks.exponent[at]), int(blocks.invalid[at])

    if i.get("wide"):
        blocks = replace(blocks, mantissa=np.array([[
            digit(sizes.core, i, r, c, int(blocks.mantissa[instead(i, r, c)])) for c in range(blocks.mantissa.shape[1])]
            for r in range(len(blocks.mantissa))]))
    if i.get("sparse"):
        kept = [kept[instead(i, r, 0)[0]] for r in range(len(kept))]
        return {}, *compressed(sizes, i, kept, blocks, scale)
    for r, k in np.ndindex(len(matrix), i["words"]):
        if not i["to_w"] and columns:
            if r % side == 0:
                for lane in range(side):
                    address = (i["target"] + r // side * i["target_row"] + k * i["target_word"] + lane) % 2 ** 18
                    x[address] = (blocks.mantissa[r:r + side, k * side + lane].tolist(),
                                  *zip(*(scale(r + s * height, k * side + lane) for s in range(segments)), strict=True))
        elif not i["to_w"]:
            address = (i["target"] + r * i["target_row"] + k * i["target_word"]) % 2 ** 18
            x[address] = (blocks.mantissa[r, k * side:(k + 1) * side].tolist(),
                          *zip(*(scale(r, k * side + s * height) for s in range(segments)), strict=True))
        elif columns:
            address = (i["target"] + k * i["target_word"] + r) % 2 ** 18
            rows[address] = blocks.mantissa[r, k * side:(k + 1) * side].tolist()
            if r % height == height - 1:
                scales[address // height] = list(zip(*(scale(r, k * side + c) for c in range(side)), strict=True))
        elif r % side == 0:
            for lane in range(side):
                address = (i["target"] + r // side * i["target_row"] + k * side + lane) % 2 ** 18
                rows[address] = blocks.mantissa[r:r + side, k * side + lane].tolist()
                if lane % height == height - 1:
                    scales[address // height] = list(zip(*(scale(r + c, k * side + lane) for c in range(side)),
                                                         strict=True))
    return x, rows, scales


def pruned(sizes, matrix):
    """The lanes of a matrix that pruning keeps, group by group: row -> list of them."""
    n, m = sizes.core.sparse
    magnitude = matrix.view(np.uint32) & 0x7FFFFFFF
    return [sorted(first + lane for first in range(0, len(line), m)
                   for lane in sorted(range(m), key=lambda lane: (-int(line[first + lane]), lane))[:n])
            for line in magnitude]


def placed(weights):
    """Weights and their places; that of a zero has no effect."""
    return [(weight, place if weight else 0) for weight, place in weights]


def compressed(sizes, i, kept, blocks, scale):
    """Rows of W, with the places of their weights in their groups, and segments, of sparse weights."""
    n, m = sizes.core.sparse
    rows, scales = {}, {}
    for first in range(0, len(kept), SIDE):
        for row in range(i["words"] * SIDE * n // m):
            address = (i["target"] + first // SIDE * i["target_row"] + row) % 2 ** 18
            lanes = [kept[first + column][row] for column in range(SIDE)]
            rows[address] = placed((int(blocks.mantissa[first + c, lane]), lane % m) for c, lane in enumerate(lanes))
            scales[address // SIDE] = list(zip(*(scale(first + c, lane) for c, lane in enumerate(lanes)), strict=True))
    return rows, scales


def patterns(sizes, line):
    """Bits of floats; the sign of a zero means nothing to the array."""
    top = 1 << sizes.mantissa - 1
    return [element & 2 * top - 1 if element & top - 1 else 0 for element in line]


def instead(i, r, c):
    """Where what stands for an element comes from: of two columns of W in place of both that of the instruction."""
    if not i.get("wide") or not i["to_w"]:
        return r, c
    return (r, c & ~1 | i["part"]) if i["columns"] else (r & ~1 | i["part"], c)


def digit(core, i, r, c, mantissa):
    """The digit of a wide mantissa that stands for an element."""
    size = 1 << core.format.mantissa - 1
    high = max(mantissa // size, 1 - size)
    upper = (c if i["columns"] else r) % 2 if i["to_w"] else 1 - i["part"]
    return high if upper else mantissa - high * size


def cycles(sizes, i):
    """Of an instruction, if all that it asks for is granted at once."""
    return steps(sizes, i) + 3 + 3 * sizes.registered + (1 + SIDE) * (i["to_w"] != i["columns"])


def steps(sizes, i):
    """Words that an instruction asks for: rows beyond the matrix are not measured, but for the first of a block, nor
    converted, if a block is a column of a square for X, behind as many as the square has.
    """
    fmt, columns = sizes.core.format, i["columns"]
    unit = max(SIDE, fmt.terms) if columns else SIDE if i["to_w"] else 1
    rows = converted = -(-i["rows"] // unit) * unit
    if fmt.terms <= SIDE and not fmt.square and not columns or not sizes.core.blocked:
        rows = 0
    elif fmt.terms <= SIDE:
        rows = sum(min(max(i["rows"] - first, 1), fmt.terms) for first in range(0, rows, fmt.terms))
        if columns and not i["to_w"] and fmt.terms == SIDE == sizes.core.height and (last := i["rows"] % SIDE):
            converted -= min(SIDE - last, last)
    return (converted + rows) * i["words"]


def some(rng, to_w, columns, stochastic=False, wide=0, spread=0):
    """A random instruction, its targets apart from each other."""
    rows, words = int(rng.integers(1, 3 * SIDE + 4)), int(rng.integers(1, 5))
    words = -(-words // spread) * spread if spread and rng.random() < 0.8 else words
    stride = int(rng.choice([words, words + 3, -words, -7 - words]))
    i = {"to_w": to_w, "columns": columns, "rows": rows, "words": words, "stride": stride,
         "base": int(rng.choice([2000, 65535])), "target": int(rng.integers(0, 1000)) * 64}
    if stochastic:
        i |= {"stochastic": 1, "key": int(rng.integers(1 << 32)), "place": int(rng.choice([6, (1 << 29) - 2])),
              "place_row": int(rng.choice([words, 12, 65535]))}
    if spread:
        i |= {"prune": int(rng.integers(4) > 0)}
        i |= {"sparse": int(to_w and not columns and words % spread == 0) * i["prune"]}
    if wide:
        i |= {"wide": int(rng.integers(4) > 0)}
        i |= {"part": int(rng.integers(2)) * i["wide"]}
    padded = -(-rows // 192) * 192                         # whole blocks of each length, so that no two words meet
    if not to_w and columns:
        return i | {"target_word": padded, "target_row": SIDE} | (
            {"target_word": -SIDE, "target_row": words * SIDE} if rng.random() < 0.5 else {})
    if not to_w:
        across = rng.random() < 0.5
        sign = int(rng.choice([-1, 1]))
        return i | {"target_row": sign * (1 if across else words), "target_word": sign * (rows if across else 1)}
    return i | ({"target_word": padded} if columns else {"target_row": words * SIDE})


def play(sizes, instructions, pause=0.0, seed=0, values=numbers):
    """Run instructions one after the other; asserts every write, and how many there are."""
    dut = Convert.of(sizes)
    bench, rng = Served(dut, 60000), np.random.default_rng(seed)
    memory, want = {}, []
    for i in instructions:
        matrix = values(rng, (i["rows"], i["words"] * SIDE))
        for r, k in np.ndindex(i["rows"], i["words"]):
            address = (i["base"] + r * i["stride"] + k) % 2 ** 18
            matrix[r, k * SIDE:(k + 1) * SIDE] = memory.setdefault(address, matrix[r, k * SIDE:(k + 1) * SIDE].copy())
        want.append(wanted(sizes, i, matrix))
    layout = dut.read.data.shape()
    bench.read(dut.read, {a: pack(layout, value=line.view(np.uint32)) for a, line in memory.items()},
               Pauses(pause, seed), shared=True)
    x, w, scales, index = (bench.write(getattr(dut, name)) if hasattr(dut, name) else []
                           for name in ("x", "w", "scales", "index"))
    if sizes.stochastic:
        bench.hold(dut.seed, SEED)
    given = bench.instructions(Opcode.CONVERT)
    bench.send(given, [word(Opcode.CONVERT, **i) for i in instructions])
    done = bench.until_done(len(instructions))
    bench.run()
    begin = -1
    for i, (want_x, want_rows, want_scales), end in zip(instructions, want, done, strict=True):
        mine = [[write for write in writes if begin < write[0] <= end] for writes in (x, w, scales, index)]
        begin = end
        got = {}
        for _, address, data, _ in mine[0]:
            fields = unpack(dut.x.data.shape(), data)
            got[address] = (fields["mantissa"],
                            *(tuple(fields[name]) for name in ("exponent", "invalid") if name in fields))
        if not sizes.core.blocked:
            want_x, got = ({address: patterns(sizes, line[0]) for address, line in each.items()}
                           for each in (want_x, got))
            want_rows, want_scales = {address: patterns(sizes, line) for address, line in want_rows.items()}, {}
        assert got == want_x and len(mine[0]) == len(got), i
        got, packed = {}, sizes.packed
        for _, address, data, mask in mine[1]:
            assert mask == 1 << address % packed
            lines = unpack(dut.w.data.shape(), data)["value"]
            got[address] = lines[address % packed * SIDE:][:SIDE]
            if not sizes.core.blocked:
                got[address] = patterns(sizes, got[address])
        places = {address: unpack(dut.index.data.shape(), data)["value"] for _, address, data, _ in mine[3]}
        if i.get("sparse"):
            got = {address: placed(zip(line, places[address], strict=True)) for address, line in got.items()}
        assert got == want_rows and len(mine[1]) == len(got), i
        assert len(mine[3]) == len(places) == (len(got) if i.get("sparse") else 0), i
        got = {}
        for _, address, data, _ in mine[2]:
            fields = unpack(dut.scales.data.shape(), data)
            got[address // sizes.core.height] = [tuple(fields["exponent"]), tuple(fields["invalid"])]
        assert got == want_scales and len(mine[2]) == len(got) * (sizes.spread if i.get("sparse") else 1), i
    return done


@pytest.mark.parametrize("number, name", sweep(16, enumerate(FORMATS), [(list(FORMATS).index("registered"),
                                                                         "registered")]))
@pytest.mark.parametrize("pause", [0.0, pytest.param(0.3, marks=pytest.mark.slow)])
def test_random_instructions(number, name, pause):
    sizes = system(**FORMATS[name])
    rng = np.random.default_rng(number)
    wide, spread = sizes.core.wide, sizes.spread if sizes.core.takes_sparse else 0
    kinds = KINDS * (2 if wide or spread else 1)
    instructions = [*(some(rng, *kind, sizes.stochastic, wide, spread) for kind in kinds),
                    some(rng, *KINDS[number % 4])]
    done = play(sizes, instructions, pause, number)
    if not pause:
        cycle = 0
        for i, end in zip(instructions, done, strict=True):
            cycle += cycles(sizes, i)
            assert end == cycle, i


@pytest.mark.parametrize("number, name, fabric", [
    *((*each, "gates") for each in enumerate(PLAIN)), (1, "bf16", "fpga")])
def test_numbers_without_exponents_come_once(number, name, fabric):
    """Moved, or rounded, in the cycles of blocks of a word."""
    core = Design(arithmetic=name, rows=SIDE, pipeline=4 * (fabric == "fpga"), fabric=fabric)
    sizes, rng = Accelerator(core=core), np.random.default_rng(number)
    instructions = [some(rng, *kind) for kind in KINDS]
    done, cycle = play(sizes, instructions, 0.0, number, near_the_edges), 0
    for i, end in zip(instructions, done, strict=True):
        cycle += cycles(sizes, i)
        assert end == cycle, i


def near_the_edges(rng, shape):
    """FP32 numbers, many of them about the least and the largest number of FP16, and about half of one's last bit."""
    values, field = numbers(rng, shape).view(np.uint32), rng.choice([112, 113, 142, 143], shape).astype(np.uint32)
    edge = values & 0x807FFFFF | field << 23
    low = rng.choice(np.array([0, 0x0FFF, 0x1000, 0x1001, 0x3000, 0x8000], np.uint32), shape)
    edge = np.where(rng.random(shape) < 0.5, edge & 0xFFFF0000 | low, edge)
    return np.where(rng.random(shape) < 0.6, edge, values).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("rows", [1, SIDE + 1])
def test_refused_grants(rows):
    """A word that V does not give at once is neither lost nor taken twice."""
    play(system(block=(1, 16)), [dict(some(np.random.default_rng(rows), *kind), rows=rows) for kind in KINDS], 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_arrays_of_16(name, monkeypatch):
    monkeypatch.setattr(f"{__name__}.SIDE", 16)
    rng = np.random.default_rng(16)
    longer = {"longer": (1, 48), "registered tiles": (16, 16), "registered wide": (1, 16)}
    block = longer.get(name, (1, 64) if name.startswith("sparse") else FORMATS[name]["block"])
    sizes = system(**FORMATS[name] | {"block": block})
    spread = sizes.spread if sizes.core.takes_sparse else 0
    play(sizes, [some(rng, *kind, sizes.stochastic, sizes.core.wide, spread) for kind in KINDS], 0.1)


#: Rows, columns and the format: more columns than rows, and fewer; blocks below, at and above the lesser and greater.
OBLONG = [
    (4, 8, {"block": (1, 4)}), (8, 4, {"block": (1, 8)}), (4, 16, {"block": (8, 8)}), (16, 4, {"block": (1, 4)}),
    (4, 8, {"block": (1, 16), "rounding": "stochastic"}), (16, 4, {"block": (8, 8)}), (8, 4, {"block": (16, 16)}),
    (4, 8, {"block": (1, 8), "mantissa": 5, "wide": 9}), (8, 4, {"block": (4, 4), "mantissa": 5, "wide": 9}),
    (4, 8, {"block": (1, 32), "sparse": (1, 4)}),
    (4, 16, {"block": (1, 16), "mantissa": 5, "wide": 9, "sparse": (2, 4)})]


@pytest.mark.parametrize("number, case", sweep(6, enumerate(OBLONG)))
def test_rows_unlike_columns(number, case):
    """Everything that random instructions write is what the golden machine writes, piece by piece."""
    rows, cols, options = case
    options = dict(options)
    core = Design(rows=rows, cols=cols, wide=options.pop("wide", 0), sparse=options.pop("sparse", (1, 1)),
                  format=HBFPFormat(**options))
    sizes = Accelerator(core=core, x_words=128, v_words=64, w_words=128, p_words=64)
    draw, dut, rng = Draw(sizes, Random(number), [], 0, 0, 0, []), Convert.of(sizes), np.random.default_rng(number)
    instructions, seen = [], set()
    while len(seen) < len(KINDS) + core.takes_sparse or len(instructions) < 6:
        instructions += draw._convert()
        seen.add(tuple(instructions[-1][name] for name in ("to_w", "columns", *["sparse"] * core.takes_sparse)))
    memories = Memories(sizes)
    memories.v_data[...] = numbers(rng, memories.v_data.shape).view(np.uint32)
    memories.v.defined[...] = True
    bench, layout = Served(dut, 60000), dut.read.data.shape()
    bench.read(dut.read, {a: pack(layout, value=line) for a, line in enumerate(memories.v_data)}, Pauses(0.2, 1),
               shared=True)
    x, w, scales, index = (bench.write(getattr(dut, name)) if hasattr(dut, name) else []
                           for name in ("x", "w", "scales", "index"))
    if sizes.stochastic:
        bench.hold(dut.seed, SEED)
    bench.send(bench.instructions(Opcode.CONVERT), [word(Opcode.CONVERT, **each.values) for each in instructions])
    done = bench.until_done(len(instructions))
    bench.run()
    assert len(done) == len(instructions)
    for each in instructions:
        convert(sizes, memories, SEED, each)
    piece, got = x_piece_layout(dut.params), {}
    width = len(Value.cast(dut.x.data)) // sizes.word_pieces
    for _, address, data, _ in x:
        got |= {address + n: data >> n * width & (1 << width) - 1 for n in range(sizes.word_pieces)}
    written = np.flatnonzero(memories.x.defined.all(1))
    assert got == {a: pack(piece, mantissa=memories.x_data[a], exponent=memories.x_exponent[a],
                           invalid=memories.x_invalid[a]) for a in written.tolist()}
    got, packed = {}, sizes.packed
    for _, address, data, mask in w:
        assert mask == 1 << address % packed
        got[address] = list(unpack(dut.w.data.shape(), data)["value"][address % packed * cols:][:cols])
    written = np.flatnonzero(memories.w.defined.all(1))
    assert got == {a: memories.w_data[a].tolist() for a in written.tolist()}
    places = {address: unpack(dut.index.data.shape(), data)["value"] for _, address, data, _ in index}
    for address in np.flatnonzero((memories.w_index >= 0).all(1)).tolist():    # that of a zero has no effect
        assert placed(zip(got[address], places[address], strict=True)) == placed(
            zip(memories.w_data[address].tolist(), memories.w_index[address].tolist(), strict=True))
    got = {address // core.height: data for _, address, data, _ in scales}
    assert got == {a: pack(dut.scales.data.shape(), exponent=memories.w_exponent[a], invalid=memories.w_invalid[a])
                   for a in np.unique(written // core.height).tolist()}
