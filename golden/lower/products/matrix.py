"""Products of matrices: rows of X, band after band, with all column tiles."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from math import lcm

import numpy as np
import torch

from hbfp.golden.nn.placed import Draw
from hbfp.isa.instructions import Opcode

from ..apart import WORD
from ..boxes import Loops, boxes, joint, ranges
from ..builder import Builder, merged
from ..errors import LoweringError
from ..memory import Value
from ..schedule import Ring, Span
from .after import After
from .bands import Meanwhile, band, commands, shares
from .core import Core
from .draw import Drawn, in_v
from .draw import fields as fields_of
from .passes import even, portions
from .weights import Steps, Weights, lie_apart, pieces, tall
from .wide import Wide

#: Rows of a command, in rows of the array: more hide the change of weights, fewer begin earlier.
PASS = 2
#: Passes from which on a column tile takes so long that the first one, and the last ones, are commands of their own.
LONG = 4
#: Portions of the very first command.
PORTIONS = 4
#: Rows that are converted at a time where the core waits for the first ones.
FEW = 16
#: Bands from which on a weight that streams is copied first, so that each column tile comes in long bursts.
BANDS = 4
#: Cycles that a copy takes for each word, and the converter for one whose block runs along rows.
COPIED, CONVERTED = 2, 2
#: Columns whose results may wait to be stored while weights stream.
RESULTS = 4
#: Most places in V for rows that do not fill their words.
PLACES = 3


@dataclass(frozen=True)
class Lie:
    """How rows lie in X: addresses from a row to the next, from a word of V to the next one's, from a pass to the next,
    and all that a row has.

    Where words of V are words of X, those of all rows lie behind each other; else a row's pieces do, since a row of the
    core, or a word of V, has several, and so do words of X where a pass takes several.
    """
    row: int
    word: int
    one: int
    cells: int

    @classmethod
    def of(cls, build: Builder, rows: int, cells: int, spread: int = 1) -> "Lie":
        """Of so many rows of so many addresses, of which a pass takes ``spread`` rows of the core."""
        machine = build.accelerator
        if machine.oblong or spread > 1:
            return cls(cells, machine.word_pieces, machine.row_pieces * spread, cells)
        return cls(1, rows, rows, cells)


def matrix(build: Builder, value: Value, weights: Weights, steps: Steps, output: Value, after: After,
           draw: Draw | None = None) -> None:
    """(..., K) times (K, N): (..., N); ``draw`` is how the first is rounded, if not to nearest."""
    dims, own = value.dims(), output.dims()
    core = Core(build, weights, steps)

    def load(skip, lines, target, first, words):
        build.load_words(value, first, words, target, skip=skip, rows=lines)
    turned = value.view(torch.flatten, 0, -2).view(torch.t) if turns(build, value, core) else None
    drawn = in_v(draw, turned is not None, value.shape[-1] if turned is None else turned.shape[-1], build.lanes)
    by_bands(build, [dims[:-1], own[:-1], *after.loops(slice(None, -1))], load, core, output, after, turned=turned,
             drawn=drawn, value=value)


def by_bands(build: Builder, loops: Sequence[Loops], load: Callable[..., None], core: Core, output: Value,
             after: After, whole: bool = False, zeros: bool = False, turned: Value | None = None,
             drawn: Drawn | None = None, value: Value | None = None) -> None:
    """Rows of a matrix, band after band: to V, converted to X, multiplied, drained, stored.

    ``load`` takes elements to skip, loops, where in V, first word and words of each row; with ``whole`` always all.
    ``loops`` are those of rows of the matrix, of the output, and of what ``after`` takes. With ``zeros`` rows do not
    fill their words: they come to places in V that are zeros before. ``turned`` is the matrix (K, rows) if its columns
    lie in order in DRAM: it comes to V so, and is turned on its way to X. Rows that are longer than X come with the
    portions of a weight that streams, anew for each column tile. ``drawn`` is how what comes to V is rounded. If the
    matrix is one ``value``, it stays in X for products that take the same.
    """
    machine, tiles, words, wide = build.accelerator, core.plan.tiles, core.plan.words, core.weights.wide
    spread = core.plan.spread
    line, cells = core.plan.cells, core.plan.cells * wide.digits    # addresses of X of a row, and of both its digits
    step, unit = row_step(build, turned is not None), tall(build) // machine.core.rows
    together = 1 if turned is None else build.lanes        # rows that come to X at a time

    def pitch(rows):
        return -(-rows // together) * together
    side, unit = unit, words if whole else tall(build) // build.lanes
    loops = joint(loops)
    sizes = [size for size, _ in loops[0]]
    rows = int(np.prod(sizes, dtype=np.int64))
    wanted = build.x.size // 2 // cells
    if not core.resident and pitch(rows) * cells <= build.x.size:
        wanted = rows                                      # else the weight would be brought in again
    elif core.plan.streamed and (not core.divisible or wanted < machine.core.rows):
        wanted = build.x.size // cells                     # a weight takes longer than what comes to X anew
    passing = not whole and core.plan.streamed and (
        pitch(min(step, rows)) * cells > build.x.size
        or turned is not None and not core.divisible and _passes(build, core, rows, band(rows, step, wanted, wanted)))
    most = build.x.size // (2 * core.plan.side * machine.row_pieces * wide.digits if passing else cells)
    if passing:
        wanted = min(machine.core.depth, most)
    chunk = band(rows, step, wanted, most)
    if chunk < 1:
        each, there = (size // machine.row_pieces for size in (cells, build.x.size))
        raise LoweringError(f"{min(step, rows)} rows of {each} words, which a block has, need more than the {there} "
                            "words of memory X; larger --x-words would do")
    if not core.resident:
        chunk = even(rows, chunk, step)
    usual = machine.core.depth if core.plan.streamed else PASS * machine.core.rows
    part = max(1, min(after.share // core.plan.group, machine.core.depth, usual))
    most_columns = core.plan.group                         # of a command
    if part < min(machine.core.rows, machine.core.depth, rows):    # a change of weights takes longer than so few rows
        most_columns = max(1, after.share // min(machine.core.depth, usual))
        part = max(1, min(after.share // most_columns, machine.core.depth, usual))
    if min(step, chunk) > machine.core.depth:
        raise LoweringError(f"blocks of {step} rows, which are multiplied together, are more than the "
                            f"{machine.core.depth} whose sums the core has; --depth {step} would do")
    most_rows = max(part // step * step, min(step, chunk))
    part = even(chunk, most_rows, step)

    def cut_of(start, count):
        """A band's commands; of weights that stream all would come in once more for the very first."""
        return list(commands(count, part, most_rows, step, machine.core.rows, core.plan.columns,
                             start == 0 and (core.divisible or not core.plan.streamed)))
    most = build.v.size - most_columns * step * (1 + after.operands)
    if turned is None:
        down, across = pieces(pitch(part), words, min(step, pitch(rows)), unit, after.share, most)
    else:                                                  # whose rows lie side by side
        across, down = pieces(words, pitch(part), unit, min(step, pitch(rows)), after.share, most)
    if core.plan.group == 1 and weights_lie_apart(core, build.lanes) and _comes_often(build, rows, chunk):
        lie_apart(build, core.weights)
    ring = _for_results(build, part * (1 + after.operands)) if core.plan.streamed else build.v
    several = min(PLACES, max(1, build.v.size // 2 // (down * words)))
    places = cycle([_zeros(build, down * words) for _ in range(several)]) if zeros else None

    def pieces_of(start, x, low, lie, high, word, count, most):
        """Bring words of rows to X, at most so many rows at a time, low digits ``low`` addresses behind the high ones;
        yields behind each piece.
        """
        for row in range(0, high, most):
            lower, target = min(most, high - row), x + word * lie.word + row * lie.row
            if turned is not None:
                turn(build, turned, start + row, lower, word, count, target, lie, drawn, wide, low)
                yield
                continue
            def load_all(target, row=row, lower=lower):
                for done, skips, lines in boxes(loops, start + row, lower):
                    load(skips[0], lines[0], target + done * count, word, count)
            if places is None:
                here = build.brought(lower * count, load_all)
            else:
                here = next(places)
                load_all(here.start)
            to_x(build, here, lower, count, target, lie.row, lie.word, wide, low, fields_of(drawn, start + row, word))
            yield

    def bring(*what):
        for _ in pieces_of(*what):
            pass

    def ahead(start, count, x):
        """Bring a band's rows to X while the one before it is multiplied; yields behind each piece."""
        low = pitch(count) * line
        for at, high in commands(count, part, most_rows, step, machine.core.rows, core.plan.columns, False):
            lie = Lie.of(build, pitch(high), line, spread)
            for word in range(0, words, across):
                yield from pieces_of(start + at, x.start + at * line, low, lie, high, word, min(across, words - word),
                                     down)

    last, bands = len(output.shape) - 1, list(ranges(sizes, chunk, step))
    early = not passing and 2 * pitch(chunk) * cells <= build.x.size
    if early and (len(bands) > 1 or build.held is None):
        build.x.next = build.x.start                       # so that no band lies where the one before it does
    x, meanwhile, there_already = None, None, False
    for number, (start, count) in enumerate(bands):
        plane = pitch(count) * (core.plan.side * machine.row_pieces if passing else line)
        key = None
        if meanwhile is not None:
            x, there_already = meanwhile.close(), True
        else:
            if value is not None and len(bands) == 1 and not passing:
                key = ("X", value.address, *value.dims(), turned is not None, drawn, wide, line, plane, spread,
                       *cut_of(start, count))
            known = build.converted(key)
            x, there_already = known or build.x.take(plane * wide.digits), known is not None
        meanwhile = None
        if early and number + 1 < len(bands):
            next_x = build.x.take(pitch(bands[number + 1][1]) * cells)
            many = sum(len(list(shares(columns, False, False, most_columns))) for _, columns in core.groups()) * len(
                cut_of(start, count))
            parts = -(-bands[number + 1][1] // down) * -(-words // across)
            meanwhile = Meanwhile(ahead(*bands[number + 1], next_x), next_x, parts / many)
        for group, (first, columns) in enumerate(core.groups()):
            where, there = core.place(first, columns)
            for at, high in cut_of(start, count):
                base, opens, each = x.start + at * line, group == 0 and start == at == 0, pitch(high)
                lie = Lie.of(build, each, line, spread)
                closes = start + at + high == rows and first + columns == core.plan.columns
                fields = {"base": base, "rows0": high, "rows1": 1, "row0": lie.row, "passes0": core.plan.passes,
                          "passes1": 1, "passes2": 1, "pass0": lie.one, **wide.multiply(plane)}
                row, box = (start + at, base, high), list(boxes(loops, start + at, high))
                few = max(step, min(down, FEW // step * step)) if opens and turned is None else down

                opening = (opens and core.divisible and where is not None and tiles >= LONG
                           and wide.tiles == 1)
                cut = portions(fields, -(-tiles // PORTIONS // side) * side, side) if opening else core.cut(fields)
                if passing:
                    cut = portions(fields, min(
                        cut[0].tiles, build.x.size // 2 // wide.digits // each // machine.row_pieces // side * side),
                        side)
                    lies = [Lie.of(build, each, own.tiles * machine.row_pieces) for own in cut]
                    cut = [replace(own, fields=own.fields | {
                        "base": build.x.take(each * its.cells * wide.digits).start, "row0": its.row, "pass0": its.one,
                        **wide.multiply(each * its.cells)}) for own, its in zip(cut, lies, strict=True)]
                once = whole or not passing and high > few and cut[0].tiles < LONG

                def source(part, each=each, lie=lie):
                    begin, low, size = part.fields["base"], part.fields.get("low", 0), part.tiles * machine.row_pieces
                    if lie.row > 1 and not passing:        # rows of other portions lie in between
                        begin, size = begin - part.first * lie.one, lie.cells
                    return [Span("X", begin + digit * low, begin + digit * low + size * each)
                            for digit in range(wide.digits)]

                new = group == 0 and not there_already

                def before(part, half, row=row, new=new, few=few, opening=opening, once=once, where=where,
                           first=first, each=each, lie=lie):
                    if opening:
                        core.bring(core.inside(where, part), first, 1, part.first, part.tiles)
                    begin, end = (number * spread * machine.core.rows // build.lanes for number in (
                        part.first, part.first + part.tiles))
                    if passing:
                        lie = Lie.of(build, each, part.tiles * machine.row_pieces)
                        row = row[0], part.fields["base"] - begin * lie.word, row[2]
                    if once:
                        begin, end = 0, 0 if part.first else words
                    for word in range(begin, end if passing or new and not half else 0, across):
                        bring(*row[:2], part.fields.get("low", 0), lie, row[2], word, min(across, end - word), few)

                if where is not None and at == 0 and not there and not (opens and core.divisible):
                    core.bring(where, first, columns)
                for column, some in shares(columns, opens and tiles >= LONG, closes and tiles >= LONG, most_columns):
                    own = where and Span("W", where.start + column * core.height,
                                         where.start + (column + some) * core.height)
                    if opens and core.divisible and own is not None and (column or not opening):
                        core.bring(own, first + column, some)
                    extra = after.bring(box, high, some, first + column, ring)
                    result = ring.take(high * some, kept=ring is build.v)
                    core.multiply(source, fields, own, some, result, some, first + column,
                                  cut=() if column else cut, before=None if column else before)
                    after.work(result, extra, high, some)
                    for done, skips, lines in box:
                        store(build, result.start + done * some, some, output, last, first + column, skips[1], lines[1])
                    build.v.release()
                    if meanwhile is not None:
                        meanwhile.go_on()
        if key is not None and value is not None:
            build.has_converted(key, x, value)


def _comes_often(build, rows, chunk):
    """Whether bands are so many, or so few rows, that words of a column tile which lie apart are worth a copy."""
    bands = -(-rows // chunk)
    waits = WORD - max(CONVERTED, chunk / build.accelerator.core.rows)     # of a word, each time that it comes
    return bands >= BANDS or bands > 1 and bands * waits > COPIED


def _passes(build, core, rows, chunk):
    """Whether rows that are turned are to come with the portions of a weight, anew for each column tile, and not in
    bands of ``chunk`` rows that stay, for each of which the weight comes anew: cycles by the words of a term.
    """
    side, columns, each = build.lanes, core.plan.columns, WORD if weights_lie_apart(core, build.lanes) else 1
    blocks, twice = -(-rows // side), CONVERTED if build.accelerator.core.blocked else 1

    def cycles(bands, height, times, copied):
        """Of rows that come so often, with bands of this height, of a weight of which there may be a copy."""
        row = 1 if height == rows else max(1, WORD * side / height)
        come = blocks * times * row + bands * columns * (1 if copied else each)
        return max(blocks * columns, twice * (blocks * times + bands * columns), come) + copied * COPIED * columns
    high = min(rows, core.build.accelerator.core.depth)
    many, few = -(-rows // chunk), -(-rows // high)
    stays = min(cycles(many, chunk, 1, copied) for copied in {False, many > 1 and each > 1})
    return cycles(few, high, columns, False) < stays


def weights_lie_apart(core: Core, lanes: int) -> bool:
    """Whether words of a column tile of a matrix that is computed, which fill their lanes, are no neighbours."""
    weights = core.weights
    return (weights.value is not None and not weights.by_columns and weights.columns % lanes == 0
            and weights.columns > lanes)


def _for_results(build, words):
    """Where rows of results go if each column's weights take most of V: a part of it, so that no weight waits for
    what has yet to be stored. All of V if a quarter of it holds less than two columns of ``words``.
    """
    most = build.v.size // 4 // words
    if most < 2:
        return build.v
    kept = build.keep(min(most, RESULTS) * words)
    return Ring("V", kept.start, kept.stop)


def _zeros(build, words):
    """A place in V that is kept for the layer."""
    span = build.keep(words)
    build.fill(span.start, words)
    return span


def to_x(build: Builder, here: Span, rows: int, words: int, target: int, row: int, word: int, wide: Wide, low: int,
         more: Mapping[str, int] | None = None) -> None:
    """Convert rows of words to X, where rows and words are ``row`` and ``word`` apart; ``more`` are further fields.

    Low digits of wide ones lie ``low`` behind the high ones.
    """
    machine = build.accelerator
    last = -(-words // machine.row_pieces) * machine.row_pieces - 1    # those that fill up a row of the core, too
    for part, fields in enumerate(wide.rows()):
        own = target + part * low
        build.schedule.emit(Opcode.CONVERT, {
            "base": here.start, "words": words, "rows": rows, "stride": words, "target": own, "target_word": word,
            "target_row": row, **(more or {}), **fields}, [here],
            [Span("X", own, own + (rows - 1) * row + last * word + machine.word_pieces)])


def row_step(build: Builder, turned: bool) -> int:
    """What rows come to X in multiples of: those of a block, and those of a square if they are turned."""
    block = build.accelerator.core.format.block[0]
    return lcm(block, build.lanes) if turned else block


def turns(build: Builder, value: Value, core: Core) -> bool:
    """Whether a matrix (rows, K) is to be turned: its columns lie in order in DRAM, not its rows, and X has room."""
    if core.plan.spread > 1:
        return False
    plan, each = core.plan, build.accelerator.row_pieces * core.weights.wide.digits
    cells = (2 * plan.side if plan.streamed else plan.tiles) * each
    *rows, (terms, along) = value.dims()
    lines = merged(rows)
    return (len(lines) == 1 and lines[0][1] == 1 and along != 1 and terms > 1
            and row_step(build, True) * cells <= build.x.size)


def turn(build: Builder, matrix: Value, first: int, rows: int, word: int, words: int, target: int, lie: Lie,
         drawn: Drawn | None, wide: Wide, low: int) -> None:
    """Words ``word`` on of rows ``first`` on of X, from a matrix (K, rows); the low digits of wide ones ``low`` behind
    the high ones.
    """
    lanes, across = build.lanes, -(-rows // build.lanes)
    terms = min(words * lanes, matrix.shape[0] - word * lanes)
    part = matrix.view(torch.narrow, 0, word * lanes, terms)
    here = build.brought(terms * across, lambda at: build.load_words(part, first // lanes, across, at))
    for part, fields in enumerate(wide.rows()):
        own = target + part * low
        build.schedule.emit(Opcode.CONVERT, {
            "columns": 1, "base": here.start, "words": across, "rows": terms, "stride": across, "target": own,
            "target_word": lanes * lie.row, "target_row": lie.word,
            **fields_of(drawn, word * lanes, first // lanes), **fields}, [here],
            [Span("X", own, own + (words - 1) * lie.word + (across * lanes - 1) * lie.row
                  + build.accelerator.word_pieces)])


def store(build: Builder, source: int, words: int, output: Value, inner: int, first: int, skip: int, lines: Loops
          ) -> None:
    """Column tiles ``first`` on of rows of an output, from ``source`` in V."""
    part = output.words(inner, first, words, build.lanes)
    build.store(source, words, part, (), inner, skip=skip, rows=lines)
