"""Weights of products, how they are cut for memory W, and the steps that the core takes behind its sums."""

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from hbfp.golden.nn.placed import Draw
from hbfp.isa.instructions import Memory, Opcode

from ..apart import set_apart
from ..builder import Builder
from ..errors import LoweringError
from ..memory import Value
from ..schedule import Span
from .draw import Drawn, in_v
from .draw import fields as drawn_fields
from .wide import NARROW, Wide


@dataclass
class Steps:
    """What the core does with its sums: factors and addends of each column, numbers or where they lie, and ReLU."""
    scale: np.ndarray | None = None
    bias: np.ndarray | Value | None = None
    relu: bool = False

    def part(self, first: int, count: int) -> "Steps":
        """The same for ``count`` columns, ``first`` on."""
        scale = None if self.scale is None else self.scale[first:first + count]
        if isinstance(self.bias, Value):
            return Steps(scale, Value(self.bias.where[first:first + count], self.bias.home), self.relu)
        return Steps(scale, None if self.bias is None else self.bias[first:first + count], self.relu)


class Lines(Protocol):
    """The rows of a matrix (K, N) that lies nowhere in DRAM as one: they are put together in V."""

    def load(self, build: Builder, row: int, rows: int, word: int, words: int, target: int) -> None:
        """Load words ``word`` on, ``words`` of them, of ``rows`` rows from ``row`` on to V, from ``target`` on."""


@dataclass
class Weights:
    """A matrix (K, N) for memory W: in DRAM as records, or a value or lines that are converted on the device.

    ``apart`` is a copy of the value, (column tiles, K, lanes). Of a sparse matrix, whose value lies by columns, each
    row of W stands for ``spread`` terms. One that is ``pruned`` is so along its lanes as it is converted. LoweringError
    if it is narrow beside wide rows, and no records: CONVERT puts no narrow mantissas where wide products have theirs.
    """
    terms: int
    columns: int
    records: int = 0
    value: Value | None = None
    by_columns: bool = False
    lines: Lines | None = None
    drawn: Drawn | None = None
    wide: Wide = NARROW
    apart: Value | None = None
    spread: int = 1
    pruned: bool = False

    def __post_init__(self) -> None:
        if self.wide.x and not self.wide.w and not self.constant:
            raise LoweringError("its first operand is wide and its second one, which is computed, is not; one width "
                                "for both would do")

    @property
    def constant(self) -> bool:
        """Whether it is records, of which any part can be loaded."""
        return self.value is None and self.lines is None


@dataclass
class Plan:
    """Sizes of a product. A column has as many results as a word of V: a column tile, or two if an operand is wide.

    Attributes
    ----------
    tiles : int
        Rows of the core that a row of the matrix is, one digit of each number.
    words, cells : int
        Words of V, and addresses of X, that such a row is.
    columns : int
        Columns.
    group : int
        Columns that are in W at a time.
    side : int
        Words of X that belong together: those of a block.
    streamed : bool
        Whether a column is too tall to wait in W beside another, and comes in portions.
    spread : int
        Words of X of a row that a pass takes.
    """
    tiles: int
    words: int
    cells: int
    columns: int
    group: int
    side: int
    streamed: bool = False
    spread: int = 1

    @property
    def passes(self) -> int:
        """Passes of the core."""
        return self.tiles // self.spread


def tall(build: Builder) -> int:
    """Terms that K is filled up to a multiple of."""
    return max(build.accelerator.whole, build.accelerator.core.format.terms)


