"""CONVERT: from a matrix of FP32 in V to blocks in X or W."""

from collections.abc import Callable

import numpy as np

from hbfp.design import Design
from hbfp.isa.instructions import Instruction
from hbfp.system import Accelerator

from ..core.digits import split
from ..number.blocks import Blocks, per_line
from ..position import numbers
from ..sparsity import keep_mask
from ..spec.noise import NUMBER
from . import elements
from .loops import nest
from .memories import Memories

#: Gives the blocks of the matrix, its rows filled up with zeros to a multiple, turned or not, along an axis.
Encode = Callable[[int, bool, int], Blocks]


def convert(accelerator: Accelerator, memories: Memories, seed: int, instruction: Instruction) -> None:
    """Execute a CONVERT, where the register ``seed`` has that value; raises as ``Machine.run``."""
    design, rows, words = accelerator.core, instruction["rows"], instruction["words"]
    source = memories.v.reads(nest((words, rows), (1, instruction["stride"]), instruction["base"]))
    matrix = memories.v_data[source].reshape(rows, -1).view(np.float32)
    kept = keep_mask(matrix, *design.sparse, axis=1) if instruction["prune"] else None
    given = [matrix if kept is None else np.where(kept, matrix, np.float32(0))]
    fmt = accelerator.conversion(bool(instruction["wide"]), bool(instruction["stochastic"]))
    if instruction["stochastic"]:
        places = nest((words, rows), (1, instruction["place_row"]), instruction["place"])
        drawn = numbers(instruction["key"] ^ seed, places, accelerator.lanes).reshape(rows, -1)
        given.append(drawn.astype(np.int32) >> NUMBER - fmt.noise_bits)

    beyond = 0 if instruction["columns"] else -words * accelerator.lanes % design.rows    # of K along the lanes

    def encode(step, turned, axis):
        whole = [np.pad(each, ((0, -rows % step), (0, beyond))) for each in given]
        matrix, *noise = (np.ascontiguousarray(each.T if turned else each) for each in whole)
        return elements.encode(design, matrix, fmt, *noise, axis=axis)

    if instruction["sparse"]:
        _sparse_to_w(accelerator, memories, instruction, encode, kept)
        return
    to_w, columns = instruction["to_w"], instruction["columns"]
    into = (_columns_to_x if columns else _rows_to_x) if not to_w else _rows_to_w if columns else _columns_to_w
    into(accelerator, memories, instruction, encode)


