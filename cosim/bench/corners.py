"""The corners that a bench asks for, and those that a design cannot reach, each with the reason.

Whether a corner can be reached follows from the design alone and is decided here and nowhere else. What can be
reached is asked for, and :mod:`cosim.bench.directed` has data that reaches it, whatever the seed.
"""

from hbfp.design import Design

_COMMANDS = ("one row", "depth rows", "one pass", "several passes", "refused command", "reset in mid-stream",
             "o stalls while i_x waits", "i_x idles while o is ready")
_RESULTS = ("negative result", "zero result")
_SIDE = ("scale", "bias", "no steps", "ReLU clamps", "ReLU passes")
_SPECIAL = ("NaN result", "infinite result")
_BLOCKS = ("invalid block of X", "invalid block of W", "zero block of X", "cancelled sum", "largest sum",
           "underflow to +0")
_CONVERTER = tuple(f"converter: {name}" for name in (
    "zero block", "Inf", "NaN", "negative zero", "subnormal", "largest exponent", "largest mantissa",
    "saturated by rounding", "far below the maximum", "cut off exactly half", "tie to even, down", "tie to even, up",
    "exponent clamped"))
#: Of a core, or a converter, with mantissas of two widths, and of a core whose commands may be sparse: no other is
#: asked for them.
_WIDE = ("wide X", "wide W", "wide X and W")
_WIDE_BLOCKS = ("converter: wide block", "converter: width changes")
_SPARSE = ("sparse after dense", "dense after sparse")
_INDICES = ("index out of order", "index repeated")
#: Part of a core that has a bench -> its corners.
CORNERS = {
    "core": (*_COMMANDS, *_RESULTS, *_SIDE, *_SPECIAL, *_BLOCKS, *_CONVERTER),
    "encode": (*_CONVERTER, "reset in mid-stream"),
    "encode_lane": _CONVERTER,
    "array": ("largest sum", "lowest sum", "zero sum", "weights change", "swap at random"),
    "align": ("accumulator moves", "sum moves", "equal exponents", "moved out", "exactly half", "fresh",
              "fresh forgets NaN", "NaN stays", "NaN enters", "largest distance"),
}
#: Shared exponents of so many bits, or more, hold what any FP32 number needs.
_EVERY_EXPONENT = 9
#: Shared exponents of so many bits, or fewer, are too high for the smallest FP32 numbers: blocks of those lose bits.
_CLAMPED_UP = 7


def unreachable(design: Design, unit: str = "core") -> dict[str, str]:
    """Corners of a part that a design cannot reach: name -> why.

    Parameters
    ----------
    design : hbfp.design.Design
        The design.
    unit : str
        A key of :data:`CORNERS`.
    """
    reasons: dict[str, str] = {}
    if unit == "core":
        reasons |= _of_products(design)
    if unit in ("core", "encode", "encode_lane"):
        reasons |= {f"converter: {name}": reason for name, reason in _of_conversions(design).items()}
    if unit == "core" and not design.blocked:
        reasons |= dict.fromkeys(_CONVERTER, "the core has no converter")
    if unit == "encode_lane":
        reasons |= dict.fromkeys(("converter: Inf", "converter: NaN"), "a lane does not judge whether a block is valid")
    return reasons


def reachable(design: Design, unit: str = "core") -> list[str]:
    """Names of the corners that a bench of a part must have seen."""
    out, names = unreachable(design, unit), CORNERS[unit]
    if unit == "core" and design.wide:
        names += _WIDE
    if unit in ("core", "encode") and design.wide:
        names += _WIDE_BLOCKS
    if unit == "core" and design.takes_sparse:
        names += (*_SPARSE, *(_INDICES if design.sparse[0] > 1 else ()))
    return [name for name in names if name not in out]


def _of_products(design):
    reasons = {}
    if design.max_tiles == 1:
        reasons["several passes"] = f"accumulators with growth {design.growth} have room for one pass"
    if design.arithmetic == "int":
        reasons |= dict.fromkeys(_SIDE, "an integer core has no side unit")
        reasons |= dict.fromkeys(_SPECIAL, "integers are finite")
    if not design.blocked:
        return reasons | dict.fromkeys(_BLOCKS, "operands have no shared exponents")
    if design.lay().height == 1:
        reasons["cancelled sum"] = "the sum of a segment of one row has one term"
    if not _underflows(design.format):
        reasons["underflow to +0"] = f"products of {design.format.exponent}-bit exponents are larger"
    return reasons


def _underflows(fmt):
    """Whether the smallest product rounds to +0."""
    lowest = max(-126, fmt.exponent_range[0]) - fmt.magnitude
    return 2 * lowest < -126 if fmt.subnormals == "flush" else 2 * lowest <= -150    # half of 2^-149 rounds to even


def _of_conversions(design):
    fmt, reasons = design.format, {}
    # An element that is the largest of its block fills the mantissa, unless the exponent was clamped above it.
    full = fmt.block == (1, 1) and fmt.exponent > _CLAMPED_UP
    alone = "the only element of a block is its maximum"
    if full:
        reasons["far below the maximum"] = alone
    if fmt.rounding == "truncate":
        reasons["saturated by rounding"] = "truncation never rounds up"
    if fmt.rounding != "rne":
        reasons |= dict.fromkeys(("tie to even, down", "tie to even, up"), f"rounding is {fmt.rounding}")
    else:
        if fmt.magnitude == 1:
            reasons["tie to even, up"] = "the only odd mantissa is the largest, which saturates"
        if full and fmt.magnitude == 1:
            reasons["tie to even, down"] = f"{alone}, and of 2 bits that is odd"
        if full and fmt.magnitude == 2:
            reasons["tie to even, up"] = f"{alone}, and of 3 bits that is even or the largest"
    if fmt.exponent >= _EVERY_EXPONENT:
        reasons["exponent clamped"] = f"exponents of {fmt.exponent} bits hold every FP32 exponent"
    return reasons
