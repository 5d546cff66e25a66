# amaranth: UnusedElaboratable=no
"""Chains from west to east: everything is a cycle later behind each cell, and resets where it should."""

from dataclasses import dataclass

import pytest
from amaranth import Module
from amaranth.lib.wiring import In, Out, Signature, flipped

from rtl.lib.compass import pass_east, west_to_east
from rtl.lib.component import Component
from rtl.lib.names import parameter

from ..drive import Bench

ROW = Signature({"beat": Out(4), "scale": Out(3).array(2)})


class Link(Component):
    """Passes on."""
    kind = "link"

    @staticmethod
    def ports(params):
        return {"west": In(ROW), "east": Out(ROW)}

    def body(self, platform):
        m = Module()
        pass_east(m, self.west, self.east, reset_less=("scale",))
        return m


class Chain(Link):
    """Some links."""
    kind = "chain"

    @dataclass(frozen=True)
    class Parameters:
        count: int = parameter("n")

    def body(self, platform):
        m = Module()
        links = [Link() for _ in range(self.params.count)]
        for n, link in enumerate(links):
            m.submodules[f"link{n}"] = link
        east = west_to_east(m, flipped(self.west), links)
        m.d.comb += [self.east.beat.eq(east.beat), *(self.east.scale[n].eq(east.scale[n]) for n in range(2))]
        return m


@pytest.mark.parametrize("count", [1, 3])
def test_each_cell_adds_a_cycle(count):
    dut = Chain(count)
    rows = [(n % 16, n % 8, 7 - n % 8) for n in range(20)]

    async def play(ctx):
        seen = []
        for beat, low, high in rows:
            ctx.set(dut.west.beat, beat)
            ctx.set(dut.west.scale[0], low)
            ctx.set(dut.west.scale[1], high)
            await ctx.tick()
            seen.append((ctx.get(dut.east.beat), ctx.get(dut.east.scale[0]), ctx.get(dut.east.scale[1])))
        assert seen[count - 1:] == rows[:len(rows) - count + 1]
    bench = Bench(dut)
    bench.process(play)
    bench.run()


def test_only_some_registers_reset():
    dut = Link()
    bench = Bench(dut)

    async def play(ctx):
        ctx.set(dut.west.beat, 9)
        ctx.set(dut.west.scale[1], 5)
        await ctx.tick()
        ctx.set(bench.reset, 1)
        await ctx.tick()
        assert (ctx.get(dut.east.beat), ctx.get(dut.east.scale[1])) == (0, 5)
    bench.process(play)
    bench.run()
