# amaranth: UnusedElaboratable=no
"""The way out that never stalls: rows in order, operands with their command, cycles as it says.

Covers: rtl/lib/stages.py.
"""

from dataclasses import replace

import pytest

from hbfp.design import Design
from rtl.core.credit_drain import CreditDrain
from rtl.lib.stages import Stages
from rtl.number.streams import result_layout
from tests.cases import sweep

from ..drive import Bench, Pauses, bits, unpack
from .test_drain import DEPTH, Job, begin, check_cycles, jobs, make

GARBAGE = 0x5EA50F


def drain(pipeline=2, cols=2, side_lanes=0, late=0, banks=2):
    """Design, and a way out with as many registers behind the banks as said."""
    design = replace(make(cols=cols, side_lanes=side_lanes, banks=banks), pipeline=pipeline)
    return design, CreditDrain.made(replace(CreditDrain.Parameters.of(design), late=late))


class Banks:
    """Two banks that each column group reads with a copy of the address; the word comes ``1 + late`` cycles later."""

    def __init__(self, dut):
        self.dut, self.words = dut, [[None] * DEPTH, [None] * DEPTH]

    async def play(self, ctx):
        groups, late = self.dut.params.groups, self.dut.params.late
        held = [[GARBAGE] * 2 for _ in range(groups)]
        shown, delays = [0] * groups, [[GARBAGE] * groups for _ in range(late)]
        while True:
            now = [held[group][shown[group]] for group in range(groups)]
            delays.append(now)
            for group, word in enumerate(delays.pop(0)):
                ctx.set(bits(self.dut.value[group]), word)
            asked = [value for group in range(groups) for value in (
                self.dut.draining[group], self.dut.read[group].en, self.dut.read[group].address)]
            _, _, *values = await ctx.tick().sample(*asked)
            for group in range(groups):
                draining, enable, address = values[3 * group:3 * group + 3]
                assert draining != 3
                shown[group] = draining >> 1 if enable else shown[group]
                for bank, words in enumerate(self.words):
                    if not draining >> bank & 1:
                        held[group][bank] = GARBAGE    # the accumulation uses the port
                    elif enable:
                        row = words[address] if address < DEPTH else None
                        held[group][bank] = GARBAGE if row is None else row[group]


def run(design, dut, jobs, *, fill=4, stall=0.0, late=0.0):
    """Play jobs; check results and banks."""
    bench, banks, frees = Bench(dut), Banks(dut), []

    def word(values):
        return [int(value) for value in values]

    bench.process(banks.play, background=True)
    operands = [word for job in jobs for word in job.operands(design)]
    if operands:
        bench.send(dut.i_v, operands, Pauses(late, 8))
    bench.process(begin, dut, banks, jobs, word, fill, frees, 1)    # banks are asked a cycle late
    got = bench.receive(dut.o, sum(job.rows for job in jobs), Pauses(stall, 9))
    bench.run()
    beats = [unpack(result_layout(design), word) for word in got]
    want = [(row, int(n == job.rows - 1)) for job in jobs for n, row in enumerate(job.want)]
    assert [(beat["value"], beat["last"][0]) for beat in beats] == want
    return frees


@pytest.mark.parametrize("pipeline, cols, side_lanes, behind", sweep(4, [
    (1, 2, 0, 0), (2, 3, 0, 1), (5, 2, 0, 2), (3, 4, 2, 0), (1, 2, 1, 0), (4, 4, 4, 1), (2, 5, 1, 2)]))
@pytest.mark.parametrize("fill, stall, late", [(1, 0, 0), (12, 0.6, 0), (12, 0.4, 0.6)])
def test_rows_leave_in_order(pipeline, cols, side_lanes, behind, fill, stall, late):
    design, dut = drain(pipeline, cols, side_lanes, behind)
    run(design, dut, jobs(design), fill=fill, stall=stall, late=late)


@pytest.mark.parametrize("pipeline, cols, side_lanes, behind, fill, stall, late", sweep(5, [
    (*sizes, *pauses) for sizes in ((1, 2, 0, 0), (5, 2, 0, 2), (3, 4, 2, 1))
    for pauses in ((0, 0, 0), (3, 0.7, 0.3))]))
def test_one_bank_is_filled_behind_the_rows_that_are_read(pipeline, cols, side_lanes, behind, fill, stall, late):
    design, dut = drain(pipeline, cols, side_lanes, behind, 1)
    frees = run(design, dut, jobs(design), fill=fill, stall=stall, late=late)
    assert not stall or 0 in frees


def test_both_banks_fill_while_the_way_out_is_shut():
    design, dut = drain()
    many = [Job(design, DEPTH, (), n) for n in range(8)]
    assert 0 in run(design, dut, many, fill=1, stall=0.97)


@pytest.mark.parametrize("pipeline, side_lanes, behind", sweep(2, [
    (1, 0, 0), (2, 0, 1), (4, 0, 2), (1, 2, 0), (2, 1, 1)]))
@pytest.mark.parametrize("rows", sweep(2, [DEPTH, 1]))
def test_latency_and_cycles_of_a_row(pipeline, side_lanes, behind, rows):
    _, dut = drain(pipeline, 4, side_lanes, behind)
    check_cycles(dut, rows)


def test_designs_without_registers_keep_the_other():
    assert Stages.of(Design(pipeline=1)).free and CreditDrain.Parameters.of(Design(pipeline=1)).lane.free
    assert Stages.of(Design()) == Stages()
    assert Stages.of(Design(arithmetic="fp32", pipeline=8)) == Stages.of(Design(pipeline=7))
