"""Numbers on one FPGA: the largest core of each that fits a share of the device, and what binds it.

Cells of small cores give a cost of an element, a row and a column; with it the largest core is worked out, and then
counted itself, so that the model only chooses what is counted.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from hbfp.design import Design
from hbfp.options import design_from_values

from ..measure.devices import Use
from ..tools.errors import SynthError

#: Most rows of a core, and columns of a group, of which its widths are multiples.
ROWS, COLUMNS = 64, 4
#: Lanes of a converter; rows are multiples of it.
LANES = 8
#: Columns that a lane of the side unit serves.
SERVED = 8
#: More DSP blocks than any core takes.
UNLIMITED = 1 << 20
#: Kinds of cells that keep a core from being larger.
BINDING = ("luts", "flipflops", "rams")


@dataclass(frozen=True)
class Number:
    """A kind of number: its title, its options, and the step of its rows."""
    title: str
    values: Mapping[str, Any]
    step: int = 1

    def design(self, rows: int, cols: int) -> Design:
        """Its core of a size; blocks are as long as the rows."""
        values = {"rows": rows, "cols": cols, "group": (1, COLUMNS), **self.values}
        if "mantissa" in values and "arithmetic" not in values:
            values |= {"block": (1, rows), "convert_lanes": min(LANES, rows)}
        if values.get("arithmetic") != "int":
            values["side_lanes"] = cols // SERVED if cols % SERVED == 0 else 1
        return design_from_values(values)


def _hbfp(width):
    return Number(f"HBFP{width}", {"mantissa": width, "pipeline": 7, "fabric": "fpga"}, LANES)


def _float(name, title, pipeline):
    return Number(title, {"arithmetic": name, "pipeline": pipeline, "fabric": "fpga"})


#: Name -> kind of number, each with as many registers as the generator has for it.
NUMBERS = {**{f"hbfp{width}": _hbfp(width) for width in (4, 6, 8)},
           "int8": Number("int8", {"arithmetic": "int", "mantissa": 8}),
           "fp16": _float("fp16", "FP16", 6), "bf16": _float("bf16", "BF16", 6), "fp32": _float("fp32", "FP32", 8)}


@dataclass(frozen=True)
class Counted:
    """A core that was counted: its size, what it takes, and its multiplications that are no DSP blocks."""
    rows: int
    cols: int
    use: Use
    soft: int = 0


#: Count a design: (design, DSP blocks that it may take) -> what it takes, and its multiplications that are no blocks.
Count = Callable[[Design, int], tuple[Use, int]]


#: What a core has that costs: itself, and a number of it by rows and columns. Activations wait at the edge of the array
#: in registers, a row longer than the one above it: as many as pairs of rows.
TERMS = {"core": lambda rows, cols: 1, "row": lambda rows, cols: rows, "column": lambda rows, cols: cols,
         "element": lambda rows, cols: rows * cols, "pair of rows": lambda rows, cols: rows * (rows - 1) / 2}


@dataclass(frozen=True)
class Model:
    """Cost of a core by its size.

    Attributes
    ----------
    counted : tuple of Counted
        What it was made from: :func:`sizes` whose multiplications are DSP blocks, and the first with half of these.
    """
    counted: tuple[Counted, ...]

    @cached_property
    def costs(self) -> dict[str, dict[str, float]]:
        """By kind of cell: the cost of a core, of each of :data:`TERMS`, and of a product that is no DSP block."""
        *hard, low = self.counted
        found = {}
        for name in asdict(low.use):
            terms = [term for term in TERMS if term != "pair of rows" or name == "flipflops"]
            places = np.array([[TERMS[term](each.rows, each.cols) for term in terms] for each in hard])
            values = np.array([getattr(each.use, name) for each in hard], float)
            found[name] = dict(zip(terms, map(float, np.linalg.lstsq(places, values, rcond=None)[0]), strict=True))
            found[name]["product"] = (getattr(low.use, name) - getattr(hard[0].use, name)) / low.soft
        return found

    def use(self, rows: int, cols: int, blocks: int) -> Use:
        """What a core of a size would take where there are ``blocks`` DSP blocks."""
        plain = {name: sum(cost[term] * of(rows, cols) for term, of in TERMS.items() if term in cost)
                 for name, cost in self.costs.items()}
        soft = max(0.0, (plain["dsps"] - blocks) / -self.costs["dsps"]["product"])
        return Use(**{name: value + soft * self.costs[name]["product"] for name, value in plain.items()})


@dataclass(frozen=True)
class Largest:
    """The largest core of a number that fits.

    Attributes
    ----------
    name : str
    counted : Counted
        The core itself.
    model : Model
    guess : Use
        What the model says of it.
    device : Use
        What there is.
    """
    name: str
    counted: Counted
    model: Model
    guess: Use
    device: Use

    @property
    def shares(self) -> dict[str, float]:
        """Kind of cell -> share of the device."""
        return shares(self.counted.use, self.device)

    @property
    def elements(self) -> int:
        """Multiply-accumulates a cycle."""
        return self.counted.rows * self.counted.cols

    @property
    def binds(self) -> str:
        """The kind of cell that keeps it from being larger: DSP blocks do not, since products are LUTs where there are
        none left."""
        return max(BINDING, key=lambda kind: self.shares[kind])

    def as_dict(self) -> dict[str, Any]:
        """What JSON holds of it."""
        return {"name": self.name, "title": NUMBERS[self.name].title, "elements": self.elements, "binds": self.binds,
                "shares": self.shares, **asdict(self.counted), "guess": asdict(self.guess),
                "costs": self.model.costs, "small": [asdict(each) for each in self.model.counted]}


def shares(use: Use, device: Use) -> dict[str, float]:
    """Kind of cell -> share of a device."""
    return {kind: value / getattr(device, kind) for kind, value in asdict(use).items()}


def _fits(use, device, share):
    """Whether it takes no more than a share of a device, but for DSP blocks, of which it may take all."""
    found = shares(use, device)
    return all(found[kind] <= share for kind in BINDING) and found["dsps"] <= 1


def _counted(name, rows, cols, count, blocks):
    return Counted(rows, cols, *count(NUMBERS[name].design(rows, cols), blocks))


def sizes(name: str) -> list[tuple[int, int]]:
    """Five sizes of cores that a model is made from."""
    least = max(NUMBERS[name].step, 2)
    return [*product((least, 2 * least), (COLUMNS, 2 * COLUMNS)), (4 * least, COLUMNS)]


def fit(name: str, count: Count) -> Model:
    """The model of a number, from six cores."""
    found = [_counted(name, *size, count, UNLIMITED) for size in sizes(name)]
    # Half of the DSP blocks, so that the products of the array are no blocks; the wide ones of the side unit are.
    return Model((*found, _counted(name, *sizes(name)[0], count, int(found[0].use.dsps) // 2)))


def candidates(name: str, model: Model, device: Use, share: float) -> list[tuple[int, int]]:
    """Sizes that would take no more than a share of a device, the largest first, of equals that of fewest LUTs."""
    step, found = NUMBERS[name].step, []
    for rows in range(step, ROWS + 1, step):
        for cols in range(COLUMNS, 4 * ROWS + 1, COLUMNS):
            use = model.use(rows, cols, int(device.dsps))
            if _fits(use, device, share):
                found.append((-rows * cols, use.luts, rows, cols))
    return [(rows, cols) for _, _, rows, cols in sorted(found)]


def largest(name: str, count: Count, device: Use, share: float) -> Largest:
    """The largest core of a number that takes no more than a share of a device, counted itself.

    Raises
    ------
    SynthError
        If none fits.
    """
    blocks = int(device.dsps)
    model, missed = fit(name, count), dict.fromkeys(BINDING, 1.0)
    for rows, cols in candidates(name, model, device, share):
        guess = model.use(rows, cols, blocks)
        # What the model missed of a core that did not fit, it misses of the next ones, too.
        if any(missed[kind] * getattr(guess, kind) > share * getattr(device, kind) for kind in BINDING):
            continue
        found = _counted(name, rows, cols, count, blocks)
        if _fits(found.use, device, share):
            return Largest(name, found, model, guess, device)
        missed = {kind: max(missed[kind], getattr(found.use, kind) / getattr(guess, kind)) for kind in BINDING}
    raise SynthError(f"{NUMBERS[name].title}: no core fits {share:.0%} of the device")


def compared(rows: Iterable[Mapping[str, Any]], against: str = "fp16") -> list[dict[str, Any]]:
    """Rows with their speed in multiply-accumulates a second, where they were routed, and ratios to one of them.

    Parameters
    ----------
    rows : iterable of dict
        ``name``, ``rows``, ``cols``, ``elements``, ``clock`` in MHz or None, and ``placed``: rows and columns of the
        core that has this clock. That of another core than the largest says nothing of its speed.
    """
    found = [dict(row) for row in rows]
    for row in found:
        routed = row["clock"] and list(row["placed"]) == [row["rows"], row["cols"]]
        row["gmacs"] = row["elements"] * row["clock"] / 1000 if routed else None
    base = next((row for row in found if row["name"] == against), None)
    for row in found:
        row["ratio"] = row["elements"] / base["elements"] if base else None
        row["speed"] = row["gmacs"] / base["gmacs"] if base and base["gmacs"] and row["gmacs"] else None
    return found
