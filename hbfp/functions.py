"""The functions of FP32 that a vector unit may have, and the parts of the datapath that has them.

What a part does: ``rtl/fp32/functions/``; why there are these: ``docs/design/03-functions.md``.
"""

from collections.abc import Collection

#: Programs number them in this order.
FUNCTIONS = ("exp", "log", "recip", "rsqrt", "tanh", "sigmoid", "gelu", "silu", "normcdf")

#: Functions that need E = 2^f; those of 1 / (1 + e^-a); those of the normal distribution; those times the argument.
EXPONENTIAL = {"exp", "tanh", "sigmoid", "silu", "gelu", "normcdf"}
LOGISTIC = {"tanh", "sigmoid", "silu"}
NORMAL = {"gelu", "normcdf"}
SCALED = {"tanh", "silu", "gelu", "log"}

#: Parts of the datapath from its argument to the result: combinational delay in units of a 24 x 24 multiplier, and the
#: functions that have the part. A register may stand behind each.
PARTS = (("square", 1.0, NORMAL), ("product", 0.6, EXPONENTIAL), ("reduce", 0.7, EXPONENTIAL),
         ("rom", 0.5, set(FUNCTIONS)), ("cubic", 0.7, set(FUNCTIONS) - {"exp"}), ("quadratic", 0.8, set(FUNCTIONS)),
         ("linear", 1.0, set(FUNCTIONS)), ("tail", 1.0, LOGISTIC | NORMAL), ("one_minus", 0.6, {"tanh"} | NORMAL),
         ("scale", 1.0, SCALED), ("sum", 0.5, {"log"}), ("output", 0.8, set(FUNCTIONS)))


def parts(functions: Collection[str]) -> dict[str, float]:
    """Name -> delay of each part that a datapath for these functions has."""
    return {name: delay for name, delay, users in PARTS if not users.isdisjoint(functions)}
