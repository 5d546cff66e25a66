"""For every option of a design, a value that is not its default, and what that needs of others."""

from hbfp import describe
from hbfp.design import Design

#: Option -> options of a core of 8 x 8 with blocks of 8 in which it has another value than its default.
OTHER = {
    "mantissa": {"mantissa": 6}, "exponent": {"exponent": 8}, "block": {"block": (1, 4)},
    "rounding": {"rounding": "truncate"}, "noise_bits": {"noise_bits": 5}, "subnormals": {"subnormals": "gradual"},
    "rows": {"rows": 16}, "cols": {"cols": 16}, "accumulate": {"accumulate": "aligned"},
    "arithmetic": {"arithmetic": "fp32"}, "group": {"group": (4, 2)}, "multiplier": {"multiplier": "recoded"},
    "pipeline": {"pipeline": 1}, "depth": {"depth": 64}, "share": {"share": 2, "block": (1, 16)},
    "ragged": {"ragged": True, "block": (1, 12)}, "sparse": {"sparse": (1, 2), "block": (1, 16)}, "guard": {"guard": 5},
    "growth": {"growth": 7}, "wide": {"wide": 12}, "side_lanes": {"side_lanes": 4}, "banks": {"banks": 1},
    "weight_tiles": {"weight_tiles": 1}, "convert_lanes": {"convert_lanes": 4},
    "fabric": {"fabric": "fpga", "pipeline": 1}, "weight_clock": {"weight_clock": "gated"},
}
assert OTHER.keys() == describe.declared(Design).keys()
