"""Descriptors: a good one is accepted, and whatever is turned round in it is found."""

import struct

import numpy as np
import pytest

from golden.spec.descriptors import Window, check, judge, pack
from hbfp.isa.descriptors import Refusal

WINDOW = Window(4096, 65536, 64)
GOOD = 4096, 8192, 0xDEADBEEF


def test_a_check_by_hand():
    """Halves turned by hand: 0x1000, 0, 0x2000, 0, 0xBEEF, 0xDEAD, by 0, 1, and 3, 5, 7, 8."""
    first, second = 0x1000 ^ 0x2000 ^ 0x8000, 0x2000 ^ 0x4000 ^ 0x0004
    tag = 0xBEEF ^ 0x7DDF ^ 0x77DF, 0xDEAD ^ 0xBD5B ^ 0xADDE
    turned = first ^ second ^ tag[0] ^ tag[1]
    assert check(GOOD, 7) == check(GOOD, 7 + (1 << 16)) == 0x4842 ^ 7 ^ turned
    assert pack(GOOD, 7) == struct.pack("<4I", *GOOD, 0x4842 ^ 7 ^ turned) and judge(pack(GOOD, 7), 7, WINDOW) is None


@pytest.mark.parametrize("seed", range(5))
def test_every_bit_that_is_turned_is_found(seed):
    rng = np.random.default_rng(seed)
    words, number = tuple(rng.integers(0, 1 << 32, 3).tolist()), int(rng.integers(1 << 16))
    data = int.from_bytes(pack(words, number), "little")
    for bit in range(128):
        found = judge((data ^ 1 << bit).to_bytes(16, "little"), number, WINDOW)
        assert found is (Refusal.RESERVED if bit >= 112 else Refusal.CHECK)
    assert all(judge(pack(words, number ^ 1 << bit), number, WINDOW) is Refusal.CHECK for bit in range(16))


def test_up_to_three_bits_are_found():
    """Each bit turns others of the check, always an odd number of them: no two cancel, and no three."""
    data, nothing = int.from_bytes(pack(GOOD, 7), "little"), check(GOOD, 7)
    turns = [1 << bit for bit in range(16)]
    for bit in range(96):
        other = data ^ 1 << bit
        turns.append(nothing ^ check(tuple(other >> 32 * word & 0xFFFFFFFF for word in range(3)), 7))
    assert len(set(turns)) == 112 and all(each.bit_count() % 2 for each in turns)


def test_reasons_in_their_order():
    for words, why in (((4096, 8192 + 32, 0), Refusal.MISALIGNED), ((4032, 8192, 0), Refusal.OUTSIDE),
                       ((65536, 65536, 0), None), ((65536 + 64, 4096, 0), Refusal.OUTSIDE),
                       ((0, 4096 + 4, 0), Refusal.MISALIGNED)):
        assert judge(pack(words, 3), 3, WINDOW) is why
        assert judge(pack(words, 3), 3, WINDOW, failed=True) is Refusal.BUS
    assert judge(bytes(16), 0, WINDOW) is Refusal.CHECK
