"""One mapped core in several corners of its process, and with wires."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hbfp.design import Design
from hbfp.values import refuse

from ..measure import timing
from ..tools.library import Library, functions
from .clocks import TIMED

#: What the corner of the library that maps is called.
TYPICAL = "typical"


@dataclass(frozen=True)
class Period:
    """A core's clock period in one corner.

    Attributes
    ----------
    corner : str
        Its name.
    library : Library
        Whose delays count.
    wire : float
        fF of wire for each sink of a net, without resistance.
    kind : str
        What sets it: :data:`~synth.measure.timing.WHOLE` of a core that is timed from port to port, else a unit.
    path : Path
        The longest path.
    """
    corner: str
    library: Library
    wire: float
    kind: str
    path: timing.Path

    @property
    def mhz(self) -> float:
        """Its frequency in MHz."""
        return 1000 / self.path.period


def check(library: Library, corners: Mapping[str, Library]) -> None:
    """Raise OptionError if one of the corners' libraries lacks a cell that the other library maps to."""
    needed = functions(library.path)
    for name, other in corners.items():
        there = set(functions(other.path))
        lacking = [cell for cell in needed if cell not in there]
        if lacking:
            raise refuse("corners", f"{name}={other.path}", f"has no cell {lacking[0]}, which {library.path.name} has")


def kinds(design: Design) -> tuple[str, ...]:
    """The kinds of unit that set a core's clock, as in :mod:`synth.compare.clocks`: all of a core of blocks with
    registers, the units of any other.
    """
    return (timing.WHOLE,) if design.blocked and design.pipeline else TIMED


def periods(design: Design, recipe: str, library: Library, corners: Mapping[str, Library], wire: float,
            access: float | None = None, progress: Callable[[str], object] = str) -> list[Period]:
    """The periods of a core, mapped once, in each corner without wires and with them.

    Parameters
    ----------
    design : Design
    recipe : str
    library : Library
        What the core is mapped to; the corner :data:`TYPICAL`.
    corners : dict
        Name -> library with the same cells.
    wire : float
        fF of wire for each sink; 0: nothing but periods without wires.
    access : float, optional
        Time in ns that reading a memory takes, the same in all corners.
    progress : callable, optional
        Called with the name of each corner before it is timed.

    Returns
    -------
    list of Period

    Raises
    ------
    SynthError
        If a tool fails.
    """
    found = []
    for name, timed in ({TYPICAL: library} | dict(corners)).items():
        progress(name)
        for each in dict.fromkeys((0.0, wire)):
            paths = timing.paths(design, recipe, library, access=access, kinds=kinds(design), timed=timed, wire=each)
            kind, path = max(paths.items(), key=lambda item: item[1].period)
            found.append(Period(name, timed, each, kind, path))
    return found
