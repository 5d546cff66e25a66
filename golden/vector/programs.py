"""Programs of the vector unit: activations, normalisation, gradients, optimisers.

Each function gives a list of instructions. ``i0, i1, ...`` in a docstring are the rows that the program takes from
the stream, in order; the rows that it gives are named after them. Constants are set at the start of a program, so
programs are independent of each other, but for the registers that a docstring names. Every order of operations below
is the definition: golden and hardware execute these instructions and no other arithmetic.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..spec.vector import (
    NOTHING,
    ONE,
    STREAM,
    Kind,
    Op,
    Operand,
    Reduce,
    Target,
    VectorInstruction,
    constant,
    register,
    scalar,
)

_1, _NIL = constant(ONE), constant(NOTHING)


def bits(value: float) -> int:
    """FP32 pattern of a Python number, rounded to nearest even."""
    with np.errstate(over="ignore"):
        return int(np.float32(value).view(np.uint32))


def load(index: int, value: float) -> VectorInstruction:
    """Set a scalar to a number."""
    return VectorInstruction(kind=Kind.SET, target_index=index, immediate=bits(value))


def argument(index: int, number: int) -> VectorInstruction:
    """Set a scalar to what the host has written into the register ``argument`` with this number."""
    return VectorInstruction(kind=Kind.ARGUMENT, target_index=index, immediate=number)


def length(elements: int, rows: int = 0) -> VectorInstruction:
    """Set the number of elements of a row; with ``rows``, of each of so many rows of one beat that a pass takes."""
    return VectorInstruction(kind=Kind.LENGTH, immediate=elements, above=rows)


def dropping(key: int, below: int) -> VectorInstruction:
    """Set the key of what dropout draws, without the step's part, and what the numbers are compared with."""
    return VectorInstruction(kind=Kind.KEY, immediate=key, above=below)


def place(first: int, step: int) -> VectorInstruction:
    """Set the place of the first beat of the next pass that drops, and the beats from it to that of the one after."""
    return VectorInstruction(kind=Kind.PLACE, immediate=first, above=step)


def vector(a: Operand = STREAM, b: Operand = _1, c: Operand = _NIL, *, to: int | str | None = None,
           sum: int | None = None, max: int | None = None, **rest: Any) -> VectorInstruction:
    """A pass: ``to`` is a register number, ``"out"`` or None; ``sum`` or ``max`` the scalar of a reduction."""
    target: dict[str, Any] = {"target": Target.NONE} if to is None else {"target": Target.STREAM} if to == "out" else {
        "target": Target.REGISTER, "target_index": to}
    if sum is not None:
        rest |= {"reduce": Reduce.SUM, "reduce_index": sum}
    if max is not None:
        rest |= {"reduce": Reduce.MAX, "reduce_index": max}
    return VectorInstruction(a=a, b=b, c=c, **target, **rest)


def single(a: Operand, b: Operand = _1, c: Operand = _NIL, *, to: int, **rest: Any) -> VectorInstruction:
    """One operation on scalars."""
    return VectorInstruction(kind=Kind.SCALAR, a=a, b=b, c=c, target=Target.SCALAR, target_index=to, **rest)


def activation(post: str = "none") -> list[VectorInstruction]:
    """post(i0)."""
    return [vector(to="out", post=post)]


def gated(post: str) -> list[VectorInstruction]:
    """i1 * post(i0)."""
    return [vector(to=0, post=post), vector(b=register(0), to="out")]


def load_row(index: int) -> list[VectorInstruction]:
    """Register ``index`` := i0."""
    return [vector(to=index)]


def bias_activation(post: str = "none", bias: int = 0) -> list[VectorInstruction]:
    """post(i0 + bias), the bias row in register ``bias``: one pass."""
    return [vector(c=register(bias), to="out", post=post)]


def add(post: str = "none") -> list[VectorInstruction]:
    """post(i0 + i1)."""
    return [vector(to=0), vector(c=register(0), to="out", post=post)]


def add_scaled(factor: float) -> list[VectorInstruction]:
    """i0 + i1 * factor."""
    return [load(0, factor), vector(to=0), vector(STREAM, scalar(0), register(0), to="out")]


