"""Formats to compare with hold the numbers that their specification lists."""

import re
from fractions import Fraction

import numpy as np
import pytest

from golden.study.quantisers import ELEMENTS, NAMES, quantised


def numbers(exponent, mantissa, largest):
    """All numbers >= 0 of a float by their bits, in order: those of even place have an even mantissa."""
    bias, found = 2 ** (exponent - 1) - 1, []
    for bits in range(2 ** (exponent + mantissa)):
        e, m = bits >> mantissa, bits & 2 ** mantissa - 1
        found.append(Fraction(2) ** (max(e, 1) - bias) * (Fraction(m, 2 ** mantissa) + (e > 0)))
    return [value for value in found if value <= largest]


def nearest(value, table):
    """The nearest of a table, of two the one of even place; the largest beyond it."""
    place = min(range(len(table)), key=lambda i: (abs(table[i] - abs(value)), i % 2))
    return table[place] if value >= 0 else -table[place]


def plain(block, name):
    """MX by the text of its specification, in fractions."""
    element = ELEMENTS[name]
    table = numbers(element.exponent, element.mantissa, element.largest)
    values, top = [Fraction(float(x)) for x in block], max(abs(Fraction(float(x))) for x in block)
    if not top:
        return [0.0] * len(block)
    shared, emax = -300, {"mxfp8_e4m3": 8, "mxfp8_e5m2": 15, "mxfp6_e2m3": 2, "mxfp6_e3m2": 4}[name]
    while Fraction(2) ** (shared + 1) <= top:
        shared += 1
    scale = Fraction(2) ** min(max(shared - emax, -127), 127)
    return [float(nearest(x / scale, table) * scale) for x in values]


@pytest.mark.parametrize("name", ELEMENTS)
def test_mx_is_that_of_its_text(name):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((12, 40)) * 2.0 ** rng.integers(-12, 2, (12, 40))).astype(np.float32)
    x[0], x[1, :32], x[2] = x[0] * np.float32(1e37), 0, x[2] * np.float32(1e-38)
    x[3, :32] = np.arange(32) / 8                                          # ties, and what saturates
    x[4, :32] = 31 - np.arange(32) / 16
    got = quantised(x, name)
    for row, y in zip(x, got, strict=True):
        wanted = [*plain(row[:32], name), *plain(row[32:], name)]
        np.testing.assert_array_equal(y, np.float32(wanted))
    np.testing.assert_array_equal(quantised(np.ascontiguousarray(x.T), name, axis=0), got.T)
    np.testing.assert_array_equal(quantised(got, name), got)


@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp8_e5m2"])
def test_elements_are_those_of_torch(name):
    torch = pytest.importorskip("torch")
    kind = {"mxfp8_e4m3": torch.float8_e4m3fn, "mxfp8_e5m2": torch.float8_e5m2}[name]
    x = np.random.default_rng(1).standard_normal((500, 32)).astype(np.float32)
    top = np.float32(ELEMENTS[name].largest)
    x[:, 0] = top                                                          # scale 1
    x = np.clip(x * np.float32(3), -top, top)
    x[:, 0] = top
    wanted = torch.from_numpy(x).to(kind).float().numpy()
    np.testing.assert_array_equal(quantised(x, name), wanted)


def test_int8_is_symmetric():
    x = np.float32([[127, 0.5, 1.5, -2.5, -63.4, -127]])
    assert quantised(x, "int8").tolist() == [[127, 0, 2, -2, -63, -127]]
    assert quantised(x * np.float32(0.25), "int8").tolist() == [[31.75, 0, 0.5, -0.5, -15.75, -31.75]]
    assert not quantised(np.zeros((2, 3), np.float32), "int8").any()


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_block_without_a_scale_is_nan(bad):
    x = np.ones((1, 64), np.float32)
    x[0, 3] = bad
    y = quantised(x, "mxfp8_e4m3")
    assert np.isnan(y[:, :32]).all() and (y[:, 32:] == 1).all()


def test_refusals():
    message = f"Format must be one of {', '.join(NAMES)}, not 'fp4'"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        quantised(np.zeros(3, np.float32), "fp4")
    with pytest.raises(TypeError, match="^x must be float32, not float64$"):
        quantised(np.zeros(3), "int8")
