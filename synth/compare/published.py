"""Published area formulas, with the primitive areas that were published beside them.

Source: the public EPFL hardware model behind "Accuracy Boosters" (arXiv 2211.10737; its synthesis results are in the
repository jnbrq/hbfp_hardware_model), TSMC 28 nm, 20 ns, um2. Caveats there: the FP32 multiplier neither normalises
nor rounds, the adder truncates, the adder tree has no growth bits.
"""

import numpy as np

#: Areas of floating point primitives, um2.
FLOAT = {"fp32": {"multiply": 1009.06, "add": 485.27, "accumulate": 864.84, "relu": 15.31},
         "bf16": {"multiply": 135.84, "add": 173.14, "accumulate": 365.59, "relu": 7.53}}
#: Width -> areas of fixed point primitives, um2: product, adder of twice the width.
FIXED = {8: {"multiply": 122.72, "add": 35.24}, 6: {"multiply": 69.50, "add": 26.00},
         4: {"multiply": 30.86, "add": 16.77}}
#: Width -> area of the converter from fixed point with exponent to BF16, um2.
TO_FLOAT = {8: 136.93, 6: 113.48, 4: 91.37}
#: Elements of the converters from BF16 to a block that were synthesised; width -> their areas, um2.
TO_BLOCK_SIZES = (2, 4, 6, 32)
TO_BLOCK = {8: (260.37, 360.00, 456.35, 1695.78), 6: (234.98, 325.86, 411.03, 1490.68),
            4: (203.39, 281.39, 354.54, 1281.83)}
#: Area of the adder of two shared exponents of 10 bits, um2.
ADD_EXPONENTS = 21.38


def _adder(bits):
    """Area of an integer adder: a straight line through the published ones."""
    widths = sorted((2 * width, areas["add"]) for width, areas in FIXED.items())
    (low, low_area), (high, high_area) = widths[0], widths[-1]
    return low_area + (bits - low) * (high_area - low_area) / (high - low)


def to_block(width: int, elements: int) -> float:
    """Area of the converter to a block: the authors' straight line through those that they synthesised."""
    return float(np.polyval(np.polyfit(TO_BLOCK_SIZES, TO_BLOCK[width], 1), elements))


def float_dot(kind: str, terms: int) -> float:
    """Area of a dot product unit for floats: multipliers, a tree of adders, an accumulator, a ReLU."""
    areas = FLOAT[kind]
    return terms * areas["multiply"] + (terms - 1) * areas["add"] + areas["accumulate"] + areas["relu"]


def block_dot(width: int, terms: int) -> float:
    """Area of a dot product unit for one block of ``terms``.

    Integer multipliers and tree, exponent adder, a converter to BF16, accumulator, ReLU, and one converter to a
    block: of the two operands one is converted, the other was before it was stored.
    """
    fixed, areas = FIXED[width], FLOAT["bf16"]
    return (terms * fixed["multiply"] + (terms - 1) * fixed["add"] + ADD_EXPONENTS + TO_FLOAT[width]
            + areas["accumulate"] + areas["relu"] + to_block(width, terms))


def block_element(width: int, side: int, accumulate: str = "bf16") -> float:
    """An element of a ``side`` x ``side`` tile: Mul(W) + Add(2W + log2 side + 1) + FAdd/side + Add(10)/side^2."""
    growth = (side - 1).bit_length()
    return (FIXED[width]["multiply"] + _adder(2 * width + growth + 1) + FLOAT[accumulate]["add"] / side
            + ADD_EXPONENTS / side ** 2)


def float_element(kind: str) -> float:
    """A floating point element: multiply and add."""
    return FLOAT[kind]["multiply"] + FLOAT[kind]["add"]


def published_ratios(width: int) -> dict[str, float] | None:
    """Ratios to FP32 that the published formulas give with their own primitives: 16 x 16 tiles, and a dot of 128."""
    if width not in (4, 6, 8):
        return None
    return {"element, BF16 sums": float_element("fp32") / block_element(width, 16),
            "element, FP32 sums": float_element("fp32") / block_element(width, 16, "fp32"),
            "dot product of 128, converters counted": float_dot("fp32", 128) / block_dot(width, 128)}
