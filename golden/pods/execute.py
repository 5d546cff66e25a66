"""What a program computes, round by round and without time: every sum and every result, bit for bit."""

from dataclasses import dataclass

import numpy as np

from hbfp.format import HBFPFormat

from ..bfp import encode
from ..core.core import side
from ..matmul import mantissa_dot, matmul
from ..number.to_fp32 import add_fp32, to_fp32
from .program import Operation, Program, Spot, Tile


@dataclass(frozen=True)
class Values:
    """What a program writes into banks.

    Attributes
    ----------
    sums : dict of (int, int) to ndarray of float32 (rows, columns)
        (Round, place of an operation in it) -> its sums.
    results : dict of (int, int) to ndarray of float32 (rows, columns)
        (Round, place of a pass in it) -> its FP32 results.
    tiles : dict of (int, int) to Tile
        (Round, place of a pass in it) -> its results, converted, where they become a tile of X.
    """
    sums: dict[tuple[int, int], np.ndarray]
    results: dict[tuple[int, int], np.ndarray]
    tiles: dict[tuple[int, int], Tile]


def operation(x: Tile, w: Tile, start: np.ndarray, fmt: HBFPFormat) -> np.ndarray:
    """``start`` plus the products of a tile of X and one of W, segment by segment along K: FP32 (rows, columns)."""
    total, terms = start, fmt.terms
    for s in range(x.exponent.shape[1]):
        part = slice(s * terms, (s + 1) * terms)
        dots = mantissa_dot(x.mantissa[:, None, part], w.mantissa.T[None, :, part])
        product = to_fp32(dots, x.exponent[:, s, None].astype(np.int64) + w.exponent[None, s] - 2 * fmt.magnitude)
        product[x.invalid[:, s, None] | w.invalid[None, s]] = np.nan
        total = add_fp32(total, product)
    return total


def passed(sums: np.ndarray, before: np.ndarray | None, steps: tuple[bool, bool, bool], vectors: np.ndarray | None
           ) -> np.ndarray:
    """A tile through a post-processor: ``relu((before + sums) * factor + bias)``, FP32 (rows, columns).

    ``steps`` says which of factor, bias and relu there are; ``vectors`` (2, columns) are factors and biases.
    """
    total = np.ascontiguousarray(sums if before is None else add_fp32(before, sums))
    scale, bias = (vectors[n].view(np.uint32) if steps[n] and vectors is not None else None for n in range(2))
    return side(total.view(np.uint32), scale, bias, steps[2]).view(np.float32)


def execute(program: Program, fmt: HBFPFormat) -> Values:
    """Run a program on a machine of format ``fmt``; every round reads before it writes."""
    x, sums, kept = dict(program.x), dict[Spot, np.ndarray](), dict[Spot, np.ndarray]()
    values = Values({}, {}, {})
    for t, (operations, passes) in enumerate(zip(program.operations, program.passes, strict=True)):
        for n, each in enumerate(operations):
            values.sums[t, n] = _sums(program, each, x, sums, fmt)
        for n, one in enumerate(passes):
            result = passed(sums[one.source], kept[one.post] if one.add else None, one.steps,
                            program.vectors[one.post.bank, one.vectors] if one.last else None)
            values.results[t, n] = result
            if one.x is not None:
                blocks = encode(result, fmt)
                values.tiles[t, n] = Tile(blocks.mantissa, blocks.exponent, blocks.invalid)
        for n, each in enumerate(operations):
            sums[each.out] = values.sums[t, n]
        for n, one in enumerate(passes):
            if one.x is not None:
                x[one.x] = values.tiles[t, n]
            if one.keep:
                kept[one.post] = values.results[t, n]
    return values


def _sums(program: Program, each: Operation, x: dict[Spot, Tile], sums: dict[Spot, np.ndarray], fmt: HBFPFormat
          ) -> np.ndarray:
    w = program.w[each.w]
    start = np.zeros((program.rows, w.mantissa.shape[1]), np.float32) if each.back is None else sums[each.back]
    return operation(x[each.x], w, start, fmt)


def product(x: np.ndarray, w: np.ndarray, fmt: HBFPFormat, terms: int) -> np.ndarray:
    """``x @ w`` in chains: :func:`golden.matmul.matmul` of ``terms`` along K each, added up in FP32 in ascending order.

    ``x`` is (m, k), ``w`` (k, n), the result (m, n). A chain of tiles has its length times the array's rows as terms.
    """
    total = None
    for k in range(0, x.shape[1], terms):
        part = matmul(np.ascontiguousarray(x[:, k:k + terms]), np.ascontiguousarray(w[k:k + terms]), fmt)
        total = part if total is None else add_fp32(total, part)
    return np.zeros((len(x), w.shape[1]), np.float32) if total is None else total


def outputs(program: Program, values: Values, shapes: list[tuple[int, int]]) -> dict[int, np.ndarray]:
    """FP32 results of the layers that no other layer reads: layer -> (m, n); ``shapes`` are those of all layers."""
    found: dict[int, np.ndarray] = {}
    for t, passes in enumerate(program.passes):
        for n, one in enumerate(passes):
            if not one.last or not one.keep:
                continue
            m, columns = shapes[one.layer]
            whole = found.setdefault(one.layer, np.zeros((m, columns), np.float32))
            tile = values.results[t, n]
            top, left = one.row * tile.shape[0], one.column * tile.shape[1]
            part = whole[top:top + tile.shape[0], left:left + tile.shape[1]]
            part[:] = tile[:part.shape[0], :part.shape[1]]
    return found