def negate() -> list[VectorInstruction]:
    """-i0."""
    return [vector(negate_a=True, to="out")]


def difference_from(number: float) -> list[VectorInstruction]:
    """number - i0."""
    return [load(0, number), vector(negate_a=True, c=scalar(0), to="out")]


def dropped(factor: float) -> list[VectorInstruction]:
    """i0 * factor, or i0 * +0 where the element is dropped; key and place are set before."""
    return [load(0, factor), vector(b=scalar(0), drop=True, to="out")]


def multiply() -> list[VectorInstruction]:
    """i0 * i1."""
    return [vector(to=0), vector(b=register(0), to="out")]


def subtract() -> list[VectorInstruction]:
    """i0 - i1."""
    return [vector(to=0), vector(negate_a=True, c=register(0), to="out")]


def scale(factor: float) -> list[VectorInstruction]:
    """i0 * factor."""
    return [load(0, factor), vector(b=scalar(0), to="out")]


def quotient() -> list[VectorInstruction]:
    """i0 * (1 / i1)."""
    return [vector(to=0), vector(to=1, post="recip"), vector(register(0), register(1), to="out")]


def divide(number: float) -> list[VectorInstruction]:
    """i0 * (1 / number)."""
    return scale(1 / number if number else math.copysign(math.inf, number))


def absolute() -> list[VectorInstruction]:
    """The larger of i0 and -i0."""
    return [vector(STREAM, STREAM, op=Op.MAX, negate_a=True, to="out")]


def sign() -> list[VectorInstruction]:
    """1 where i0 > 0, -1 where i0 < 0, else 0."""
    return [vector(to=0), vector(register(0), _1, op=Op.GATE, to=1),
            vector(register(0), _1, op=Op.GATE, negate_a=True, to=0),
            vector(register(0), negate_a=True, c=register(1), to="out")]


def between(weight: float) -> list[VectorInstruction]:
    """i0 + weight * (i1 - i0), or from a half on i1 - (i1 - i0) * (1 - weight)."""
    near = abs(weight) < 0.5
    return [load(0, weight if near else weight - 1), vector(to=0), vector(to=1),
            vector(register(1), c=register(0), negate_c=True, to=2),
            vector(register(2), scalar(0), register(0 if near else 1), to="out")]


def add_product(factor: float) -> list[VectorInstruction]:
    """i0 + (factor * i1) * i2."""
    return [load(0, factor), vector(to=0), vector(b=scalar(0), to=1),
            vector(STREAM, register(1), register(0), to="out")]


def add_quotient(factor: float) -> list[VectorInstruction]:
    """i0 + (factor * i1) * (1 / i2)."""
    return [load(0, factor), vector(to=0), vector(b=scalar(0), to=1), vector(to=2, post="recip"),
            vector(register(2), register(1), register(0), to="out")]


def shift(addend: float) -> list[VectorInstruction]:
    """i0 + addend."""
    return [load(0, addend), vector(c=scalar(0), to="out")]


def clamp(low: float = -1.0, high: float = 1.0) -> list[VectorInstruction]:
    """min(max(i0, low), high)."""
    return [load(0, low), load(1, -high),
            vector(STREAM, scalar(0), op=Op.MAX, to=0),
            vector(register(0), scalar(1), op=Op.MAX, negate_a=True, to=0),
            vector(register(0), negate_a=True, to="out")]


def hard_swish() -> list[VectorInstruction]:
    """i0 * min(max(i0 + 3, 0), 6) / 6; the minimum is minus the maximum of what is negated."""
    return [load(0, 3.0), load(1, -6.0), load(2, -1 / 6),
            vector(to=0),
            vector(register(0), c=scalar(0), to=1, post="relu"),
            vector(register(1), scalar(1), op=Op.MAX, negate_a=True, to=1),
            vector(register(1), register(0), to=1),
            vector(register(1), scalar(2), to="out")]


