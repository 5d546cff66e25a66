"""Named designs, as option values."""

from typing import Any

#: Name -> option values. Each runs the digits network and is checked bit for bit by the regressions.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "tiny": {"rows": 4, "cols": 4, "block": (1, 4), "depth": 32},
    "hbfp4": {"mantissa": 4},
    "hbfp6": {"mantissa": 6},
    "hbfp8": {"mantissa": 8},
    "hbfp8-aligned": {"mantissa": 8, "accumulate": "aligned"},
    "hbfp8-tile24": {"mantissa": 8, "rows": 24, "block": (24, 24)},
}

_LARGE: dict[str, Any] = {"function_lanes": 4, "side_lanes": 16, "depth": 128, "w_words": 1024, "v_words": 2048,
                          "memory_banks": 4}
#: Accelerators, likewise, the default first; docs/decisions/0177-balance.md has their figures.
SYSTEMS: dict[str, dict[str, Any]] = {
    "full": {},
    "large": _LARGE,
    "medium": _LARGE | {"w_words": 512, "v_words": 1024, "p_words": 256, "vector_rows": 4, "row_words": 24,
                        "register_copies": 1, "burst": 8},
    "small": {"vector_lanes": 16, "function_lanes": 2, "side_lanes": 8, "reads": 16, "depth": 64, "x_words": 4096,
              "w_words": 512, "v_words": 1024, "memory_banks": 2, "vector_rows": 4, "row_words": 24,
              "register_copies": 1},
}
