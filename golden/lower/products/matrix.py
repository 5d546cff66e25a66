"""Products of matrices: rows of X, band after band, with all column tiles."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from math import lcm

import numpy as np
import torch

from hbfp.golden.nn.placed import Draw
from hbfp.isa.instructions import Opcode

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
from .weights import Steps, Weights, pieces, set_apart, tall
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
#: Columns whose results may wait to be stored while weights stream.
RESULTS = 4
#: Most places in V for rows that do not fill their words.
PLACES = 3


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
             drawn=drawn)


def by_bands(build: Builder, loops: Sequence[Loops], load: Callable[..., None], core: Core, output: Value,
             after: After, whole: bool = False, zeros: bool = False, turned: Value | None = None,
             drawn: Drawn | None = None) -> None:
    """Rows of a matrix, band after band: to V, converted to X, multiplied, drained, stored.

    ``load`` takes elements to skip, loops, where in V, first word and words of each row; with ``whole`` always all.
    ``loops`` are those of rows of the matrix, of the output, and of what ``after`` takes. With ``zeros`` rows do not
    fill their words: they come to places in V that are zeros before. ``turned`` is the matrix (K, rows) if its columns
    lie in order in DRAM: it comes to V so, and is turned on its way to X. Rows that are longer than X come with the
    portions of a weight that streams, anew for each column tile. ``drawn`` is how what comes to V is rounded.
    """
    machine, tiles, wide = build.accelerator, core.plan.tiles, core.weights.wide
    cells = tiles * wide.digits                            # words of X of a row
    step, unit = row_step(build, turned is not None), tall(build) // machine.core.rows
    together = 1 if turned is None else build.lanes        # rows that come to X at a time

    def pitch(rows):
        return -(-rows // together) * together
    side, unit = unit, tiles if whole else unit
    loops = joint(loops)
    sizes = [size for size, _ in loops[0]]
    rows = int(np.prod(sizes, dtype=np.int64))
    wanted = build.x.size // 2 // cells
    if not core.resident and pitch(rows) * cells <= build.x.size:
        wanted = rows                                      # else the weight would be brought in again
    elif core.plan.streamed and not core.divisible:
        wanted = build.x.size // cells                     # its conversion takes longer than what comes to X anew
    passing = not whole and core.plan.streamed and pitch(min(step, rows)) * cells > build.x.size
    most = build.x.size // (2 * core.plan.side * wide.digits if passing else cells)
    if passing:
        wanted = min(machine.core.depth, most)
    chunk = band(rows, step, wanted, most)
    if chunk < 1:
        raise LoweringError(f"{min(step, rows)} rows of {cells} words, which a block has, need more than the "
                            f"{build.x.size} words of memory X; larger --x-words would do")
    if not core.resident:
        chunk = even(rows, chunk, step)
    usual = machine.core.depth if core.plan.streamed else PASS * machine.core.rows
    part = max(1, min(after.share // core.plan.group, machine.core.depth, usual))
    most_rows = max(part // step * step, min(step, chunk))
    part = even(chunk, most_rows, step)

    def cut_of(start, count):
        """A band's commands; of weights that stream all would come in once more for the very first."""
        return list(commands(count, part, most_rows, step, machine.core.rows, core.plan.columns,
                             start == 0 and (core.divisible or not core.plan.streamed)))
    most = build.v.size - core.plan.group * step * (1 + after.operands)
    down, across = pieces(pitch(part), tiles, min(step, pitch(rows)), unit, after.share, most)
    if core.plan.group == 1 and weights_lie_apart(core, build.lanes) and -(-rows // chunk) >= BANDS:
        set_apart(build, core.weights)
    ring = _for_results(build, part * (1 + after.operands)) if core.plan.streamed else build.v
    several = min(PLACES, max(1, build.v.size // 2 // (down * tiles)))
    places = cycle([_zeros(build, down * tiles) for _ in range(several)]) if zeros else None

    def pieces_of(start, x, low, high, word, words, most):
        """Bring words of rows to X, at most so many rows at a time, low digits ``low`` words behind the high ones;
        yields behind each piece.
        """
        for row in range(0, high, most):
            lower, target = min(most, high - row), x + word * pitch(high) + row
            if turned is not None:
                turn(build, turned, start + row, lower, word, words, target, pitch(high), drawn, wide, low)
                yield
                continue
            here = build.v.take(lower * words) if places is None else next(places)
            for done, skips, lines in boxes(loops, start + row, lower):
                load(skips[0], lines[0], here.start + done * words, word, words)
            to_x(build, here, lower, words, target, 1, high, wide, low, fields_of(drawn, start + row, word))
            yield

    def bring(*what):
        for _ in pieces_of(*what):
            pass

    def ahead(start, count, x):
        """Bring a band's rows to X while the one before it is multiplied; yields behind each piece."""
        low = pitch(count) * tiles
        for at, high in commands(count, part, most_rows, step, machine.core.rows, core.plan.columns, False):
            for word in range(0, tiles, across):
                yield from pieces_of(start + at, x.start + at * tiles, low, high, word, min(across, tiles - word), down)

    last, bands = len(output.shape) - 1, list(ranges(sizes, chunk, step))
    early = not passing and 2 * pitch(chunk) * cells <= build.x.size
    if early:
        build.x.next = build.x.start                       # so that no band lies where the one before it does
    x, meanwhile, there_already = None, None, False
    for number, (start, count) in enumerate(bands):
        plane = pitch(count) * (core.plan.side if passing else tiles)
        if meanwhile is not None:
            x, there_already = meanwhile.close(), True
        else:
            x = build.x.take(plane * wide.digits)
        meanwhile = None
        if early and number + 1 < len(bands):
            next_x = build.x.take(pitch(bands[number + 1][1]) * cells)
            many = sum(len(list(shares(columns, False, False))) for _, columns in core.groups()) * len(
                cut_of(start, count))
            parts = -(-bands[number + 1][1] // down) * -(-tiles // across)
            meanwhile = Meanwhile(ahead(*bands[number + 1], next_x), next_x, parts / many)
        for group, (first, columns) in enumerate(core.groups()):
            where, there = core.place(first, columns)
            for at, high in cut_of(start, count):
                base, opens, each = x.start + at * tiles, group == 0 and start == at == 0, pitch(high)
                closes = start + at + high == rows and first + columns == core.plan.columns
                fields = {"base": base, "rows0": high, "rows1": 1, "row0": 1, "passes0": tiles, "passes1": 1,
                          "passes2": 1, "pass0": each, **wide.multiply(plane)}
                row, box = (start + at, base, high), list(boxes(loops, start + at, high))
                few = max(step, min(down, FEW // step * step)) if opens else down

                opening = (opens and core.divisible and where is not None and tiles >= LONG
                           and wide.tiles == 1)
                cut = portions(fields, -(-tiles // PORTIONS // side) * side, side) if opening else core.cut(fields)
                if passing:
                    cut = [replace(own, fields=own.fields | {
                        "base": build.x.take(own.tiles * each * wide.digits).start, **wide.multiply(own.tiles * each)})
                        for own in portions(fields, min(
                            cut[0].tiles, build.x.size // 2 // wide.digits // each // side * side), side)]
                once = whole or not passing and high > few and cut[0].tiles < LONG

                def source(part, each=each):
                    begin, low = part.fields["base"], part.fields.get("low", 0)
                    return [Span("X", begin + digit * low, begin + digit * low + part.tiles * each)
                            for digit in range(wide.digits)]

                new = group == 0 and not there_already

                def before(part, half, row=row, new=new, few=few, opening=opening, once=once, where=where,
                           first=first, each=each):
                    if opening:
                        core.bring(core.inside(where, part), first, 1, part.first, part.tiles)
                    if passing:
                        row = row[0], part.fields["base"] - part.first * each, row[2]
                    begin, end = (0, 0 if part.first else tiles) if once else (part.first, part.first + part.tiles)
                    for word in range(begin, end if passing or new and not half else 0, across):
                        bring(*row[:2], part.fields.get("low", 0), row[2], word, min(across, end - word), few)

                if where is not None and at == 0 and not there and not (opens and core.divisible):
                    core.bring(where, first, columns)
                for column, some in shares(columns, opens and tiles >= LONG, closes and tiles >= LONG):
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
    for part, fields in enumerate(wide.rows()):
        own = target + part * low
        build.schedule.emit(Opcode.CONVERT, {
            "base": here.start, "words": words, "rows": rows, "stride": words, "target": own, "target_word": word,
            "target_row": row, **(more or {}), **fields}, [here],
            [Span("X", own, own + (rows - 1) * row + (words - 1) * word + 1)])


def row_step(build: Builder, turned: bool) -> int:
    """What rows come to X in multiples of: those of a block, and those of a square if they are turned."""
    block = build.accelerator.core.format.block[0]
    return lcm(block, build.lanes) if turned else block


def turns(build: Builder, value: Value, core: Core) -> bool:
    """Whether a matrix (rows, K) is to be turned: its columns lie in order in DRAM, not its rows, and X has room."""
    tiles = (2 * core.plan.side if core.plan.streamed else core.plan.tiles) * core.weights.wide.digits
    *rows, (terms, along) = value.dims()
    lines = merged(rows)
    return (len(lines) == 1 and lines[0][1] == 1 and along != 1 and terms > 1
            and row_step(build, True) * tiles <= build.x.size)


def turn(build: Builder, matrix: Value, first: int, rows: int, word: int, words: int, target: int, pitch: int,
         drawn: Drawn | None, wide: Wide, low: int) -> None:
    """Words ``word`` on of rows ``first`` on of X, from a matrix (K, rows).

    Words of a row are ``pitch`` apart, the low digits of wide ones ``low`` behind the high ones.
    """
    side, across = build.accelerator.core.rows, -(-rows // build.lanes)
    terms = min(words * side, matrix.shape[0] - word * side)
    here = build.v.take(terms * across)
    build.load_words(matrix.view(torch.narrow, 0, word * side, terms), first // build.lanes, across, here.start)
    for part, fields in enumerate(wide.rows()):
        own = target + part * low
        build.schedule.emit(Opcode.CONVERT, {
            "columns": 1, "base": here.start, "words": across, "rows": terms, "stride": across, "target": own,
            "target_word": build.lanes, "target_row": pitch,
            **fields_of(drawn, word * side, first // build.lanes), **fields}, [here],
            [Span("X", own, own + (words - 1) * pitch + across * build.lanes)])


def store(build: Builder, source: int, words: int, output: Value, inner: int, first: int, skip: int, lines: Loops
          ) -> None:
    """Column tiles ``first`` on of rows of an output, from ``source`` in V."""
    part = output.words(inner, first, words, build.lanes)
    build.store(source, words, part, (), inner, skip=skip, rows=lines)
