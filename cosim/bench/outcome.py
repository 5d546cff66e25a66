"""The result of one bench: what was compared, what went wrong, which corners were seen."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..simulate.simulation import ProtocolError
from .comparison import Comparison


@dataclass
class Outcome:
    """Result of one bench.

    Attributes
    ----------
    name : str
        Name of the bench.
    comparison : Comparison
        What was compared.
    failures : list of str
        What went wrong apart from bits: a stream that stood still or broke a rule, a test that failed.
    corners : dict
        Corner that the bench asks for -> times seen; empty where it asks for none.
    unreachable : dict
        Corner that the design cannot reach -> why; not asked for.
    cycles : int
        Clock cycles simulated.
    macs : int
        Multiply-accumulates asked for.
    seconds : float
        Wall time on the simulated core, packing and unpacking included.
    notes : dict
        Further figures.
    """
    name: str
    comparison: Comparison
    failures: list[str] = field(default_factory=list)
    corners: dict[str, int] = field(default_factory=dict)
    unreachable: dict[str, str] = field(default_factory=dict)
    cycles: int = 0
    macs: int = 0
    seconds: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        """Corners that were asked for and not seen."""
        return [name for name, count in self.corners.items() if not count]

    @property
    def passed(self) -> bool:
        """Whether something was compared, nothing differed or failed, and no corner is missing."""
        return self.comparison.compared > 0 and not (self.comparison.mismatches or self.failures or self.missing)

    @property
    def problems(self) -> list[str]:
        """Everything that keeps the bench from passing, a line each."""
        lines = [*self.comparison.first, *self.failures]
        if not lines:    # a test that failed has not seen its corners either
            lines = [f"corner not seen: {name}" for name in self.missing]
        if not lines and not self.comparison.compared:
            lines = ["nothing was compared"]
        return lines

    @contextmanager
    def protocol(self) -> Iterator[None]:
        """Within it, a :class:`ProtocolError` becomes a failure of the bench."""
        try:
            yield
        except ProtocolError as error:
            self.failures.append(str(error))

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file."""
        data = {"bench": self.name, "passed": self.passed, "compared": self.comparison.compared,
                "mismatches": self.comparison.mismatches, "first": self.comparison.first, "failures": self.failures}
        if self.corners:
            data["coverage"] = {"seen": {name: count for name, count in self.corners.items() if count},
                                "missing": self.missing, "unreachable": self.unreachable}
        return data | {"cycles": self.cycles, "macs": self.macs, "seconds": round(self.seconds, 4), **self.notes}