def leaky_relu(slope: float) -> list[VectorInstruction]:
    """i0 where it is positive, else i0 * slope: max(i0, 0) - slope * max(-i0, 0)."""
    return [load(0, -slope),
            vector(to=0),
            vector(register(0), to=1, post="relu"),
            vector(register(0), negate_a=True, to=0, post="relu"),
            vector(register(0), scalar(0), register(1), to="out")]


def elu(alpha: float = 1.0, scale: float = 1.0, slope: float = 1.0) -> list[VectorInstruction]:
    """i0 * scale where it is positive, else (exp(slope * i0) - 1) * alpha * scale.

    exp(z) - 1 is tanh(z / 2) * exp(z) + tanh(z / 2), which is as exact for small z as for others.
    """
    return [load(0, -slope), load(1, -slope / 2), load(2, alpha * scale), load(3, scale),
            vector(to=0),
            vector(register(0), negate_a=True, to=1, post="relu"),
            vector(register(1), scalar(1), to=2, post="tanh"),
            vector(register(1), scalar(0), to=1, post="exp"),
            vector(register(2), register(1), register(2), to=1),
            vector(register(0), to=0, post="relu"),
            vector(register(0), scalar(3), to=0),
            vector(register(1), scalar(2), register(0), to="out")]


def power(exponent: int) -> list[VectorInstruction]:
    """i0 * i0 * ..., from the left."""
    first, more = vector(register(0), register(0), to=1), vector(register(1), register(0), to=1)
    return [vector(to=0), first, *[more] * (exponent - 2), vector(register(1), to="out")]


def root() -> list[VectorInstruction]:
    """1 / (1 / sqrt(i0))."""
    return [vector(to=0, post="rsqrt"), vector(register(0), to="out", post="recip")]


def scale_shift(factor: int = 6, addend: int = 7) -> list[VectorInstruction]:
    """i0 * factor + addend, rows in those registers: batch norm in evaluation."""
    return [vector(b=register(factor), c=register(addend), to="out")]


def choose() -> list[VectorInstruction]:
    """i1 where i0 is 1 and i2 is -0; i2 where i0 is 0."""
    return [vector(to=0), vector(register(0), STREAM, op=Op.GATE, to=0), vector(c=register(0), to="out")]


def kept() -> list[VectorInstruction]:
    """i1 where i0 is 1, -0 where it is 0."""
    return [vector(to=0), vector(register(0), STREAM, op=Op.GATE, to="out")]


def select(x: float | None = None, other: float | None = None) -> list[VectorInstruction]:
    """i1 where i0 is 1, i2 where it is 0: what is not chosen is -0, with turned signs, and adds nothing.

    Numbers may stand in place of i1 or i2 or both.
    """
    loads, parts = [], []
    for index, number in enumerate((x, other)):
        if number is not None:
            loads.append(load(index, -number))
        parts.append(([vector(negate_a=True, to=index + 1)], register(index + 1)) if number is None else
                     ([], scalar(index)))
    (turned, a), (turned_other, b) = parts
    return [*loads, vector(to=0), *turned, vector(register(0), a, op=Op.GATE, to=1),
            vector(register(0), negate_a=True, c=_1, to=0), *turned_other, vector(register(0), b, op=Op.GATE, to=2),
            vector(register(1), negate_a=True, c=register(2), negate_c=True, to="out")]


def _difference(number=None):
    """Register 0 := i0 - i1, or i0 less a number."""
    if number is None:
        return [vector(to=0), vector(negate_a=True, c=register(0), to=0)]
    return [load(0, -number), vector(c=scalar(0), to=0)]


def above(number: float | None = None) -> list[VectorInstruction]:
    """1 where i0 - i1, or i0 less a number, is above 0, else 0."""
    return [*_difference(number), vector(register(0), _1, op=Op.GATE, to="out")]


def below(number: float | None = None) -> list[VectorInstruction]:
    """1 where that is below 0, else 0."""
    return [*_difference(number), vector(register(0), _1, op=Op.GATE, negate_a=True, to="out")]


