"""Noise on a GPU: the numbers of :mod:`golden.position` and :mod:`golden.noise`."""

import math
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
#: Beats of a chunk, a power of two, and elements of a program.
_STEPS, _ELEMENTS = (64, 256) if INTERPRETED else (256, 128)


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
    """Shifts and powers of so many lanes' generators on a device, int32."""
    which = np.arange(lanes) % len(TRIPLES)
    return (torch.from_numpy(np.array(TRIPLES, np.int32)[which]).to(device),
            torch.from_numpy(powers()[which].view(np.int32)).to(device))


def words(state: torch.Tensor, beats: int, bits: int) -> torch.Tensor:
    """The top ``bits`` of the next states of lanes: (beats, lanes), uint8 or int32; ``state`` (lanes) int32 goes on."""
    lanes = len(state)
    out = torch.empty(beats, lanes, dtype=torch.uint8 if bits <= 8 else torch.int32, device=state.device)
    if not beats:
        return out
    shifts, jumps = _tables(lanes, state.device)
    width = triton.next_power_of_2(lanes)
    chunks = max(1, _ELEMENTS // width)
    after = torch.empty_like(state)
    with on(out):
        of_lanes[triton.cdiv(beats, _STEPS * chunks),](
            out, state, after, shifts, jumps, beats, lanes, min(_STEPS, beats), _STEPS.bit_length() - 1,
            (beats - 1).bit_length(), KEPT=bits, ALL=_LEVELS, STEPS=_STEPS, CHUNKS=chunks, WIDTH=width, num_warps=4)
    state.copy_(after)
    return out


def of_stream(state: torch.Tensor, shape: tuple[int, ...], fmt: HBFPFormat, *, axis: int = -1) -> torch.Tensor:
    """:meth:`golden.noise.Stream.draw` with the lanes' ``state`` on a device: uint8, or int32 for more than 8 bits."""
    axis, lanes, side = block_axis(len(shape), fmt, axis), len(state), fmt.terms
    if fmt.block[0] * side % lanes:
        raise ValueError(f"Lanes must divide the {fmt.block[0] * side} elements of a block, not {lanes!r}")
    if fmt.square:
        *lead, rows, columns = shape
        pieces = *lead, -(-rows // side), -(-columns // side), side, side
        found = words(state, math.prod(pieces) // lanes, fmt.noise_bits).view(pieces).swapaxes(-2, -3)
        return found.reshape(*lead, pieces[-4] * side, pieces[-3] * side)[..., :rows, :columns]
    *lead, length = (*shape[:len(shape) + axis], *shape[len(shape) + axis + 1:], shape[axis])
    whole = -(-length // side) * side
    found = words(state, math.prod(lead) * whole // lanes, fmt.noise_bits)
    return found.view(*lead, whole)[..., :length].movedim(-1, axis)
