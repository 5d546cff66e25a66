# amaranth: UnusedElaboratable=no
"""Every unit against its golden twin: FP32 on specials and random operands, small formats on all.

Covers: rtl/fp32/arith.py, rtl/fp32/multiply_add.py, rtl/fp32/compare.py,
rtl/fp32/convert.py, rtl/fp32/divsqrt.py, rtl/fp32/fma.py,
rtl/fp32/multiply.py, rtl/fp32/raw.py.
"""

import numpy as np
import pytest

import golden.fp32 as fp32
from golden.spec.floats import FP32, FloatFormat
from rtl.fp32.arith import Add
from rtl.fp32.convert import IntToFp32, ToInt32
from rtl.fp32.multiply_add import ProductAdd
from rtl.fp32.units import FP32_UNITS, build
from tests.cases import sweep
from tests.rtl.fp32.table import SMALL, TABLE, expected, pairs, small_operands
from tests.rtl.fp32.verilated import Verilated

cosim = pytest.mark.cosim


def unit(name, **parameters):
    """Like :func:`build`, but in this file, whose first line allows units that are never used."""
    return FP32_UNITS[name](**parameters)


#: Lean units that only array baselines and accumulators use know one mode.
MODES = {name: unit(name).SUBNORMALS for name in FP32_UNITS}
CASES = [(name, mode) for name in TABLE for mode in MODES[name]]
SMALL_CASES = [(name, fmt, mode) for name, (_, _, count) in TABLE.items() if count
               for fmt in SMALL if fmt.width * count <= 16 or count == 3 and fmt.width <= 6
               for mode in MODES[name]
               if not (name == "fp32.sqrt" and mode == "gradual" and fmt in (SMALL[0], SMALL[4]))]
#: Recoded multipliers: significands of 3 to 5 bits everywhere, and those of FP32.
RECODED = [(name, fmt) for name in ("fp32.mul", "fp32.fma", "fp32.mul_add")
           for fmt in (SMALL[0], SMALL[1], SMALL[4], FP32)
           if fmt.width <= (8 if name == "fp32.mul" else 6) or fmt is FP32] + [("fp32.bf16_mul_add", FP32)]
#: Recoded multipliers with one register, one behind the quick sum of all rows, and one between two halves of the rows.
PIPELINED = [("fp32.mul_add", depth) for depth in (1, 2, len(unit("fp32.mul_add").CUTS))]
#: Units of accelerators, which have no registers there.
PLAIN = "fp32.add", "fp32.mul", "fp32.max"
WIDTHS = (8, 22, 24, 25, 30, 60)


class Bench:
    """Units by key in one Verilated build."""

    def __init__(self, units):
        self.keys, self.model = list(units), Verilated(list(units.values()))

    def __call__(self, key, *operands):
        n = self.keys.index(key)
        return self.model(n, *operands) & ((1 << len(self.model.units[n].o)) - 1)


#: Depths of sums and products of a small format, and those at which FP32 has sets of registers that no other depth has.
SHALLOW = [(name, fmt, mode, depth) for name in ("fp32.add", "fp32.mul") for fmt, mode, depths in (
    (FloatFormat(3, 3), "flush", range(1, 8)), (FloatFormat(3, 3), "gradual", (1, 3, 5)), (FP32, "flush", (2, 3, 4)))
           for depth in depths if depth <= len(unit(name).CUTS)]
#: Of these every fifth runs by default.
OFTEN, STEP = (SMALL_CASES, RECODED, SHALLOW, PIPELINED), 5


@pytest.fixture(scope="module")
def some():
    """Small formats combinational, recoded multipliers and registers: cases by default."""
    return more(*(cases[::STEP] for cases in OFTEN))


@pytest.fixture(scope="module")
def others():
    """Those of the long regression."""
    return more(*([case for number, case in enumerate(cases) if number % STEP] for cases in OFTEN))


