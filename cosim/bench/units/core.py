"""cocotb tests of a whole core; run by :mod:`cosim.bench.runner`, which names the manifest in the environment."""

import os

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from hbfp.golden.sparsity import prune

from ..awkward import awkward
from ..core_bench import DESIGN, ELEMENTS, MANIFEST, Bench
from ..directed import directed_blocks, directed_products
from ..tiling import most_terms

#: Idle and stall, each off, often and nearly always, in long and short pauses.
LEVELS = ((0.0, 1), (0.5, 1), (0.8, 6))
#: Rows of a command of no particular length.
ROWS = min(5, DESIGN.depth)
#: Rows, passes and kind of sparse commands that are refused, where there are any.
_SPARSE_REFUSED = [(0, 1, 1), (1, 0, 1), (1, DESIGN.most_tiles(True) + 1, 1)] * DESIGN.takes_sparse


def _fitting(terms, sparse=False):
    """As many terms of K, or what one command holds if that is less."""
    return min(terms, most_terms(DESIGN, sparse))


def _terms(sparse=False):
    """Lengths of K that matter: less than a tile, a tile, more, and a block that is cut short."""
    rows, block = DESIGN.reach(DESIGN.rows) if sparse else DESIGN.rows, DESIGN.format.terms
    return sorted({_fitting(terms, sparse) for terms in (1, rows - 1 or 1, rows, rows + 1, 2 * rows, block, block + 1,
                                                 3 * max(rows, block) - 1)})


@cocotb.test(timeout_time=50, timeout_unit="ms")
@cocotb.parametrize(idle=LEVELS, stall=LEVELS)
async def products_equal_golden(dut, idle, stall):
    bench = Bench(dut, idle, stall)
    await bench.start()
    for number, terms in enumerate(_terms()):
        steps = [bool(number >> bit & 1) for bit in range(3)]
        bench.command(int(bench.rng.integers(1, min(DESIGN.depth, 12) + 1)), terms, *steps)
        bench.command(1, terms, calm=True)
    bench.command(DESIGN.depth, _fitting(DESIGN.rows))
    if DESIGN.blocked:
        bench.command(min(DESIGN.depth, 3), min(DESIGN.rows, DESIGN.format.terms), faint=True)
    await bench.finish()
    assert bench.products.commands == 2 * len(_terms()) + 1 + DESIGN.blocked
    assert not dut.error.value


@cocotb.test(timeout_time=50, timeout_unit="ms", skip="i_q" not in MANIFEST.streams)
@cocotb.parametrize(idle=LEVELS, stall=LEVELS)
async def conversions_equal_golden(dut, idle, stall):
    bench = Bench(dut, idle, stall)
    await bench.start()
    beats = bench.convert(60) + bench.convert(10, rare=0)
    await bench.finish(beats)
    assert bench.converter.compared == 70 * ELEMENTS


@cocotb.test(timeout_time=50, timeout_unit="ms", skip="i_q" not in MANIFEST.streams)
async def both_paths_at_once(dut):
    bench = Bench(dut, (0.3, 2), (0.3, 2))
    await bench.start()
    for terms in _terms():
        bench.command(ROWS, terms, bias=True)
    beats = bench.convert(40)
    await bench.finish(beats)
    assert bench.products.compared and bench.converter.compared


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def every_corner_is_computed(dut):
    bench = Bench(dut, (0.3, 2), (0.3, 2))
    await bench.start()
    for work in directed_products(DESIGN):
        bench.product(work.x, work.w, work.scale, work.bias, work.relu)
    beats = 0
    if DESIGN.wide:
        for wide in ((True, False), (False, True), (True, True)):    # the largest sums of every mode among them
            for work in directed_products(DESIGN, wide):
                bench.product(work.x, work.w, work.scale, work.bias, work.relu, wide)
        beats = bench.send_blocks(directed_blocks(DESIGN.widest, ELEMENTS), wide=True)
    if DESIGN.blocked:
        beats += bench.send_blocks(directed_blocks(DESIGN.format, ELEMENTS), wide=False)
    await bench.finish(beats)
    assert bench.products.commands


