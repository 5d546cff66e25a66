"""Noise on a GPU: the numbers of :mod:`golden.position` and :mod:`golden.noise`."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
import triton

from hbfp.format import HBFPFormat

from ..number.blocks import block_axis
from ..position import check_bits, pitch
from ..spec.noise import GROUP, LANE_STEP, NUMBER, ROUNDS, STRIDE, TAPS, TRIPLES, TURNS
from .noise_kernel import by_position, of_lanes
from .runtime import INTERPRETED, on

#: Matrices of 1, 2, 4 ... steps: no tensor draws more.
_LEVELS = 40
#: Beats of a chunk, and numbers that a program makes at a time, both as powers of two.
_STEPS, _ELEMENTS = (6, 8) if INTERPRETED else (7, 9)


def drawn(key: int, shape: tuple[int, int], fmt: HBFPFormat, device: torch.device, *, first: int = 0) -> torch.Tensor:
    """:func:`golden.position.drawn` of a matrix: uint8 on ``device``."""
    check_bits(fmt)
    rows, columns = shape
    out = torch.empty(shape, dtype=torch.uint8, device=device)
    if not out.numel():
        return out
    groups = pitch(columns) // GROUP
    size = 64
    with on(out):
        by_position[triton.cdiv(rows * groups, size),](
            out, (key & 0xFFFFFFFF ^ 1 << 31) - (1 << 31), first * groups & (1 << 32) // GROUP - 1, rows, columns,
            groups, CUT=NUMBER - fmt.noise_bits, ROUNDS=ROUNDS, TURNS=TURNS, STEP=LANE_STEP,
            TAPS=tuple(tap for taps in TAPS for tap in taps), STRIDE=STRIDE, GROUP=GROUP, GROUPS=size, num_warps=4)
    return out


@lru_cache(1)
def powers() -> np.ndarray:
    """Matrices over GF(2) of 2^k steps of each generator: their columns, uint32 (triples, levels, 32)."""
    a, b, c = (np.array(TRIPLES, np.uint32)[:, i, None] for i in range(3))
    columns = np.broadcast_to(np.uint32(1) << np.arange(32, dtype=np.uint32), (len(TRIPLES), 32))
    for sign, by in ((1, a), (-1, b), (1, c)):
        columns = columns ^ (columns << by if sign > 0 else columns >> by)
    found = [columns]
    while len(found) < _LEVELS:
        square = np.zeros_like(columns)
        for bit in range(32):                          # column by column: the matrix times its own columns
            square ^= np.where(found[-1] >> np.uint32(bit) & 1, found[-1][:, bit, None], np.uint32(0))
        found.append(square)
    return np.stack(found, 1)


@lru_cache(64)
def _tables(lanes: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Shifts (3, lanes) and powers (levels, 32, lanes) of so many lanes' generators on a device, int32."""
    which = np.arange(lanes) % len(TRIPLES)
    jumps = powers()[which].view(np.int32).transpose(1, 2, 0)
    return (torch.from_numpy(np.array(TRIPLES, np.int32)[which].T.copy()).to(device),
            torch.from_numpy(jumps.copy()).to(device))


def words(state: torch.Tensor, beats: int, bits: int) -> torch.Tensor:
    """The top ``bits`` of the next states of lanes: (beats, lanes), uint8 or int32; ``state`` (lanes) int32 goes on."""
    lanes = len(state)
    out = torch.empty(beats, lanes, dtype=torch.uint8 if bits <= 8 else torch.int32, device=state.device)
    if not beats:
        return out
    shifts, jumps = _tables(lanes, state.device)
    width = triton.next_power_of_2(lanes)
    after, more = torch.empty_like(state), max(0, _ELEMENTS - (width.bit_length() - 1))
    with on(out):
        of_lanes[triton.cdiv(beats, 1 << _STEPS + more),](
            out, state, after, shifts, jumps, beats, lanes, min(1 << _STEPS, beats), beats.bit_length(), KEPT=bits,
            LOW=_STEPS, MORE=more, WIDTH=width, num_warps=4)
    state.copy_(after)
    return out


def of_stack(state: torch.Tensor, count: int,
             draws: Sequence[tuple[tuple[int, ...], HBFPFormat, int]]) -> list[torch.Tensor]:
    """:meth:`golden.noise.Stream.draw` with the lanes' ``state`` on a device, of ``count`` sets of tensors, of which
    each draws for all of its own before the next one does.

    ``draws`` are shapes, formats and axes in the order in which a set draws; ``state`` (lanes) int32 goes on.

    Returns
    -------
    list of Tensor
        (count, \\*shape) for each, uint8, or int32 if one of the formats has more than 8 random bits.
    """
    lanes, bits = len(state), max(fmt.noise_bits for _, fmt, _ in draws)
    draws = [(shape, fmt, block_axis(len(shape), fmt, axis)) for shape, fmt, axis in draws]
    pieces = [_pieces(*draw, lanes) for draw in draws]
    sizes = [math.prod(each) for each in pieces]
    found = words(state, count * sum(sizes) // lanes, bits).view(count, sum(sizes))
    made = []
    for part, piece, (shape, fmt, axis) in zip(found.split(sizes, 1), pieces, draws, strict=True):
        numbers = part if fmt.noise_bits == bits else part >> bits - fmt.noise_bits
        made.append(_laid(numbers.reshape(count, *piece), shape, fmt, axis))
    return made


def _pieces(shape: tuple[int, ...], fmt: HBFPFormat, axis: int, lanes: int) -> tuple[int, ...]:
    """The shape in which a tensor's numbers are drawn: whole blocks, one after the other."""
    side = fmt.terms
    if fmt.block[0] * side % lanes:
        raise ValueError(f"Lanes must divide the {fmt.block[0] * side} elements of a block, not {lanes!r}")
    if fmt.square:
        rows, columns = (-(-each // side) for each in shape[-2:])
        return *shape[:-2], rows, columns, side, side
    *lead, length = (*shape[:len(shape) + axis], *shape[len(shape) + axis + 1:], shape[axis])
    return *lead, -(-length // side) * side


def _laid(found, shape, fmt, axis):
    """Numbers (count, \\*pieces) as they lie in tensors of a shape."""
    if fmt.square:
        *lead, high, wide, side, _ = found.shape
        return found.swapaxes(-2, -3).reshape(*lead, high * side, wide * side)[..., :shape[-2], :shape[-1]]
    return found[..., :shape[axis]].movedim(-1, axis)
