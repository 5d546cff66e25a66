"""From layers to a program: a schedule by the simulator's rules, and a place in a bank for every tile."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hbfp.format import HBFPFormat
from hbfp.pods import PodsDesign
from hbfp.program import ProgramError

from ..perf.pods import chains
from ..perf.pods.graph import Graph
from ..perf.pods.simulate import Scheduled, Tenant, run
from ..perf.pods.state import NONE
from .layers import Layer, gemms
from .machine import WHOLE, machine
from .places import Shelf
from .program import Operation, Pass, Program, Spot, Tile
from .tiles import converted, padded, w_tile, x_tile


@dataclass(frozen=True)
class Compiled:
    """A program, and the simulator's schedule that it was made from."""
    program: Program
    outcome: Scheduled


def compiled(design: PodsDesign, layers: Sequence[Layer], partition: int | None = None, chain: int = WHOLE
             ) -> Compiled:
    """A program for a machine.

    Parameters
    ----------
    design : PodsDesign
        The machine.
    layers : sequence of Layer
        A layer whose results another one reads comes before it.
    partition : int, optional
        Rows of X in a tile; by default as many as the array has.
    chain : int
        Most tiles along K whose sums go on from one to the next. By default all: then results have the bits of
        :func:`golden.matmul.matmul`; otherwise those of :func:`golden.pods.execute.product`.

    Raises
    ------
    ProgramError
        If shapes or formats of the layers do not fit each other or the machine, two layers read the results of one, or
        tiles or rounds do not fit into the memories.
    """
    target = machine(design, chain)
    rows = partition or target.rows
    if rows > design.bank:
        raise ProgramError(f"Bank of {design.bank} rows must hold a tile of {rows} rows")
    outcome = run([Tenant(Graph("job", tuple(gemms(layers))))], target, rows)
    feeds = chains.feeds(outcome.tiles, target)
    for number, layer in enumerate(layers):
        _check(design, layers, feeds, number, layer)
    if len(outcome.plan.length) > design.rounds:
        raise ProgramError(f"Schedule memories of {design.rounds} rounds must hold {len(outcome.plan.length)}")
    return Compiled(_Placement(design, layers, outcome, feeds).program(), outcome)


def _check(design, layers, feeds, number, layer):
    """Refuse what the hardware has no way for."""
    fmt, mine = design.core.format, layer.fmt or design.core.format
    if mine.mantissa > fmt.mantissa:
        raise ProgramError(f"Layer {layer.name} must have mantissas of at most {fmt.mantissa} bits, not "
                           f"{mine.mantissa}")
    if (mine.exponent, mine.rounding, mine.subnormals) != (fmt.exponent, fmt.rounding, fmt.subnormals):
        raise ProgramError(f"Layer {layer.name} must have exponents and rounding as the machine")
    if not isinstance(layer.x, int):
        return
    if feeds[layer.x] != number:
        raise ProgramError(f"Layer {layers[layer.x].name} must be read by one layer alone: its results become tiles of "
                           "X once")
    if mine.mantissa != fmt.mantissa:
        raise ProgramError(f"Layer {layer.name} must have mantissas of {fmt.mantissa} bits, not {mine.mantissa}: its X "
                           "is converted by the machine")