@cocotb.test(timeout_time=50, timeout_unit="ms", skip=not DESIGN.takes_sparse)
@cocotb.parametrize(idle=LEVELS[:2], stall=LEVELS[:2])
async def every_index_has_its_meaning(dut, idle, stall):
    """Indices in any order, repeated or not, between dense commands: what docs/numerics.md says, and no standstill."""
    bench = Bench(dut, idle, stall)
    await bench.start()
    for terms in _terms(sparse=True):
        for rows in (1, ROWS):
            wide = bench.modes()
            shapes = (rows, terms), (terms, DESIGN.cols // (1 + any(wide)))
            x, w = (awkward(bench.rng, shape, DESIGN.widest if mode else DESIGN.format, axis, 0.0)
                    for shape, axis, mode in zip(shapes, (-1, -2), wide, strict=True))
            bench.product(x, prune(w, *DESIGN.sparse), wide=wide, sparse=True, any_index=True)
        bench.command(ROWS, _fitting(terms), sparse=False)
    bench.command(DESIGN.depth, _fitting(DESIGN.reach(DESIGN.rows), sparse=True), calm=True, sparse=True)
    await bench.finish()
    assert bench.products.commands == 3 * len(_terms(sparse=True)) + 1
    assert not dut.error.value


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def stalled_result_stops_the_input(dut):
    """While nobody takes results, rows of X must wait; afterwards nothing is lost."""
    bench = Bench(dut)
    await bench.start()
    sink = bench.sinks["o"]
    taking, sink.pause = sink.pause, lambda: True
    for _ in range(6):    # more than a core holds of commands, accumulators and results
        bench.command(ROWS, _fitting(DESIGN.rows), calm=True)
    await bench.until(lambda: bench.coverage.seen["o stalls while i_x waits"])
    sink.pause = taking
    await bench.finish()
    assert bench.products.commands == 6


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def reset_in_mid_stream_leaves_nothing(dut):
    bench = Bench(dut, (0.2, 2), (0.2, 2))
    await bench.start()
    for cut in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89):
        for terms in _terms()[-3:]:
            bench.command(ROWS, terms, scale=True)
        if "i_q" in MANIFEST.streams:
            bench.convert(10)
        await ClockCycles(dut.clk, cut)
        await bench.reset()
        bench.coverage.see("reset in mid-stream")
        bench.command(ROWS, _fitting(DESIGN.rows + 1), bias=True)
        beats = bench.convert(4) if "i_q" in MANIFEST.streams else 0
        await bench.finish(beats)
    assert bench.products.commands == 10


@cocotb.test(timeout_time=50, timeout_unit="ms")
@cocotb.parametrize(rows_tiles=[(0, 1), (DESIGN.depth + 1, 1), (1, 0), (1, DESIGN.max_tiles + 1), *_SPARSE_REFUSED])
async def refused_commands_change_nothing(dut, rows_tiles):
    bench = Bench(dut)
    await bench.start()
    stream = MANIFEST.streams["i_cmd"]
    fields = dict(zip(("rows", "tiles", "sparse"), rows_tiles, strict=False))
    if any(value >> stream.field[name].width for name, value in fields.items()):
        return    # the field cannot say so much
    bench.command(ROWS, _fitting(DESIGN.rows + 1))
    bench.sources["i_cmd"].send(stream.pack(**{name: np.array([value]) for name, value in fields.items()}))
    bench.command(ROWS, _fitting(DESIGN.rows), bias=True)
    assert not dut.error.value
    await bench.finish()
    assert bench.products.refused == 1 and bench.products.commands == 2
    assert dut.error.value
    bench.coverage.see("refused command")
    bench.command(1, _fitting(DESIGN.rows))
    await bench.finish()
    assert dut.error.value, "error must stay until reset"
    await bench.reset()
    await ClockCycles(dut.clk, 1)
    assert not dut.error.value
    bench.command(1, _fitting(DESIGN.rows))
    await bench.finish()
    bench.coverage.save(os.environ["HBFP_COVERAGE"])
