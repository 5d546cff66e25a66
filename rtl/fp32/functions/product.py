"""The factors A and G of a result, and their product."""

from amaranth import Cat, Const, Mux

from hbfp.functions import EXPONENTIAL, LOGISTIC, NORMAL, SCALED
from hbfp.golden.spec.tables import FINAL_BITS, VALUE_BITS

from ..raw import named
from .logarithm import log_sum


def second_factor(path):
    """G, with ``VALUE_BITS`` fraction bits, and whether 2^k still multiplies it."""
    m, live = path.m, path.live
    sign = live["sign"]
    b, e = live.pop("b_value", None), live.pop("e_value", None)
    if not path.need & (LOGISTIC | NORMAL):
        live["g"] = named(m, path.among({"exp": e}, b), "g")
        live["with_k"] = path.any({"exp"})
        return
    live["b"], live["e"] = b, e
    live["tail"] = path.times(b, e, "tail_times", VALUE_BITS)
    # 2^-k of the normal tail also carries the scale of its table row.
    live["k"] = named(m, live["k"] - path.among({tuple(NORMAL): live["binade"] + 1}, Const(0, 1)), "tail_k")
    live.pop("binade")
    path.cut("tail")
    b, e, tail, k, below, sign = (live[name] for name in ("b", "e", "tail", "k", "below", "sign"))
    upper = None
    if path.need & ({"tanh"} | NORMAL):
        distance = named(m, (-k - path.any({"tanh"})).as_signed(), "tail_distance")
        moved = named(m, Mux(distance[5:].any(), 0, tail >> distance[:5])[:VALUE_BITS + 2], "tail_moved")
        upper = named(m, ((1 << VALUE_BITS) - moved)[:VALUE_BITS + 1], "one_minus")
    g = path.among({"exp": e, "tanh": Mux(below, b, upper) if upper is not None else None,
                    ("sigmoid", "silu"): Mux(sign, tail, b),
                    tuple(NORMAL): Mux(sign, tail, upper) if upper is not None else None}, b)
    live["g"] = named(m, g, "g")
    live["with_k"] = named(m, path.any({"exp"}) | path.any({"sigmoid", "silu", *NORMAL}) & sign, "with_k")
    for name in ("b", "e", "tail"):
        live.pop(name)
    path.cut("one_minus")


def multiply(path):
    """A * G, ``FINAL_BITS`` fraction bits, and the exponent of the result."""
    m, live = path.m, path.live
    exponent = live.pop("exponent")
    below = live.pop("below", Const(0, 1))
    fraction = live.pop("fraction")
    live.pop("upper", None) if "log" not in path.need else None
    a = None
    if path.need & SCALED:
        scaled = path.any({"silu", "gelu"}) | path.any({"tanh"}) & below
        a = Mux(scaled, Cat(fraction, Const(1, 1)), 1 << 23)
        a = named(m, path.among({"log": live.get("u")}, a)[:24], "a_operand")
        number = path.times(a, live["g"], "scaled_times", 23 + VALUE_BITS - FINAL_BITS)
        number = path.among({"log": number[1:]}, number)
    else:
        number = Cat(Const(0, FINAL_BITS - VALUE_BITS), live["g"])
    live.pop("g")
    # Two's complement exponents; 127 more than the bias of the pattern.
    odd = ~exponent[0]
    base = path.among({("exp", "log", "sigmoid", "normcdf"): Const(0, 1), "recip": 126 - exponent,
                       "rsqrt": -((exponent - 127 - odd) >> 1) - 1, ("silu", "gelu"): exponent - 127,
                       "tanh": Mux(below, exponent - 127, 0)})
    if path.need & EXPONENTIAL:
        base = base + Mux(live["with_k"], live.pop("k"), 0)
    if "log" in path.need:
        base = base - Mux(path.any({"log"}), live.pop("lead"), 0)
    live.pop("with_k", None)
    live["base"] = named(m, base.as_signed()[:11].as_signed(), "base")
    width = 37 if "log" in path.need else 33
    live["number"] = named(m, (number | Const(0, width))[:width], "number")
    live.pop("u", None)
    path.cut("scale")
    if "log" in path.need:
        log_sum(path)
        path.cut("sum")
