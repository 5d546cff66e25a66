"""The core with one weight: its columns come into W, whole or tile by tile, and rows of X are multiplied with them."""

from collections.abc import Callable, Sequence

from hbfp.isa.instructions import Opcode

from ..builder import Builder
from ..schedule import Span
from .passes import Portion, portions
from .weights import Steps, Weights, bring_records, convert_tiles, keep_steps, plan


class Core:
    """The core with one weight.

    Parameters
    ----------
    build : Builder
    weights : Weights
    steps : Steps
    """

    def __init__(self, build: Builder, weights: Weights, steps: Steps) -> None:
        self.build, self.weights, self.steps = build, weights, steps
        self.plan = plan(build, weights)
        self.kept = keep_steps(build, steps, weights.columns)
        self._resident: dict[int, Span] = {}

    @property
    def resident(self) -> bool:
        """Whether the whole weight is in W at a time."""
        return self.plan.group == self.plan.columns and not self.plan.streamed

    @property
    def divisible(self) -> bool:
        """Whether columns, and terms of one, may come into W one after the other."""
        return self.weights.constant

    def groups(self) -> list[tuple[int, int]]:
        """First column, and how many, of each group."""
        return [(first, min(self.plan.group, self.plan.columns - first))
                for first in range(0, self.plan.columns, self.plan.group)]

    @property
    def height(self) -> int:
        """Rows of W of a column."""
        return self.plan.passes * self.build.accelerator.core.rows * self.weights.wide.tiles

    def place(self, first: int, count: int) -> tuple[Span | None, bool]:
        """Where a group of columns is in W, None if they stream through it, and whether it is there already."""
        if self.plan.streamed:
            return None, True
        if first in self._resident:
            return self._resident[first], True
        known = self.build.converted(self._key(first, count))
        span = known or self.build.w.take(count * self.height)
        if self.resident:
            self._resident[first] = span
        return span, known is not None

    def _key(self, first, count):
        """What says how columns are converted; None of those that come as records, or are put together."""
        one = self.weights
        if one.value is None:
            return None
        return ("W", one.value.address, *one.value.dims(), one.by_columns, one.drawn, one.wide, one.spread, one.pruned,
                first, count)

    def bring(self, span: Span, first: int, count: int, tile: int = 0, tiles: int = 0, part: int | None = None) -> None:
        """Load or convert columns to a span of W; of each all terms, or ``tiles`` words of X from number ``tile`` on.

        ``part``: only this one of the column tiles that a column has.
        """
        parts = range(self.weights.wide.tiles) if part is None else range(part, part + 1)
        bring = bring_records if self.weights.constant else convert_tiles
        bring(self.build, self.weights, self.plan, span, first, count, tile, tiles or self.plan.tiles, parts)
        if not tiles and part is None and self.weights.value is not None:
            self.build.has_converted(self._key(first, count), span, self.weights.value)

    def inside(self, where: Span, part: Portion) -> Span:
        """Where passes of the first of columns, which is one column tile, are in W."""
        rows = self.build.accelerator.core.rows
        return Span("W", where.start + part.first * rows, where.start + (part.first + part.tiles) * rows)

    def cut(self, fields: dict[str, int]) -> Sequence[Portion]:
        """Passes in the portions of a weight that streams; else all at once."""
        if not self.plan.streamed:
            return [Portion(0, self.plan.passes, fields)]
        rows, side = self.build.accelerator.core.rows, self.plan.side
        return portions(fields, max(self.build.w.size // 4 // rows // side, 1) * side, side)

    def multiply(self, source: Span | Sequence[Span] | Callable[[Portion], Sequence[Span]], fields: dict[str, int],
                 where: Span | None, columns: int, result: Span, row: int, first: int, *, cut: Sequence[Portion] = (),
                 before: Callable[[Portion, int], None] | None = None, diagonal: bool = False) -> None:
        """``columns`` columns, ``first`` on, with rows of X, drained to ``result``, ``row`` words a row.

        Parameters
        ----------
        source : Span, sequence of Span or function
            Where in X the rows of all passes lie, or those of a portion's.
        where : Span or None
            Where the columns are in W; None if the one that there is comes in portions.
        cut : sequence of Portion
            An instruction for each, of one column tile; :meth:`cut` if there are none.
        before : function
            Is called before each portion of each column tile that a column has, with the number of that: what of its
            rows and weights is missing is brought.
        diagonal : bool
            Of the outer loop of rows all go to the same words, where row n leaves lane n.
        """
        schedule, tiles, rows = self.build.schedule, self.plan.passes, self.build.accelerator.core.rows
        steps, wide = {"scale": int("scale" in self.kept), "bias": int("bias" in self.kept)}, self.weights.wide
        cut = cut or self.cut(fields)
        each = 1 if len(cut) > 1 else wide.tiles           # column tiles of an instruction, of a column
        for half in range(0, wide.tiles, each):
            for number, part in enumerate(cut):
                if before is not None:
                    before(part, half)
                if where is None:
                    span = self.build.w.take(each * part.tiles * rows)
                    self.bring(span, first, 1, part.first, part.tiles, half if each < wide.tiles else None)
                else:
                    begin = where.start + (half * tiles + part.first) * rows
                    span = Span("W", begin, begin + ((columns * each - 1) * tiles + part.tiles) * rows)
                schedule.emit(Opcode.WEIGHTS, {"base": span.start, "tiles": (span.stop - span.start) // rows,
                                               "repeats": 1}, [span])
                schedule.emit(Opcode.MULTIPLY, {
                    "first": int(number == 0), "last": int(number == len(cut) - 1), **steps,
                    "relu": int(self.steps.relu), "tiles": tiles, "columns": columns * each, **part.fields,
                    **({"sparse": 1} if self.plan.spread > 1 else {})},
                    [source] if isinstance(source, Span) else source(part) if callable(source) else source)
            if half == 0:                                  # else weights of the second half would wait for it in vain
                self._drain(steps, fields, columns, result, row, first, {"diagonal": 1, "row1": 0} if diagonal else {})

    def _drain(self, steps, fields, columns, result, row, first, more):
        drain = {**steps, "columns": columns * self.weights.wide.tiles, "rows0": fields["rows0"],
                 "rows1": fields["rows1"], "base": result.start, "row0": row, "row1": row * fields["rows0"],
                 "column": 1, **self.weights.wide.drain, **more}
        reads = []
        for name in ("scale", "bias"):
            if name in self.kept:
                base = self.kept[f"{name}_base"] + first
                drain[f"{name}_base"] = base
                reads.append(Span("V", base, base + columns))
        self.build.schedule.emit(Opcode.DRAIN, drain, reads, [result])
