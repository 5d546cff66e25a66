"""Payloads hold what was packed, bit by bit."""

import numpy as np
import pytest

from cosim.manifest import Field, Stream

FIELDS = (Field("wide", 0, 8, 3, True), Field("odd", 24, 5, 4, True), Field("flag", 44, 1, 1, False),
          Field("last", 45, 33, 1, True))
STREAM = Stream("i", "in", 78, FIELDS)


def test_unpack_undoes_pack():
    rng = np.random.default_rng(1)
    values = {f.name: rng.integers(-2 ** (f.width - 1) if f.signed else 0, 2 ** (f.width - f.signed), (50, f.count))
              for f in FIELDS}
    payload = STREAM.pack(**values)
    assert payload.shape == (50, 12) and STREAM.stride == 12
    for name, value in STREAM.unpack(payload).items():
        assert np.array_equal(value, values[name])
    word = int.from_bytes(payload[7].tobytes(), "little")
    for field in FIELDS:
        for n in range(field.count):
            got = word >> field.offset + n * field.width & (1 << field.width) - 1
            assert got == int(values[field.name][7, n]) % (1 << field.width)


@pytest.mark.parametrize("width, stride", [(1, 1), (8, 1), (9, 2), (17, 4), (33, 8), (64, 8), (65, 12), (96, 12)])
def test_stride_is_verilators(width, stride):
    assert Stream("i", "in", width, ()).stride == stride


def test_wrong_field():
    with pytest.raises(ValueError, match=r"^Stream i has no field 'x'; it has wide, odd, flag, last$"):
        STREAM.pack(x=[1])


def test_wrong_shape():
    with pytest.raises(ValueError, match=r"^Field odd of stream i needs shape \(beats, 4\), not \(2, 3\)$"):
        STREAM.pack(odd=np.zeros((2, 3), int))


def test_wrong_beats():
    with pytest.raises(ValueError, match=r"^Fields of stream i must have the same number of beats, not \[1, 2\]$"):
        STREAM.pack(flag=[1], last=[1, 2])
