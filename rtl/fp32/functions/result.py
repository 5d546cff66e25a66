"""The result: rounded and packed, or one of the special values."""

from amaranth import Cat, Const, Mux

from hbfp.golden.spec.floats import FP32
from hbfp.golden.spec.tables import FINAL_BITS

from ..raw import named, normalise

#: Exponent field from which a function is at its limit: |x| >= 128, or 16.
LARGE = {"exp": 134, "sigmoid": 134, "silu": 134, "tanh": 131, "gelu": 131, "normcdf": 131}
ONE, HALF = 0x3F800000, 0x3F000000


def is_special(path, x):
    """Whether the result is one of :func:`special_code`."""
    limit = path.among({name: x.exponent >= field for name, field in LARGE.items()}, Const(0, 1))
    negative = x.sign & path.any({"log", "rsqrt"})
    return named(path.m, x.top | ~x.nonzero_exponent | limit | negative, "special")


def special_code(path, x, a):
    """Result for NaN, Inf, zero, arguments at the limit and where the function is not defined."""
    m, sign, zero = path.m, x.sign, ~x.nonzero_exponent
    keep = Cat(Const(0, 31), sign)
    inf, one, half, none = (Const(bits, 32) for bits in (FP32.inf, ONE, HALF, 0))
    code = path.among({
        "exp": Mux(zero, one, Mux(sign, none, inf)),
        "log": Mux(zero, inf | 1 << 31, Mux(sign, FP32.nan, inf)),
        "recip": Mux(zero, keep | inf, keep),
        "rsqrt": Mux(zero, keep | inf, Mux(sign, FP32.nan, none)),
        "tanh": Mux(zero, keep, keep | one),
        ("sigmoid", "normcdf"): Mux(zero, half, Mux(sign, none, one)),
        ("silu", "gelu"): Mux(zero | sign, keep, a),
    })
    return named(m, Mux(x.nan, FP32.nan, code)[:32], "special_code")


def pack(path):
    """Normalise, round half up, select special values."""
    m, live = path.m, path.live
    number, base = live["number"], live["base"]
    width = len(number)
    lead = normalise(m, number, stages=4 if "log" in path.need else 3)
    normal, count = lead.value, lead.count
    rounded = named(m, (normal[-24:] + normal[-25])[:25], "rounded")
    biased = named(m, (base + (127 + width - 1 - FINAL_BITS) - count + rounded[24]).as_signed(), "biased")
    zero = biased <= 0
    if "log" in path.need:
        zero = zero | path.any({"log"}) & live["log_zero"]
    over = ~zero & (biased >= 255)
    sign = path.among({tuple({"recip", "tanh", "silu", "gelu"} & path.need): live["sign"],
                       "log": live.get("log_negative")}, Const(0, 1))
    magnitude = Cat(rounded[:23], biased[:8])
    magnitude = Mux(zero, 0, Mux(over, FP32.inf, magnitude))
    result = Mux(live["special"], live["code"], Cat(magnitude[:31], sign))
    return named(m, result[:32], "result")