def more(small, recoded, shallow, pipelined):
    units = {case: unit(case[0], fmt=case[1], subnormals=case[2]) for case in small}
    units |= {("recoded", *case): unit(case[0], fmt=case[1], multiplier="recoded") for case in recoded}
    units |= {case: unit(case[0], fmt=case[1], subnormals=case[2], pipeline=case[3]) for case in shallow}
    units |= {("recoded", *case): unit(case[0], pipeline=case[1], multiplier="recoded") for case in pipelined}
    return Bench(units)


@pytest.fixture(scope="module")
def bench():
    """Gradual units combinational, flushing ones deep."""
    units = {(name, mode): unit(name, subnormals=mode, pipeline=min(len(unit(name).CUTS), 8) if mode == "flush" else 0)
             for name, mode in CASES}
    units |= {("plain", name): unit(name, subnormals="flush") for name in PLAIN}
    units |= {width: IntToFp32(width, pipeline=width % 4) for width in WIDTHS}
    units |= {"positive": Add(subnormals="flush", underflow="positive"), "truncate": ToInt32(rounding="truncate"),
              "product": ProductAdd(source=FloatFormat(3, 1), fmt=FloatFormat(3, 4))}
    return Bench(units)


@cosim
@pytest.mark.parametrize("name, mode", CASES)
def test_unit_equals_golden(bench, name, mode):
    operands = TABLE[name][1](200_000, 1)
    np.testing.assert_array_equal(bench((name, mode), *operands), expected(name, operands, FP32, mode))


@cosim
@pytest.mark.parametrize("name", PLAIN)
def test_flushing_unit_without_registers_equals_golden(bench, name):
    operands = TABLE[name][1](200_000, 1)
    np.testing.assert_array_equal(bench(("plain", name), *operands), expected(name, operands, FP32, "flush"))


def swept(cases):
    """Each case with the fixture that has its unit."""
    return sweep(STEP, [("others" if number % STEP else "some", *case) for number, case in enumerate(cases)])


@cosim
@pytest.mark.parametrize("units, name, fmt, mode", swept(SMALL_CASES))
def test_small_format_equals_golden_everywhere(request, units, name, fmt, mode):
    bench = request.getfixturevalue(units)
    operands = small_operands(name, fmt)
    np.testing.assert_array_equal(bench((name, fmt, mode), *operands), expected(name, operands, fmt, mode))


@cosim
@pytest.mark.parametrize("units, name, fmt", swept(RECODED))
def test_recoded_multiplier_equals_golden(request, units, name, fmt):
    bench = request.getfixturevalue(units)
    operands = TABLE[name][1](200_000, 4) if fmt is FP32 else small_operands(name, fmt)
    np.testing.assert_array_equal(bench(("recoded", name, fmt), *operands),
                                  expected(name, operands, fmt, MODES[name][0]))


@cosim
@pytest.mark.parametrize("units, case", swept((case,) for case in SHALLOW), ids=str)
def test_registers_change_no_bit(request, units, case):
    bench = request.getfixturevalue(units)
    name, fmt, mode, _ = case
    operands = TABLE[name][1](50_000, 6) if fmt is FP32 else small_operands(name, fmt)
    np.testing.assert_array_equal(bench(case, *operands), expected(name, operands, fmt, mode))


@cosim
@pytest.mark.parametrize("units, name, depth", swept(PIPELINED))
def test_recoded_multiplier_with_registers_equals_golden(request, units, name, depth):
    """Its rows are summed by parallel prefixes."""
    bench = request.getfixturevalue(units)
    operands = TABLE[name][1](100_000, 7)
    np.testing.assert_array_equal(bench(("recoded", name, depth), *operands),
                                  expected(name, operands, subnormals=MODES[name][0]))


@cosim
def test_positive_underflow_equals_golden(bench):
    operands = pairs(200_000, 2)
    want = fp32.add(*operands, subnormals="flush", underflow="positive")
    np.testing.assert_array_equal(bench("positive", *operands), want)


@cosim
def test_truncation_equals_golden(bench):
    operands = TABLE["fp32.to_int32"][1](200_000, 2)
    np.testing.assert_array_equal(bench("truncate", *operands), fp32.to_int32(*operands, rounding="truncate"))


