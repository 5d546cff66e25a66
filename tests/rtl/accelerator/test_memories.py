# amaranth: UnusedElaboratable=no
"""Memories equal lists of words, whoever reads and writes them; the first that asks is granted.

Covers: rtl/lib/banked.py.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator
from rtl.accelerator.memories import PMemory, VMemory, WMemory, XMemory
from tests.cases import sweep

from ..drive import Bench, bits


def system(**options):
    fmt = HBFPFormat(mantissa=options.pop("mantissa", 8), block=options.pop("block", (1, 8)))
    core = Design(rows=8, sparse=options.pop("sparse", (1, 1)), format=fmt)
    return Accelerator(core=core, x_words=64, w_words=64, v_words=64, p_words=64, **options)


#: Memory, ports of reads and of writes in the order of their priority, addresses of a port, rows of a word.
CASES = {
    "v": (VMemory, system(), [f"read_{n}" for n in VMemory.READERS], [f"write_{n}" for n in VMemory.WRITERS], 64, 1),
    "x": (XMemory, system(), ["read"], ["write"], 64, 1),
    "w": (WMemory, system(), ["read"], ["write_convert", "write_load"], 64, 4),
    "w4": (WMemory, system(mantissa=4), ["read"], ["write_convert", "write_load"], 64, 8),
    "w12": (WMemory, system(mantissa=12), ["read"], ["write_convert", "write_load"], 64, 2),
    "index": (WMemory, system(block=(1, 16), sparse=(2, 4)), ["read"], ["index_convert"], 64, 1),
    "scales": (WMemory, system(), ["read"], ["scales_convert", "scales_load"], 64, 8),
    "scales4": (WMemory, system(block=(1, 4)), ["read"], ["scales_convert", "scales_load"], 64, 4),
}


@pytest.mark.parametrize("name, share", sweep(7, itertools.product(CASES, [None, (0, 16), (0, 8), (5, 8), (9, 7)])))
def test_memory_equals_list(name, share):
    """All of it, or a share of sixteenths whose addresses count from its first."""
    kind, sizes, readers, writers, depth, step = CASES[name]
    if share is not None:
        sizes = replace(sizes, contexts=2, **{f"{each}_words": 256 for each in "vxwp"})
        depth = 256 * share[1] // 16
    dut, rng = kind.of(sizes), np.random.default_rng(len(name))
    read, write = ([getattr(dut, port) for port in ports] for ports in (readers, writers))
    scales = name.startswith("scales")
    width = len(bits(write[0].data))
    parts = len(write[0].mask) if hasattr(write[0], "mask") else 1
    output = bits(read[0].scales if scales else read[0].index if name == "index" else read[0].data)
    words, last, row = {}, None, 0
    counts = {"read": 0, "write": 0, "fault": 0}

    def ask(ctx, ports, addresses):
        wishes = [int(rng.random() < 0.6) for _ in ports]
        for port, wish in zip(ports, wishes, strict=True):
            ctx.set(port.en, wish)
            ctx.set(port.addr, int(addresses()))
        first = wishes.index(1) if 1 in wishes else None
        return first

    def grants(values, first):
        """Whoever asks first is granted, and so would be all before it, who do not ask."""
        assert list(values) == [int(first is None or n <= first) for n in range(len(values))]

    def addresses():
        return rng.integers(depth) if rng.random() < 0.95 else rng.choice([depth, 2 ** 18 - 1, depth + 2 ** 17, 300])

    async def play(ctx):
        nonlocal last, row
        if share is not None:
            ctx.set(dut.share_first, share[0])
            ctx.set(dut.share_size, share[1])
        for cycle in range(500 if share is None else 1000):
            # Rows of W are read in their order.
            reads, writes = ask(ctx, read, lambda row=row: row if step > 1 else addresses()), ask(ctx, write, addresses)
            data = [int.from_bytes(rng.bytes(200), "little") % 2 ** width for _ in write]
            for port, value in zip(write, data, strict=True):
                ctx.set(bits(port.data), value)
            masks = [int(rng.integers(1, 2 ** parts)) for _ in write] if hasattr(write[0], "mask") else [1] * len(write)
            for port, mask in zip(write, masks, strict=True):
                if hasattr(port, "mask"):
                    ctx.set(port.mask, mask)
            if last is not None:
                assert ctx.get(output) == last, f"cycle {cycle}"
            asked = [ctx.get(port.addr) for port in (*read, *write)]
            _, _, *values = await ctx.tick().sample(*(p.grant for p in (*read, *write)), *(
                p.fault for p in (*read, *write)))
            count = len(read) + len(write)
            grants(values[:len(read)], reads)
            grants(values[len(read):count], writes)
            chosen = [first + n for first, n in ((0, reads), (len(read), writes)) if n is not None]
            for n, fault in enumerate(values[count:]):
                assert fault == (n in chosen and asked[n] >= depth)
                counts["fault"] += fault
            if reads is not None and asked[reads] < depth:
                address, counts["read"] = asked[reads], counts["read"] + 1
                if step == 1:
                    last = words.get(address)
                elif scales:
                    last = words.get(address // step) if address % step == 0 else last
                else:
                    if address % step == 0:
                        whole = [words.get((address // step, n)) for n in range(step)]
                    last = whole[address % step]
                row = (row + 1) % depth
            if writes is not None and asked[len(read) + writes] < depth:
                address, counts["write"] = asked[len(read) + writes], counts["write"] + 1
                if parts == 1 or step == 1:
                    part = width // parts
                    old = words.get(address // step, 0)
                    new = data[writes]
                    keep = sum((2 ** part - 1) << n * part for n in range(parts) if not masks[writes] >> n & 1)
                    words[address // step] = old & keep | new & ~keep
                else:
                    part = width // parts
                    for n in range(parts):
                        if masks[writes] >> n & 1:
                            words[address // step, n] = data[writes] >> n * part & 2 ** part - 1
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    assert counts["read"] > 100 and counts["write"] > 100 and counts["fault"] > 3


def test_shares_keep_their_words_apart():
    """What is written into one share is read there, and at the same place through all of the memory."""
    dut = XMemory.of(replace(system(), w_words=128, p_words=64, contexts=2))

    async def play(ctx):
        for address, first, size, value in ((5, 0, 8, 1), (5, 8, 8, 2), (0, 15, 1, 3)):
            ctx.set(dut.share_first, first)
            ctx.set(dut.share_size, size)
            ctx.set(dut.write.en, 1)
            ctx.set(dut.write.addr, address)
            ctx.set(bits(dut.write.data), value)
            await ctx.tick()
        ctx.set(dut.write.en, 0)
        ctx.set(dut.share_first, 0)
        ctx.set(dut.share_size, 16)
        ctx.set(dut.read.en, 1)
        for address, value in ((5, 1), (4 * 8 + 5, 2), (4 * 15, 3)):
            ctx.set(dut.read.addr, address)
            await ctx.tick()
            assert ctx.get(bits(dut.read.data)) == value
    bench = Bench(dut)
    bench.process(play)
    bench.run()


@pytest.mark.parametrize("sparse, words", [((2, 4), 2), ((1, 4), 4)])
def test_words_of_a_sparse_row_are_read_together(sparse, words):
    """From the first of a row on all of them, in order; from any other it alone comes first."""
    dut = XMemory.of(system(block=(1, 32), sparse=sparse))
    size = 8 * 8                                           # bits of a word's mantissas
    rng = np.random.default_rng(words)
    given = {address: int.from_bytes(rng.bytes(8), "little") for address in range(64)}

    async def play(ctx):
        ctx.set(dut.write.en, 1)
        for address, value in given.items():
            ctx.set(dut.write.addr, address)
            ctx.set(bits(dut.write.data), value | address << size)    # the exponent
            await ctx.tick()
        ctx.set(dut.write.en, 0)
        ctx.set(dut.read.en, 1)
        for address in rng.permutation(64).tolist():
            ctx.set(dut.read.addr, address)
            await ctx.tick()
            row = ctx.get(bits(dut.read.data))
            assert row % 2 ** size == given[address] and row >> words * size & 1023 == address
            if address % words == 0:
                assert [row >> n * size & 2 ** size - 1 for n in range(words)] == [
                    given[address + n] for n in range(words)]
    bench = Bench(dut)
    bench.process(play)
    bench.run()


#: Words of X of a row of sparse weights lie side by side in a bank.
SPARSE = system(block=(1, 16), sparse=(2, 4))
#: Memory, its banks, reads and writes in the order of their priority, words that are a bank's alone, patient writes.
SINGLE = {
    "v": (VMemory, 2, *CASES["v"][2:4], 1, set()), "v1": (VMemory, 1, *CASES["v"][2:4], 1, set()),
    "x": (XMemory, 4, ["read"], ["write"], 1, set()),
    "w": (WMemory, 4, ["read"], ["write_convert", "write_load"], 4, {"write_load"}),
    "index": (WMemory, 4, ["read"], ["index_convert"], 1, set()), "sparse": (XMemory, 4, ["read"], ["write"], 1, set()),
    "scales": (WMemory, 4, ["read"], ["scales_convert", "scales_load"], 8, {"scales_load"}),
}


@pytest.mark.parametrize("name", sweep(3, SINGLE))
def test_a_bank_of_one_port_is_read_or_written(name):
    """Of a read and a write of one bank one is granted, of others both; what is read was written."""
    kind, banks, readers, writers, step, patient = SINGLE[name]
    sizes = replace(SPARSE if name in ("index", "sparse") else system(), memory_banks=banks)
    dut, rng, line = kind.of(sizes), np.random.default_rng(banks), sizes.x_line
    read, write = ([getattr(dut, port) for port in ports] for ports in (readers, writers))
    output = bits(read[0].scales if name == "scales" else read[0].data)
    whole, shared = name in ("v", "v1", "x"), banks if name in ("v", "x", "sparse") else 1
    words, last, seen = {}, None, set()

    async def play(ctx):
        nonlocal last
        for cycle in range(600):
            asks = {}
            for ports in (read, write):
                wishes = rng.random(len(ports)) < 0.5
                for port, wish in zip(ports, wishes, strict=True):
                    ctx.set(port.en, int(wish))
                    ctx.set(port.addr, int(rng.integers(64)))
                    if hasattr(port, "mask"):
                        ctx.set(port.mask, 2 ** len(port.mask) - 1)
                if wishes.any():
                    asks[ports is write] = ports[int(np.argmax(wishes))]
            reader, writer = asks.get(False), asks.get(True)
            data = int(rng.integers(2 ** 30))
            if writer is not None:
                ctx.set(bits(writer.data), data)
            if last is not None and whole:
                assert ctx.get(output) == last, f"cycle {cycle}"
            places = {each: ctx.get(asks[each].addr) for each in asks}
            granted = {each: value for each, value in zip(asks, (await ctx.tick().sample(*(
                port.grant for port in asks.values())))[2:], strict=True)}
            bank = {each: place // line % shared for each, place in places.items()}
            clash = len(asks) == 2 and bank[False] == bank[True] and places[False] % step == 0
            first = writer is not None and writers[write.index(writer)] not in patient
            assert granted == {each: int(not clash or each == first) for each in asks}
            seen.add((clash, first))
            if reader is not None and granted[False]:
                last = words.get(places[False])
            if writer is not None and granted[True]:
                words[places[True]] = data
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    assert {clash for clash, _ in seen} == {False, True} and words


@pytest.mark.parametrize("banks", [0, 4])
def test_p_holds_instructions_in_beats(banks):
    """With one port a beat takes a cycle for each, in which none is read."""
    dut = PMemory.of(replace(system(), memory_banks=banks))
    beats = [int.from_bytes(np.random.default_rng(n).bytes(32), "little") for n in range(16)]

    async def play(ctx):
        ctx.set(dut.write.en, 1)
        for address, beat in enumerate(beats):
            ctx.set(dut.write.addr, address)
            ctx.set(bits(dut.write.data), beat)
            for turn in range(4 if banks else 1):
                assert ctx.get(dut.write.grant) == (turn == 3 or not banks) and ctx.get(dut.read.grant) == (not banks)
                await ctx.tick()
        ctx.set(dut.write.addr, 16)
        assert ctx.get(dut.write.fault)
        ctx.set(dut.write.en, 0)
        ctx.set(dut.read.en, 1)
        for address in range(64):
            ctx.set(dut.read.addr, address)
            await ctx.tick()
            assert ctx.get(dut.read.data) == beats[address // 4] >> address % 4 * 64 & 2 ** 64 - 1
        ctx.set(dut.read.addr, 64)
        assert ctx.get(dut.read.fault)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
