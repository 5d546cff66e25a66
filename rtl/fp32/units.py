"""Arithmetic units by name, for the generator."""

from functools import partial

from hbfp.checks import check_choice

from .arith import Add, Mul, Sub
from .compare import Absolute, Compare, Maximum, Minimum, Negate, Select
from .convert import FromBf16, FromInt32, IntToFp32, ToBf16, ToFp16, ToInt8, ToInt32
from .divsqrt import Div, Sqrt
from .fma import Fma
from .functions.unit import FUNCTION_UNITS
from .multiply_add import MulAdd, ProductAdd

#: Name -> constructor. All take the keywords ``pipeline`` and ``subnormals``; ``from_int`` also
#: ``width`` and ``exponent_width``, ``to_int32`` also ``rounding``, ``add``, ``sub``, ``fma``,
#: ``mul_add``, ``bf16_mul_add`` and ``from_int`` also ``underflow``.
FP32_UNITS = {
    "fp32.add": Add,
    "fp32.sub": Sub,
    "fp32.mul": Mul,
    "fp32.fma": Fma,
    "fp32.div": Div,
    "fp32.sqrt": Sqrt,
    "fp32.min": Minimum,
    "fp32.max": Maximum,
    "fp32.compare": Compare,
    "fp32.select": Select,
    "fp32.abs": Absolute,
    "fp32.neg": Negate,
    "fp32.from_int32": FromInt32,
    "fp32.to_int32": ToInt32,
    "fp32.to_bf16": ToBf16,
    "fp32.to_fp16": ToFp16,
    "fp32.to_int8": ToInt8,
    "fp32.from_bf16": FromBf16,
    "fp32.mul_add": MulAdd,
    "fp32.bf16_mul_add": ProductAdd,
    "fp32.from_int": partial(IntToFp32, width=22),
    **FUNCTION_UNITS,
}


def build(name, **parameters):
    """Unit ``name`` with ``parameters``.

    Raises
    ------
    ValueError
        If the name is unknown or a parameter is out of range.
    """
    check_choice("Unit", name, tuple(FP32_UNITS))
    return FP32_UNITS[name](**parameters)