@cosim
def test_narrow_product_plus_wide_equals_golden(bench):
    a, b, c = (v.reshape(-1) for v in np.meshgrid(np.arange(32), np.arange(32), np.arange(256)))
    want = fp32.fma(a << 3, b << 3, c, FloatFormat(3, 4), "flush")
    np.testing.assert_array_equal(bench("product", a, b, c), want)


@cosim
@pytest.mark.parametrize("width", WIDTHS)
def test_scaled_integer_equals_golden(bench, width):
    rng = np.random.default_rng(width)
    value = rng.integers(-2 ** 62, 2 ** 62, 300_000) >> rng.integers(63 - width, 63, 300_000)
    value[:4] = -2 ** (width - 1), 2 ** (width - 1) - 1, 0, -1
    exponent, invalid = rng.integers(-200, 150, value.size), rng.random(value.size) < 0.01
    want = fp32.from_int(value, exponent, invalid, subnormals="flush", underflow="positive")
    np.testing.assert_array_equal(bench(width, value, exponent, invalid), want)


@cosim
@pytest.mark.slow
@pytest.mark.parametrize("name, mode", CASES)
def test_every_depth_equals_golden_on_a_million(name, mode):
    operands = TABLE[name][1](1_000_000, 3)
    want = expected(name, operands, FP32, mode)
    depths = range(len(unit(name).CUTS) + 1)
    every = Bench({depth: unit(name, subnormals=mode, pipeline=depth) for depth in depths})
    for depth in depths:
        np.testing.assert_array_equal(every(depth, *operands), want, err_msg=f"depth {depth}")


@pytest.mark.parametrize("name", FP32_UNITS)
def test_latency_is_pipeline(name):
    for depth in range(len(unit(name).CUTS) + 1):
        assert unit(name, pipeline=depth).latencies["result"] == depth


def test_wrong_unit():
    with pytest.raises(ValueError, match=r"^Unit must be one of fp32\.add, .*, not 'fp32\.cos'$"):
        build("fp32.cos")


def test_wrong_format():
    with pytest.raises(ValueError, match=r"^Float format must be a FloatFormat, not 'half'$"):
        unit("fp32.add", fmt="half")


def test_wrong_product_format():
    with pytest.raises(ValueError, match=r"^Product of .*fraction=12\) must fit the precision of .*$"):
        ProductAdd(source=FloatFormat(8, 12))


def test_wrong_square_root_format():
    with pytest.raises(ValueError, match=r"^Square root of .* could be subnormal$"):
        unit("fp32.sqrt", fmt=FloatFormat(3, 4))


def test_wrong_integer_width():
    with pytest.raises(ValueError, match=r"^Integer width must be 2 to 60 bits, not 61$"):
        IntToFp32(61)


def test_wrong_exponent_width():
    with pytest.raises(ValueError, match=r"^Exponent width must be 0 to 20 bits, not 21$"):
        IntToFp32(22, 21)


def test_wrong_subnormals():
    with pytest.raises(ValueError, match=r"^Subnormals must be one of flush, not 'gradual'$"):
        unit("fp32.mul_add", subnormals="gradual")


def test_wrong_underflow():
    with pytest.raises(ValueError, match=r"^Underflow positive needs subnormals flush, not gradual$"):
        Add(underflow="positive")
    with pytest.raises(ValueError, match=r"^Underflow must be one of signed, positive, not 'up'$"):
        Add(underflow="up")


def test_wrong_rounding():
    with pytest.raises(ValueError, match=r"^Rounding must be one of rne, truncate, not 'floor'$"):
        ToInt32(rounding="floor")


def test_wrong_multiplier():
    for name in ("fp32.mul", "fp32.fma"):
        with pytest.raises(ValueError, match=r"^Multiplier must be one of plain, recoded, not 'wallace'$"):
            unit(name, multiplier="wallace")


def test_wrong_pipeline():
    with pytest.raises(ValueError, match=r"^Pipeline depth must be 0 to 7 cycles, not 8$"):
        unit("fp32.add", pipeline=8)
