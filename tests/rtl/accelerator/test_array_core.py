# amaranth: UnusedElaboratable=no
"""The core without converter, fed by its units from memories: products equal the golden model's, without pauses.

Covers: rtl/accelerator/arrays.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from golden.bfp import encode
from golden.core.core import side as finish
from golden.matmul import matmul_blocks
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Opcode
from hbfp.system import Accelerator
from rtl.accelerator.array_core import ArrayCore
from rtl.accelerator.arrays import Arrays
from rtl.accelerator.drain import DrainToV
from rtl.accelerator.multiply import Multiply
from rtl.accelerator.weights import Weights
from rtl.core.core import Core, through
from tests.cases import sweep

from ..drive import Pauses, pack
from .served import Memory, Served, word


class Fed(wiring.Component):
    """The core, or cores, and the units around it."""

    def __init__(self, system):
        super().__init__({})
        self.core = Arrays.of(system)
        self.multiply, self.weights, self.drain = (kind.of(system) for kind in (Multiply, Weights, DrainToV))
        self.done = self.drain.done

    def elaborate(self, platform):
        m = Module()
        m.submodules += (self.core, self.multiply, self.weights, self.drain)
        connect(m, self.multiply.o_cmd, self.core.i_cmd)
        connect(m, self.multiply.o_x, self.core.i_x)
        connect(m, self.weights.o_w, self.core.i_w)
        connect(m, self.core.o, self.drain.i)
        connect(m, self.drain.o_v, self.core.i_v)
        return m


def product(system, m_rows, k_tiles, n_tiles, pause=0.0, scale=0, bias=0):
    """Runs a product of random matrices; asserts every row of V; returns cycles of the writes.

    The first column tile leaves by an instruction of its own; factors lie in V from 1000 on, biases from 2000.
    """
    core, rng, side = system.core, np.random.default_rng(7), system.core.rows
    x = rng.normal(size=(m_rows, k_tiles * side)).astype(np.float32)
    w = rng.normal(size=(k_tiles * side, n_tiles * side)).astype(np.float32)
    bx, bw = encode(x, core.format), encode(w, core.format, axis=0)
    want = matmul_blocks(bx, bw, core.accumulate, guard=core.guard, growth=core.growth).view(np.uint32)
    factors, biases = rng.normal(size=(2, n_tiles * side)).astype(np.float32).view(np.uint32)
    want = finish(want, factors if scale else None, biases if bias else None)
    dut = Fed(system)
    bench = Served(dut)
    square, terms = core.format.square, core.format.terms
    layout, words = dut.multiply.o_x.payload.shape(), {}
    for k, r in np.ndindex(k_tiles, m_rows):
        first = k * side // terms
        scales = (r // terms if square else r), slice(first, first + core.segments)
        words[k * m_rows + r] = pack(layout, mantissa=bx.mantissa[r, k * side:(k + 1) * side],
                                     exponent=bx.exponent[scales], invalid=bx.invalid[scales].astype(int))
    rows, scales = {}, {}
    for n, k, r in np.ndindex(n_tiles, k_tiles, side):
        address, columns = (n * k_tiles + k) * side + r, range(n * side, (n + 1) * side)
        block = (k * side + r) // terms
        at = [(block, c // terms if square else c) for c in columns]
        rows[address] = pack(dut.weights.w.data.shape(), value=bw.mantissa[k * side + r, columns])
        scales[address] = pack(dut.weights.w.scales.shape(), exponent=[bw.exponent[a] for a in at],
                               invalid=[int(bw.invalid[a]) for a in at])
    bench.read(dut.multiply.x, words, Pauses(pause, 1))
    bench.read(dut.weights.w, rows, Pauses(pause, 2), beside=("scales", scales))
    operands = Memory(32 * side)
    for first, vectors in ((1000, factors), (2000, biases)):
        operands |= {first + n: pack(dut.drain.read.data.shape(), value=vectors[n * side:(n + 1) * side])
                     for n in range(n_tiles)}
    bench.read(dut.drain.read, operands, Pauses(pause, 4), shared=True)
    writes = bench.write(dut.drain.write, Pauses(pause, 3))
    given = [bench.instructions(opcode, unit) for opcode, unit in (
        (Opcode.MULTIPLY, dut.multiply), (Opcode.WEIGHTS, dut.weights), (Opcode.DRAIN, dut.drain))]
    bench.send(given[0], [word(
        Opcode.MULTIPLY, first=1, last=1, scale=scale, bias=bias, tiles=k_tiles, columns=n_tiles, rows0=m_rows,
        rows1=1, row0=1, passes0=k_tiles, passes1=1, passes2=1, pass0=m_rows)])
    bench.send(given[1], [word(Opcode.WEIGHTS, tiles=n_tiles * k_tiles, repeats=1)])
    bench.send(given[2], [word(
        Opcode.DRAIN, scale=scale, bias=bias, columns=columns, base=first * m_rows, scale_base=1000 + first,
        bias_base=2000 + first, rows0=m_rows, rows1=1, row0=1, column=m_rows)
        for first, columns in ((0, 1), (1, n_tiles - 1))])
    bench.until_done(2)
    bench.run()
    got = {address: data for _, address, data, _ in writes}
    for n, r in np.ndindex(n_tiles, m_rows):
        values = want[r, n * side:(n + 1) * side]
        assert got[n * m_rows + r] == pack(dut.drain.read.data.shape(), value=values), (n, r)
    return [cycle for cycle, *_ in writes]


#: Rows of the core, and its blocks.
SYSTEMS = {"short blocks": (8, (1, 4)), "long blocks": (4, (1, 8)), "tiles": (4, (4, 4))}


@pytest.mark.parametrize("name", sweep(2, SYSTEMS))
def test_products(name):
    """Without pauses no cycle is lost between commands: results come as far apart as their rows went in."""
    side, block = SYSTEMS[name]
    system = Accelerator(core=Design(rows=side, depth=64, format=HBFPFormat(block=block)))
    rows, tiles = 8, 2
    pause = 0.2 if name == "tiles" else 0.0
    cycles = product(system, rows, tiles, 2, pause)
    apart = {b - a for a, b in zip(cycles, cycles[rows:], strict=False)}
    assert pause or apart == {rows * tiles}


@pytest.mark.parametrize("pipeline, scale, bias, rows, pause", [
    (3, 1, 1, 3, 0.3), *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        (0, 1, 1, 2, 0.2), (1, 1, 1, 2, 0.0), (3, 1, 1, 9, 0.3), (3, 1, 0, 1, 0.0), (3, 0, 1, 2, 0.0)))])
def test_operands(pipeline, scale, bias, rows, pause):
    """With registers the core asks for operands of a command while rows of the one before are on their way."""
    system = Accelerator(core=Design(rows=4, depth=16, format=HBFPFormat(block=(1, 4)), pipeline=pipeline))
    product(system, rows, 1, 4, pause, scale, bias)


@pytest.mark.parametrize("arrays, options", [
    (2, {"block": (4, 4), "rows": 4}), *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        (4, {"block": (1, 8), "pipeline": 2}), (4, {"block": (1, 16), "share": 2}), (8, {"block": (1, 16)})))])
def test_cores_that_share_rows_are_one(arrays, options):
    """Products, operands and the cycles between commands are those of one core of all columns."""
    wide = Design(**{"rows": 8} | {name: value for name, value in options.items() if name != "block"}, depth=16,
                  format=HBFPFormat(block=options["block"]))
    system = Accelerator(core=replace(wide, cols=wide.rows // arrays, group=None), arrays=arrays)
    found, one = (product(each, 12, 2, 3, 0.0, 1, 1) for each in (system, Accelerator(core=wide)))
    earlier = {b - a for a, b in zip(found, one, strict=True)}
    assert len(earlier) == 1 and earlier.pop() == through(wide) - through(system.core) >= 0


def test_ports_are_the_cores_without_the_converters():
    design = Design(rows=8, format=HBFPFormat(block=(1, 8)))
    core, array = (set(kind.made(design).signature.members) for kind in (Core, ArrayCore))
    assert core - array == {"i_q", "o_q"} and not array - core
    assert ArrayCore.made(design).module == f"{Core.made(design).module}_array"
    assert set(ArrayCore.made(design).latencies) == set(Core.made(design).latencies) - {"encode"}
