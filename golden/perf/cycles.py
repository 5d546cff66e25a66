"""Cycles of matrix products on the core: a formula that the simulated Verilog meets exactly.

It holds while every input is offered as soon as it can be taken and every output is taken at once. R is the rows of
the array, and ``interval``, ``array``, ``accumulate``, ``drain``, ``row``, ``vector``, ``apart``, ``release`` are the
manifest's latencies; f is ``row``, 1 unless the side unit has fewer lanes than there are columns.
Cycle 0 is the first transfer, of the first command and the first row of weights.

Pass n streams m(n) beats of X, one for each row, from cycle x(n); its tile of weights enters from cycle w(n).
Command c, of m rows, ends with pass l, takes v(c) beats of `i_v` and is read out from cycle s(c) on::

    w(n) = max(w(n-1) + R,  x(n-2) + release + 1)               two tiles of weights are buffered
    x(n) = max(x(n-1) + max(m(n-1), interval),  w(n) + R + 1,
               s(c-2) + m(c-2) f + 2  if n is the first pass of c)
    s(c) = max(x(l) + m(c) + array + accumulate,  s(c-1) + (m(c-1) - 1) f + apart) + v(c) vector
    last row on `o` at s(c) + (m(c) - 1) f + drain - 1

With f of 1 and passes of R rows or more, weights and buffers never bind, and a product of commands with P passes of m
rows each takes ``R + 1 + (commands * P + 1) * m + array + accumulate + drain - 1 + v * vector`` cycles, if
P * m >= m + apart - 1 + v * vector: one row of X a cycle, R * C multiply-accumulates a cycle, but for the fill at the
start and the read-out at the end.

With one bank of sums (`--banks 1`), in the first pass of c that closes a block row r is taken at a(r), and the last
one's place takes that of x(n) + m(n) - 1; later passes that close a block wait until the read-out is over::

    a(r) = max(a(r-1) + 1,  s(c-1) + min(r, m(c-1) - 1) f + 2)           a(-1) = x(n) - 1
    x(n) = max(as above,  s(c-1) + m(c-1) f + 2)

With one tile of weights and some words (`--weight-tiles 1`), of ``kr`` rows each, w(n) is the cycle of the last row of
the tile less R - 1. The rows of word i of tile n come one a cycle, the first when there is room: when that word is
released which is the ring's ``size`` before it, x(p) + release + 1 + j ``word`` for word j of pass p.

Where columns share an accumulator, a pass that closes a block may have to wait for the last block: its rows come one
by one, and its block is accumulated, as :mod:`golden.perf.shared_accumulator` says. Its last row takes the place of
x(n) + m(n) - 1.

In a command whose X has wide mantissas, m(n) beats are twice the rows; what is read out are the rows. A product of
which either operand is wide has two columns for each of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hbfp.checks import check_kind, check_range
from hbfp.design import Design

from .shared_accumulator import SharedAccumulator


@dataclass(frozen=True)
class Command:
    """What counts of a command: rows of X, passes, beats of `i_v` (one each for factors and biases), beats of a row.

    ``sparse``: whether its weights are sparse.
    """
    rows: int
    passes: int
    vectors: int = 0
    beats: int = 1
    sparse: bool = False


def product_commands(design: Design, count: int, terms: int, width: int, vectors: int = 0,
                     wide: tuple[bool, bool] = (False, False), sparse: bool = False) -> list[Command]:
    """The commands of a product (M, K) by (K, N), column tile by column tile.

    Parameters
    ----------
    design : hbfp.design.Design
        The core.
    count, terms, width : int
        M, K and N.
    vectors : int
        Beats of `i_v` a command.
    wide : (bool, bool)
        Whether mantissas of X and of W are wide.
    sparse : bool
        Whether weights are sparse: each group of terms along K has only the rows that the design's pattern keeps.

    Returns
    -------
    list of Command
    """
    check_kind("Design", design, Design)
    for name, value in (("M", count), ("K", terms), ("N", width)):
        check_range(name, value, 0, 1 << 40)
    lay, (kept, group) = design.lay(sparse), design.sparse if sparse else (1, 1)
    length, span = -(-terms // group) * kept, lay.block
    if lay.block_tiles > 1:    # every block starts in a new pass
        whole, rest = divmod(length, span)
        passes = whole * -(-span // design.rows) + -(-rest // design.rows)
    else:
        passes = -(-length // lay.tile_rows)
    columns = design.cols // (1 + any(wide))
    parts = [min(design.depth, count - top) for top in range(0, count, design.depth)]
    return [Command(rows, passes, vectors, 1 + wide[0], sparse) for _ in range(-(-width // columns)) for rows in parts]


def timeline(design: Design, latency: dict[str, int], commands: Sequence[Command]) -> tuple[list[int], list[int], int]:
    """Starts of passes and read-outs, and the end, by the formula above.

    Parameters
    ----------
    design : hbfp.design.Design
        The core.
    latency : dict
        The manifest's ``latency``.
    commands : list of Command
        In order; at least one.

    Returns
    -------
    (list of int, list of int, int)
        x(n), s(c), and all cycles: from the first transfer to the last, both included.

    Raises
    ------
    ValueError
        If there is no command.
    """
    if not commands:
        raise ValueError(f"Commands must be at least one, not {list(commands)}")
    interval, drain, row = latency["interval"], latency["drain"], latency["row"]
    vector, apart = latency["vector"], latency["apart"]
    through = latency["array"] + latency["accumulate"]
    starts: list[int] = []
    reads: list[int] = []
    ring = _Ring(design, latency) if design.weight_tiles == 1 else None
    weights, ready = -design.rows, 0
    shared = None
    if design.share > 1:
        shared = SharedAccumulator(design.share, through - design.share - latency["turn"], latency["turn"], row)
    for number, command in enumerate(commands):
        span = design.lay(command.sparse).block_tiles
        for step in range(command.passes):
            if ring:
                weights = ring.tile(starts) - design.rows + 1
            else:
                weights = max(weights + design.rows, starts[-2] + latency["release"] + 1 if len(starts) > 1 else 0)
            start = max(ready, weights + design.rows + 1)
            if step == 0 and number >= 2:
                start = max(start, reads[-2] + commands[number - 2].rows * row + 2)
            taken, final = command.rows * command.beats, step == command.passes - 1
            closes = final or step % span == span - 1
            if design.banks == 1 and number and closes and step >= span:
                start = max(start, reads[-1] + commands[number - 1].rows * row + 2)
            last = start + taken - 1
            if design.banks == 1 and number and closes and step < span:
                start, last = _follow(start, command, reads[-1] + 2, commands[number - 1].rows, row)
            if shared and closes:
                before = (reads[-1], commands[number - 1].rows) if final and number else None
                start, last = shared.block(start, command.rows, before, command.beats)
            starts.append(start)
            ready = last + max(1, interval - taken + 1)
        read = shared.done + 1 if shared else last + 1 + through
        if number:
            read = max(read, reads[-1] + (commands[number - 1].rows - 1) * row + apart)
        reads.append(read + command.vectors * vector)
    return starts, reads, reads[-1] + (commands[-1].rows - 1) * row + drain


def _follow(start: int, command: Command, after: int, rows: int, row: int) -> tuple[int, int]:
    """Cycles in which the first and the last beat of a pass are taken whose rows follow a read-out of ``rows`` rows.

    The first of these is read before cycle ``after``, one in ``row`` cycles.
    """
    first, last = start, start - 1
    for place in range(command.rows):
        last = max(last + 1, after + min(place, rows - 1) * row)
        if place == 0:
            first = last
        last += command.beats - 1
    return first, last


def ring_words(design: Design, latency: dict[str, int]) -> int:
    """Words of weights that each column group of a core with one tile of them holds."""
    return _Ring(design, latency).size


class _Ring:
    """A tile of weights and the fewest words more with which tiles come without a pause while passes do.

    Passes are as long as a tile has rows, or as it takes to read its words, if that is longer.
    """

    def __init__(self, design: Design, latency: dict[str, int]) -> None:
        assert design.group is not None
        self.height, self.words = int(design.group[0]), int(design.group_rows)
        self.release, self.word = latency["release"], latency["word"]
        span = max(design.rows, self.words * self.word, design.group_cols + 2)
        spare = 1
        while spare < self.words and any(    # row r of a tile is taken in cycle span - rows - 1 + r of the pass before
                self.release + 1 + n * self.word > span - design.rows - 1 + (spare + n) * self.height
                for n in range(self.words - spare)):
            spare += 1
        self.size, self.count, self.last = self.words + spare, 0, -1

    def tile(self, starts: Sequence[int]) -> int:
        """Cycle in which the last row of the next tile is taken; ``starts`` has those of the passes before."""
        for _ in range(self.words):
            first, old = self.last + 1, self.count - self.size
            if old >= 0:
                tile, word = divmod(old, self.words)
                first = max(first, starts[tile] + self.release + 1 + word * self.word)
            self.last, self.count = first + self.height - 1, self.count + 1
        return self.last


def product_cycles(design: Design, latency: dict[str, int], count: int, terms: int, width: int,
                   vectors: int = 0, wide: tuple[bool, bool] = (False, False), sparse: bool = False) -> int:
    """Cycles of a product (M, K) by (K, N), from the first transfer to the last; see :func:`timeline`."""
    return timeline(design, latency, product_commands(design, count, terms, width, vectors, wide, sparse))[2]
