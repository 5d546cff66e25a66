"""FP32 divide and square root, one row of subtractors a digit."""

from amaranth import Cat, Const, Mux

from .operation import Operation
from .raw import named, normalise, pack, round_flush, round_gradual, round_up, shift_right_sticky, unpack


def normal_operand(m, fmt, raw, flush, name):
    """(signed exponent, significand with its top bit set); subnormals move up, zero stays zero."""
    if flush:
        return raw.exponent, raw.significand
    normal = normalise(m, raw.significand, fmt.precision)
    return named(m, (raw.exponent - normal.count).as_signed(), f"{name}_exponent"), normal.value


class Div(Operation):
    """Quotient ``o = a / b``. Golden twin: :func:`golden.fp32.div`.

    Restoring division: each row subtracts the divisor and keeps the difference if it is not
    negative. Cuts lie behind every row.
    """

    @property
    def CUTS(self):  # noqa: N802 - a constant for any one format
        """One cut a row; normalising and rounding count as four rows."""
        rows = self.fmt.precision + 2
        return {**{f"row{k}": (k + 2) / (rows + 4) for k in range(rows)}, "output": 1.0}

    def datapath(self, m, pipe):
        fmt, p = self.fmt, self.fmt.precision
        x, y = (unpack(m, fmt, v, n, self.flush) for v, n in ((self.a, "a"), (self.b, "b")))
        sign = named(m, x.sign ^ y.sign, "quotient_sign")
        nan = named(m, x.nan | y.nan | x.zero & y.zero | x.inf & y.inf, "any_nan")
        inf, zero = named(m, x.inf | y.zero, "any_inf"), named(m, x.zero | y.inf, "any_zero")
        (exponent_x, remainder), (exponent_y, divisor) = (
            normal_operand(m, fmt, raw, self.flush, name) for raw, name in ((x, "a"), (y, "b")))
        exponent = named(m, (exponent_x - exponent_y + fmt.bias).as_signed(), "quotient_exponent")
        digits = []
        for k in range(p + 2):
            remainder = named(m, remainder, f"remainder{k}")
            trial = named(m, remainder - divisor, f"trial{k}")
            digits.insert(0, ~trial[-1])
            # The remainder is below the divisor again, so its doubling has one bit more.
            remainder = Cat(Const(0, 1), Mux(trial[-1], remainder[:p], trial[:p]))
            quotient = named(m, Cat(*digits), f"quotient{k}")
            remainder, divisor, quotient, exponent, sign, nan, inf, zero = pipe.cut(
                f"row{k}", named(m, remainder, f"rest{k}"), divisor, quotient, exponent, sign, nan, inf, zero)
            digits = list(quotient)
        high, sticky = quotient[-1], remainder.any()
        normal = named(m, Mux(high, quotient, Cat(Const(0, 1), quotient)[:p + 2]), "normal")
        exponent = named(m, (exponent - ~high).as_signed(), "result_exponent")
        if self.flush:
            up = round_up(m, normal[2:], normal[1], normal[0] | sticky)
            return pack(fmt, round_flush(m, fmt, sign, exponent, normal[2:], up, zero, inf, nan))
        base = named(m, (exponent - 1).as_signed(), "base")
        under = base[-1]
        stages = (p + 1).bit_length()
        distance = named(m, (-base).as_signed()[:len(base)], "distance")
        far = named(m, distance[stages:].any(), "far")
        amount = distance[:stages] & under.replicate(stages) | (far & under).replicate(stages)
        shifted, lost = shift_right_sticky(m, normal[1:], amount, p + 1)
        shifted = named(m, shifted & ~zero.replicate(p + 1), "aligned")
        up = round_up(m, shifted[1:], shifted[0], (normal[0] | sticky | lost) & ~zero)
        base = named(m, base[:-1] & ~under.replicate(len(base) - 1), "kept")
        return pack(fmt, round_gradual(m, fmt, sign, base, shifted[1:], up, inf, nan))


class Sqrt(Operation):
    """Square root ``o = sqrt(a)``; -0 gives -0. Golden twin: :func:`golden.fp32.sqrt`.

    Restoring, one digit a row; cuts lie behind every row. The result is never subnormal, which
    formats with few exponents do not grant: they are refused.
    """
    OPERANDS = ("a",)

    @property
    def CUTS(self):  # noqa: N802 - a constant for any one format
        """One cut a row; rows grow longer, normalising and rounding count as four."""
        rows = self.fmt.precision + 1
        return {**{f"row{k}": (k + 2) / (rows + 4) for k in range(rows)}, "output": 1.0}

    def __init__(self, **named):
        super().__init__(**named)
        if not self.flush and (1 - self.fmt.bias - self.fmt.fraction) // 2 + self.fmt.bias < 1:
            raise ValueError(f"Square root of {self.fmt!r} could be subnormal")

    def datapath(self, m, pipe):
        fmt, p = self.fmt, self.fmt.precision
        x = unpack(m, fmt, self.a, "a", self.flush)
        nan = named(m, x.nan | x.sign & ~x.zero, "any_nan")
        exponent, significand = normal_operand(m, fmt, x, self.flush, "a")
        sign, inf, zero = x.sign, x.inf, x.zero
        # The bias is odd, so an even field means an odd exponent.
        odd = ~exponent[0]
        exponent = named(m, ((exponent + fmt.bias) >> 1).as_signed(), "root_exponent")
        radicand = named(m, Mux(odd, Cat(Const(0, 1), significand), Cat(significand, Const(0, 1))), "radicand")
        radicand = Cat(Const(0, 1), radicand) if p % 2 == 0 else radicand
        remainder, root = Const(0, 1), None
        for k in range(p + 1):
            # Two digits of the radicand enter, one digit of the root leaves.
            pair, radicand = (radicand[-2:], radicand[:-2]) if len(radicand) >= 2 else (Const(0, 2), radicand)
            remainder = named(m, Cat(pair, remainder), f"remainder{k}")
            subtrahend = Cat(Const(1, 2), root) if root is not None else Const(1, 2)
            trial = named(m, remainder - subtrahend, f"trial{k}")
            root = named(m, Cat(~trial[-1], root) if root is not None else ~trial[-1], f"root{k}")
            remainder = named(m, Mux(trial[-1], remainder, trial)[:k + 2], f"rest{k}")
            radicand = radicand if len(radicand) else None
            remainder, root, radicand, exponent, sign, nan, inf, zero = pipe.cut(
                f"row{k}", remainder, root, radicand, exponent, sign, nan, inf, zero)
            radicand = Const(0, 0) if radicand is None else radicand
        sign = sign & zero
        up = round_up(m, root[1:], root[0], remainder.any())
        return pack(fmt, round_flush(m, fmt, sign, exponent, root[1:], up, zero, inf, nan))
