"""What the logarithm alone has: its argument about one, and the sum with k ln 2."""

from amaranth import Cat, Const, Mux

from hbfp.golden.spec.tables import LN2, LOG_SPLIT

from ..raw import named, normalise


def log_argument(path):
    """|u| of log, shifted to its leading one where k = 0."""
    live = path.live
    if "log" not in path.need:
        return
    m, fraction = path.m, live["fraction"]
    upper = named(m, fraction[19:] >= LOG_SPLIT, "upper")
    u = named(m, Mux(upper, (1 << 23) - fraction, Cat(Const(0, 1), fraction))[:24], "u")
    k = named(m, (live["exponent"] - 127 + upper).as_signed()[:9].as_signed(), "log_k")
    near = named(m, ~k.any(), "near_one")
    lead = normalise(m, u)
    shifted, count = lead.value, lead.count
    live |= dict(u=named(m, Mux(near, shifted, u), "log_u"), upper=upper, log_k=k, near=near,
                 lead=named(m, Mux(near, count, 0)[:5], "log_lead"), log_zero=named(m, ~u.any(), "log_zero"))


def log_sum(path):
    """k ln 2 + u L, as sign and magnitude."""
    m, live = path.m, path.live
    number, near, k = live["number"], live.pop("near"), live.pop("log_k")
    upper = live.pop("upper")
    signed_number = named(m, Mux(upper, -number, Cat(number, Const(0, 1))).as_signed(), "log_near")
    total = named(m, (k * Const(LN2) + signed_number).as_signed()[:40].as_signed(), "log_total")
    negative = named(m, Mux(near, upper, total[-1]) & ~(near & live["log_zero"]), "log_negative")
    magnitude = named(m, Mux(near, number, Mux(total[-1], -total, total))[:len(number)], "log_magnitude")
    live["number"] = named(m, path.among({"log": magnitude}, number)[:len(number)], "log_number")
    live["log_negative"] = negative
    live["log_zero"] = named(m, near & live["log_zero"], "log_one")
