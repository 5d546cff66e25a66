# amaranth: UnusedElaboratable=no
"""A float plus a scaled integer equals conversion and addition; docs/numerics.md, sections 4 and 5."""

import numpy as np
import pytest
from amaranth import Module, signed
from amaranth.lib.wiring import Component, In, Out

import golden.fp32 as fp32
from golden.spec.floats import BF16, FP32, FloatFormat
from rtl.fp32.scaled_add import ScaledAdd, Term
from rtl.lib.skew import delay

from .verilated import Verilated

E3F2, E3F3, E4F4 = FloatFormat(3, 2), FloatFormat(3, 3), FloatFormat(4, 4)
#: Format, bits of the integer and of its exponent: on all operands. Integers fit a significand, or are rounded first.
SMALL = [(E3F2, 4, 5), (E3F2, 6, 5), (E3F3, 2, 5), (E3F3, 3, 5), (E3F3, 5, 5), (E4F4, 5, 5), (E4F4, 3, 5)]
#: The same on random operands.
LARGE = [(FP32, 8, 12), (FP32, 20, 12), (FP32, 25, 12), (FP32, 26, 12), (FP32, 40, 13), (FloatFormat(8, 15), 20, 12),
         (BF16, 20, 12), (BF16, 9, 12)]


#: A case, the registers of the sum and of the term: all numbers of each.
DEPTHS = [(LARGE[1], 1, 0), (LARGE[1], 2, 1), (LARGE[1], 3, 0), (LARGE[1], 4, 1), (LARGE[1], 5, 2), (LARGE[3], 6, 2),
          (LARGE[4], 7, 1), (SMALL[4], 8, 2), (SMALL[6], 4, 1), (SMALL[1], 1, 2)]


class Sum(Component):
    """Both steps, one behind the other; the top bit of ``scale`` says that the term is NaN."""

    def __init__(self, fmt, width, exponent, pipeline=0, inside=0):
        self.parts = (Term(width, exponent, fmt, inside),
                      ScaledAdd(fmt=fmt, width=width, pipeline=pipeline, enable=False))
        self.offset = self.parts[0].params.offset
        super().__init__({"a": In(fmt.width), "i": In(signed(width)), "scale": In(exponent + 1), "o": Out(fmt.width)})

    @property
    def latencies(self):
        return {"result": sum(part.latencies["result"] for part in self.parts)}

    def elaborate(self, platform):
        m = Module()
        m.submodules.term, m.submodules.add = term, add = self.parts
        m.d.comb += [term.i.eq(self.i), term.exponent.eq(self.scale[:-1]), term.invalid.eq(self.scale[-1]),
                     add.a.eq(delay(m, self.a, term.params.pipeline, "a")), add.b.eq(term.o), self.o.eq(add.o)]
        return m


@pytest.fixture(scope="module")
def bench():
    units = {case: Sum(*case) for case in (*SMALL, *LARGE)}
    units |= {(*case, *depths): Sum(*case, *depths) for case, *depths in DEPTHS}
    keys, model = list(units), Verilated(list(units.values()))

    def run(key, a, i, exponent, invalid):
        fmt, _, bits, *_ = key
        scale = (exponent & (1 << bits) - 1) | np.asarray(invalid) << bits
        return model(keys.index(key), a, i, scale) & np.uint64((1 << fmt.width) - 1)
    return run


def accumulators(fmt, patterns):
    """Patterns as the unit gives them: +0 below the normal numbers, one NaN."""
    return fp32.add(patterns, np.zeros_like(patterns), fmt, "flush", "positive")


def expected(fmt, width, a, i, exponent, invalid):
    offset = Term.Parameters(width, 1, fmt).offset
    term = fp32.from_int(i, exponent - offset, invalid, fmt, "flush", "positive")
    return fp32.add(a, term, fmt, "flush", "positive")


@pytest.mark.cosim
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_small_format_equals_golden_everywhere(bench, case):
    operands = every_operand(*case)
    np.testing.assert_array_equal(bench(case, *operands), expected(*case[:2], *operands))


def every_operand(fmt, width, bits):
    a = np.unique(accumulators(fmt, np.arange(1 << fmt.width, dtype=np.uint32)))
    most = 2 ** (width - 1)
    return [v.reshape(-1) for v in np.meshgrid(
        a, np.arange(1 - most, most), np.arange(-2 ** (bits - 1), 2 ** (bits - 1)), [0, 1])]


def random_operands(fmt, width, count=300_000):
    """Accumulators and integers whose leading ones are mostly near each other; the edges of the format."""
    rng = np.random.default_rng(width)
    a = accumulators(fmt, rng.integers(0, 1 << fmt.width, count, dtype=np.uint32))
    field = (a >> fmt.fraction & fmt.top).astype(np.int64)
    field = np.where(rng.random(count) < 0.1, rng.choice([0, 1, fmt.top - 1, fmt.top], count), field)
    a = accumulators(fmt, (a & ~np.uint32(fmt.top << fmt.fraction)) | (field << fmt.fraction).astype(np.uint32))
    i = rng.integers(1 - 2 ** (width - 1), 2 ** (width - 1), count) >> rng.integers(0, width, count)
    i = np.where(rng.random(count) < 0.1, rng.choice([0, 1, -1, 2 ** (width - 1) - 1, 1 - 2 ** (width - 1)], count), i)
    near = field - fmt.bias - np.frexp(np.maximum(np.abs(i), 1).astype(np.float64))[1]
    exponent = near + rng.integers(-3, 4, count) * rng.integers(0, fmt.precision // 2, count)
    # Cancellation to nothing, and almost: the integer is the accumulator's own significand.
    same = (a & np.uint32((1 << fmt.fraction) - 1) | 1 << fmt.fraction).astype(np.int64)
    if width - 1 >= fmt.precision:
        own = rng.random(count) < 0.1
        sign = np.where(a >> (fmt.width - 1) & 1, 1, -1)
        i = np.where(own, sign * np.minimum(same + rng.integers(-1, 2, count), 2 ** (width - 1) - 1), i)
        exponent = np.where(own, field - fmt.bias - fmt.fraction, exponent)
    return a, i, exponent + Term.Parameters(width, 1, fmt).offset, (rng.random(count) < 0.01).astype(int)


@pytest.mark.cosim
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_sum_equals_golden(bench, case):
    operands = random_operands(*case[:2])
    want = expected(*case[:2], *operands)
    np.testing.assert_array_equal(bench(case, *operands), want)
    assert len(np.unique(want)) > 1000 and (want == 0).sum() > 100 and (want == case[0].inf).sum() > 100


@pytest.mark.cosim
@pytest.mark.parametrize("case, pipeline, inside", DEPTHS, ids=str)
def test_registers_change_no_bit(bench, case, pipeline, inside):
    operands = every_operand(*case) if case in SMALL else random_operands(*case[:2], count=50_000)
    np.testing.assert_array_equal(bench((*case, pipeline, inside), *operands), expected(*case[:2], *operands))


def test_latency_is_pipeline():
    assert {pipeline for _, pipeline, _ in DEPTHS} == set(range(1, len(ScaledAdd.CUTS) + 1))
    assert {inside for *_, inside in DEPTHS} == set(range(len(Term.CUTS) + 1))
    assert Sum(*LARGE[1], 3, 2).latencies == {"result": 5}
