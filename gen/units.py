# amaranth: UnusedElaboratable=no
"""Parts that can be emitted alone, by name: those of a core, and the FP32 and vector units."""

from golden.spec.config import ConflictError
from golden.spec.values import OptionError, flag, refuse, shown
from rtl.accumulator import Lanes, sum_exponent_width
from rtl.align import AlignAdd
from rtl.array import Array, GroupRow
from rtl.core import Core
from rtl.dot_product import DotProduct
from rtl.drain import Drain
from rtl.encode import Encode
from rtl.encode_lane import EncodeLane
from rtl.fold import Fold
from rtl.fold_control import FoldControl
from rtl.fp32.units import UNITS as FP32_UNITS
from rtl.lfsr import Xorshift32
from rtl.partial import Partial
from rtl.pe import Group
from rtl.sequencer import Sequencer
from rtl.side import SideLane
from rtl.vector import UNITS as VECTOR_UNITS
from rtl.vector_hbfp import VectorHBFP
from rtl.weights import WeightBuffer


def _align(design):
    fmt = design.format
    return AlignAdd(fmt.sum_width(fmt.terms), design.accumulator_width, design.guard, sum_exponent_width(design))


def _vector(design):
    try:
        return VectorHBFP(design)
    except ValueError as error:
        raise OptionError(f"--unit vector.hbfp: {error}") from None


def _shared(make):
    def maker(design):
        if design.share == 1:
            raise ConflictError("share", design.share, "must be 2 or more: only columns that share have this unit")
        return make(design)
    return maker


#: Name -> (constructor from a design, whether only designs with shared exponents have it).
UNITS = {
    "core": (Core, False),
    "group": (lambda design: Group(design, design.height - design.group[0]), False),
    "row": (lambda design: GroupRow(design, design.height - design.group[0]), False),
    "array": (Array, False),
    "lanes": (Lanes, False),
    "partial": (_shared(Partial), True),
    "fold": (_shared(Fold), True),
    "fold_control": (_shared(FoldControl), True),
    "weights": (WeightBuffer, False),
    "sequencer": (lambda design: Sequencer(design, Core.interval(design)), False),
    "drain": (Drain, False),
    "side": (lambda design: SideLane(), False),
    "align": (_align, True),
    "encode": (Encode, True),
    "encode_lane": (EncodeLane, True),
    "dot_product": (DotProduct, False),
    "dot_product.both": (lambda design: DotProduct(design, both=True), False),
    "vector.hbfp": (_vector, True),
    "xorshift32": (lambda design: Xorshift32(0), True),
}


#: Name -> constructor from keywords; these belong to no design.
PARTS = FP32_UNITS | VECTOR_UNITS


#: FP32 units with a choice of multiplier.
MULTIPLYING = ("fp32.mul", "fp32.fma", "fp32.mul_add")


def make_part(name, options):
    """The FP32 or vector unit of that name, from the options that the user gave.

    Raises
    ------
    OptionError
        If it has no such option, or not that value.
    """
    known = ("pipeline", "subnormals", *(("multiplier",) if name in MULTIPLYING else ()))
    if name in VECTOR_UNITS:    # always flush
        known = ("pipeline", "lanes", "beats", "registers")
        options = {option: value for option, value in options.items() if (option, value) != ("subnormals", "flush")}
    for option, value in options.items():
        if option not in known:
            given = flag(option) + ("" if value is True else f" {shown(value)}")
            raise OptionError(f"{given}: must not be given, {name} has none")
    try:
        return PARTS[name](**options)
    except ValueError as error:
        blame = [f"--{option} {shown(value)}" for option, value in options.items()] if len(options) == 1 else []
        raise OptionError(f"{blame[0] if blame else f'--unit {name}'}: {error}") from None


def make_unit(name, design):
    """The component of that name.

    Raises
    ------
    OptionError
        If there is none, or the design has none.
    """
    if name not in UNITS:
        raise refuse("unit", name, f"must be one of {', '.join((*UNITS, *PARTS))}")
    make, blocked = UNITS[name]
    if blocked and not design.blocked:
        raise OptionError(f"--unit {name}: must be a part of --arithmetic {design.arithmetic}, which has no blocks")
    try:
        return make(design)
    except ConflictError as error:
        raise OptionError(f"--{error.name} {error.value}: {error.rule}") from None
