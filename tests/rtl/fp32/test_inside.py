# amaranth: UnusedElaboratable=no
"""Multiply-adds as an array has them: operands prepared, sums not packed in between; only what leaves is a pattern.

Covers: rtl/fp32/multiply.py, rtl/fp32/multiply_add.py.
"""

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib.wiring import Component, In, Out

import golden.fp32 as fp32
from golden.spec.floats import BF16, FP16, FP32, FloatFormat
from rtl.fp32.fma import Fma
from rtl.fp32.inside import PackSum, Prepare, sum_layout
from rtl.fp32.multiply_add import MulAdd, ProductAdd
from tests.rtl.fp32.table import TABLE, small_operands
from tests.rtl.fp32.verilated import Verilated

TINY = FloatFormat(3, 2)
COUNT = 200_000


class Column(Component):
    """``o = 1 c + (a b + 0)``, each step an element, in the order of a column."""
    latencies = {"result": 0}

    def __init__(self, unit, source, fmt):
        self.make, self.source, self.fmt = unit, source, fmt
        super().__init__({"a": In(source.width), "b": In(source.width), "c": In(source.width), "o": Out(fmt.width)})

    def elaborate(self, platform):
        m = Module()
        flush = self.make().flush
        total = 1 << sum_layout(self.fmt)["zero"].offset if flush else 0
        one = self.source.bias << self.source.fraction
        for n, (left, right) in enumerate(((self.a, self.b), (one, self.c))):
            m.submodules[f"prepare{n}"] = prepare = Prepare(self.source, "flush" if flush else "gradual")
            m.submodules[f"element{n}"] = element = self.make()
            m.d.comb += [prepare.i.eq(left), element.a.eq(prepare.o), element.b.eq(right), element.c.eq(total)]
            total = element.o
        if flush:
            m.submodules.pack = pack = PackSum(self.fmt)
            m.d.comb += pack.i.eq(total)
            total = pack.o
        m.d.comb += self.o.eq(total)
        return m


def element(kind, **options):
    mode = {"subnormals": "gradual"} if kind is Fma else {"underflow": "positive", "subnormals": "flush"}
    return lambda: kind(multiplier="recoded", inside=True, **mode, **options)


COLUMNS = {
    "fp32": Column(element(MulAdd), FP32, FP32), "fma": Column(element(Fma), FP32, FP32),
    "bf16": Column(element(ProductAdd), BF16, FP32), "fp16": Column(element(ProductAdd, source=FP16), FP16, FP32),
    "tiny": Column(element(MulAdd, fmt=TINY), TINY, TINY), "tiny fma": Column(element(Fma, fmt=TINY), TINY, TINY)}


HALVES = {"bf16": BF16, "fp16": FP16}


#: In the long regression: the elements of others do the same with other formats, or with one.
SELDOM = ["fma", "fp16"]


@pytest.fixture(scope="module")
def often():
    """The others in one Verilated build."""
    return Verilated([column for name, column in COLUMNS.items() if name not in SELDOM])


@pytest.fixture(scope="module")
def seldom():
    return Verilated([COLUMNS[name] for name in SELDOM])


def step(name, a, b, c, fmt):
    """One element of the golden model."""
    if "fma" in name:
        return fp32.fma(a, b, c, fmt)
    rules = {"subnormals": "flush", "underflow": "positive"}
    if name in HALVES:
        a, b = (fp32.convert(value, HALVES[name], FP32, "flush") for value in (a, b))
        return fp32.fma(a, b, c, fmt, **rules)
    return fp32.add(fp32.mul(a, b, fmt, "flush"), c, fmt, **rules)


@pytest.mark.cosim
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SELDOM)) for name in COLUMNS])
def test_column_equals_golden(request, name):
    column, fmt = COLUMNS[name], COLUMNS[name].fmt
    if fmt is TINY:
        a, b, c = small_operands("fp32.fma", fmt)
    else:
        a, b, c = TABLE["fp32.fma"][1](COUNT, 5)
        if name in HALVES:
            a, b, c = a >> 16, b >> 16, c >> 16
    want = np.zeros(a.shape, np.uint32)
    one = np.full(a.shape, column.source.bias << column.source.fraction)
    for left, right in ((a, b), (one, c)):
        want = step(name, left.astype(np.uint32), right.astype(np.uint32), want, fmt)
    model = request.getfixturevalue("seldom" if name in SELDOM else "often")
    got = model(model.units.index(column), a, b, c)
    np.testing.assert_array_equal(got & ((1 << fmt.width) - 1), want.astype(np.uint64))


def test_elements_inside_are_in_the_least_area():
    for options in ({"multiplier": "plain"}, {"multiplier": "recoded", "pipeline": 2}):
        with pytest.raises(ValueError, match="need multiplier recoded and pipeline 0"):
            MulAdd(inside=True, **options)
