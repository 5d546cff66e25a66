"""Parts that can be emitted alone, by name."""

from golden.spec.config import ConflictError
from golden.spec.options import OptionError
from rtl.accumulator import Lanes, sum_exponent_width
from rtl.align import AlignAdd
from rtl.array import Array, GroupRow
from rtl.core import Core
from rtl.drain import Drain
from rtl.encode import Encode, EncodeLane
from rtl.lfsr import Xorshift32
from rtl.pe import Group
from rtl.sequencer import Sequencer
from rtl.side import SideLane
from rtl.weights import WeightBuffer


def _align(design):
    fmt = design.format
    return AlignAdd(fmt.sum_width(fmt.terms), design.accumulator_width, design.guard, sum_exponent_width(design))


#: Name -> (constructor from a design, whether only designs with shared exponents have it).
UNITS = {
    "core": (Core, False),
    "group": (lambda design: Group(design, design.height - design.group[0]), False),
    "row": (lambda design: GroupRow(design, design.height - design.group[0]), False),
    "array": (Array, False),
    "lanes": (Lanes, False),
    "weights": (WeightBuffer, False),
    "sequencer": (lambda design: Sequencer(design, Core.interval(design)), False),
    "drain": (Drain, False),
    "side": (lambda design: SideLane(), False),
    "align": (_align, True),
    "encode": (Encode, True),
    "encode_lane": (EncodeLane, True),
    "xorshift32": (lambda design: Xorshift32(0), True),
}


def make_unit(name, design):
    """The component of that name.

    Raises
    ------
    OptionError
        If there is none, or the design has none.
    """
    if name not in UNITS:
        raise OptionError(f"--unit {name}: must be one of {', '.join(UNITS)}")
    make, blocked = UNITS[name]
    if blocked and not design.blocked:
        raise OptionError(f"--unit {name}: must be a part of --arithmetic {design.arithmetic}, which has no blocks")
    try:
        return make(design)
    except ConflictError as error:
        raise OptionError(f"--{error.name} {error.value}: {error.rule}") from None
