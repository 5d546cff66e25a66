"""Published area formulas, with the primitive areas that were published beside them.

Source: the public EPFL hardware model behind "Accuracy Boosters" (arXiv 2211.10737), TSMC 28 nm, 20 ns, um2. Caveats
there: the FP32 multiplier neither normalises nor rounds, the adder truncates, the adder tree has no growth bits.
"""

#: Areas of floating point primitives, um2.
FLOAT = {"fp32": {"multiply": 1009.06, "add": 485.27, "accumulate": 864.84},
         "bf16": {"multiply": 135.84, "add": 173.14, "accumulate": 365.59}}
#: Width -> areas of fixed point primitives, um2: product, adder of twice the width.
FIXED = {8: {"multiply": 122.72, "add": 35.24}, 6: {"multiply": 69.50, "add": 26.00},
         4: {"multiply": 30.86, "add": 16.77}}
#: Width -> areas of converters, um2: fixed point with exponent to BF16; BF16 to a block of 32.
CONVERT = {8: {"to_float": 136.93, "to_block": 1695.8}, 6: {"to_float": 113.48, "to_block": 1490.7},
           4: {"to_float": 91.37, "to_block": 1281.8}}
#: Bits of the adder of two shared exponents.
EXPONENT_BITS = 10


def _adder(bits):
    """Area of an integer adder: a straight line through the published ones."""
    widths = sorted((2 * width, areas["add"]) for width, areas in FIXED.items())
    (low, low_area), (high, high_area) = widths[0], widths[-1]
    return low_area + (bits - low) * (high_area - low_area) / (high - low)


def float_dot(kind, terms):
    """A dot product unit for floats: multipliers, a tree of adders, an accumulator."""
    areas = FLOAT[kind]
    return terms * areas["multiply"] + (terms - 1) * areas["add"] + areas["accumulate"]


def block_dot(width, terms, block=32, accumulate="bf16"):
    """A dot product unit for blocks: integer multipliers and tree, exponent adders, converters, accumulator.

    Both operands pass a converter, one for each ``block`` elements.
    """
    fixed, convert = FIXED[width], CONVERT[width]
    return (terms * fixed["multiply"] + (terms - 1) * fixed["add"] + _adder(EXPONENT_BITS)
            + convert["to_float"] + terms / block * convert["to_block"] + FLOAT[accumulate]["accumulate"])


def element(width, side, accumulate="bf16"):
    """An element of a ``side`` x ``side`` tile: Mul(W) + Add(2W + log2 side + 1) + FAdd/side + Add(10)/side^2."""
    growth = (side - 1).bit_length()
    return (FIXED[width]["multiply"] + _adder(2 * width + growth + 1) + FLOAT[accumulate]["add"] / side
            + _adder(EXPONENT_BITS) / side ** 2)


def float_element(kind):
    """A floating point element: multiply and add."""
    return FLOAT[kind]["multiply"] + FLOAT[kind]["add"]
