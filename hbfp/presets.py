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
