"""Settings of a network for the routes of a round: what the schedule memory holds, and ``route`` of the hardware takes.

:mod:`golden.spec.networks` has the fields. A route is (source, target, copy); ``copy`` counts only in a butterfly.
"""

from collections.abc import Iterable

from hbfp.golden.spec.networks import BenesUnit, ButterflyUnit, CrossbarUnit, NetworkUnit

from .interconnect import Interconnect

Route = tuple[int, int, int]


class _Switches:
    """Bits that are chosen one by one; what nothing asks for stays 0."""

    def __init__(self) -> None:
        self.chosen: dict[tuple[int, ...], int] = {}

    def choose(self, place: tuple[int, ...], bit: int) -> None:
        if self.chosen.setdefault(place, bit) != bit:
            raise ValueError("ways meet")

    def go(self, label: int, target: int, columns: Iterable[int], *place: int) -> None:
        """Follow a way through columns that each replace one bit of ``label`` by that of ``target``."""
        for number, bit in enumerate(columns):
            came, label = label >> bit & 1, label & ~(1 << bit) | target & 1 << bit
            self.choose((*place, number, label), came)


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
    switches = _Switches()
    fields = {"enable": sum(1 << target for target in by_target)}
    if isinstance(size, ButterflyUnit):
        for target, (source, copy) in by_target.items():
            try:
                switches.go(source, target, size.columns, copy)
            except ValueError:
                raise ValueError(f"Routes must not meet: {source} to {target} in copy {copy} does") from None
        fields["copy"] = sum(copy << target * size.copy_bits for target, (_, copy) in by_target.items())
        fields["switch"] = sum(bit << (copy * size.label_bits + column) * ports + label
                               for (copy, column, label), bit in switches.chosen.items())
    else:
        fields["source"] = sum(source << target * size.label_bits for target, (source, _) in by_target.items())
    word, offset = 0, 0
    for name, (bits, count) in size.settings.items():
        word |= fields[name] << offset
        offset += bits * count
    return word
