"""Expected cells of units: an area regression fails like a wrong bit.

``python -m synth.measure.expected`` writes them anew.
"""

from pathlib import Path
from typing import Any

from hbfp import files
from hbfp.options import design_from_values

from .area import measure

FILE = Path(__file__).with_name("expected.json")
#: Name -> (unit of the generator, option values). Small, since every test run synthesises them.
EXPECTED_UNITS: dict[str, tuple[str, dict[str, Any]]] = {
    "element_m8": ("group", {"mantissa": 8, "rows": 2, "group": (1, 1), "multiplier": "recoded"}),
    "element_m4": ("group", {"mantissa": 4, "rows": 2, "group": (1, 1), "multiplier": "recoded"}),
    "group_m4_4x1": ("group", {"mantissa": 4, "rows": 8, "cols": 1, "group": (4, 1), "multiplier": "recoded"}),
    "encode_lane_m8": ("encode_lane", {"mantissa": 8, "rows": 4}),
    "encode_lane_m4": ("encode_lane", {"mantissa": 4, "rows": 4}),
    "align_m8": ("align", {"mantissa": 8, "rows": 8, "accumulate": "aligned"}),
    "sequencer": ("sequencer", {"rows": 4}),
}


def cells(name: str) -> float:
    """Generic cells of one of :data:`EXPECTED_UNITS`."""
    unit, values = EXPECTED_UNITS[name]
    report = measure(design_from_values(values), "generic", unit=unit)
    return report.whole.cells


def main() -> None:
    """Write the baseline anew."""
    data = {"recipe": "generic", "tolerance": 0.02, "cells": {name: cells(name) for name in EXPECTED_UNITS}}
    files.write_json(FILE, data)
    print(FILE.read_text())


if __name__ == "__main__":
    main()
