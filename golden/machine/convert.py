"""CONVERT: from a matrix of FP32 in V to blocks in X or W."""

import numpy as np

from hbfp.design import Design
from hbfp.isa.instructions import Instruction
from hbfp.system import Accelerator

from ..core import core
from ..number.blocks import Blocks, per_line
from .loops import nest
from .memories import Memories


def convert(accelerator: Accelerator, memories: Memories, instruction: Instruction) -> None:
    """Execute a CONVERT; raises as ``Machine.run``."""
    rows, words = instruction["rows"], instruction["words"]
    source = memories.v.reads(nest((words, rows), (1, instruction["stride"]), instruction["base"]))
    matrix = memories.v_data[source].reshape(rows, -1).view(np.float32)
    if not instruction["to_w"] and instruction["columns"]:
        _columns_to_x(accelerator.core, memories, instruction, matrix)
    elif not instruction["to_w"]:
        _rows_to_x(accelerator.core, memories, instruction, matrix)
    elif instruction["columns"]:
        _rows_to_w(accelerator.core, memories, instruction, matrix)
    else:
        _columns_to_w(accelerator.core, memories, instruction, matrix)


def _segments(design: Design, blocks: Blocks, per_block: np.ndarray, line: int, size: int) -> np.ndarray:
    """Exponents or flags for each line (axis ``line``) and each of the ``size`` segments along the other axis.

    A block that is longer than a segment serves all of those that it covers.
    """
    lines = per_line(blocks, per_block, line).repeat(design.format.terms // design.height, axis=1 - line)
    return lines.take(np.arange(size), axis=1 - line)


def _rows_to_x(design, memories, instruction, matrix):
    """Blocks along the lanes; a word of X for each word of V."""
    rows, words = instruction["rows"], instruction["words"]
    target = nest((words, rows), (instruction["target_word"], instruction["target_row"]), instruction["target"])
    _write_x(design, memories, core.encode(design, matrix, -1), target)


def _columns_to_x(design, memories, instruction, matrix):
    """Rows along K, transposed: a row of X for each lane, filled up to whole words and whole blocks."""
    matrix = np.pad(matrix, ((0, -len(matrix) % max(design.rows, design.format.terms)), (0, 0)))
    target = nest((len(matrix) // design.rows, design.rows, instruction["words"]),
                  (instruction["target_row"], 1, instruction["target_word"]), instruction["target"])
    _write_x(design, memories, core.encode(design, np.ascontiguousarray(matrix.T), -1),
             target.reshape(matrix.shape[1], -1))


def _write_x(design, memories, blocks, words):
    """Write blocks (rows, K); ``words`` are addresses in X (rows, words of a row)."""
    words = memories.x.writes(words)
    memories.x_data[words] = blocks.mantissa.reshape(*words.shape, design.rows)
    for name, values in (("x_exponent", blocks.exponent), ("x_invalid", blocks.invalid)):
        lines = _segments(design, blocks, values, 0, words.shape[1] * design.segments)
        getattr(memories, name)[words] = lines.reshape(*words.shape, design.segments)


def _rows_to_w(design, memories, instruction, matrix):
    """Rows along K: a column tile for each word, filled up to whole tiles and whole blocks."""
    matrix = np.pad(matrix, ((0, -len(matrix) % max(design.rows, design.format.terms)), (0, 0)))
    blocks = core.encode(design, matrix, -2)
    terms, words = len(matrix), instruction["words"]
    start = nest((words,), (instruction["target_word"],), instruction["target"])
    _write(design, memories, blocks, start[:, None] + np.arange(terms))


def _columns_to_w(design, memories, instruction, matrix):
    """Rows along N, transposed: a column tile for each ``cols`` of them."""
    matrix = np.pad(matrix, ((0, -len(matrix) % design.cols), (0, 0)))
    blocks = core.encode(design, np.ascontiguousarray(matrix.T), -2)
    start = nest((len(matrix) // design.cols,), (instruction["target_row"],), instruction["target"])
    _write(design, memories, blocks, start[:, None] + np.arange(matrix.shape[1]))


def _write(design, memories, blocks, rows):
    """Write blocks (K, N); ``rows`` are addresses in W (column tiles, K)."""
    rows = memories.w.writes(rows)
    tiles, terms = rows.shape
    memories.w_data[rows] = blocks.mantissa.reshape(terms, tiles, design.cols).transpose(1, 0, 2)
    segments = rows[:, ::design.height] // design.height
    for name, values in (("w_exponent", blocks.exponent), ("w_invalid", blocks.invalid)):
        lines = _segments(design, blocks, values, 1, terms // design.height)
        getattr(memories, name)[segments] = lines.reshape(-1, tiles, design.cols).transpose(1, 0, 2)