def plan(build: Builder, weights: Weights) -> Plan:
    """How a product is cut; LoweringError if the core or W cannot take it."""
    core, terms = build.accelerator.core, weights.terms
    side = tall(build)
    tiles = -(-terms // side) * side // core.rows
    row = tiles, tiles * core.rows // build.lanes, tiles * build.accelerator.row_pieces
    wide = -(-weights.columns // build.lanes)
    spread = weights.spread
    height, half = tiles // spread * core.rows * weights.wide.tiles, build.w.size // 2
    square = max(1, core.format.block[0] // build.lanes)     # column tiles of a block
    if (passes := tiles // spread) > (most := core.most_tiles(spread > 1)):
        raise LoweringError(f"a product over {terms} terms needs {passes} passes of the core, not {most}; "
                            "more growth bits would do")
    if wide * height <= half:
        return Plan(*row, wide, wide, side // core.rows, spread=spread)
    if height > half and spread == 1 and (weights.constant or square == 1):
        return Plan(*row, wide, 1, side // core.rows, True)
    if square * height > build.w.size:
        raise LoweringError(f"a product over {terms} terms with a matrix that is computed needs {square * height} rows "
                            f"of memory W, not {build.w.size}; --w-words {1 << (square * height - 1).bit_length()} "
                            "would do")
    group = max(1, half // height)
    return Plan(*row, wide, min(wide, max(group // square, 1) * square), side // core.rows, spread=spread)


def constant_weights(build: Builder, weight: np.ndarray, chunk: int, wide: Wide = NARROW) -> Weights:
    """Records of a weight (K, N), of which K is runs of ``chunk`` terms that begin in a word of X and of V each."""
    from hbfp.golden.machine.layouts import pack_records
    each = build.accelerator.whole
    terms, columns = weight.shape
    if chunk % each and chunk != terms:
        whole = -(-chunk // each) * each
        padded = np.zeros((terms // chunk, whole, columns), np.float32)
        padded[:, :chunk] = weight.reshape(-1, chunk, columns)
        weight = padded.reshape(-1, columns)
    filled = np.pad(weight, ((0, -len(weight) % tall(build)), (0, 0)))
    records = pack_records(build.accelerator, filled, pairs=wide.tiles > 1, wide=bool(wide.w))
    return Weights(len(weight), columns, build.dram.take(records), wide=wide)


def computed_weights(value: Value, lanes: int, draw: Draw | None = None, wide: Wide = NARROW,
                     pruned: bool = False) -> Weights:
    """Of a matrix (K, N) that is computed: it is read along the side whose neighbours lie side by side in DRAM.

    ``draw`` is how it is rounded, if not to nearest, and it may be ``pruned``, its groups along the lanes. Raises as
    :func:`~golden.lower.products.draw.in_v`, and as :class:`Weights`.
    """
    (terms, down), (columns, along) = value.dims()
    turned = down == 1 and along != 1
    drawn = in_v(draw, turned, terms if turned else columns, lanes)
    return Weights(terms, columns, value=value, by_columns=turned, drawn=drawn, wide=wide, pruned=pruned)


def sparse_weights(weight: Value, build: Builder, draw: Draw | None = None, wide: Wide = NARROW) -> Weights | None:
    """Of N:M sparse weights (N, K) that lie row by row; None if W has no room for a column and another."""
    (columns, _), (terms, _) = weight.dims()
    drawn = in_v(draw, True, terms, build.lanes)
    made = Weights(terms, columns, value=Value(weight.where.t(), weight.home), by_columns=True, drawn=drawn,
                   spread=build.accelerator.spread, wide=wide)
    side = tall(build)
    square = max(1, build.accelerator.core.format.block[0] // build.lanes)
    height = -(-terms // side) * side // made.spread * wide.tiles
    return made if 2 * square * height <= build.w.size else None


def keep_steps(build: Builder, steps: Steps, columns: int) -> dict[str, int]:
    """Put factors and addends into V, where they stay; fields of DRAIN."""
    fields: dict[str, int] = {}
    words = -(-columns // build.lanes)
    for name, row in (("scale", steps.scale), ("bias", steps.bias)):
        if row is not None:
            span = build.keep(words)
            build.load(row if isinstance(row, Value) else build.dram.constant(row), (), 0, span.start, words)
            fields |= {name: 1, f"{name}_base": span.start}
    return fields


def bring_records(build: Builder, weights: Weights, plan: Plan, span: Span, first: int, count: int, tile: int,
                  tiles: int, parts: range) -> None:
    """Load passes ``tile`` to ``tile + tiles - 1`` of ``count`` columns, of each these column tiles, to a span of W."""
    machine, rows = build.accelerator, build.accelerator.core.rows
    each, whole = (number * rows // machine.core.height for number in (tiles, plan.tiles))
    size = machine.record_beats * machine.beat
    offset = weights.records + ((first * weights.wide.tiles + parts.start) * whole
                                + tile * rows // machine.core.height) * size
    count *= len(parts)
    build.schedule.emit(Opcode.LOAD, {
        "memory": Memory.W, "offset": offset, "count0": each, "count1": count, "count2": 1, "dram1": whole * size,
        "buffer1": tiles * rows, "base": span.start},
        [Span("DRAM", offset, offset + ((count - 1) * whole + each) * size)], [Span("W", span.start, span.stop)])


def convert_tiles(build: Builder, weights: Weights, plan: Plan, span: Span, first: int, count: int, tile: int,
                  tiles: int, parts: range) -> None:
    """The same of a matrix that is computed: K along its last dimension but one, or along its last."""
    lanes, rows = build.lanes, build.accelerator.core.rows
    high, row, first_word = tiles * rows // weights.spread, tile * rows, tile * rows // lanes
    apart = high * len(parts)                          # rows of W from a column to the next
    wide = min(weights.columns - first * lanes, count * lanes)
    some = min(weights.terms - row, tiles * rows)
    square, side = build.accelerator.core.format.block[0], tall(build)
    if weights.by_columns:                             # rows are N, lanes along K
        lines, words, steps = wide, tiles * rows // lanes, (max(lanes, square), side // lanes)
    else:
        lines, words, steps = some, count, (side, max(1, square // lanes))
    down, across = pieces(lines, words, *steps, build.v.size // 4, build.v.size)
    for word in range(0, words, across):
        for line in range(0, lines, down):
            tall_, long = min(down, lines - line), min(across, words - word)
            at = (first * lanes + line, first_word + word) if weights.by_columns else (row + line, first + word)
            here = build.brought(tall_ * long, partial(_bring, build, weights, *at, tall_, long))
            fields = {"to_w": 1, "base": here.start, "words": long, "rows": tall_, "stride": long,
                      **drawn_fields(weights.drawn, *at), **({"prune": 1} if weights.pruned else {})}
            if weights.by_columns:
                target = span.start + line // lanes * apart + word * lanes // weights.spread
                fields |= {"target_row": apart, **({"prune": 1, "sparse": 1} if weights.spread > 1 else {})}
                size = (-(-tall_ // lanes) - 1) * apart + long * lanes // weights.spread
            else:
                target = span.start + line + word * apart
                fields |= {"columns": 1, "target_word": apart}
                size = (long - 1) * apart + -(-tall_ // side) * side
            for number, part in enumerate(parts):
                own = target + number * high
                build.schedule.emit(Opcode.CONVERT, {**fields, "target": own, **weights.wide.columns(part)}, [here],
                                    [Span("W", own, own + size)])


def lie_apart(build: Builder, weights: Weights) -> None:
    """Copy a matrix that streams so that the words of a column tile lie side by side.

    Else each of them would be a burst of its own every time that the tile comes.
    """
    assert weights.value is not None
    lanes = build.lanes
    copied = build.dram.empty((-(-weights.columns // lanes), weights.terms, lanes))
    rows = weights.value.view(lambda where: where[None, :, :, None].transpose(1, 2))     # images of one pixel a line
    set_apart(build, rows, 1, lambda word, _: Value(copied.where[word][None, :, None], copied.home))
    weights.apart = copied


def _bring(build, weights, row, word, rows, words, target):
    """Words of rows of a matrix that is computed, as they lie in DRAM, to V."""
    if weights.lines is not None:
        weights.lines.load(build, row, rows, word, words, target)
        return
    if weights.apart is not None and words == 1:
        build.load_words(Value(weights.apart.where[word].narrow(0, row, rows), weights.apart.home), 0, 1, target)
        return
    where = weights.value.where.t() if weights.by_columns else weights.value.where
    build.load_words(Value(where.narrow(0, row, rows), weights.value.home), word, words, target)


def pieces(rows: int, words: int, row_step: int, word_step: int, wanted: int, most: int) -> tuple[int, int]:
    """Rows and words of pieces of a matrix of at most ``wanted`` words, multiples of the steps unless they are all.

    Raises
    ------
    LoweringError
        If a piece of one step each has more than ``most`` words.
    """
    if row_step * word_step > most:
        raise LoweringError(f"blocks of {row_step} rows and {word_step} words need {row_step * word_step} words of "
                            f"memory V, not {most}; larger --v-words would do")
    wanted = max(wanted, row_step * word_step)
    across = words if words * row_step <= wanted else wanted // row_step // word_step * word_step
    down = rows if rows * across <= wanted else wanted // across // row_step * row_step
    return down, across
