"""Numbers to compare with are those that their standards list, by definition, by arithmetic, and in torch.

Covers: golden/formats/rules.py, golden/fast/numbers.py, golden/nn/rounded.py.
"""

import re
from fractions import Fraction

import numpy as np
import pytest

from golden.formats.coded import decode, encode, encode_plain, rounded
from golden.spec.numbers import BF16, E2M1, E2M3, E3M2, E4M3, E5M2, FP16, INT8, INT8_MX, NUMBERS

BLOCKED = [name for name, number in NUMBERS.items() if number.scope == "block"]
#: The tables of the OCP MX specification (sections 5.3.1 to 5.3.3), numbers from 0 on.
LISTED = {"E2M1": [0, 0.5, 1, 1.5, 2, 3, 4, 6],
          "E2M3": [i / 8 for i in range(16)] + [2 + i / 4 for i in range(8)] + [4 + i / 2 for i in range(8)],
          "E3M2": [i / 16 for i in range(8)] + [(4 + i) * 2.0 ** k for k in range(-3, 3) for i in range(4)]}


def numbers(exponent, fraction, largest):
    """All numbers >= 0 of a float by their bits, in order: those of even place have an even fraction."""
    if not exponent:
        return [Fraction(i, 2 ** fraction) for i in range(int(largest * 2 ** fraction) + 1)]
    bias, found = 2 ** (exponent - 1) - 1, []
    for bits in range(2 ** (exponent + fraction)):
        e, m = bits >> fraction, bits & 2 ** fraction - 1
        found.append(Fraction(2) ** (max(e, 1) - bias) * (Fraction(m, 2 ** fraction) + (e > 0)))
    return [value for value in found if value <= largest]


def nearest(value, table):
    """The nearest of a table, of two the one of even place; the largest beyond it."""
    place = min(range(len(table)), key=lambda i: (abs(table[i] - abs(value)), i % 2))
    return table[place] if value >= 0 else -table[place]


def power(value):
    """floor(log2(value))."""
    found = -300
    while Fraction(2) ** (found + 1) <= value:
        found += 1
    return found


def plain(block, element):
    """MX by the text of its specification, in fractions."""
    table = numbers(element.exponent, element.fraction, element.largest)
    values, top = [Fraction(float(x)) for x in block], max(abs(Fraction(float(x))) for x in block)
    if not top:
        return [0.0] * len(block)
    scale = Fraction(2) ** min(max(power(top) - power(Fraction(element.largest)), -127), 127)
    return [float(nearest(x / scale, table) * scale) for x in values]


def sample(rng, shape=(12, 40)):
    """Numbers of many sizes, a block of zeros, ties, and what saturates."""
    x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 2, shape)).astype(np.float32)
    x[0], x[1, :32], x[2] = x[0] * np.float32(1e37), 0, x[2] * np.float32(1e-38)
    x[3, :32] = np.arange(32) / 8
    x[4, :32] = 31 - np.arange(32) / 16
    return x


def test_elements_are_those_of_the_tables():
    for name, element in (("E2M1", E2M1), ("E2M3", E2M3), ("E3M2", E3M2)):
        assert list(element.magnitudes) == LISTED[name]
    assert (len(E4M3.magnitudes), E4M3.magnitudes[1], E4M3.magnitudes[-1]) == (127, 2.0 ** -9, 448)
    assert (len(E5M2.magnitudes), E5M2.magnitudes[1], E5M2.magnitudes[-1]) == (124, 2.0 ** -16, 57344)
    assert (INT8.magnitudes[-1], INT8_MX.magnitudes[-1]) == (127, 1.984375)
    assert FP16.magnitudes[-1] == np.finfo(np.float16).max and FP16.magnitudes[1] == 2.0 ** -24
    assert BF16.magnitudes[-1] == 3.3895313892515355e38 and BF16.magnitudes[1] == 2.0 ** -133
    assert [each.emax for each in (E4M3, E5M2, E2M3, E3M2, E2M1, INT8_MX)] == [8, 15, 2, 4, 2, 0]


