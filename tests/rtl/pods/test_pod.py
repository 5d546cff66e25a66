"""A pod: partial sums in, plus block sums in ascending order, out; round after round, bit for bit.

Covers: rtl/pods/partial_sums.py.
"""

import numpy as np
import pytest
from amaranth.hdl import Value
from amaranth.sim import Simulator

from golden.bfp import encode
from golden.matmul import mantissa_dot, matmul_blocks
from golden.number.to_fp32 import add_fp32, to_fp32
from hbfp.design import Design
from hbfp.format import HBFPFormat
from rtl.pods.pod import Pod, w_layout, x_layout
from tests.cases import sweep
from tests.rtl.drive import pack

EXTREMES = np.array([0, -0.0, 1e-39, 2e-38, 3e38, -3e38, np.inf, np.nan], np.float32)


def words(layout, blocks, j, axis, **more):
    """Rows of a tile as payloads; exponents of block ``j`` of each row, or of every column in row j's segment."""
    rows = []
    for n, mantissa in enumerate(blocks.mantissa):
        at = n // blocks.fmt.terms
        scale = (blocks.exponent[n], blocks.invalid[n]) if axis else (blocks.exponent[at], blocks.invalid[at])
        flags = {name: values[n] for name, values in more.items()}
        rows.append(pack(layout, mantissa=mantissa, exponent=scale[0], invalid=scale[1], **flags))
    return rows


def expected(x, w, start):
    """The law: sums in ascending order of segments, section 5, with ``start`` in the place of +0."""
    total, terms, m = start, x.fmt.terms, x.fmt.magnitude
    for s in range(x.exponent.shape[1]):
        part = slice(s * terms, (s + 1) * terms)
        dots = mantissa_dot(x.mantissa[:, None, part], w.mantissa.T[None, :, part])
        product = to_fp32(dots, x.exponent[:, s, None] + w.exponent[None, s] - 2 * m)
        product[x.invalid[:, s, None] | w.invalid[None, s]] = np.nan
        total = add_fp32(total, product)
    return total


def play(design, operations, gap):
    """Operations (x, w, start) one after another, each ``gap`` cycles later; what leaves, row by row."""
    pod, rows, latency = Pod.made(design), design.rows, Pod.latency(design)
    cycles = gap * (len(operations) + 1) + latency + rows
    xs, ws, starts = [0] * cycles, [0] * cycles, [0] * cycles
    for n, (x, w, start) in enumerate(operations):
        at, count = gap * (n + 1), len(x.mantissa)
        xs[at:at + count] = words(x_layout(design), x, n, 1, first=[1] + [0] * (count - 1))
        ws[at - gap:at - gap + rows] = words(w_layout(design), w, n, 0, valid=[1] * rows)
        starts[at:at + count] = [int.from_bytes(row.tobytes(), "little") for row in start]
    got = []

    async def bench(ctx):
        for cycle in range(cycles):
            for port, values in ((pod.x, xs), (pod.w, ws), (pod.sums, starts)):
                ctx.set(Value.cast(port), values[cycle])
            got.append(ctx.get(Value.cast(pod.o)))
            await ctx.tick()
    sim = Simulator(pod)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    results = []
    for n, (x, *_) in enumerate(operations):
        at = gap * (n + 1) + latency
        results.append(np.array([np.frombuffer(word.to_bytes(4 * design.cols, "little"), np.float32)
                                 for word in got[at:at + len(x.mantissa)]]))
    return results


@pytest.mark.parametrize("terms, group, mantissa, count", sweep(7, [
    (*each, count) for each in ((4, (4, 2), 8), (4, (1, 1), 4), (2, (2, 4), 8), (1, (1, 2), 16), (2, (1, 4), 6))
    for count in (4, 2, 7)]), ids=str)
def test_equals_the_law(terms, group, mantissa, count):
    design = Design(format=HBFPFormat(mantissa=mantissa, block=(1, terms)), rows=4, group=group)
    rng = np.random.default_rng(mantissa + count)
    operations = []
    for n in range(6):
        x, w = (rng.normal(0, 2.0 ** rng.integers(-20, 20), shape).astype(np.float32) for shape in ((count, 4), (4, 4)))
        start = rng.normal(0, 1, (count, 4)).astype(np.float32) if n % 3 else np.zeros((count, 4), np.float32)
        if n > 3:
            for each in (x, w, start):
                each.flat[rng.integers(each.size, size=3)] = rng.choice(EXTREMES, 3)
        start = add_fp32(start, np.float32(0))    # a sum is no subnormal, and has the one NaN
        operations.append((encode(x, design.format), encode(w, design.format, axis=0), start))
    got = play(design, operations, max(count + 1, Pod.interval(design)))
    for (x, w, start), result in zip(operations, got, strict=True):
        assert (result.view(np.uint32) == expected(x, w, start).view(np.uint32)).all()


def test_a_chain_is_the_product():
    """Sums that go round through a pod, tile after tile along K, have the bits of golden.matmul."""
    design, rng = Design(format=HBFPFormat(block=(1, 2)), rows=4), np.random.default_rng(1)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((4, 12), (12, 4)))
    total = np.zeros((4, 4), np.float32)
    for k in range(0, 12, 4):
        a, b = encode(x[:, k:k + 4], design.format), encode(w[k:k + 4], design.format, axis=0)
        total = play(design, [(a, b, total)], 5)[0]
    want = matmul_blocks(encode(x, design.format), encode(w, design.format, axis=0))
    assert (total.view(np.uint32) == want.view(np.uint32)).all()