class _Placement:
    """Places of all tiles of a schedule."""

    def __init__(self, design, layers, outcome, feeds):
        self.design, self.layers, self.feeds = design, layers, feeds
        self.tiles, self.plan = outcome.tiles, outcome.plan
        self.pods, self.side, self.terms = design.pods, design.core.rows, design.core.format.terms
        self.rows = int(self.tiles.partition[0])
        self.shelves = {name: Shelf(text, design.bank, rows) for name, text, rows in (
            ("x", "X", self.rows), ("w", "W", self.side), ("sums", "partial sums", self.rows))}
        self.pairs, self.kept, self.homes = defaultdict(dict), Shelf("results", design.bank, self.rows), {}

    def program(self):
        """All of it."""
        x, w = self._operands()
        operations, passes = self._rounds(x, w)
        data = {name: {} for name in "xw"}
        for number, layer in enumerate(self.layers):
            self._data(number, layer, x, w, data)
        vectors = {(post, pair): self._vectors(layer, column) for post, pairs in self.pairs.items()
                   for (layer, column), pair in pairs.items()}
        fmt = self.design.core.format
        narrow = sorted({layer.fmt.mantissa for layer in self.layers if layer.fmt} - {fmt.mantissa})
        notes = tuple(f"Mantissas of {bits} bits run in one pass on an array of {fmt.mantissa}" for bits in narrow)
        return Program(self.design.key, self.rows, int(self.plan.length.max()), operations, passes, data["x"],
                       data["w"], vectors, notes)

    def _operands(self):
        """Spots of all tiles of X and W, which stay."""
        return ([self.shelves[name].take(tile % self.pods) for tile in range(int(count[-1]))]
                for name, count in (("x", self.tiles.first_x), ("w", self.tiles.first_w)))

    def _rounds(self, x, w):
        """Operations and passes by round; a sum's place is free again once it has been read."""
        plan, count = self.plan, len(self.plan.length)
        operations, passes = ([[] for _ in range(count)] for _ in range(2))
        by_round, sums = [[] for _ in range(count)], {}
        for op, t in enumerate(plan.round):
            by_round[t].append(op)
        added = defaultdict(list)
        for number, t in enumerate(plan.add_round):
            added[int(t)].append(number)
        for t in range(count):
            read = []
            for op in by_round[t]:
                back = int(plan.chained[op])
                if back != NONE:
                    read.append(back)
                out = self.shelves["sums"].take(op % self.pods, t)
                tile_x, tile_w = self._tiles_of(op)
                operations[t].append(Operation(int(plan.pod[op]), x[tile_x], w[tile_w], sums.get(back), out,
                                               tuple(int(copy) for copy in plan.copy[op])))
                sums[op] = out
            for number in added[t]:
                read.append(int(plan.add_a[number]))
                passes[t].append(self._pass(number, x, sums, t))
            for op in read:
                self.shelves["sums"].give(sums.pop(op), t)
        return [tuple(each) for each in operations], [tuple(each) for each in passes]

    def _tiles_of(self, op):
        """Tiles of X and W of an operation."""
        tiles, gemm = self.tiles, self._gemm(self.tiles.first_op, op)
        _, _, steps, columns = (int(each) for each in tiles.shape[gemm])
        rest, column = divmod(op - int(tiles.first_op[gemm]), columns)
        return int(tiles.first_x[gemm]) + rest, int(tiles.first_w[gemm]) + rest % steps * columns + column

    @staticmethod
    def _gemm(starts, number):
        return int(np.searchsorted(starts, number, "right")) - 1

    def _pass(self, number, x, sums, t):
        """A pass in round ``t``; the tile's last one takes the steps."""
        plan, row, column = self.plan, int(self.plan.add_row[number]), int(self.plan.add_column[number])
        tile, unit, add = int(plan.add_x[number]), int(plan.add_post[number]), int(plan.add_b[number]) != NONE
        layer = self._gemm(self.tiles.first_row, row)
        of, last = self.layers[layer], self._last(number)
        keep = not last or tile == NONE
        if keep and not add:
            self.homes[row, column] = self.kept.take(unit, t)
        post = self.homes.get((row, column), Spot(unit, 0))
        if not keep and add:
            self.kept.give(post, t)
        return Pass(layer, row - int(self.tiles.first_row[layer]), column, sums[int(plan.add_a[number])], post,
                    add, keep, last, self._pair(unit, layer, column) if last else 0,
                    (of.scale is not None, of.bias is not None, of.relu) if last else (False, False, False),
                    None if tile == NONE else x[tile], (int(plan.add_in[number]), int(plan.add_out[number])))

    def _last(self, number):
        """Whether no other pass of the tile comes after this one: those of a tile follow each other."""
        plan = self.plan
        return number + 1 == len(plan.add_b) or int(plan.add_b[number + 1]) == NONE

    def _pair(self, unit, layer, column):
        """The pair of factors and biases of a column tile in a post-processor."""
        pairs = self.pairs[unit]
        pair = pairs.setdefault((layer, column), len(pairs))
        if 2 * pair + 1 >= self.design.bank:
            raise ProgramError(f"Post-processor must hold at most {self.design.bank // 2} pairs of factors and biases")
        return pair

    def _vectors(self, layer, column):
        """Factors and biases of a column tile; what fills up the last one is zeros."""
        of, side = self.layers[layer], self.side
        found = np.zeros((2, side), np.float32)
        for n, values in enumerate((of.scale, of.bias)):
            if values is not None:
                part = np.asarray(values, np.float32)[column * side:(column + 1) * side]
                found[n, :len(part)] = part
        return found

    def _data(self, number, layer, x, w, data):
        """Tiles that are there from the start."""
        tiles, side, terms = self.tiles, self.side, self.terms
        mine: HBFPFormat = self.design.core.format
        _, row_tiles, steps, columns = (int(each) for each in tiles.shape[number])
        fmt = layer.fmt or mine
        whole: Tile = converted(padded(layer.w, side, side), fmt, mine, 0)
        for step in range(steps):
            for column in range(columns):
                spot: Spot = w[int(tiles.first_w[number]) + step * columns + column]
                data["w"][spot] = w_tile(whole, step, column, side, side, terms)
        if isinstance(layer.x, int):
            return
        whole = converted(padded(layer.x, self.rows, side), fmt, mine, -1)
        for row in range(row_tiles):
            for step in range(steps):
                spot = x[int(tiles.first_x[number]) + row * steps + step]
                data["x"][spot] = x_tile(whole, row, step, self.rows, side, terms)