@pytest.mark.parametrize("name", BLOCKED)
def test_mx_is_that_of_its_text(name):
    x, number = sample(np.random.default_rng(0)), NUMBERS[name]
    got = rounded(x, number)
    for row, y in zip(x, got, strict=True):
        wanted = [*plain(row[:32], number.element), *plain(row[32:], number.element)]
        np.testing.assert_array_equal(y, np.float32(wanted))
    np.testing.assert_array_equal(rounded(np.ascontiguousarray(x.T), number, axis=0), got.T)
    np.testing.assert_array_equal(rounded(got, number), got)


def every(rng):
    """Bit patterns of all kinds, a row without Inf and NaN among them, in blocks of 16 and 32."""
    x = rng.integers(0, 1 << 32, (64, 100), dtype=np.uint32).view(np.float32).copy()
    x[:40][~np.isfinite(x[:40])] = 1
    x[8:16] = sample(rng, (8, 100))
    x[16:24] *= np.float32(0)
    return x


@pytest.mark.parametrize("name", NUMBERS)
def test_arithmetic_is_the_definition(name):
    x, number = every(np.random.default_rng(1)), NUMBERS[name]
    for part in (x, x[:40], x[8:16], x[16:24], x[:0]):
        for axis in (0, 1, (1, 0)):
            fast, slow = encode(part, number, axis=axis), encode_plain(part, number, axis=axis)
            for field in ("elements", "scales", "whole"):
                a, b = getattr(fast, field), getattr(slow, field)
                np.testing.assert_array_equal(np.copysign(1, a[~np.isnan(a)]), np.copysign(1, b[~np.isnan(b)]))
                np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(decode(fast).view(np.uint32), decode(slow).view(np.uint32))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", NUMBERS)
def test_torch_has_the_same_bits(name, compiled, monkeypatch):
    """By the compiled kernels and by torch's operations, which a GPU has alone."""
    torch = pytest.importorskip("torch")
    from golden.fast import numbers
    from golden.nn.rounded import rounded as in_torch
    if not compiled:
        monkeypatch.setattr(numbers, "serves", lambda number: False)
    x, number = every(np.random.default_rng(2)), NUMBERS[name]
    for part in (x, x[:40], x[8:16], x[16:24], x[:0]):
        for axis in (0, 1, -1, (1, 0)):
            got, wanted = in_torch(torch.from_numpy(part), number, axis).numpy(), rounded(part, number, axis=axis)
            assert np.array_equal(np.isnan(got), np.isnan(wanted))
            known = ~np.isnan(got)
            np.testing.assert_array_equal(got[known].view(np.uint32), wanted[known].view(np.uint32))


@pytest.mark.parametrize("name, kind", [("mxfp8-e4m3", "float8_e4m3fn"), ("mxfp8-e5m2", "float8_e5m2"),
                                        ("fp16", "float16"), ("bf16", "bfloat16")])
def test_elements_are_those_of_torch(name, kind):
    torch = pytest.importorskip("torch")
    number = NUMBERS[name]
    x = np.random.default_rng(1).standard_normal((500, 32)).astype(np.float32)
    if number.scope == "block":
        top = np.float32(number.element.largest)
        x[:, 0] = top                                                          # scale 1
        x = np.clip(x * np.float32(3), -top, top)
    else:
        x *= np.exp2(np.random.default_rng(2).integers(-150, 127, x.shape)).astype(np.float32)
    wanted = torch.from_numpy(x).to(getattr(torch, kind)).float().numpy()
    np.testing.assert_array_equal(rounded(x, number), wanted)


def test_codes_are_bit_patterns():
    torch = pytest.importorskip("torch")
    for name, kind in (("fp8-e4m3", torch.float8_e4m3fn), ("fp8-e5m2", torch.float8_e5m2)):
        values = torch.arange(256, dtype=torch.uint8).view(kind).float().numpy()
        values = values[np.isfinite(values)]
        coded = encode(values, NUMBERS[name])
        assert coded.scales == 1
        np.testing.assert_array_equal(coded.codes, torch.from_numpy(values).to(kind).view(torch.uint8).numpy())
    coded = encode(np.float32([6, -6, 0.5, -0.5, 0]), NUMBERS["mxfp4"])
    assert coded.codes.tolist() == [7, 15, 1, 9, 0]
    assert encode(np.float32([127, -127, -1]), NUMBERS["int8"]).codes.tolist() == [127, 129, 255]
    with pytest.raises(ValueError, match="^Elements must be numbers, not NaN, which formats write in their own ways$"):
        _ = encode(np.float32([np.nan]), NUMBERS["mxfp4"]).codes


