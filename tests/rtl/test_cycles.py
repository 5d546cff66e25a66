# amaranth: UnusedElaboratable=no
"""The formula for cycles equals simulated cores, pass by pass.

Covers: golden/perf/cycles.py, golden/perf/shared_accumulator.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from golden.perf.cycles import Command, product_commands, timeline
from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.core.core import Core, latencies
from rtl.core.sequencer import command_layout
from rtl.lib.layout import ArrayLayout

from .drive import Bench, bits, offer, pack

#: Name -> (terms of a block, rows, columns, options).
DESIGNS = {
    "plain": (2, 2, 2, {}),
    "long": (8, 2, 4, {"group": (1, 2)}),
    "share2": (4, 2, 4, {"share": 2, "group": (2, 1)}),
    "share2-aligned": (6, 2, 4, {"share": 2, "group": (1, 4), "accumulate": "aligned"}),
    "share4": (8, 2, 8, {"share": 4, "group": (1, 2)}),
    "share8": (16, 2, 8, {"share": 8}),
    "one-bank": (2, 2, 2, {"banks": 1}),
    "one-bank-turns": (4, 2, 4, {"banks": 1, "side_lanes": 2}),
    "one-bank-aligned": (4, 4, 2, {"banks": 1, "accumulate": "aligned", "group": (1, 1)}),
    "one-bank-segments": (2, 4, 2, {"banks": 1}),
    "one-bank-pipelined": (4, 4, 4, {"banks": 1, "pipeline": 4, "side_lanes": 1, "group": (2, 2)}),
    "one-bank-pipelined-long": (6, 2, 2, {"banks": 1, "pipeline": 1}),
    "one-bank-wide": (6, 2, 4, {"banks": 1, "wide": 6, "side_lanes": 2}),
    "one-bank-int": (2, 2, 2, {"banks": 1, "arithmetic": "int"}),
    "one-bank-sparse": (16, 2, 2, {"banks": 1, "sparse": (2, 4)}),
    "one-tile": (4, 4, 4, {"weight_tiles": 1, "group": (1, 1)}),
    "one-tile-long": (8, 4, 8, {"weight_tiles": 1, "group": (1, 1), "banks": 1}),
    "one-tile-tall": (4, 8, 4, {"weight_tiles": 1, "group": (2, 1), "pipeline": 1}),
    "one-tile-sparse": (16, 4, 4, {"weight_tiles": 1, "group": (2, 1), "sparse": (2, 4)}),
    "one-tile-fp32": (2, 8, 2, {"weight_tiles": 1, "arithmetic": "fp32", "pipeline": 5, "banks": 1}),
    "int": (2, 2, 2, {"arithmetic": "int"}),
    "pipelined": (2, 3, 2, {"pipeline": 3, "ragged": True}),
    "pipelined-most": (4, 2, 2, {"pipeline": 6}),
    "pipelined-turns": (4, 4, 4, {"pipeline": 1, "side_lanes": 1, "group": (2, 2)}),
    "pipelined-turns2": (4, 4, 4, {"pipeline": 2, "side_lanes": 2, "group": (2, 1)}),
    "pipelined-share": (4, 2, 4, {"share": 2, "pipeline": 5, "group": (2, 4), "side_lanes": 1}),
    "fpga": (4, 4, 4, {"pipeline": 2, "fabric": "fpga", "side_lanes": 2}),
    "pipelined-elements": (4, 4, 6, {"pipeline": 7, "group": (2, 2)}),
    "pipelined-elements-share": (8, 2, 4, {"share": 4, "pipeline": 7, "group": (1, 2)}),
    "wide": (2, 2, 2, {"wide": 6}),
    "wide-long": (8, 2, 4, {"wide": 7, "group": (1, 2)}),
    "wide-share4": (8, 2, 8, {"wide": 6, "share": 4, "group": (1, 2)}),
    "pipelined-fp32": (2, 8, 2, {"arithmetic": "fp32", "pipeline": 5}),
    "sparse": (4, 4, 2, {"sparse": (2, 4)}),
    "sparse-long": (16, 2, 2, {"sparse": (2, 4)}),
    "sparse-wide": (4, 4, 2, {"sparse": (2, 4), "wide": 6}),
    "sparse-wide-share": (16, 2, 4, {"sparse": (2, 4), "wide": 6, "share": 4}),
    "sparse-share": (16, 2, 4, {"sparse": (2, 4), "share": 4}),
}
#: Designs whose parts others have, too: in the long regression.
LONG = ("one-bank-pipelined",
        "one-bank-aligned", "one-bank-segments", "one-bank-pipelined-long", "one-bank-wide", "one-bank-sparse",
        "sparse-wide-share", "one-tile-long", "one-tile-sparse", "one-tile-fp32", "share2", "share4", "one-tile-tall",
        "pipelined-most", "pipelined-turns", "pipelined-elements", "pipelined-share", "wide-long", "wide-share4",
        "sparse-long", "sparse-share", "pipelined-fp32", "pipelined-turns2", "wide", "share8", "sparse", "long",
        "plain", "share2-aligned", "one-bank", "one-bank-int")
DEPTH = 30


def make(name):
    terms, rows, cols, options = DESIGNS[name]
    return Design(format=HBFPFormat(mantissa=4, block=(1, terms)), rows=rows, cols=cols, depth=DEPTH, **options)


def words_of(design, commands):
    """The commands as payloads."""
    words = []
    for c in commands:
        fields = {"rows": c.rows, "tiles": c.passes}
        if design.arithmetic != "int":
            fields |= {"scale": c.vectors > 0, "bias": c.vectors > 1, "relu": 0}
        if design.wide:
            fields |= {"wide_x": c.beats > 1, "wide_w": c.passes % 2}
        if design.takes_sparse:
            fields["sparse"] = c.sparse
        words.append(pack(command_layout(design), **fields))
    return words


def simulate(design, runs):
    """Of each run, from reset: first transfers of passes, and the last one of `o`, from the first one of all."""
    dut = Core.of(design)
    bench = Bench(dut, limit=40000 * len(runs))
    passes = [[command.rows * command.beats for command in commands for _ in range(command.passes)]
              for commands in runs]
    given = {
        dut.i_cmd: [words_of(design, commands) for commands in runs],
        dut.i_x: [[0] * sum(each) for each in passes],
        dut.i_w: [[0] * len(each) * design.rows for each in passes],
    }
    if design.arithmetic != "int":
        vector = pack(ArrayLayout(32, design.cols), value=[0] * design.cols)
        given[dut.i_v] = [[vector] * sum(c.vectors for c in commands) for commands in runs]
    turn, found = [-1], []

    async def send(ctx, port, words):
        for number, each in enumerate(words):
            while turn[0] < number:
                await ctx.tick()
            await offer(ctx, port, each)

    async def watch(ctx):
        ctx.set(dut.o.ready, 1)
        ports = [bits(port) for stream in (dut.i_cmd, dut.i_w, dut.i_x, dut.o) for port in (stream.valid, stream.ready)]
        for number, commands in enumerate(runs):
            ctx.set(bench.reset, 1)
            await ctx.tick()
            ctx.set(bench.reset, 0)
            turn[0] = number
            begin, tops, cycle, results = None, [], 0, 0
            while results < sum(c.rows for c in commands):
                _, _, *values = await ctx.tick().sample(*ports)
                command, weights, x, o = (values[n] and values[n + 1] for n in range(0, 8, 2))
                if begin is None and (command or weights):
                    begin = cycle
                if x:
                    tops.append(cycle)
                results += o
                cycle += 1
            firsts = np.cumsum([0, *passes[number][:-1]])
            found.append(([tops[first] - begin for first in firsts], cycle - begin))

    for port, words in given.items():
        bench.process(send, port, words)
    bench.process(watch)
    bench.run()
    return found


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in DESIGNS])
def test_cycles_as_predicted(name):
    design, rng = make(name), np.random.default_rng(len(name))
    latency = latencies(design)
    runs = [[Command(DEPTH, passes)] * 3 for passes in (1, 5)]
    runs += [[Command(1, 9)] * 3, [Command(DEPTH, 1), Command(2, 1), Command(1, 1), Command(DEPTH, 2), Command(5, 1)]]
    if design.share > 1 and design.side_lanes:    # many rows wait until a few have left
        runs.append([Command(2, 1), Command(DEPTH, 1)])
    for seed in range(3):
        vectors = 0 if design.arithmetic == "int" else int(rng.integers(3))
        sparse = [design.takes_sparse and bool(rng.integers(2)) for _ in range(4 + seed)]
        runs.append([Command(int(rng.integers(1, rng.choice([4, DEPTH + 1]))), int(rng.integers(1, 9)), vectors,
                             sparse=each) for each in sparse])
    if design.wide:
        runs = [[replace(c, beats=int(rng.integers(1, 3))) for c in commands] for commands in runs for _ in range(2)]
    for commands, found in zip(runs, simulate(design, runs), strict=True):
        starts, _, cycles = timeline(design, latency, commands)
        assert found == (starts, cycles), commands


@pytest.mark.parametrize("terms, rows", [(4, 4), (8, 8), (8, 4), (32, 4), (64, 8)])
@pytest.mark.parametrize("length", [8, 9, 64, 96, 100])
def test_sparse_weights_halve_the_passes(terms, rows, length):
    """Of whole tiles exactly, of others rounded up; and so the rows of X that a core streams."""
    design = Design(format=HBFPFormat(block=(1, terms)), rows=rows, sparse=(2, 4))
    dense, sparse = (product_commands(design, 5, length, rows, sparse=each)[0].passes for each in (False, True))
    assert sparse <= -(-dense // 2)
    if length % max(terms, 2 * rows) == 0:
        assert dense == 2 * sparse


@pytest.mark.parametrize("share, tiles", [(2, 2), (4, 4), (4, 8), (8, 8), (32, 32)])
@pytest.mark.parametrize("count", [48, 512])
def test_full_blocks_never_wait(share, tiles, count):
    """With as many passes in a block as columns that share: only the last block's accumulation is seen, at the end."""
    designs = [Design(format=HBFPFormat(block=(1, 32 * tiles)), share=each) for each in (1, share)]
    (plain, _, end), (starts, _, late) = (timeline(d, latencies(d), product_commands(
        d, count, 3 * 32 * tiles, 128)) for d in designs)
    assert starts == plain
    assert late - end == (share - 1) * count + 4 - latencies(designs[0])["accumulate"]


def test_a_timeline_of_no_commands_is_refused():
    design = Design(rows=8, cols=8)
    with pytest.raises(ValueError, match=r"^Commands must be at least one, not \[\]$"):
        timeline(design, latencies(design), [])
