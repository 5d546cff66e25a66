"""Programs of the vector unit: activations, normalisation, loss gradient, optimisers.

Each function gives a list of instructions. ``i0, i1, ...`` in a docstring are the rows that the program takes from
the stream, in order; the rows that it gives are named after them. Constants are set at the start of a program, so
programs are independent of each other, but for the registers that a docstring names. Every order of operations below
is the definition: golden and hardware execute these instructions and no other arithmetic.
"""

import math
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


def length(elements: int) -> VectorInstruction:
    """Set the number of elements of a row."""
    return VectorInstruction(kind=Kind.LENGTH, immediate=elements)


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


def maximum(taps: int) -> list[VectorInstruction]:
    """The maximum of i0, i1 ... of so many rows: pooling."""
    return _chain(taps, lambda to: vector(STREAM, register(0), op=Op.MAX, to=to))


def average(taps: int) -> list[VectorInstruction]:
    """(i0 + i1 + ...) * (1 / taps), added in this order: pooling."""
    rows = [vector(to=0), *[vector(c=register(0), to=0)] * (taps - 1)]
    return [load(0, 1 / taps), *rows, vector(register(0), scalar(0), to="out")]


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


def _softmax(row):
    """Register ``row`` := softmax(i0), without the last product, whose factor is scalar 2."""
    return [vector(to=row, max=0),
            vector(register(row), _1, scalar(0), negate_c=True, to=row, post="exp", sum=1),
            single(scalar(1), to=2, post="recip")]


def softmax() -> list[VectorInstruction]:
    """softmax(i0): three passes (maximum; exponential and sum; product) and a reciprocal."""
    return [*_softmax(0), vector(register(0), scalar(2), to="out")]


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


def cross_entropy_gradient(scale: float = 1.0) -> list[VectorInstruction]:
    """(softmax(i0) - i1) * scale, i1 the target distribution, scale usually 1 / batch."""
    return [load(3, scale), *_softmax(0),
            vector(STREAM, to=1),
            vector(register(0), scalar(2), register(1), negate_c=True, to=0),
            vector(register(0), scalar(3), to="out")]


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


def layer_norm_gradient(n: int, eps: float = 1e-5, gamma: int = 6, gamma_gradient: int = 4,
                        beta_gradient: int = 5) -> list[VectorInstruction]:
    """Gradient of layer_norm's input, of i0 its input and i1 the gradient of its output.

    Registers ``gamma_gradient`` and ``beta_gradient`` are added to: clear them first and read them after the batch.
    """
    return [*_statistics(n, eps),
            vector(register(0), scalar(2), to=0),                                            # xhat
            vector(STREAM, to=1),                                                            # dy
            vector(register(1), _1, register(beta_gradient), to=beta_gradient),
            vector(register(1), register(0), register(gamma_gradient), to=gamma_gradient),
            vector(register(1), register(gamma), to=1, sum=3),                               # dxhat
            *_input_gradient()]


def _input_gradient():
    """scalar 2 * (register 1 - mean - xhat * mean(register 1 * xhat)), the sum of register 1 in scalar 3."""
    return [single(scalar(3), scalar(8), to=3),
            vector(register(1), register(0), sum=4),
            single(scalar(4), scalar(8), to=4),
            vector(register(1), _1, scalar(3), negate_c=True, to=1),
            vector(register(0), scalar(4), register(1), negate_a=True, to=1),
            vector(register(1), scalar(2), to="out")]


def batch_norm(n: int, gamma: int, beta: int, eps: float = 1e-5) -> list[VectorInstruction]:
    """As layer_norm, but a row holds one channel of the batch, so gamma and beta are numbers."""
    return [load(10, gamma), load(11, beta), *_statistics(n, eps),
            vector(register(0), scalar(2), to=0),
            vector(register(0), scalar(10), scalar(11), to="out")]


def batch_norm_gradient(n: int, gamma: int, eps: float = 1e-5) -> list[VectorInstruction]:
    """Gradient of batch_norm's input, then a row each of the gradients of gamma and of beta (all elements equal).

    i0 is its input, i1 the gradient of its output.
    """
    return [load(10, gamma), *_statistics(n, eps),
            vector(register(0), scalar(2), to=0),
            vector(STREAM, to=1, sum=6),
            vector(register(1), register(0), sum=7),
            vector(register(1), scalar(10), to=1, sum=3),
            *_input_gradient(),
            vector(scalar(7), to="out"), vector(scalar(6), to="out")]


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
    program += [vector(to=0), vector(negate_a=maximize, to=1)]
    if weight_decay:
        program.append(vector(register(0), scalar(2), register(1), to=1))
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


def adam(rate: float, step: int, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8
         ) -> list[VectorInstruction]:
    """Adam at ``step`` (1, 2, ...). Takes g, m, v, w; gives m, v, w.

    Definition of the root: sqrt(v) = v * rsqrt(max(v, 2^-126)), so that of zero is zero.
    """
    return [load(0, beta1), load(1, 1 - beta1), load(2, beta2), load(3, 1 - beta2),
            load(4, rate / (1 - beta1 ** step)), load(5, 1 / (1 - beta2 ** step)), load(6, eps), load(7, 2.0 ** -126),
            vector(to=0),                                                              # g
            vector(register(0), scalar(1), to=1),
            vector(STREAM, scalar(0), register(1), to=1),                              # m
            vector(register(1), to="out"),
            vector(register(0), register(0), to=2),
            vector(register(2), scalar(3), to=2),
            vector(STREAM, scalar(2), register(2), to=2),                              # v
            vector(register(2), to="out"),
            vector(register(2), scalar(5), to=2),                                      # v / (1 - beta2^t)
            vector(register(2), scalar(7), op=Op.MAX, to=3, post="rsqrt"),
            vector(register(2), register(3), scalar(6), to=3, post="recip"),           # 1 / (sqrt(v) + eps)
            vector(register(1), scalar(4), to=1),
            vector(STREAM, to=0),
            vector(register(1), register(3), register(0), negate_a=True, to="out")]
