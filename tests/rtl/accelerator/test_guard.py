# amaranth: UnusedElaboratable=no
"""Memories with parity: whoever reads a word that is not as it was written is told so, and nobody else is.

Amaranth's simulator begins with zeros in all memories, bits of parity too: a word that nobody wrote is wrong.

Covers: rtl/accelerator/guard.py, rtl/lib/parity.py.
"""

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib.wiring import Component, In, Out

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator
from rtl.accelerator.memories import PMemory, VMemory, WMemory, XMemory
from rtl.lib.parity import with_parity
from tests.cases import sweep

from ..drive import Bench, bits, evaluate

WORDS = 64


def system(rows=8, cols=8, block=(1, 8), sparse=(1, 1), banks=0):
    core = Design(rows=rows, cols=cols, sparse=sparse, format=HBFPFormat(mantissa=8, block=block))
    return Accelerator(core=core, x_words=WORDS, w_words=WORDS, v_words=WORDS, p_words=WORDS, memory_banks=banks,
                       parity=True)


#: A memory and an accelerator that has it.
CASES = {"v": (VMemory, system()), "v banks": (VMemory, system(banks=4)), "x": (XMemory, system()),
         "x banks": (XMemory, system(banks=2)), "x of more columns": (XMemory, system(4, 16, (1, 4))),
         "x of more rows": (XMemory, system(16, 8)), "x sparse": (XMemory, system(block=(1, 16), sparse=(2, 4))),
         "w": (WMemory, system()), "w bank": (WMemory, system(banks=1)),
         "w sparse": (WMemory, system(block=(1, 16), sparse=(2, 4))),
         "p": (PMemory, system()), "p bank": (PMemory, system(banks=1))}


@pytest.mark.parametrize("name", sweep(6, CASES))
def test_what_was_not_written_is_told_of_and_what_was_is_not(name):
    """The reader's bit, two cycles after its read, until the memory's next; never once the memory is cleared."""
    kind, sizes = CASES[name]
    dut, rng = kind.of(sizes), np.random.default_rng(len(name))
    ports = {port: getattr(dut, port) for port in kind.ports(dut.params) if hasattr(getattr(dut, port), "en")}
    readers = [port for port in ports if port.startswith("read")]

    async def play(ctx):
        for number, reader in enumerate(readers):
            ctx.set(ports[reader].en, 1)
            await ctx.tick()
            ctx.set(ports[reader].en, 0)
            assert ctx.get(dut.broken) == (1 << number >> 1)    # that of the one before
            for _ in range(3):
                await ctx.tick()
                assert ctx.get(dut.broken) == 1 << number
        ctx.set(dut.clears, 1)
        for place in range(4 * WORDS):
            ctx.set(dut.place, place)
            ctx.set(bench.reset, 1)
            await ctx.tick()
        ctx.set(dut.clears, 0)
        ctx.set(bench.reset, 0)
        reads = 0
        for cycle in range(400):
            asks = {name: rng.random() < 0.5 for name in ports}
            for name, port in ports.items():
                ctx.set(port.en, int(asks[name]))
                ctx.set(port.addr, int(rng.integers(WORDS)))
                if name not in readers:
                    ctx.set(bits(port.data), int.from_bytes(rng.bytes(200), "little") % 2 ** len(bits(port.data)))
                    if hasattr(port, "mask"):
                        ctx.set(port.mask, int(rng.integers(1 << len(port.mask))))
            grants = (await ctx.tick().sample(*(ports[name].grant for name in readers)))[2:]
            reads += any(grant and asks[name] for name, grant in zip(readers, grants, strict=True))
            assert ctx.get(dut.broken) == 0, f"cycle {cycle}"
        assert reads > 50
    bench = Bench(dut)
    bench.process(play)
    bench.run()


class Parity(Component):
    """A word of two granules with its parity."""
    word: In(6)
    whole: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.whole.eq(with_parity(self.word, 2))
        return m


def test_every_granule_has_an_odd_number_of_ones():
    for word, whole in enumerate(evaluate(Parity(), {"word": range(64)}, "whole")):
        low, high = whole % 16, whole >> 4
        assert low.bit_count() % 2 == high.bit_count() % 2 == 1 and low % 8 + 8 * (high % 8) == word