def negated(program: list[VectorInstruction]) -> list[VectorInstruction]:
    """1 - what a program gives last."""
    *before, last = program
    return [*before, replace(last, target=Target.REGISTER, target_index=0),
            vector(register(0), negate_a=True, c=_1, to="out")]


def differs(number: float | None = None) -> list[VectorInstruction]:
    """1 where that is above or below 0, else 0."""
    return [*_difference(number), vector(register(0), register(0), op=Op.MAX, negate_a=True, to=0),
            vector(register(0), _1, op=Op.GATE, to="out")]


def smaller() -> list[VectorInstruction]:
    """The smaller of i0 and i1: what is negated, of the larger of both negated."""
    return [vector(negate_a=True, to=0), vector(STREAM, register(0), op=Op.MAX, negate_a=True, to=0),
            vector(register(0), negate_a=True, to="out")]


def maximum(taps: int) -> list[VectorInstruction]:
    """The maximum of i0, i1 ... of so many rows: pooling."""
    return _chain(taps, lambda to: vector(STREAM, register(0), op=Op.MAX, to=to))


def average(taps: int, divisor: int | None = None) -> list[VectorInstruction]:
    """(i0 + i1 + ...) * (1 / divisor), added in this order: pooling. The divisor is the number of taps, unless given.
    """
    rows = [vector(to=0), *[vector(c=register(0), to=0)] * (taps - 1)]
    return [load(0, 1 / (taps if divisor is None else divisor)), *rows, vector(register(0), scalar(0), to="out")]


def _chain(taps, step):
    """i0, then ``step`` with each further row, of which the last leaves."""
    if taps == 1:
        return [vector(to="out")]
    return [vector(to=0), *[step(0)] * (taps - 2), step("out")]


def relu_gradient() -> list[VectorInstruction]:
    """Gradient i1 where i0 > 0, else +0; i0 is the input of ReLU, i1 the gradient of its output."""
    return [vector(to=0), vector(register(0), STREAM, op=Op.GATE, to="out")]


def sigmoid_gradient() -> list[VectorInstruction]:
    """i1 * (i0 - i0^2); i0 is the output of sigmoid, i1 its gradient."""
    return [vector(to=0), vector(register(0), register(0), register(0), negate_a=True, to=0),
            vector(STREAM, register(0), to="out")]


def tanh_gradient() -> list[VectorInstruction]:
    """i1 * (1 - i0^2); i0 is the output of tanh, i1 its gradient."""
    return [vector(to=0), vector(register(0), register(0), _1, negate_a=True, to=0),
            vector(STREAM, register(0), to="out")]


def silu_gradient() -> list[VectorInstruction]:
    """i1 * (s * (i0 * (1 - s) + 1)), s = sigmoid(i0); i0 is the input of SiLU."""
    return [vector(to=0), vector(register(0), to=1, post="sigmoid"),
            vector(register(1), negate_a=True, c=_1, to=2),
            vector(register(0), register(2), _1, to=2),
            vector(register(1), register(2), to=2),
            vector(STREAM, register(2), to="out")]


def _unless(index, to):
    """Register ``to`` := 1 where a register is not positive, else 0."""
    return [vector(register(index), _1, op=Op.GATE, to=to), vector(register(to), negate_a=True, c=_1, to=to)]


def leaky_relu_gradient(slope: float) -> list[VectorInstruction]:
    """i1 where i0 > 0, else i1 * slope."""
    return [load(0, slope), vector(to=0), *_unless(0, 1),
            vector(register(0), _1, op=Op.GATE, to=0),
            vector(register(1), scalar(0), register(0), to=0),
            vector(STREAM, register(0), to="out")]


def clamp_gradient(low: float, high: float) -> list[VectorInstruction]:
    """i1 where low < i0 < high, else +0."""
    return [load(0, -low), load(1, high), vector(to=0), vector(to=1),
            vector(register(0), c=scalar(0), to=2),
            vector(register(2), register(1), op=Op.GATE, to=1),
            vector(register(0), negate_a=True, c=scalar(1), to=2),
            vector(register(2), register(1), op=Op.GATE, to="out")]


