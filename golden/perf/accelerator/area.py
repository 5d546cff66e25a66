"""The area of an accelerator, as ``python -m synth accelerator --json FILE`` has measured it."""

import json
from dataclasses import dataclass, replace
from typing import Any

from hbfp import describe
from hbfp.system import Accelerator
from hbfp.values import read_file, refuse

#: The report's components that make up the core. Their area, over the multiply-accumulates, scales the energy of one.
ARRAY = ("elements", "skew", "weight load", "accumulation", "converter", "control")


@dataclass(frozen=True)
class Area:
    """NAND2-equivalents.

    Attributes
    ----------
    logic, memories : float
        The logic, and the memories as the report prices them.
    array : float
        The core's part of the logic.
    library, recipe : str or None
        What it was measured with.
    """
    logic: float
    memories: float
    array: float
    library: str | None
    recipe: str | None

    @property
    def total(self) -> float:
        """Logic and memories."""
        return self.logic + self.memories


def read_area(path: str, accelerator: Accelerator) -> Area:
    """The area in a report.

    Raises
    ------
    OptionError
        If the file cannot be read, is no report, has no area of the array, or is of another accelerator; multipliers
        may differ, since reports measure recoded ones, which compute the same.
    """
    text = read_file("area", path)
    try:
        data = json.loads(text)
        found = Accelerator.from_dict(data["system"])
        components = {each["name"]: float(each["logic"]) for each in data["components"]}
        area = Area(float(data["logic"]), float(data["memories"]),
                    sum(components.get(name, 0.0) for name in ARRAY), data["library"],
                    data["recipe"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise refuse("area", path, "is not what python -m synth accelerator --json FILE writes") from None
    _check_same(path, found, accelerator)
    if not (area.total > 0 and area.array > 0):
        raise refuse("area", path, "has no area of the array")
    return area


def _check_same(path: str, found: Accelerator, wanted: Accelerator) -> None:
    own, other = (describe.flat(_recoded(each)) for each in (found, wanted))
    if differ := [name for name in own if own[name] != other[name]]:
        raise refuse("area", path, f"is of another accelerator: {_words(found, differ)}, not {_words(wanted, differ)}")


def _recoded(system: Accelerator) -> Accelerator:
    return replace(system, core=replace(system.core, multiplier="recoded"))


def _words(system: Accelerator, names: list[str]) -> str:
    kinds, values = describe.declared(Accelerator), describe.flat(system)
    words: list[Any] = [word for name in names for word in kinds[name][0].words(name, values[name])]
    return " ".join(words) or "none"
