"""Designs emitted once for many tests, and their Verilog taken apart."""

import re
from functools import cache

from gen.emit import Emitter, verilog
from gen.manifest import manifest
from gen.units import make_unit
from hbfp.options import design_from_values

#: Small designs that between them have every kind of part: name -> option values. Every third one, which together have
#: most kinds of part and of number, is tested by default.
DESIGNS = {
    "tiny": {"rows": 4, "block": (1, 4), "depth": 32},
    "one": {"rows": 1, "block": (1, 1), "depth": 1},
    "segments": {"rows": 8, "cols": 2, "block": (1, 2), "mantissa": 4},
    "ragged": {"rows": 3, "cols": 5, "block": (8, 8), "ragged": True},
    "idle": {"rows": 5, "cols": 2, "block": (1, 2), "ragged": True, "group": (1, 1)},
    "long": {"rows": 4, "cols": 6, "block": (16, 16), "accumulate": "aligned"},
    "aligned": {"rows": 6, "cols": 3, "block": (1, 3), "accumulate": "aligned", "mantissa": 2, "exponent": 5},
    "stochastic": {"rows": 4, "block": (1, 8), "rounding": "stochastic", "mantissa": 16, "exponent": 16},
    "share": {"rows": 4, "cols": 8, "block": (1, 16), "share": 4, "group": (2, 2)},
    "wide-share": {"rows": 2, "cols": 4, "block": (8, 8), "mantissa": 3, "wide": 5, "share": 2,
                   "rounding": "stochastic"},
    "truncate": {"rows": 4, "cols": 2, "block": (1, 4), "rounding": "truncate", "mantissa": 2},
    "recoded": {"rows": 4, "cols": 4, "block": (1, 2), "mantissa": 5, "group": (1, 2), "multiplier": "recoded",
                "weight_clock": "gated"},
    "registers": {"rows": 2, "cols": 3, "block": (1, 2), "side_lanes": 1, "pipeline": 7, "banks": 1, "weight_tiles": 1,
                  "multiplier": "recoded"},
    "wide": {"rows": 4, "cols": 4, "block": (1, 2), "mantissa": 4, "wide": 6, "group": (2, 2)},
    "turns": {"rows": 2, "cols": 3, "block": (1, 2), "side_lanes": 1},
    "fp32": {"rows": 4, "cols": 2, "arithmetic": "fp32"},
    "fma": {"rows": 4, "cols": 2, "arithmetic": "fma", "pipeline": 3},
    "bf16": {"rows": 2, "cols": 4, "arithmetic": "bf16"},
    "int": {"rows": 4, "cols": 2, "arithmetic": "int", "mantissa": 4},
}


class Emitted:
    """One emission: ``design``, ``text`` of the Verilog and ``manifest``, plain data."""

    def __init__(self, values, unit="core"):
        self.design = design_from_values(values)
        emitter = Emitter()
        top = emitter.convert(make_unit(unit, self.design))
        self.text = verilog(emitter)
        self.manifest = manifest(emitter, top, self.text, self.design).as_dict()


@cache
def emitted(name, unit="core"):
    """A design of :data:`DESIGNS`, emitted once."""
    return Emitted(DESIGNS[name], unit)


def modules(text):
    """Module name -> its text."""
    return {m[1]: m[0] for m in re.finditer(r"^module (\S+?)\(.*?^endmodule", text, re.MULTILINE | re.DOTALL)}


def ports(module):
    """Port -> (direction, width) from a module's text, in the order of its header."""
    names = re.match(r"module \S+?\(([^)]*)\);", module)[1].split(",")
    declared = {m[3]: (m[1][:-3] if m[1] == "input" else m[1][:-3], int(m[2] or 0) + 1) for m in re.finditer(
        r"^  (input|output) (?:reg )?(?:\[(\d+):0\] )?(\w+)(?: = .*)?;", module, re.MULTILINE)}
    return {name.strip().lstrip("\\"): declared[name.strip()] for name in names}