def hard_swish_gradient() -> list[VectorInstruction]:
    """+0 up to i0 = -3, i1 * (i0 / 3 + 1 / 2) below 3, i1 from there on."""
    return [load(0, 1 / 3), load(1, 0.5), load(2, 3.0), vector(to=0),
            vector(register(0), scalar(0), scalar(1), to=1),
            vector(register(0), c=scalar(2), to=2),
            vector(register(2), register(1), op=Op.GATE, to=1),
            vector(register(0), negate_a=True, c=scalar(2), to=2),
            vector(register(2), register(1), op=Op.GATE, to=1), *_unless(2, 0),
            vector(register(0), c=register(1), to=0),
            vector(STREAM, register(0), to="out")]


def elu_gradient(alpha: float = 1.0, scale: float = 1.0, slope: float = 1.0) -> list[VectorInstruction]:
    """i1 * scale where i0 > 0, else i1 * (exp(slope * i0) * (slope * alpha * scale))."""
    return [load(0, -slope), load(1, slope * alpha * scale), load(2, scale), vector(to=0),
            vector(register(0), negate_a=True, to=1, post="relu"),
            vector(register(1), scalar(0), to=1, post="exp"),
            vector(register(1), scalar(1), to=1), *_unless(0, 2),
            vector(register(2), register(1), op=Op.GATE, to=1),
            vector(register(0), _1, op=Op.GATE, to=0),
            vector(register(0), scalar(2), register(1), to=0),
            vector(STREAM, register(0), to="out")]


def softmax_gradient() -> list[VectorInstruction]:
    """i0 * (i1 - sum(i0 * i1)); i0 is the output of softmax, i1 its gradient."""
    return [vector(to=0), vector(to=1),
            vector(register(0), register(1), sum=0),
            vector(register(1), _1, scalar(0), negate_c=True, to=1),
            vector(register(0), register(1), to="out")]


def gelu_gradient() -> list[VectorInstruction]:
    """i1 * (Phi(i0) + i0 * exp(-i0^2 / 2) / sqrt(2 pi)); i0 is the input of GELU."""
    return [load(0, -0.5), load(1, -0.9189385332046727),
            vector(to=0),
            vector(register(0), to=1, post="normcdf"),
            vector(register(0), register(0), to=2),
            vector(register(2), scalar(0), scalar(1), to=2, post="exp"),    # ln(1 / sqrt(2 pi)) as the addend
            vector(register(0), register(2), register(1), to=2),
            vector(STREAM, register(2), to="out")]


def softmax() -> list[VectorInstruction]:
    """softmax(i0): three passes (maximum; exponential and sum; product) and a reciprocal."""
    return [vector(to=0, max=0),
            vector(register(0), _1, scalar(0), negate_c=True, to=0, post="exp", sum=1),
            single(scalar(1), to=2, post="recip"),
            vector(register(0), scalar(2), to="out")]


def log_softmax() -> list[VectorInstruction]:
    """i0 - max(i0) - log(sum(exp(i0 - max(i0)))), from the left."""
    return [vector(to=0, max=0),
            vector(register(0), _1, scalar(0), negate_c=True, to=0),
            vector(register(0), post="exp", sum=1),
            single(scalar(1), to=2, post="log"),
            vector(register(0), _1, scalar(2), negate_c=True, to="out")]


def log_softmax_gradient() -> list[VectorInstruction]:
    """i1 - exp(i0) * sum(i1); i0 is the output of log softmax, i1 its gradient."""
    return [vector(to=0, post="exp"), vector(to=1, sum=0),
            vector(register(0), scalar(0), register(1), negate_a=True, to="out")]


def row_mean(n: int) -> list[VectorInstruction]:
    """The mean of i0, in every element."""
    return [load(8, 1 / n), vector(sum=0), vector(scalar(0), scalar(8), to="out")]


def row_sum() -> list[VectorInstruction]:
    """The sum of i0, in every element."""
    return [vector(sum=0), vector(scalar(0), to="out")]


def row_maximum() -> list[VectorInstruction]:
    """The maximum of i0, in every element."""
    return [vector(max=0), vector(scalar(0), to="out")]


