"""Bytes of tiles, and what a bank has room for."""

from collections.abc import Iterable

#: Bytes of a partial sum in its bank.
SUM_BYTES = 4


def least_bank(partition: int, rows: int, columns: int, element_bytes: float) -> int:
    """Bytes that a bank must have: two of the largest tile, since one is read while the next one comes."""
    tiles = (partition * rows * element_bytes, rows * columns * element_bytes, partition * columns * SUM_BYTES)
    return int(2 * max(tiles))


def largest_partition(bank: int, rows: int, columns: int, element_bytes: float, most: Iterable[int]) -> int:
    """The largest of some partitions whose tiles fit, or 0."""
    return max((each for each in most if least_bank(each, rows, columns, element_bytes) <= bank), default=0)
