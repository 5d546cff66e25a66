"""Which designs a sweep measures: axes crossed with each other, and plans of several such crosses."""

import itertools
import re
from collections.abc import Mapping

from hbfp import describe
from hbfp.design import Design
from hbfp.options import OPTIONS, design_from_values
from hbfp.values import ContradictionError, choice, refuse, words_of

#: Values of an axis where the user gives no list; the others have what ``python -m gen`` would take.
USUAL = {"mantissa": ("4", "6", "8"), "rows": ("32",)}
#: Axes whose values vary slowest, in this order; the others follow as they are declared.
FIRST = ("mantissa", "rows", "block", "accumulate", "group", "share", "pipeline")
#: Options that no list of a user crosses: sweeps measure the multiplier of least area unless a plan says otherwise,
#: and flags have no list.
APART = ("multiplier", "ragged")
#: Axis -> values without a list of the user's: every option of a design but those of :data:`APART`.
AXES: dict[str, tuple[str, ...]] = {
    name: USUAL.get(name, ()) for name in dict.fromkeys((*FIRST, *OPTIONS)) if name not in APART}

#: Half as many columns, and a converter as wide as they are.
_TALL = {"rows": ("64",), "cols": ("16",), "block": ("1x64",), "convert_lanes": ("16",), "weight_clock": ("gated",)}
#: Plan -> crosses, each with the axes that differ from :data:`AXES`.
PLANS: dict[str, tuple[Mapping[str, tuple[str, ...]], ...]] = {
    "table": ({}, {"mantissa": ("4",), "wide": ("6",)}, {"mantissa": ("8",), "wide": ("12",)},
              {"mantissa": ("4", "8"), "block": ("1x64",), "sparse": ("2x4",)},
              {"block": ("1x64",), "share": ("2",)}, {"block": ("1x128",), "share": ("4",)},
              {"block": ("32x32",), "accumulate": ("aligned",)},
              {"mantissa": ("8",), "accumulate": ("aligned", "fp24", "bf16")}),
    # What the cores of blocks are divided by: every float in every group of a search, with both multipliers.
    "denominators": (
        {"mantissa": ("8",), "arithmetic": ("fp32", "fma", "bf16"), "multiplier": ("recoded", "plain"),
         "group": ("1x1", "1x2", "1x4", "2x4", "4x4", "8x4", "4x8", "8x8")},
    ),
    "clocks": ({},),
    # What makes cores smaller with equal bits: a cross for each step (synth/compare/smaller.py).
    "smaller": ({}, {"weight_clock": ("gated",)},
                _TALL, {**_TALL, "group": ("32x8",)}),
    "study": (
        {"mantissa": ("2", "3", "4", "5", "6", "8", "12"), "rows": ("8", "16", "24", "32", "64", "128")},
        {"block": ("1x8", "1x16", "1x64", "1x128", "16x16", "32x32")},
        {"accumulate": ("aligned",)},
        {"group": ("1x1", "2x1", "4x1", "8x1", "4x4", "8x8", "16x4")},
        {"block": ("1x64",), "share": ("2",)},
        {"block": ("1x128", "1x256"), "accumulate": ("fp32", "aligned"), "share": ("4", "8")},
        {"mantissa": ("4", "8"), "rows": ("8", "16", "64"), "block": ("1x256",), "share": ("4",)},
        *({"rows": (rows,), "block": (f"1x{rows}",)} for rows in ("8", "16", "64", "128")),
    ),
}


def axes_of(lists: Mapping[str, str | None]) -> dict[str, tuple[str, ...]]:
    """Axes from the user's comma-separated lists by name; None keeps the default.

    Raises
    ------
    OptionError
        If a list is empty, or a word is no pair of numbers where one is needed.
    """
    axes = AXES | {name: tuple(words_of(name, text)) for name in AXES if (text := lists.get(name)) is not None}
    for name in ("block", "group", "sparse"):
        for word in axes[name]:
            if not re.fullmatch("[0-9]+x[0-9]+", word):
                raise refuse(name, word, "must be two numbers such as 8x4")
    return axes


def cross(axes: Mapping[str, tuple[str, ...]]) -> tuple[list[Design], int]:
    """The valid designs of a cross product, in order, and how many combinations contradict themselves.

    Raises
    ------
    OptionError
        If a value is not valid by itself.
    """
    designs, left_out, axes = [], 0, {"multiplier": ("recoded",), **axes}
    for values in itertools.product(*(choices or (None,) for choices in axes.values())):
        try:
            designs.append(design_from_values(dict(zip(axes, values, strict=True))))
        except ContradictionError:
            left_out += 1
    return designs, left_out


def designs_of_plan(name: str) -> tuple[list[Design], int]:
    """The designs of a plan, each once, and how many combinations contradict themselves.

    Raises
    ------
    OptionError
        If there is no such plan.
    """
    choice("plan", name, PLANS)
    found: dict[Design, None] = {}
    left_out = 0
    for axes in PLANS[name]:
        designs, none = cross({**AXES, **axes})
        found |= {design: None for design in designs if design not in found}
        left_out += none
    return list(found), left_out


def varies_only(design: Design, name: str | None = None) -> bool:
    """Whether a design is the default one of its width, array and multiplier but for the option ``name``."""
    default = design_from_values({"mantissa": design.format.mantissa, "rows": design.rows,
                                  "multiplier": design.multiplier})
    mine, usual = describe.flat(design), describe.flat(default)
    return all(mine[each] == usual[each] for each in mine if each != name)


def is_plain(design: Design) -> bool:
    """Whether a design is the default one of its width and array."""
    return varies_only(design)


def fills_rows(design: Design) -> bool:
    """Whether a design is the default one but for a block as long as its columns are high."""
    return design.format.block == (1, design.rows) and varies_only(design, "block")