def row_variance(n: int) -> list[VectorInstruction]:
    """The mean of squared differences of i0 from its mean, in every element."""
    return [load(8, 1 / n), *_differences(), vector(scalar(5), scalar(8), to="out")]


def _statistics(n, eps):
    """Register 0 := i0 - mean; scalar 1 := mean, 2 := 1 / sqrt(variance + eps). Scalars 8, 9: 1 / n, eps."""
    return [load(8, 1 / n), load(9, eps), *_differences(),
            single(scalar(5), scalar(8), scalar(9), to=2, post="rsqrt")]


def statistics() -> list[VectorInstruction]:
    """Behind a norm: the mean, and 1 / sqrt(variance + eps), each in every element of a row."""
    return [vector(scalar(1), to="out"), vector(scalar(2), to="out")]


def _differences():
    """Register 0 := i0 - mean, scalar 1 := mean, and scalar 5 the sum of the squares of the former; scalar 8: 1 / n."""
    return [vector(to=0, sum=0),
            single(scalar(0), scalar(8), to=1),
            vector(register(0), _1, scalar(1), negate_c=True, to=0),
            vector(register(0), register(0), sum=5)]


def _root_mean_square(n, eps):
    """Register 0 := i0; scalar 2 := 1 / sqrt(mean of its squares + eps)."""
    return [load(8, 1 / n), load(9, eps),
            vector(to=0),
            vector(register(0), register(0), sum=0),
            single(scalar(0), scalar(8), scalar(9), to=2, post="rsqrt")]


def rms_norm(n: int, eps: float, gamma: int) -> list[VectorInstruction]:
    """i0 / sqrt(mean(i0^2) + eps) * gamma; gamma is a row in that register."""
    return [*_root_mean_square(n, eps),
            vector(register(0), scalar(2), to=0),
            vector(register(0), register(gamma), to="out")]


def rms_norm_plain(n: int, eps: float) -> list[VectorInstruction]:
    """i0 / sqrt(mean(i0^2) + eps)."""
    return [*_root_mean_square(n, eps), vector(register(0), scalar(2), to="out")]


def layer_norm(n: int, eps: float = 1e-5, gamma: int = 6, beta: int = 7) -> list[VectorInstruction]:
    """(i0 - mean) / sqrt(variance + eps) * gamma + beta; gamma and beta are rows in those registers."""
    return [*_statistics(n, eps),
            vector(register(0), scalar(2), to=0),
            vector(register(0), register(gamma), register(beta), to="out")]


def layer_norm_plain(n: int, eps: float = 1e-5) -> list[VectorInstruction]:
    """(i0 - mean) / sqrt(variance + eps)."""
    return [*_statistics(n, eps), vector(register(0), scalar(2), to="out")]


def layer_norm_gradient(n: int, gamma: int | None = 1, eps: float | None = None) -> list[VectorInstruction]:
    """Gradients of layer norm: of its input, and of the factor and the addend of each element.

    i0 is its input, i1 the gradient of its output, i2 and i3 mean and 1 / sqrt(variance + eps) of the row, as rows of
    one number. The factors are a row in register ``gamma``; None is for a norm without. The first is i3 * (d -
    mean(d) - h * mean(d * h)), with h = (i0 - i2) * i3 and d = i1 * gamma; the others are i1 * h and i1. With ``eps``
    i2 and i3 are not taken but computed again, with the bits that they had.
    """
    product = vector(register(2), _1 if gamma is None else register(gamma), to=3, sum=3)
    given = [load(8, 1 / n), vector(to=0), vector(to=2), length(1), vector(sum=1), vector(sum=2), length(n),
             vector(register(0), _1, scalar(1), negate_c=True, to=0)]
    return [*(given if eps is None else [*_statistics(n, eps), vector(to=2)]),
            vector(register(0), scalar(2), to=0),                                            # h
            product,                                                                         # d
            single(scalar(3), scalar(8), to=3),
            vector(register(3), register(0), sum=4),
            single(scalar(4), scalar(8), to=4),
            vector(register(3), _1, scalar(3), negate_c=True, to=3),
            vector(register(0), scalar(4), register(3), negate_a=True, to=3),
            vector(register(3), scalar(2), to="out"),
            vector(register(2), register(0), to="out"),
            vector(register(2), to="out")]


