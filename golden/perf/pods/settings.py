"""Settings of a network for the routes of a round: what the schedule memory holds, and ``route`` of the hardware takes.

:mod:`golden.spec.networks` has the fields. A route is (source, target, copy); ``copy`` counts only in a butterfly.
"""

from collections.abc import Iterable

from hbfp.golden.spec.networks import BenesUnit, ButterflyUnit, CrossbarUnit, NetworkUnit

from .interconnect import Interconnect
from .looping import switches

Route = tuple[int, int, int]


class _Columns:
    """Bits of the outputs of columns of switches, chosen one by one; what nothing asks for stays 0."""

    def __init__(self, ports: int) -> None:
        self.ports = ports
        self.chosen: dict[tuple[int, int], int] = {}

    def choose(self, column: int, label: int, bit: int) -> None:
        if self.chosen.setdefault((column, label), bit) != bit:
            raise ValueError("ways meet")

    def go(self, label: int, target: int, bits: Iterable[int], first: int) -> None:
        """Follow a way through columns from ``first`` on, each of which replaces one bit of a label."""
        for column, bit in enumerate(bits, first):
            came, label = label >> bit & 1, label & ~(1 << bit) | target & 1 << bit
            self.choose(column, label, came)

    @property
    def word(self) -> int:
        return sum(bit << column * self.ports + label for (column, label), bit in self.chosen.items())


def _butterfly(size: ButterflyUnit, by_target: dict[int, tuple[int, int]]) -> int:
    """The switches of a butterfly: one way for each route, in its copy."""
    columns = _Columns(size.ports)
    for target, (source, copy) in by_target.items():
        try:
            columns.go(source, target, size.columns, copy * size.label_bits)
        except ValueError:
            raise ValueError(f"Routes must not meet: {source} to {target} in copy {copy} does") from None
    return columns.word


def _benes(size: BenesUnit, by_target: dict[int, tuple[int, int]]) -> int:
    """The switches of a Benes network behind a copy network.

    Sources go to the first labels in their order. Of two of them, the labels differ by no more than the sources do, so
    that their ways do not meet where low bits are set first. Then each goes to a run of labels, in the same order: now
    labels differ by no less than before, so that ways of two do not meet where high bits are set first.
    """
    columns, bits = _Columns(size.ports), size.label_bits
    targets: dict[int, list[int]] = {}
    for target, (source, _) in sorted(by_target.items()):
        targets.setdefault(source, []).append(target)
    copies: list[int] = []    # the target of each label behind the copy network
    for rank, source in enumerate(sorted(targets)):
        columns.go(source, rank, size.columns[:bits], 0)
        for target in targets[source]:
            columns.go(rank, len(copies), size.columns[bits:2 * bits], bits)
            copies.append(target)
    copies += [label for label in range(size.ports) if label not in by_target]
    for column, label, bit in switches(copies):
        columns.choose(2 * bits + column, label, bit)
    return columns.word


def unit(kind: Interconnect, ports: int) -> NetworkUnit:
    """The sizes of a network of that kind."""
    if kind.copies:
        return ButterflyUnit(ports=ports, copies=kind.copies)
    return BenesUnit(ports=ports) if kind.name == "benes" else CrossbarUnit(ports=ports)


def settings(kind: Interconnect, ports: int, routes: Iterable[Route]) -> int:
    """The settings of a round, as one word.

    Parameters
    ----------
    kind : Interconnect
    ports : int
    routes : iterable of (source, target, copy)
        At most one for each target.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If two routes have one target, or ways of a butterfly meet.
    """
    size = unit(kind, ports)
    by_target: dict[int, tuple[int, int]] = {}
    for source, target, copy in routes:
        if target in by_target:
            raise ValueError(f"Output {target} must have one route, not two")
        by_target[target] = source, copy
    fields = {"enable": sum(1 << target for target in by_target)}
    if isinstance(size, ButterflyUnit):
        fields["copy"] = sum(copy << target * size.copy_bits for target, (_, copy) in by_target.items())
        fields["switch"] = _butterfly(size, by_target)
    elif isinstance(size, BenesUnit):
        fields["switch"] = _benes(size, by_target)
    else:
        fields["source"] = sum(source << target * size.label_bits for target, (source, _) in by_target.items())
    word, offset = 0, 0
    for name, (bits, count) in size.settings.items():
        word |= fields[name] << offset
        offset += bits * count
    return word
