"""Programs of the vector unit for whole numbers near others, and for sine and cosine.

A number below 2^23 becomes whole when 2^23 is added to its amount and taken away again, since FP32 has no fractions
there. Sine and cosine take away the nearest multiple of pi, in three pieces of few bits each so that products with it
are exact, and are a polynomial of what is left, with the sign that the multiple says.
"""

import math

from ..spec.vector import ONE, Op, VectorInstruction, constant, register, scalar
from .programs import load, vector

#: From here on every FP32 number is whole.
WHOLE = float(1 << 23)
#: Three pieces of pi, of 8, 11 and 24 bits.
PIECES = (3.140625, 9.67502593994140625e-4, 1.509957990978376432e-7)
#: Coefficients of x^3, x^5, x^7, x^9, x^11 of the sine.
SERIES = (-0.16666667, 0.0083333310, -0.00019840874, 2.7525562e-06, -2.3889859e-08)
_1 = constant(ONE)


def _nearest(x: int, to: int, spare: int, bound: int) -> list[VectorInstruction]:
    """Register ``to`` := the whole number nearest to register ``x``, of two the even one; scalar ``bound`` is 2^23."""
    own, low, high = register(x), register(spare), register(to)
    return [vector(own, own, op=Op.MAX, negate_a=True, to=to),                              # its amount
            vector(high, negate_a=True, c=scalar(bound), to=spare),
            vector(low, high, op=Op.GATE, to=spare),                                        # 0 where that is whole
            vector(high, c=low, negate_c=True, to=to),                                      # what is whole, else 0
            vector(low, c=scalar(bound), to=spare),
            vector(low, c=scalar(bound), negate_c=True, to=spare),
            vector(low, c=high, to=to), *_with_sign(x, to, spare)]


def _with_sign(x, to, spare):
    """Register ``to`` with its sign turned where register ``x`` is below 0."""
    low = register(spare)
    return [vector(register(x), _1, op=Op.GATE, negate_a=True, to=spare), vector(low, c=low, to=spare),
            vector(low, negate_a=True, c=_1, to=spare), vector(register(to), low, to=to)]


def rounded() -> list[VectorInstruction]:
    """The whole number nearest to i0, of two the even one."""
    return [load(0, WHOLE), vector(to=0), *_nearest(0, 1, 2, 0), vector(register(1), to="out")]


def floor() -> list[VectorInstruction]:
    """The largest whole number that is not above i0."""
    return [load(0, WHOLE), vector(to=0), *_nearest(0, 1, 2, 0),
            vector(register(1), c=register(0), negate_c=True, to=0),
            vector(register(0), _1, op=Op.GATE, to=0),
            vector(register(1), c=register(0), negate_c=True, to="out")]


def ceil() -> list[VectorInstruction]:
    """The smallest whole number that is not below i0."""
    return [load(0, WHOLE), vector(to=0), *_nearest(0, 1, 2, 0),
            vector(register(0), c=register(1), negate_c=True, to=0),
            vector(register(0), _1, op=Op.GATE, to=0),
            vector(register(1), c=register(0), to="out")]


def cut() -> list[VectorInstruction]:
    """i0 without its fraction: one nearer to 0 than the nearest whole number, where that is further from it than i0."""
    return [load(0, WHOLE), vector(to=0), *_nearest(0, 1, 2, 0),
            vector(register(1), c=register(0), negate_c=True, to=2),
            vector(register(2), register(0), to=2),
            vector(register(2), _1, op=Op.GATE, to=2),
            vector(register(1), c=register(2), negate_c=True, to=1),
            vector(register(0), register(2), op=Op.GATE, negate_a=True, to=0),
            vector(register(0), c=register(0), to=0),
            vector(register(1), c=register(0), to="out")]


def _wave(shift: float) -> list[VectorInstruction]:
    """sin(i0) where ``shift`` is 0; cos(i0) where it is 1 / 2: multiples of pi and a half are taken away."""
    numbers = {"whole": WHOLE, "over": 1 / math.pi, "half": 0.5, "two": 2.0, "before": -shift, "behind": shift,
               **{f"p{n}": -piece for n, piece in enumerate(PIECES)},
               **{f"c{n}": factor for n, factor in enumerate(SERIES)}}
    at = {name: scalar(index) for index, name in enumerate(numbers)}
    x, k, spare, sign, more = range(5)
    rx, rk, rspare, rsign = map(register, (x, k, spare, sign))
    bound = at["whole"].index
    last = len(SERIES) - 1
    return [*(load(index, number) for index, number in enumerate(numbers.values())),
            vector(to=x),
            vector(rx, at["over"], at["before"], to=sign), *_nearest(sign, k, spare, bound),
            vector(rk, at["half"], to=sign), *_nearest(sign, spare, more, bound),
            vector(rspare, at["two"], to=spare),
            vector(rk, c=rspare, negate_c=True, to=sign),                          # 1 or -1 of odd multiples, else 0
            vector(rsign, rsign, to=sign),
            vector(rsign, at["two"], _1, negate_a=True, to=sign),                  # -1 of odd multiples, else 1
            vector(rk, c=at["behind"], to=k),
            *(vector(rk, at[f"p{n}"], rx, to=x) for n in range(len(PIECES))),
            vector(rx, rx, to=k),
            vector(rk, at[f"c{last}"], at[f"c{last - 1}"], to=spare),
            *(vector(rspare, rk, at[f"c{n}"], to=spare) for n in reversed(range(last - 1))),
            vector(rspare, rk, to=spare),
            vector(rspare, rx, rx, to=spare),
            vector(rspare, rsign, negate_a=shift > 0, to="out")]


def sine() -> list[VectorInstruction]:
    """sin(i0)."""
    return _wave(0.0)


def error() -> list[VectorInstruction]:
    """erf(i0): twice the normal distribution up to i0 * sqrt(2), less 1."""
    return [load(0, math.sqrt(2)), load(1, 2.0), vector(b=scalar(0), to=0, post="normcdf"),
            vector(register(0), scalar(1), _1, negate_c=True, to="out")]


def cosine() -> list[VectorInstruction]:
    """cos(i0)."""
    return _wave(0.5)