def sgd(rate: float, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0, *,
        nesterov: bool = False, maximize: bool = False, first: bool = False) -> list[VectorInstruction]:
    """One step of SGD as torch has it. Takes w, g and m, gives m and w.

    With g' = g + weight_decay * w these are m' = momentum * m + (1 - dampening) * g' and w - rate * m'; with
    ``nesterov`` w - rate * (g' + momentum * m'), with ``maximize`` g is negated. In the ``first`` step no m is read,
    and m' is g'. Without momentum m is neither read nor given.
    """
    damped = bool(momentum and dampening and not first)
    numbers = {0: momentum, 1: rate, 2: weight_decay, 3: damped and 1 - dampening}
    program = [load(index, number) for index, number in numbers.items() if number or index == 1]
    program += [vector(to=0), vector(register(0), scalar(2), STREAM, negate_c=maximize, to=1) if weight_decay
                else vector(negate_a=maximize, to=1)]
    kept = 2 if nesterov and not first else 1
    if damped:
        program += [vector(STREAM, scalar(0), to=2), vector(register(1), scalar(3), register(2), to=kept)]
    elif momentum and not first:
        program.append(vector(STREAM, scalar(0), register(1), to=kept))
    if momentum:
        program.append(vector(register(kept), to="out"))
    if nesterov:
        program.append(vector(register(kept), scalar(0), register(1), to=1))
    return [*program, vector(register(1), scalar(1), register(0), negate_a=True, to="out")]


def decayed(weight_decay: float, *, maximize: bool = False) -> list[VectorInstruction]:
    """The gradient with weight decay, as torch has it. Takes w and g, gives g + weight_decay * w; ``maximize``: -g."""
    return [load(0, weight_decay), vector(to=0), vector(register(0), scalar(0), STREAM, negate_c=maximize, to="out")]


def adam_moments(beta1: float = 0.9, beta2: float = 0.999, *, maximize: bool = False) -> list[VectorInstruction]:
    """The first half of a step of Adam, as torch has it. Takes g, m, v, gives m and v; ``maximize``: of -g.

    m = m + (g - m) * (1 - beta1), v = v * beta2 + ((1 - beta2) * g) * g.
    """
    share = 1 - beta1
    near = abs(share) < 0.5
    return [load(0, share if near else share - 1), load(1, beta2), load(2, 1 - beta2),
            vector(negate_a=maximize, to=0), vector(to=1),
            vector(register(0), c=register(1), negate_c=True, to=2),
            vector(register(2), scalar(0), register(1 if near else 0), to="out"),
            vector(b=scalar(1), to=1),
            vector(register(0), scalar(2), to=2),
            vector(register(2), register(0), register(1), to="out")]


def adam_step(rate: float, step: int, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
              weight_decay: float = 0.0) -> list[VectorInstruction]:
    """The second half of Adam's ``step`` (1, 2, ...), as torch has it. Takes v, m, w, gives w.

    d = sqrt(v) * (1 / sqrt(1 - beta2^step)) + eps, w = w - (rate / (1 - beta1^step) * m) * (1 / d), before which w is
    multiplied by 1 - rate * ``weight_decay``, if that is not 0 (AdamW).
    """
    step = float(step)                                     # a power of a float is another than that of an integer
    program = [load(0, 1 / (1 - beta2 ** step) ** 0.5), load(1, eps), load(2, -rate / (1 - beta1 ** step)),
               vector(to=0, post="rsqrt"), vector(register(0), to=0, post="recip"),
               vector(register(0), scalar(0), scalar(1), to=0, post="recip"), vector(b=scalar(2), to=1)]
    if not weight_decay:
        return [*program, vector(register(0), register(1), STREAM, to="out")]
    return [load(3, 1 - rate * weight_decay), *program,
            vector(b=scalar(3), to=2), vector(register(0), register(1), register(2), to="out")]
