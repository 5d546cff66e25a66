# amaranth: UnusedElaboratable=no
"""The converter that never stalls gives the golden model's bits, one beat a cycle."""

from dataclasses import replace

import pytest

from hbfp.design import Design
from rtl.convert.credit_encode import CreditEncode
from rtl.convert.encode import encoded_layout
from rtl.lib.layout import ArrayLayout
from tests.cases import sweep

from ..drive import Bench, Pauses, pack, unpack
from .test_encode import block_order, data, expected, make

#: Registers in the search, and in each lane.
STAGES = [(0, 0), (1, 1), (3, 1), (7, 0)]
#: Shape of a block, and the rules of rounding that it is tried with.
SHAPES = {"one-beat": ("rne", "stochastic"), "two-beats": ("rne",), "seven-beats": ("stochastic",), "odd-tile": (
    "narrow",)}


def converter(design, stages):
    """With registers that no level of ``--pipeline`` may have."""
    return CreditEncode.made(replace(CreditEncode.Parameters.of(design), **dict(zip(("search", "lane"), stages,
                                                                                     strict=True))))


def convert(design, dut, x, pauses=(0, 0)):
    """Beats of a tensor."""
    bench, layout = Bench(dut), ArrayLayout(32, design.encode_lanes)
    words = [pack(layout, value=row) for row in block_order(x, design.format).view("uint32").reshape(
        -1, design.encode_lanes)]
    bench.send(dut.i, words, Pauses(pauses[0], 4))
    got = bench.receive(dut.o, len(words), Pauses(pauses[1], 5))
    bench.run()
    return [unpack(encoded_layout(design), word) for word in got]


@pytest.mark.parametrize("shape, rule, stages", sweep(3, [
    (shape, rule, stages) for shape, rules in SHAPES.items() for rule in rules for stages in STAGES]))
def test_stream_equals_golden(shape, stages, rule):
    design = make(shape, rule)
    x = data(design)
    want = expected(design, x)
    assert convert(design, converter(design, stages), x, (0.2, 0.3)) == want
    assert any(beat["invalid"][0] for beat in want)


@pytest.mark.parametrize("shape, stages", sweep(3, [(shape, stages) for shape in SHAPES for stages in STAGES]))
def test_one_beat_a_cycle(shape, stages):
    """Neither side ever waits, and the first beat leaves when the latency says."""
    design = make(shape)
    dut, cycles = converter(design, stages), []
    beats = 8 * design.encode_beats

    async def play(ctx):
        ctx.set(dut.o.ready, 1)
        for cycle in range(beats + dut.params.latency + design.encode_beats):
            ctx.set(dut.i.valid, cycle < beats)
            _, _, ready, valid = await ctx.tick().sample(dut.i.ready, dut.o.valid)
            assert ready
            if valid:
                cycles.append(cycle)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    first = design.encode_beats - 1 + dut.params.latency
    assert cycles == list(range(first, first + beats))


def test_levels_and_fabrics_have_it():
    assert CreditEncode.Parameters.of(Design(pipeline=1, fabric="fpga")).lane == 1
    assert CreditEncode.Parameters.of(Design(pipeline=5)).search > CreditEncode.Parameters.of(Design(pipeline=1)).search
