"""Argument reduction: the power of two of an exponential, and the place in the tables."""

from amaranth import Cat, Const, Mux

from hbfp.functions import EXPONENTIAL, LOGISTIC, NORMAL
from hbfp.golden.spec.tables import EXPONENT_BITS, LOG2E, USES

from ..constant import multiply_constant
from ..raw import named
from .tables import row_counts, row_of


def reduce_exponent(path):
    """k and f of 2^(k + f) = e^x, e^-|x|, e^-2|x| or e^(-x^2 / 2)."""
    m, live = path.m, path.live
    if not path.need & EXPONENTIAL:
        return
    argument, drop = Cat(live["fraction"], Const(1, 1)), 23
    if path.need & NORMAL:
        square = path.times(argument, argument, "square_times", 12)
        live["argument"] = named(m, Mux(path.any(NORMAL), square, argument << 11), "argument")
        drop += 11
        path.cut("square")
        argument = live["argument"]
    product = multiply_constant(m, argument, LOG2E, "log2e_product")
    live["product"] = named(m, product[drop:], "log2e_scaled")
    path.cut("product")
    exponent = live["exponent"]
    distance = path.among({("exp", "sigmoid", "silu"): 133 - exponent, "tanh": 132 - exponent,
                           tuple(NORMAL): 261 - (exponent << 1)})
    distance = named(m, distance.as_signed()[:9], "reduce_distance")     # negative for special values only
    y = live.pop("product")
    y = named(m, Mux(distance[6:].any(), 0, y >> distance[:6])[:len(y)], "magnitude_log2e")
    negative = path.among({"exp": live["sign"]}, Const(1, 1))
    y = named(m, Mux(negative, -y, Cat(y, Const(0, 1))).as_signed(), "y")
    live["f"], live["k"] = named(m, y[:EXPONENT_BITS], "f"), named(m, (y >> EXPONENT_BITS).as_signed(), "k")
    live.pop("argument", None)


def table_address(path):
    """Row and word of the table MAIN."""
    m, live = path.m, path.live
    exponent, fraction = live["exponent"], live["fraction"]
    significand = Cat(fraction, Const(1, 1))
    half, fine, coarse = fraction[22], Cat(Const(0, 2), fraction[:22]), Cat(Const(0, 1), fraction)
    word, live["below"], live["binade"] = coarse, Const(0, 1), Const(0, 3)
    if path.need & (LOGISTIC | NORMAL):
        below = live["below"] = named(m, exponent < 127, "below")
        distance = named(m, (126 - exponent)[:8], "word_distance")
        shrunk = named(m, Mux(distance[5:7].any(), 0, significand >> distance[:5])[:24], "shrunk")
        word = Mux(below, shrunk, coarse)
        row = (exponent + path.any({"tanh"}) - 126)[:3]
        live["binade"] = named(m, Mux(below, 0, row)[:3], "binade")
        if path.need & {"sigmoid", "silu"}:
            over = named(m, path.any(LOGISTIC) & ~below & (exponent >= 132), "over")
            word = word | over.replicate(24)
            live["binade"] = named(m, Mux(over, 5, live["binade"])[:3], "binade_limited")
    binade = live["binade"]
    far = named(m, binade >= 2, "far")
    word = path.among({("recip", "rsqrt"): fine, tuple(NORMAL): Mux(far, fine, word), "log": coarse}, word)
    live["word"] = named(m, word[:24], "word")
    odd = ~exponent[0]
    rows = {"recip": half, "rsqrt": Cat(half, odd), "log": Const(0, 1),
            "tanh": Mux(live["below"], row_of(path, "tanh"), row_of(path, "logistic") + binade),
            tuple(NORMAL): Mux(far, Cat(half, binade - 1)[:4], binade)}
    rows = {group: value if group == "tanh" else row_of(path, USES[group if isinstance(group, str) else group[0]][0])
            + value for group, value in rows.items()}
    row = path.among(rows, row_of(path, "logistic") + binade if path.need & {"sigmoid", "silu"} else None)
    live["row"] = named(m, row[:max((sum(row_counts(path).values()) - 1).bit_length(), 1)], "row")
