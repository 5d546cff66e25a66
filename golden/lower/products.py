"""Products: matrices and convolutions on the core."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from hbfp.isa.instructions import Memory, Opcode

from .boxes import boxes, joint, ranges
from .builder import Builder
from .errors import LoweringError
from .memory import Value
from .schedule import Span

#: Rows of a command, in rows of the array: more hide the change of weights, fewer begin earlier.
PASS = 2


@dataclass
class Steps:
    """What the core does with its sums: factors and addends of each column, and ReLU."""
    scale: np.ndarray | None = None
    bias: np.ndarray | None = None
    relu: bool = False


@dataclass
class Weights:
    """A matrix (K, N) for memory W: in DRAM as records, or a value that is converted on the device."""
    terms: int
    columns: int
    records: int = 0
    value: Value | None = None
    by_columns: bool = False
    skip: int = 0


@dataclass
class Plan:
    """Sizes of a product.

    Attributes
    ----------
    tiles : int
        Words of X of a row: passes of the core.
    columns : int
        Column tiles.
    group : int
        Column tiles that are in W at a time.
    """
    tiles: int
    columns: int
    group: int


def tall(build: Builder) -> int:
    """Terms that K is filled up to a multiple of."""
    return max(build.accelerator.core.rows, build.accelerator.core.format.terms)


def plan(build: Builder, terms: int, columns: int) -> Plan:
    """How a product with a weight (terms, columns) is cut; LoweringError if W has too few rows."""
    core = build.accelerator.core
    side = tall(build)
    tiles = -(-terms // side) * side // core.rows
    wide = -(-columns // build.lanes)
    height = tiles * core.rows
    if height > build.w.size:
        raise LoweringError(f"a product over {terms} terms needs {height} rows of memory W, not {build.w.size}; "
                            f"--w-words {1 << (height - 1).bit_length()} would do")
    if tiles > core.max_tiles:
        raise LoweringError(f"a product over {terms} terms needs {tiles} passes of the core, not {core.max_tiles}; "
                            "more growth bits would do")
    if wide * height <= build.w.size // 2:
        return Plan(tiles, wide, wide)
    square = max(1, core.format.block[0] // build.lanes)     # column tiles of a block
    group = max(1, build.w.size // 2 // height)
    return Plan(tiles, wide, min(wide, max(group // square, 1) * square))


def constant_weights(build: Builder, weight: np.ndarray, chunk: int) -> Weights:
    """Records of a weight (K, N), of which K is runs of ``chunk`` terms that begin in a word of X each."""
    from hbfp.golden.machine.layouts import pack_records
    rows = build.accelerator.core.rows
    terms, columns = weight.shape
    if chunk % rows and chunk != terms:
        wide = -(-chunk // rows) * rows
        padded = np.zeros((terms // chunk, wide, columns), np.float32)
        padded[:, :chunk] = weight.reshape(-1, chunk, columns)
        weight = padded.reshape(-1, columns)
    return Weights(len(weight), columns, build.dram.take(pack_records(build.accelerator, weight)))


def keep_steps(build: Builder, steps: Steps, columns: int) -> dict[str, int]:
    """Put factors and addends into V, where they stay; fields of DRAIN."""
    fields: dict[str, int] = {}
    words = -(-columns // build.lanes)
    for name, row in (("scale", steps.scale), ("bias", steps.bias)):
        if row is not None:
            span = build.keep(words)
            build.load(build.dram.constant(row), (), 0, span.start, words)
            fields |= {name: 1, f"{name}_base": span.start}
    return fields


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


class Core:
    """The core with one weight: column tiles are brought into W, group by group, and passes of rows of X multiplied.

    Parameters
    ----------
    build : Builder
    weights : Weights
    steps : Steps
    """

    def __init__(self, build: Builder, weights: Weights, steps: Steps) -> None:
        self.build, self.weights, self.steps = build, weights, steps
        self.plan = plan(build, weights.terms, weights.columns)
        self.kept = keep_steps(build, steps, weights.columns)
        self._resident: dict[int, Span] = {}

    @property
    def resident(self) -> bool:
        """Whether the whole weight is in W at a time."""
        return self.plan.group == self.plan.columns

    def groups(self) -> list[tuple[int, int]]:
        """First column tile, and how many, of each group."""
        return [(first, min(self.plan.group, self.plan.columns - first))
                for first in range(0, self.plan.columns, self.plan.group)]

    def bring(self, first: int, count: int) -> Span:
        """Column tiles in W; loaded or converted unless all of them are there."""
        if first in self._resident:
            return self._resident[first]
        span = self.build.w.take(count * self.height)
        if self.weights.value is None:
            self._records(first, count, span)
        else:
            self._convert(first, count, span)
        if self.resident:
            self._resident[first] = span
        return span

    @property
    def height(self) -> int:
        """Rows of W of a column tile."""
        return self.plan.tiles * self.build.accelerator.core.rows

    def _records(self, first, count, span):
        machine = self.build.accelerator
        each = self.height // machine.core.height
        size = machine.record_beats * machine.beat
        offset = self.weights.records + first * each * size
        self.build.schedule.emit(Opcode.LOAD, {
            "memory": Memory.W, "offset": offset, "count0": each, "count1": count, "count2": 1, "dram1": each * size,
            "buffer1": self.height, "base": span.start},
            [Span("DRAM", offset, offset + count * each * size)], [Span("W", span.start, span.stop)])

    def _convert(self, first, count, span):
        """Convert a matrix that lies in DRAM: K along its last dimension but one, or along its last."""
        build, value, lanes = self.build, self.weights.value, self.build.lanes
        terms, columns = value.shape
        wide = min(columns - first * lanes, count * lanes)
        cut = Value(value.where.narrow(1, first * lanes, wide), value.home)
        square, side = build.accelerator.core.format.block[0], tall(build)
        if self.weights.by_columns:                        # rows are N, lanes along K
            cut = Value(cut.where.t(), cut.home)
            rows, words, steps = wide, self.plan.tiles, (max(lanes, square), side // lanes)
        else:
            rows, words, steps = terms, count, (max(lanes, side), max(1, square // lanes))
        down, across = pieces(rows, words, *steps, build.v.size // 4, build.v.size)
        for word in range(0, words, across):
            for row in range(0, rows, down):
                tall_, long = min(down, rows - row), min(across, words - word)
                here = build.v.take(tall_ * long)
                build.load_words(Value(cut.where.narrow(0, row, tall_), cut.home), word, long, here.start)
                fields = {"to_w": 1, "base": here.start, "words": long, "rows": tall_, "stride": long}
                if self.weights.by_columns:
                    target = span.start + row // lanes * self.height + word * lanes
                    fields |= {"target_row": self.height}
                    end = target + (-(-tall_ // lanes) - 1) * self.height + long * lanes
                else:
                    target = span.start + row + word * self.height
                    fields |= {"columns": 1, "target_word": self.height}
                    end = target + (long - 1) * self.height + -(-tall_ // side) * side
                build.schedule.emit(Opcode.CONVERT, {**fields, "target": target}, [here], [Span("W", target, end)])

    def multiply(self, source: Span, rows: int, fields: dict[str, int], where: Span, columns: int,
                 result: Span, row: int, first: int) -> None:
        """``columns`` column tiles from ``where`` in W with rows of X, drained to ``result``, ``row`` words a row."""
        schedule, tiles = self.build.schedule, self.plan.tiles
        steps = {"scale": int("scale" in self.kept), "bias": int("bias" in self.kept)}
        schedule.emit(Opcode.WEIGHTS, {"base": where.start, "tiles": tiles * columns, "repeats": 1}, [where])
        schedule.emit(Opcode.MULTIPLY, {
            "first": 1, "last": 1, **steps, "relu": int(self.steps.relu), "tiles": tiles, "columns": columns,
            "passes1": 1, "passes2": 1, **fields}, [source])
        rows0, rows1 = fields["rows0"], fields["rows1"]
        drain = {**steps, "columns": columns, "rows0": rows0, "rows1": rows1, "base": result.start, "row0": row,
                 "row1": row * rows0, "column": 1}
        reads = []
        for name in ("scale", "bias"):
            if name in self.kept:
                base = self.kept[f"{name}_base"] + first
                drain[f"{name}_base"] = base
                reads.append(Span("V", base, base + columns))
        schedule.emit(Opcode.DRAIN, drain, reads, [result])
        assert rows == rows0 * rows1


def matrix(build: Builder, value: Value, weights: Weights, steps: Steps, output: Value) -> None:
    """(..., K) times (K, N): (..., N)."""
    dims, own = value.dims(), output.dims()

    def load(skip, lines, target, first, words):
        build.load_words(value, first, words, target, skip=skip, rows=lines)
    _rows(build, [dims[:-1], own[:-1]], load, Core(build, weights, steps), output)


def _rows(build, loops, load, core, output, whole=False):
    """Rows of a matrix, band after band: to V, converted to X, multiplied, drained, stored.

    ``load`` takes elements to skip, loops, where in V, first word and words of each row; with ``whole`` always all.
    """
    machine, tiles = build.accelerator, core.plan.tiles
    step, unit = machine.core.format.block[0], tall(build) // machine.core.rows
    unit = tiles if whole else unit
    loops = joint(loops)
    sizes = [size for size, _ in loops[0]]
    rows = int(np.prod(sizes, dtype=np.int64))
    wanted = build.x.size // 2 // tiles
    if not core.resident and rows * tiles <= build.x.size:
        wanted = rows                                      # else the weight would be brought in again
    chunk = _band(rows, step, wanted, build.x.size // tiles)
    if chunk < 1:
        raise LoweringError(f"{min(step, rows)} rows of {tiles} words, which a block has, need more than the "
                            f"{build.x.size} words of memory X; larger --x-words would do")
    part = max(1, min(build.v.size // 6 // core.plan.group, machine.core.depth, PASS * machine.core.rows))
    part = even(chunk, max(part // step * step, min(step, chunk)), step)
    down, across = pieces(part, tiles, min(step, rows), unit, build.v.size // 6,
                          build.v.size - core.plan.group * step)
    last = len(output.shape) - 1
    for start, count in ranges(sizes, chunk, step):
        x = build.x.take(count * tiles)
        for group, (first, wide) in enumerate(core.groups()):
            where = core.bring(first, wide)
            for at in range(0, count, part):
                high = min(part, count - at)
                base = x.start + at * tiles
                for row, word in product(range(0, high if group == 0 else 0, down), range(0, tiles, across)):
                    lower, words = min(down, high - row), min(across, tiles - word)
                    here = build.v.take(lower * words)
                    for done, skips, lines in boxes(loops, start + at + row, lower):
                        load(skips[0], lines[0], here.start + done * words, word, words)
                    _to_x(build, here, lower, words, base + row * tiles + word, tiles)
                result = build.v.take(high * wide)
                core.multiply(Span("X", base, base + high * tiles), high, {
                    "base": base, "rows0": high, "rows1": 1, "row0": tiles, "passes0": tiles, "pass0": 1},
                    where, wide, result, wide, first)
                for done, skips, lines in boxes(loops, start + at, high):
                    _store(build, result.start + done * wide, wide, output, last, first, skips[1], lines[1])


def even(rows: int, most: int, step: int = 1) -> int:
    """Rows of pieces of at most ``most`` rows, multiples of ``step``, that are about equal."""
    share = -(-rows // -(-rows // most))
    return min(-(-share // step) * step, most)


def _to_x(build, here, rows, words, target, pitch):
    """Convert rows of words to X, where rows are ``pitch`` words apart."""
    build.schedule.emit(Opcode.CONVERT, {
        "base": here.start, "words": words, "rows": rows, "stride": words, "target": target, "target_word": 1,
        "target_row": pitch}, [here], [Span("X", target, target + (rows - 1) * pitch + words)])


def _store(build, source, words, output, inner, first, skip, lines):
    """Column tiles ``first`` on of rows of an output, from ``source`` in V."""
    part = output.words(inner, first, words, build.lanes)
    build.store(source, words, part, (), inner, skip=skip, rows=lines)


def _band(rows, step, wanted, most, limit=1 << 30):
    """Rows at a time: as many as wanted, at most ``most``, and whole blocks of ``step`` unless that is all."""
    wanted, most = min(max(wanted, step), limit), min(most, limit)
    if rows <= wanted:
        return rows
    if wanted > most:
        wanted = most
    return wanted // step * step


def convolution(build: Builder, value: Value, weights: Weights, steps: Steps, output: Value, size: Sequence[int],
                stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> None:
    """Patches by address, of (N, C, H, W) whose blocks lie within the channels of a pixel: (N, O, OH, OW)."""
    core, machine = Core(build, weights, steps), build.accelerator
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = size, stride, padding, dilation
    n, c, h, w = value.shape
    oh, ow = output.shape[2:]
    words = -(-c // build.lanes)
    dims, own = value.dims(), output.dims()
    margin = (ph * w + pw) * words
    reach = dh * (kh - 1) + 1

    def space(band):
        return min((band - 1) * sh + reach, h) * w * words + margin
    fits = [b for b in range(1, oh + 1) if space(b) <= build.x.size]
    good = [b for b in fits if b == oh and n == 1 or 2 * space(b) <= build.x.size]
    if not fits:
        raise LoweringError(f"rows of {w} pixels of {c} channels, {reach} of them, need {space(1)} words of memory X, "
                            f"not {build.x.size}; --x-words {1 << (space(1) - 1).bit_length()} would do")
    band = max(good or fits)
    most = max(1, min(machine.core.depth, build.v.size // 6 // core.plan.group, PASS * machine.core.rows))
    across = even(ow, most)
    for image in range(n):
        for top in range(0, oh, band):
            rows = min(band, oh - top)
            first = min(max(top * sh - ph, 0), h)
            last = max(min((top + rows - 1) * sh - ph + reach, h), first)
            span = build.x.take((last - first) * w * words + margin)
            base = span.start + margin
            _pixels(build, value, dims, image, first, last, words, base)
            for start, wide in core.groups():
                where = core.bring(start, wide)
                down = even(rows, max(1, most // ow)) if across == ow else 1
                for y in range(top, top + rows, down):
                    for x in range(0, ow, across):
                        tall_, long = min(down, top + rows - y), min(across, ow - x)
                        result = build.v.take(tall_ * long * wide)
                        at = base + ((y * sh - ph - first) * w + x * sw - pw) * words
                        bounded = {"bounded": 1, "x": x * sw - pw, "y": y * sh - ph, "x_row": sw, "y_row": sh,
                                   "x_pass": dw, "y_pass": dh, "width": w, "height": h} if ph or pw else {}
                        core.multiply(Span("X", span.start, span.stop), tall_ * long, {
                            "base": at, "rows0": long, "rows1": tall_, "row0": sw * words, "row1": sh * w * words,
                            "passes0": words, "passes1": kw, "passes2": kh, "pass0": 1, "pass1": dw * words,
                            "pass2": dh * w * words, **bounded}, where, wide, result, wide, start)
                        _store(build, result.start, wide, output, 1, start,
                               image * own[0][1] + y * own[2][1] + x * own[3][1],
                               [(tall_, own[2][1]), (long, own[3][1])])


def _pixels(build, value, dims, image, first, last, words, target):
    """Rows of pixels to X."""
    c, w = value.shape[1], value.shape[3]
    most = max(1, build.v.size // 6 // (w * words))
    if w * words > build.v.size // 2:
        raise LoweringError(f"a row of {w} pixels of {c} channels needs {2 * w * words} words of memory V, not "
                            f"{build.v.size}; larger --v-words would do")
    for y in range(first, last, most):
        rows = min(most, last - y)
        here = build.v.take(rows * w * words)
        build.load(value, (), 1, here.start, words, skip=image * dims[0][1] + y * dims[2][1],
                   rows=[(rows, dims[2][1]), dims[3]])
        _to_x(build, here, rows * w, words, target + (y - first) * w * words, words)


def gathered(build: Builder, value: Value, weights: Weights, steps: Steps, output: Value, size: Sequence[int],
             stride: Sequence[int], dilation: Sequence[int]) -> None:
    """Patches as rows in V: of (N, C, H, W), dense with its borders, channels innermost: (N, O, OH, OW)."""
    (kh, kw), (sh, sw), (dh, dw) = size, stride, dilation
    c = value.shape[1]
    dims, own = value.dims(), output.dims()
    n, _, oh, ow = output.shape
    (_, image), (_, channel), (_, line), (_, pixel) = dims
    if channel == 1 and pixel == c and dw == 1:
        run, taps = kw * c, [(kh, dh * line, kw * c)]
    else:
        run, taps = c, [(kw, dw * pixel, c), (kh, dh * line, kw * c)]
    assert channel == 1 or c == 1
    loops = [[(n, image), (oh, sh * line), (ow, sw * pixel)], [own[0], own[2], own[3]]]

    def load(skip, lines, target, first, words):
        del first
        if kh * kw * c < words * build.lanes:
            build.fill(target, int(np.prod([size for size, _ in lines], dtype=np.int64)) * words)
        every, step = list(taps), words * build.lanes
        for number, distance in reversed(lines):
            every.append((number, distance, step))
            step *= number
        build.gather(value.address + skip, run, [loop for loop in every if loop[0] > 1], target * build.lanes)
    flat = Value(output.where.permute(0, 2, 3, 1), output.home)
    _rows(build, loops, load, Core(build, weights, steps), flat, whole=True)
