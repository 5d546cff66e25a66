"""What a program computes, round by round and without time: every sum and every result, bit for bit."""

from dataclasses import dataclass

import numpy as np

from hbfp.format import HBFPFormat

from ..bfp import encode
from ..core import side
from ..matmul import mantissa_dot
from ..to_fp32 import add_fp32, to_fp32
from .program import Activation, Operation, Program, Spot, Tile


@dataclass(frozen=True)
class Values:
    """What is written into banks.

    Attributes
    ----------
    sums : dict of (int, int) to ndarray of float32 (rows, columns)
        (Round, place of an operation in it) -> its sums.
    results : dict of (int, int) to ndarray of float32 (rows, columns)
        (Round, place of an activation in it) -> its FP32 results.
    tiles : dict of (int, int) to Tile
        The same, converted, where they become a tile of X.
    """
    sums: dict[tuple[int, int], np.ndarray]
    results: dict[tuple[int, int], np.ndarray]
    tiles: dict[tuple[int, int], Tile]


def operation(x: Tile, w: Tile, start: np.ndarray, fmt: HBFPFormat) -> np.ndarray:
    """``start`` plus the block sums of a tile of X and one of W, segments in ascending order: FP32 (rows, columns)."""
    total, terms = start, fmt.terms
    for s in range(x.exponent.shape[1]):
        part = slice(s * terms, (s + 1) * terms)
        dots = mantissa_dot(x.mantissa[:, None, part], w.mantissa.T[None, :, part])
        product = to_fp32(dots, x.exponent[:, s, None].astype(np.int64) + w.exponent[None, s] - 2 * fmt.magnitude)
        product[x.invalid[:, s, None] | w.invalid[None, s]] = np.nan
        total = add_fp32(total, product)
    return total


def activation(sums: np.ndarray, steps: tuple[bool, bool, bool], vectors: np.ndarray) -> np.ndarray:
    """A tile through a post-processor: ``relu(sums * factor + bias)``, FP32."""
    scale, bias = (each.view(np.uint32) if step else None for step, each in zip(steps, vectors, strict=False))
    return side(np.ascontiguousarray(sums).view(np.uint32), scale, bias, steps[2]).view(np.float32)


def execute(program: Program, fmt: HBFPFormat) -> Values:
    """Run a program on a machine whose numbers are ``fmt``; every round reads before it writes."""
    x, sums = dict(program.x), dict[Spot, np.ndarray]()
    values = Values({}, {}, {})
    for t, (operations, activations) in enumerate(zip(program.operations, program.activations, strict=True)):
        for n, each in enumerate(operations):
            values.sums[t, n] = _sums(program, each, x, sums, fmt)
        for n, act in enumerate(activations):
            values.results[t, n] = _results(program, act, sums)
            if act.x is not None:
                blocks = encode(values.results[t, n], fmt)
                values.tiles[t, n] = Tile(blocks.mantissa, blocks.exponent, blocks.invalid)
        for n, each in enumerate(operations):
            sums[each.out] = values.sums[t, n]
        for n, act in enumerate(activations):
            if act.x is not None:
                x[act.x] = values.tiles[t, n]
    return values


def _sums(program: Program, each: Operation, x: dict[Spot, Tile], sums: dict[Spot, np.ndarray], fmt: HBFPFormat
          ) -> np.ndarray:
    w = program.w[each.w]
    start = np.zeros((program.rows, w.mantissa.shape[1]), np.float32) if each.back is None else sums[each.back]
    return operation(x[each.x], w, start, fmt)


def _results(program: Program, act: Activation, sums: dict[Spot, np.ndarray]) -> np.ndarray:
    return activation(sums[act.source], act.steps, program.vectors[act.source.bank, act.vectors])


def outputs(program: Program, values: Values, shapes: list[tuple[int, int]]) -> dict[int, np.ndarray]:
    """FP32 results of the layers that are kept: layer -> (m, n), for the shapes of all layers."""
    found: dict[int, np.ndarray] = {}
    for t, activations in enumerate(program.activations):
        for n, act in enumerate(activations):
            if act.kept is None:
                continue
            m, columns = shapes[act.layer]
            whole = found.setdefault(act.layer, np.zeros((m, columns), np.float32))
            tile = values.results[t, n]
            top, left = act.row * tile.shape[0], act.column * tile.shape[1]
            part = whole[top:top + tile.shape[0], left:left + tile.shape[1]]
            part[:] = tile[:part.shape[0], :part.shape[1]]
    return found
