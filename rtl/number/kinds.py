"""Kinds of number by the name that a design gives them."""

from .bf16 import Bf16
from .fp32 import Fp32, Fused
from .integer import Integer
from .recoded import Recoded

#: Arithmetic of a design -> floats that its elements compute with.
FLOATS = {"fp32": Fp32, "fma": Fused, "bf16": Bf16}
#: How integer products are formed -> integers, or mantissas, that elements compute with.
INTEGERS = {"plain": Integer, "recoded": Recoded}


def number_of(design):
    """The kind of number that the elements of a design compute with."""
    if design.arithmetic in FLOATS:
        return FLOATS[design.arithmetic].of(design)
    return INTEGERS[design.multiplier](design.format.mantissa)
