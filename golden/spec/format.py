"""The number format under the name by which others import it; it lives in :mod:`hbfp.format`."""

from hbfp.format import BLOCK_LIMIT, EXPONENT_RANGE, MANTISSA_RANGE, ROUNDINGS, SUBNORMALS, HBFPFormat

__all__ = ["BLOCK_LIMIT", "EXPONENT_RANGE", "MANTISSA_RANGE", "ROUNDINGS", "SUBNORMALS", "HBFPFormat"]