def test_two_levels_are_those_of_the_paper():
    """NVFP4, in fractions but for what the paper keeps in FP32."""
    x = sample(np.random.default_rng(3), (8, 40))[3:]
    coded, table = encode(x, NUMBERS["nvfp4"]), numbers(2, 1, 6)
    whole = np.float32(np.abs(x).max()) / np.float32(448 * 6)
    assert coded.whole == whole
    for row, elements, scales in zip(x, coded.elements, coded.scales, strict=True):
        for start, scale in zip(range(0, 40, 16), scales, strict=True):
            block = row[start:start + 16]
            wanted = np.float32(np.abs(block).max() / np.float32(6)) / whole
            assert scale == float(nearest(Fraction(float(wanted)), numbers(4, 3, 448)))
            back = np.float32(1) / whole / scale if scale else np.float32(0)
            got = [float(nearest(Fraction(float(np.float32(each * back))), table)) for each in block]
            np.testing.assert_array_equal(elements[start:start + 16], got)
            np.testing.assert_array_equal(decode(coded)[0].dtype, np.float32)


def test_int8_is_symmetric():
    x, int8 = np.float32([[127, 0.5, 1.5, -2.5, -63.4, -127]]), NUMBERS["int8"]
    assert rounded(x, int8).tolist() == [[127, 0, 2, -2, -63, -127]]
    assert rounded(x * np.float32(0.25), int8).tolist() == [[31.75, 0, 0.5, -0.5, -15.75, -31.75]]
    assert not rounded(np.zeros((2, 3), np.float32), int8).any()
    rows = np.float32([[127, 64.4], [12.7, 6.44]])
    np.testing.assert_array_equal(rounded(rows, NUMBERS["int8-row"]), [[127, 64], np.float32([127, 64]) *
                                                                       (np.float32(12.7) / np.float32(127))])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name, left", [("mxfp8-e4m3", 32), ("nvfp4", 0), ("int8", 0), ("int8-row", 64)])
def test_what_has_no_scale_is_nan(bad, name, left):
    x = np.ones((2, 64), np.float32)
    x[0, 3] = bad
    y = rounded(x, NUMBERS[name])
    good = ~np.isnan(y)
    assert good.sum() == left + 64 * (left > 0) * (name != "int8-row") and np.allclose(y[good], 1)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="^x must be float32, not float64$"):
        encode(np.zeros(3), NUMBERS["int8"])
    with pytest.raises(TypeError, match="^Number must be of type Number, not str$"):
        encode(np.zeros(3, np.float32), "int8")
    with pytest.raises(ValueError, match=re.escape("xis")):
        encode(np.zeros(3, np.float32), NUMBERS["int8"], axis=1)


@pytest.mark.parametrize("name", BLOCKED)
@pytest.mark.parametrize("shape", [(3, 70, 300), (2, 33, 1), (1, 1), (5, 257), (2, 31, 2, 3)])
def test_compiled_blocks_of_every_shape(name, shape):
    """Along each axis, with ragged ends, and more columns than a kernel takes at a time."""
    from golden.fast import numbers
    if not numbers.serves(NUMBERS[name]):
        pytest.skip("no compiler")
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 32, shape, dtype=np.uint32).view(np.float32)
    for axis in range(len(shape)):
        got, wanted = numbers.in_blocks(x, NUMBERS[name], axis), decode(encode_plain(x, NUMBERS[name], axis=axis))
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
        known = ~np.isnan(got)
        np.testing.assert_array_equal(got[known].view(np.uint32), wanted[known].view(np.uint32))
