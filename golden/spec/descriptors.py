"""Descriptors of requests, as a host writes them and as they are judged; docs/design/13-dispatched.md."""

import struct
from typing import NamedTuple

from hbfp.isa.descriptors import BYTES, CHECK, NUMBER, SEED, TURNS, Refusal

_MASK = (1 << CHECK) - 1


class Window(NamedTuple):
    """Places that descriptors may have: from the first to the last, multiples of a beat."""
    first: int
    last: int
    beat: int


def check(words: tuple[int, ...], number: int) -> int:
    """The check of input, output and tag in the descriptor of a number."""
    found = SEED ^ number % (1 << NUMBER)
    halves = [half for word in words for half in (word & _MASK, word >> CHECK)]
    for half, turns in zip(halves, TURNS, strict=True):
        for turn in turns:
            found ^= (half << turn | half >> CHECK - turn) & _MASK
    return found


def pack(words: tuple[int, ...], number: int) -> bytes:
    """The descriptor of a number: input, output and tag of a request, and what is behind them."""
    return struct.pack("<4I", *words, check(words, number))


def judge(data: bytes, number: int, window: Window, failed: bool = False) -> Refusal | None:
    """Why the descriptor of a number is refused; None if it is not. ``failed``: its read was answered with an error."""
    *words, last = struct.unpack("<4I", data[:BYTES])
    if failed:
        return Refusal.BUS
    if last & _MASK != check(tuple(words), number):
        return Refusal.CHECK
    if last >> CHECK:
        return Refusal.RESERVED
    if any(place % window.beat for place in words[:2]):
        return Refusal.MISALIGNED
    if any(not window.first <= place <= window.last for place in words[:2]):
        return Refusal.OUTSIDE
    return None
