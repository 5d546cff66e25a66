"""Networks between pods and banks, as data: their sizes, their columns of switches, the settings of a round.

A port has a number, its *label* of log2 N bits. A column of 2 x 2 switches works on one bit of the label: each of its N
outputs takes what comes in at its own label, or at the label that differs from its own in that bit.
"""

from dataclasses import dataclass, fields

from hbfp.checks import check_range

PORTS_RANGE, WIDTH_RANGE, COPIES = (2, 1024), (1, 4096), (1, 2, 4, 8, 16)


@dataclass(frozen=True, kw_only=True)
class NetworkUnit:
    """Sizes of a network.

    Parameters
    ----------
    ports : int
        Inputs, and outputs: a power of two, 2 to 1024.
    width : int
        Bits of a payload, 1 to 4096.

    Raises
    ------
    ValueError
        If a value is not valid.
    """
    ports: int = 64
    width: int = 32

    def __post_init__(self):
        check_range("Ports", self.ports, *PORTS_RANGE)
        if self.ports & (self.ports - 1):
            raise ValueError(f"Ports must be a power of two, not {self.ports}")
        check_range("Width", self.width, *WIDTH_RANGE, " bits")

    @property
    def parameters(self) -> dict[str, int]:
        """Name and value of each."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def label_bits(self) -> int:
        """Bits of a port's label."""
        return self.ports.bit_length() - 1

    @property
    def columns(self) -> tuple[int, ...]:
        """Of each column of switches, first to last, the bit of the label that it works on."""
        return ()

    @property
    def settings(self) -> dict[str, tuple[int, int]]:
        """Fields of a round's settings from bit 0 upwards: name -> bits of an element, elements.

        ``enable`` has a bit for each output; one that is 0 has the output give zeros. Of a ``switch`` a bit is the bit
        of the label at which the output's payload comes in.
        """
        raise NotImplementedError


class CrossbarUnit(NetworkUnit):
    """Sizes of a crossbar."""

    @property
    def settings(self) -> dict[str, tuple[int, int]]:
        """``enable``; ``source``: the input of each output."""
        return {"enable": (1, self.ports), "source": (self.label_bits, self.ports)}


class BenesUnit(NetworkUnit):
    """Sizes of a Benes network behind a copy network.

    The first log2 N columns pack the sources, in their order, onto the first labels. As many more copy each onto a run
    of labels, as many as it has targets. The Benes network proper brings every copy to its target.
    """

    @property
    def columns(self) -> tuple[int, ...]:
        """The packing, the copying, and both halves of the Benes network."""
        up, down = tuple(range(self.label_bits)), tuple(range(self.label_bits))[::-1]
        return (*up, *down, *up, *down[1:])

    @property
    def settings(self) -> dict[str, tuple[int, int]]:
        """``enable``; ``switch``: of each column the bit of each output."""
        return {"enable": (1, self.ports), "switch": (1, len(self.columns) * self.ports)}


@dataclass(frozen=True, kw_only=True)
class ButterflyUnit(NetworkUnit):
    """Sizes of a butterfly-k.

    Parameters
    ----------
    copies : int
        Banyans side by side, k: 1, 2, 4, 8 or 16. Every source is in all of them, every target takes from one.
    """
    copies: int = 2

    def __post_init__(self):
        super().__post_init__()
        if self.copies not in COPIES:
            raise ValueError(f"Copies must be one of {', '.join(map(str, COPIES))}, not {self.copies}")

    @property
    def copy_bits(self) -> int:
        """Bits of a copy's number."""
        return self.copies.bit_length() - 1

    @property
    def columns(self) -> tuple[int, ...]:
        """Those of each copy: from the highest bit to the lowest."""
        return tuple(range(self.label_bits))[::-1]

    @property
    def settings(self) -> dict[str, tuple[int, int]]:
        """``enable``; ``copy``: that of each output, if there is a choice; ``switch``, by copy, column and output."""
        copy = {"copy": (self.copy_bits, self.ports)} if self.copy_bits else {}
        return {"enable": (1, self.ports), **copy, "switch": (1, self.copies * self.label_bits * self.ports)}