def _segments(design: Design, blocks: Blocks, per_block: np.ndarray, line: int, size: int, height: int) -> np.ndarray:
    """Exponents or flags for each line (axis ``line``) and each of the ``size`` segments along the other axis.

    A block that is longer than a segment, which has ``height`` terms, serves all of those that it covers.
    """
    lines = per_line(blocks, per_block, line).repeat(max(1, design.format.terms // height), axis=1 - line)
    return lines.take(np.arange(size), axis=1 - line)


def _digits(design, instruction, mantissa):
    """What of mantissas is written: themselves, or digits.

    Of wide mantissas X gets one digit of each, part 0 the high ones. W gets both digits of every other column of each
    column tile, part 0 of the even ones: the low ones in an even column, the high ones in the next.
    """
    if not instruction["wide"]:
        return mantissa
    digits, part = split(mantissa, design.format.mantissa, design.wide), instruction["part"]
    if not instruction["to_w"]:
        return digits[part]
    high, low = (each[:, part::2] for each in digits)
    return np.stack([low, high], axis=-1).reshape(len(mantissa), -1)


def _halves(instruction, each, axis=1):
    """What there is of each column of W: of wide mantissas that of every other one, twice."""
    if not instruction["wide"]:
        return each
    return each.take(np.arange(instruction["part"], each.shape[axis], 2), axis=axis).repeat(2, axis=axis)


def _rows_to_x(accelerator, memories, instruction, encode):
    """Blocks along the lanes; a word of V fills pieces of X, or is one; rows are filled up to rows of the core."""
    blocks, each = encode(1, False, -1), accelerator.word_pieces
    rows, words = len(blocks.mantissa), blocks.mantissa.shape[1] // accelerator.lanes
    target = nest((each, words, rows), (1, instruction["target_word"], instruction["target_row"]),
                  instruction["target"])
    _write_x(accelerator, memories, instruction, blocks, target.reshape(rows, -1))


def _columns_to_x(accelerator, memories, instruction, encode):
    """Rows along K, transposed: a row of X for each lane, filled up to whole words, rows of the core and blocks."""
    side, each = accelerator.lanes, accelerator.word_pieces
    blocks = encode(max(accelerator.whole, accelerator.core.format.terms), True, -1)
    rows, terms = blocks.mantissa.shape
    apart = instruction["target_word"] // side if accelerator.oblong else 1
    target = nest((each, terms // side, side, instruction["words"]),
                  (1, instruction["target_row"], apart, instruction["target_word"]), instruction["target"])
    _write_x(accelerator, memories, instruction, blocks, target.reshape(rows, -1))


def _write_x(accelerator, memories, instruction, blocks, words):
    """Write blocks (rows, K); ``words`` are addresses in X (rows, pieces of a row)."""
    words, design = memories.x.writes(words), accelerator.core
    digits = _digits(design, instruction, blocks.mantissa)
    memories.x_data[words] = digits.reshape(*words.shape, accelerator.piece)
    segments = words.shape[1] * accelerator.piece_segments
    for name, values in (("x_exponent", blocks.exponent), ("x_invalid", blocks.invalid)):
        lines = _segments(design, blocks, values, 0, segments, accelerator.piece // accelerator.piece_segments)
        getattr(memories, name)[words] = lines.reshape(*words.shape, -1)


def _rows_to_w(accelerator, memories, instruction, encode):
    """Rows along K: a column tile for each word, filled up to whole words, rows of the core and blocks."""
    blocks = encode(max(accelerator.whole, accelerator.core.format.terms), False, -2)
    start = nest((instruction["words"],), (instruction["target_word"],), instruction["target"])
    _write(accelerator, memories, instruction, blocks, start[:, None] + np.arange(len(blocks.mantissa)))


def _columns_to_w(accelerator, memories, instruction, encode):
    """Rows along N, transposed: a column tile for each ``cols`` of them, K filled up to whole tiles."""
    blocks = encode(accelerator.lanes, True, -2)
    terms, columns = blocks.mantissa.shape
    start = nest((columns // accelerator.lanes,), (instruction["target_row"],), instruction["target"])
    _write(accelerator, memories, instruction, blocks, start[:, None] + np.arange(terms))


def _write(accelerator, memories, instruction, blocks, rows):
    """Write blocks (K, N); ``rows`` are addresses in W (column tiles, K)."""
    rows, design, lanes = memories.w.writes(rows), accelerator.core, accelerator.lanes
    tiles, terms = rows.shape
    digits = _digits(design, instruction, blocks.mantissa)
    memories.w_data[rows], memories.w_index[rows] = digits.reshape(terms, tiles, lanes).transpose(1, 0, 2), -1
    segments = rows[:, ::design.height] // design.height
    for name, values in (("w_exponent", blocks.exponent), ("w_invalid", blocks.invalid)):
        lines = _halves(instruction, _segments(design, blocks, values, 1, terms // design.height, design.height))
        getattr(memories, name)[segments] = lines.reshape(-1, tiles, lanes).transpose(1, 0, 2)


def _sparse_to_w(accelerator, memories, instruction, encode, kept):
    """As :func:`_columns_to_w`, but of each group along K only what is kept, in ascending order, with its place."""
    design, lanes = accelerator.core, accelerator.lanes
    n, m = design.sparse
    blocks = encode(lanes, True, -2)
    kept = np.pad(kept, ((0, -len(kept) % lanes), (0, 0)))
    kept[instruction["rows"]:, np.arange(kept.shape[1]) % m < n] = True
    kept = _halves(instruction, kept, axis=0)
    groups = kept.T.reshape(-1, m, len(kept))
    index = np.sort(np.argsort(~groups, axis=1, kind="stable")[:, :n], axis=1)
    digits = _digits(design, instruction, blocks.mantissa)
    values = np.take_along_axis(digits.reshape(groups.shape), index, axis=1)
    terms, tiles = groups.shape[0] * n, len(kept) // lanes
    start = nest((tiles,), (instruction["target_row"],), instruction["target"])
    rows = memories.w.writes(start[:, None] + np.arange(terms))
    memories.w_data[rows], memories.w_index[rows] = (
        each.reshape(terms, tiles, lanes).transpose(1, 0, 2) for each in (values, index))
    segments = rows[:, ::design.rows] // design.rows
    passes = design.lay(True).block_tiles    # a segment has the rows of the array
    for name, per_block in (("w_exponent", blocks.exponent), ("w_invalid", blocks.invalid)):
        lines = _halves(instruction, per_line(blocks, per_block, 1).repeat(passes, axis=0)[:segments.shape[1]])
        getattr(memories, name)[segments] = lines.reshape(-1, tiles, lanes).transpose(1, 0, 2)
