"""A program as the words of a machine's memories, which :mod:`golden.spec.pods` names."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hbfp.golden.spec.pods import Network, Place
from hbfp.pods import PodsDesign

from ..perf.pods.interconnect import parse
from ..perf.pods.settings import Route, settings
from .program import Pass, Program, Spot, Tile


class Word(NamedTuple):
    """Word ``address`` of the memory ``place`` of number ``unit``; ``data`` are its bits."""
    place: Place
    unit: int
    address: int
    data: int


def index_bits(count: int) -> int:
    """Bits that a number below ``count`` needs, at least one."""
    return max(1, (count - 1).bit_length())


def joined(fields: Iterable[tuple[int, int]]) -> int:
    """Pack (value, bits) into one number, the first in the lowest bits; negative values in two's complement."""
    word, offset = 0, 0
    for value, bits in fields:
        word |= (int(value) & (1 << bits) - 1) << offset
        offset += bits
    return word


def row_word(design: PodsDesign, mantissa: Sequence[int], exponent: Sequence[int], invalid: Sequence[int]) -> int:
    """A row of a tile of X or W: mantissas, exponents, flags."""
    fmt = design.core.format
    return joined([*((value, fmt.mantissa) for value in mantissa), *((value, fmt.exponent) for value in exponent),
                   *((value, 1) for value in invalid)])


def x_words(design: PodsDesign, tile: Tile) -> list[int]:
    """The rows of a tile of X."""
    return [row_word(design, *row) for row in zip(*tile, strict=True)]


def w_words(design: PodsDesign, tile: Tile) -> list[int]:
    """The rows of a tile of W, each with the exponents of its segment."""
    terms = design.core.format.terms
    return [row_word(design, row, tile.exponent[n // terms], tile.invalid[n // terms])
            for n, row in enumerate(tile.mantissa)]


def value_word(values: np.ndarray) -> int:
    """The bits of FP32 numbers side by side, the first lowest."""
    return int.from_bytes(np.ascontiguousarray(values, np.float32).tobytes(), "little")


def walk_word(spot: Spot | None) -> int:
    """The command to read or write the tile at a spot; without one, to do nothing."""
    return 0 if spot is None else 1 | spot.address << 1


def post_word(design: PodsDesign, one: Pass) -> int:
    """A post-processor's command."""
    return joined([(1, 1), (one.post.address, index_bits(design.bank)), (one.vectors, index_bits(design.bank // 2)),
                   *((step, 1) for step in one.steps), (one.add, 1), (one.keep, 1)])


def words(design: PodsDesign, program: Program) -> Iterator[Word]:
    """All that a host writes before the program runs.

    Raises
    ------
    ProgramError
        If the program is for another machine.
    """
    program.require(design.key)
    for place, tiles, rows in ((Place.X, program.x, x_words), (Place.W, program.w, w_words)):
        for spot, tile in tiles.items():
            for n, data in enumerate(rows(design, tile)):
                yield Word(place, spot.bank, spot.address + n, data)
    for (post, pair), vectors in program.vectors.items():
        for n, values in enumerate(vectors):
            yield Word(Place.VECTORS, post, 2 * pair + n, value_word(values))
    for t in range(program.rounds):
        yield from _round(design, program, t)


def _round(design, program, t):
    """The words of one round; places with nothing to do have one, too."""
    operations, passes = program.operations[t], program.passes[t]
    spots: dict[Place, list[Spot]] = {
        Place.READ_X: [each.x for each in operations], Place.READ_W: [each.w for each in operations],
        Place.READ_SUM: [each.back for each in operations if each.back],
        Place.WRITE_SUM: [each.out for each in operations], Place.READ_POST: [one.source for one in passes],
        Place.WRITE_X: [one.x for one in passes if one.x]}
    for place, every in spots.items():
        by_bank = {spot.bank: spot for spot in every}
        for unit in range(design.pods):
            yield Word(place, unit, t, walk_word(by_bank.get(unit)))
    posts = {one.post.bank: post_word(design, one) for one in passes}
    for unit in range(design.pods):
        yield Word(Place.POST, unit, t, posts.get(unit, 0))
    kind = parse(design.interconnect)
    for net, routes in _routes(operations, passes).items():
        yield Word(Place.ROUTE, net, t, settings(kind, design.pods, routes))


def _routes(operations, passes) -> dict[Network, list[Route]]:
    """Routes of each network: (source, target, copy)."""
    return {
        Network.X: [(each.x.bank, each.pod, each.copies[0]) for each in operations],
        Network.W: [(each.w.bank, each.pod, each.copies[1]) for each in operations],
        Network.SUM_IN: [(each.back.bank, each.pod, each.copies[2]) for each in operations if each.back],
        Network.SUM_OUT: [(each.pod, each.out.bank, each.copies[3]) for each in operations],
        Network.POST: [(one.source.bank, one.post.bank, one.copies[0]) for one in passes],
        Network.RESULT: [(one.post.bank, one.x.bank, one.copies[1]) for one in passes if one.x]}
