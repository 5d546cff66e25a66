# amaranth: UnusedElaboratable=no
"""Components that become one Verilog module each, however often they are used."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

from amaranth import Elaboratable
from amaranth.lib import wiring

from .names import words


class Component(wiring.Component):
    """A component that is emitted once and instantiated by name, and that describes itself.

    Everything that its ports, its logic and its timing depend on is in its parameters, a frozen dataclass, and the
    module's name follows from all of them: modules of one name have one text. A subclass gives :attr:`kind`,
    ``Parameters``, :meth:`ports`, :meth:`body`, and :attr:`latencies` where it has any; the parameters of a part of a
    core have a class method ``of``, which takes them from a design.

    Under a platform with ``place`` (see :mod:`gen.emit`) a cell elaborates to an instance of its module; without one
    to its logic, so that Amaranth's simulator runs it.

    Parameters
    ----------
    *values, **named
        The fields of ``Parameters``.

    Attributes
    ----------
    params : Parameters
    """

    @dataclass(frozen=True)
    class Parameters:
        """What tells one module of this kind from another: nothing."""

        @classmethod
        def of(cls, design: Any) -> Self:
            """The parameters of this component of a design."""
            return cls()

    #: Stem of the module's name.
    kind: str
    #: Row of area reports that the component counts to; None: that of what it is a part of.
    area: str | None = None
    #: Whether area reports measure it by itself: always, never (False), or where its user has many of it (None).
    apart: bool | None = None
    #: How many parts of a kind area reports still measure together with this component, their user.
    inline: int = 4
    #: Whether only designs with shared exponents have it.
    blocked: bool = False
    #: Of a memory: words, bits of a word.
    shape: tuple[int, int] | None = None

    def __init__(self, *values: Any, **named: Any) -> None:
        self.params: Any = self.Parameters(*values, **named)
        super().__init__(self.ports(self.params))

    @classmethod
    def made(cls, params: Any) -> Self:
        """The component of ready-made parameters."""
        return cls(**{item.name: getattr(params, item.name) for item in fields(params)})

    @classmethod
    def of(cls, *source: Any) -> Self:
        """The component that belongs to a design: ``Parameters.of`` says how."""
        return cls.made(cls.Parameters.of(*source))

    @staticmethod
    def ports(params: Any) -> dict[str, wiring.Member]:
        """Members by name, as for :class:`amaranth.lib.wiring.Signature`."""
        raise NotImplementedError

    @property
    def latencies(self) -> dict[str, int]:
        """Cycles by name, for the manifest."""
        return {}

    @cached_property
    def module(self) -> str:
        """Name of the Verilog module."""
        return "_".join(["hbfp", self.kind, *words(self.params)])

    def elaborate(self, platform):
        place = getattr(platform, "place", None)
        instance = place(self) if place else None
        return self.body(platform) if instance is None else instance

    def body(self, platform: Any) -> Elaboratable:
        """The logic: an :class:`amaranth.Module`. It reads ``self.params`` alone."""
        raise NotImplementedError
