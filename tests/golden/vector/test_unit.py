"""The vector unit: every instruction, and programs for training.

Covers: golden/vector/programs.py.
"""

import re

import numpy as np
import pytest

import golden.vector.programs as programs
from golden import fp32
from golden.functions import evaluate
from golden.spec.tables import FUNCTIONS
from golden.spec.vector import (
    FIELDS,
    POSTS,
    STREAM,
    Kind,
    Op,
    Reduce,
    Target,
    VectorInstruction,
    VectorUnit,
    field_values,
    register,
    scalar,
)
from golden.vector.unit import Machine, ReservedInstruction, check, positive, relu

UNIT = VectorUnit(lanes=8, beats=16)
RNG = np.random.default_rng(5)


def bits(x):
    return np.asarray(x, dtype=np.float32).view(np.uint32)


def floats(x):
    return np.asarray(x, dtype=np.uint32).view(np.float32).astype(np.float64)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def run(program, *rows, unit=UNIT, before=()):
    """Outputs of one program on rows (batch, n) of numbers, as numbers."""
    n = rows[0].shape[-1]
    machine = Machine(unit, rows[0].shape[:-1])
    machine.run([programs.length(n), *(item for item, _ in before)], [bits(row) for _, row in before])
    return [floats(row) for row in machine.run(program, [bits(row) for row in rows])]


def cdf(x):
    """Normal distribution function of numbers, from the oracle of the sweep."""
    from math import erfc
    return np.vectorize(lambda v: 0.5 * erfc(-v / 2 ** 0.5))(x.astype(np.float64))


X, G, Y = normal(4, 64) * 2, normal(4, 64), normal(4, 64)


@pytest.mark.parametrize("post", POSTS)
def test_activation_is_the_function(post):
    x = np.abs(X) if post in ("log", "rsqrt") else X
    want = {"none": lambda v: v, "relu": relu}.get(post, lambda v: evaluate(post, v))(bits(x))
    got, = run(programs.activation(post), x)
    np.testing.assert_array_equal(bits(got), want)


def test_bias_and_activation_take_one_pass():
    got, = run(programs.bias_activation("gelu"), X, before=[(programs.load_row(0)[0], Y)])
    np.testing.assert_array_equal(bits(got), evaluate("gelu", fp32.add(bits(X), bits(Y), subnormals="flush")))
    assert len(programs.bias_activation("gelu")) == 1


def test_add_and_multiply_are_single_operations():
    np.testing.assert_array_equal(run(programs.add(), X, Y)[0], (X + Y).astype(np.float64))
    np.testing.assert_array_equal(run(programs.multiply(), X, Y)[0], (X * Y).astype(np.float64))


def close(got, want, ulps=64):
    np.testing.assert_allclose(got, want, rtol=0, atol=ulps * 2.0 ** -24 * np.abs(want).max())


def test_softmax():
    e = np.exp(X - X.max(-1, keepdims=True).astype(np.float64))
    got, = run(programs.softmax(), X)
    close(got, e / e.sum(-1, keepdims=True), 8)


def test_log_softmax():
    e = np.exp(X.astype(np.float64))
    close(run(programs.log_softmax(), X)[0], X - np.log(e.sum(-1, keepdims=True)), 8)
    close(run(programs.log_softmax_gradient(), Y, G)[0],
          G - np.exp(Y.astype(np.float64)) * G.sum(-1, keepdims=True, dtype=np.float64), 16)


@pytest.mark.parametrize("program, want", [
    (programs.hard_swish(), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    (programs.clamp(-0.5, 2.0), lambda x: np.clip(x, -0.5, 2)),
    (programs.leaky_relu(0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    (programs.elu(0.7, 1.5, 2.0), lambda x: 1.5 * np.where(x > 0, x, 0.7 * np.expm1(2 * x))),
    (programs.power(2), np.square), (programs.power(3), lambda x: x ** 3), (programs.power(4), lambda x: x ** 4)])
def test_functions_of_several_passes(program, want):
    close(run(program, 3 * X)[0], want(3 * X.astype(np.float64)), 4)
    assert not np.isfinite(run(program, np.full((1, 8), np.nan, np.float32))[0]).any()


def test_elu_is_exact_for_small_numbers():
    x = -np.geomspace(1e-30, 1, 64, dtype=np.float32)[None]
    np.testing.assert_allclose(run(programs.elu(), x)[0], np.expm1(x.astype(np.float64)), rtol=2 ** -21)


def test_roots_and_quotients():
    x = np.concatenate([np.abs(X[0]), [0, np.inf, -1]]).astype(np.float32)[None]
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(run(programs.root(), x)[0], np.sqrt(x.astype(np.float64)), rtol=2 ** -22)
    np.testing.assert_allclose(run(programs.quotient(), X, Y)[0], X.astype(np.float64) / Y, rtol=2 ** -22)


def test_numbers_of_rows_stand_in_every_element():
    x = X.astype(np.float64)
    for program, want in ((programs.row_sum(), x.sum(-1)), (programs.row_mean(64), x.mean(-1)),
                          (programs.row_maximum(), x.max(-1)), (programs.row_variance(64), x.var(-1))):
        close(run(program, X)[0], np.broadcast_to(want[:, None], x.shape), 16)


def test_rms_norm():
    x = X.astype(np.float64)
    want = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-3)
    close(run(programs.rms_norm_plain(64, 1e-3), X)[0], want, 8)
    close(run(programs.rms_norm(64, 1e-3, 6), X, before=[(programs.load_row(6)[0], Y)])[0], want * Y, 8)


def test_gradients_of_what_was_kept():
    x, g = X.astype(np.float64), G.astype(np.float64)
    close(run(programs.sigmoid_gradient(), X, G)[0], g * x * (1 - x), 4)
    close(run(programs.tanh_gradient(), X, G)[0], g * (1 - x * x), 4)
    close(run(programs.softmax_gradient(), X, G)[0], x * (g - (x * g).sum(-1, keepdims=True)), 32)


def test_relu_gradient_is_a_gate():
    np.testing.assert_array_equal(run(programs.relu_gradient(), X, G)[0], np.where(X > 0, G, 0))


def test_gelu_gradient():
    x = X.astype(np.float64)
    close(run(programs.gelu_gradient(), X, G)[0], G * (cdf(X) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)), 16)


def _norm(x, eps=1e-5):
    x = x.astype(np.float64)
    rstd = 1 / np.sqrt(x.var(-1, keepdims=True) + eps)
    return (x - x.mean(-1, keepdims=True)) * rstd, rstd


def _norm_gradient(x, dxhat):
    xhat, rstd = _norm(x)
    return rstd * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * (dxhat * xhat).mean(-1, keepdims=True))


def test_layer_norm():
    before = [(programs.load_row(6)[0], Y), (programs.load_row(7)[0], G)]
    close(run(programs.layer_norm(64), X, before=before)[0], _norm(X)[0] * Y + G)


def test_layer_norm_gradient():
    mean, root = X.mean(-1, keepdims=True), _norm(X)[1].astype(np.float32)
    machine = Machine(UNIT, (4,))
    machine.run([programs.length(64), *programs.load_row(1)], [bits(Y)])
    dx, dgamma, dbeta = map(floats, machine.run(programs.layer_norm_gradient(64), map(bits, (X, G, mean, root))))
    close(dx, _norm_gradient(X, G.astype(np.float64) * Y))
    close(dgamma, G * _norm(X)[0])
    close(dbeta, G, 0)
    close(run(programs.layer_norm_gradient(64, None), X, G, mean, root)[0], _norm_gradient(X, G.astype(np.float64)))


def test_sgd_with_momentum():
    m, w = run(programs.sgd(0.125, 0.875), X, G, Y)
    np.testing.assert_array_equal(bits(m), bits(Y * np.float32(0.875) + G))
    np.testing.assert_array_equal(bits(w), bits(X - m.astype(np.float32) * np.float32(0.125)))


@pytest.mark.parametrize("step", [1, 100])
@pytest.mark.parametrize("beta1", [0.9, 0.3])
def test_adam(step, beta1):
    v = np.abs(Y) * (step > 1)
    m, v1 = run(programs.adam_moments(beta1), G, Y, v)
    w, = run(programs.adam_step(0.01, step, beta1), v1, m, X)
    g = G.astype(np.float64)
    close(m, beta1 * Y + (1 - beta1) * g, 4)
    close(v1, 0.999 * v + 0.001 * g * g, 4)
    close(w, X - 0.01 * m / (1 - beta1 ** step) / (np.sqrt(v1 / (1 - 0.999 ** step)) + 1e-8), 16)


def test_adam_leaves_weights_without_gradient():
    zero = np.zeros_like(X)
    m, v = run(programs.adam_moments(), zero, zero, zero)
    np.testing.assert_array_equal(run(programs.adam_step(0.01, 1), v, m, X)[0], X)


@pytest.mark.parametrize("lanes", [1, 2, 8, 64])
@pytest.mark.parametrize("n", [1, 3, 16, 61, 64])
def test_sum_has_the_stated_order(lanes, n):
    x = bits(normal(n) * 10.0 ** RNG.integers(-3, 4, n))
    machine = Machine(VectorUnit(lanes=lanes, beats=64))
    machine.run([programs.length(n), programs.vector(sum=3)], [x])
    total = [np.float32(-0.0)] * lanes
    for i, value in enumerate(x.view(np.float32)):
        total[i % lanes] += value
    while len(total) > 1:
        total = [total[i] + total[i + 1] for i in range(0, len(total), 2)]
    assert machine.scalars[3] == bits(total[0])


def test_maximum_takes_nan():
    machine = Machine(UNIT)
    machine.run([programs.length(5), programs.vector(max=0)], [bits([1, -2, 3, -np.inf, 2])])
    machine.run([programs.vector(max=1)], [bits([1, -2, np.nan, 3, 2])])
    assert machine.scalars[:2].tolist() == [bits(3.0), 0x7FC00000]


def test_side_by_side_equals_one_by_one():
    many = run(programs.softmax(), X)[0]
    for row, want in zip(X, many, strict=True):
        np.testing.assert_array_equal(run(programs.softmax(), row)[0], want)


def test_many_rows_use_the_compiled_functions(monkeypatch):
    x = bits(normal(9, 16))
    want = Machine(UNIT, (9,)).run([programs.length(16), *programs.softmax()], [x])[0]
    monkeypatch.setattr("golden.vector.unit.LARGE", 9 * 16)
    monkeypatch.setattr("golden.functions.exp", None)
    np.testing.assert_array_equal(Machine(UNIT, (9,)).run([programs.length(16), *programs.softmax()], [x])[0], want)


def test_relu_and_gate_at_special_values():
    x = np.array([0, 1 << 31, 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00800000, 0xBF800000], dtype=np.uint32)
    assert positive(x).tolist() == [False, False, False, True, False, False, True, False]
    assert relu(x).tolist() == [0, 0, 0, 0x7F800000, 0, 0x7FC00000, 0x00800000, 0]


def test_words_hold_their_fields():
    instruction = VectorInstruction(a=register(5), b=scalar(9), c=STREAM, op=Op.GATE, negate_a=True, post="silu",
                                    target=Target.REGISTER, target_index=3, reduce=Reduce.MAX, reduce_index=12)
    got = field_values(instruction.encode())
    assert got == dict(kind=1, a_source=1, a=5, b_source=2, b=9, c_source=3, c=0, target=1, target_index=3, op=2,
                       negate_a=1, negate_c=0, post=POSTS.index("silu"), reduce=2, reduce_index=12, drop=0, spare=0)


def _word(**changes):
    """A legal pass with some fields changed."""
    word, position = programs.vector(to="out").encode(), 0
    for name, width in FIELDS:
        if name in changes:
            word = word & ~(((1 << width) - 1) << position) | changes[name] << position
        position += width
    return word & (1 << 60) - 1 | changes.get("kind", Kind.VECTOR) << 60 | changes.get("spare", 0) << position


RESERVED = [
    (dict(kind=0), "kind"), (dict(kind=6), "kind"), (dict(kind=15), "kind"), (dict(spare=1), "unused bits"),
    (dict(op=3), "operation"), (dict(op=7), "operation"), (dict(post=11), "function"), (dict(post=15), "function"),
    (dict(reduce=3), "reduction"), (dict(target=2), "target"), (dict(target=1, target_index=8), "target"),
    (dict(b_source=0, b=3), "constant"), (dict(b_source=1, b=8), "register"), (dict(a_source=3, a=1), "stream"),
    (dict(kind=2), "target"), (dict(kind=2, target=2), "stream"), (dict(kind=2, target=2, a_source=1), "register"),
    (dict(kind=2, target=2, a_source=2, reduce=1), "reduction"), (dict(kind=2, target=1), "target"),
]
RESERVED = [(_word(**changes), what) for changes, what in RESERVED]
RESERVED += [(Kind.SET << 60 | 1 << 36, "unused bits"), (Kind.LENGTH << 60, "length"),
             (Kind.LENGTH << 60 | 129, "length"), (Kind.LENGTH << 60 | 1 << 40, "length"), (0, "kind"),
             (Kind.ARGUMENT << 60 | 1, "argument")]


def test_scalars_from_outside():
    """By numbers from 1 on; no other word has a meaning."""
    machine = Machine(VectorUnit(lanes=8, beats=16, arguments=3))
    machine.arguments = (7, 0x3F800000, 9)
    machine.run([programs.argument(4, 2), programs.argument(15, 3)])
    assert (machine.scalars[4], machine.scalars[15]) == (0x3F800000, 9)
    for bits_, what in ((0, "argument"), (4, "argument"), (1 << 4 | 1, "unused bits"), (1 << 31 | 1, "unused bits"),
                        (1 << 36 | 1, "unused bits"), (1 << 59 | 1, "unused bits")):
        with pytest.raises(ReservedInstruction, match=f"is reserved: {what}$"):
            machine.run([Kind.ARGUMENT << 60 | bits_])


@pytest.mark.parametrize("word, what", RESERVED)
def test_reserved_instruction_changes_nothing(word, what):
    machine = Machine(UNIT)
    registers, scalars = machine.registers.copy(), machine.scalars.copy()
    with pytest.raises(ReservedInstruction, match=f"^VectorInstruction 0x{word:016X} is reserved: {what}$"):
        machine.run([word], [bits(np.ones(128))])
    np.testing.assert_array_equal(machine.registers, registers)
    np.testing.assert_array_equal(machine.scalars, scalars)
    assert machine.length == 128


def test_functions_that_a_unit_lacks_are_reserved():
    unit, word = VectorUnit(functions=("exp",)), programs.activation("tanh")[0].encode()
    check(programs.activation("exp")[0].encode(), unit)
    with pytest.raises(ReservedInstruction, match=f"^VectorInstruction 0x{word:016X} is reserved: function$"):
        check(word, unit)


def test_programs_hold_legal_words_only():
    for program in (programs.softmax(), programs.log_softmax_gradient(), programs.gelu_gradient(),
                    programs.layer_norm(64), programs.layer_norm_gradient(64), programs.sgd(0.1, 0.9),
                    programs.adam_moments(), programs.adam_step(0.1, 1), programs.decayed(0.1)):
        for instruction in program:
            check(instruction.encode(), UNIT)


@pytest.mark.parametrize("rows, message", [(0, "not fewer"), (2, "not 1 more")])
def test_wrong_rows(rows, message):
    with pytest.raises(ValueError, match=f"^Input rows must be as many as the program reads, {message}$"):
        Machine(UNIT).run(programs.activation(), [np.zeros(128, dtype=np.uint32)] * rows)


@pytest.mark.parametrize("options, message", [
    (dict(lanes=0), "Lanes must be 1 to 64, not 0"), (dict(lanes=6), "Lanes must be a power of two, not 6"),
    (dict(beats=0), "Beats must be 1 to 8192, not 0"), (dict(registers=17), "Vector registers must be 1 to 16, not 17"),
    (dict(function_lanes=9), "Function lanes must be 0 to 8, not 9"),
    (dict(function_lanes=3), "Function lanes must be a power of two, not 3"),
    (dict(function_lanes=2, functions=()), "Function lanes must be 0 where the unit has no function, not 2"),
    (dict(pipeline=13), "Function pipeline must be 0 to 12 cycles, not 13"),
    (dict(functions=("recip",), pipeline=6), "Function pipeline must be 0 to 5 cycles, not 6"),
    (dict(product=6), "Registers of products must be 0 to 5, not 6"),
    (dict(sum=8), "Registers of sums must be 0 to 7, not 8"),
    (dict(functions=("sin",)), f"Function must be one of {', '.join(FUNCTIONS)}, not 'sin'"),
])
def test_wrong_unit(options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        VectorUnit(**options)


SHORT = VectorUnit(lanes=4, beats=6, short_rows=6)


@pytest.mark.parametrize("make, count", [(programs.log_softmax, 1), (programs.log_softmax_gradient, 2),
                                         (lambda: programs.layer_norm_plain(3), 1)],
                         ids=["log softmax", "its gradient", "layer norm"])
@pytest.mark.parametrize("rows, length", [(2, 3), (6, 4), (5, 1)])
def test_several_rows_of_a_pass_have_the_bits_of_each_alone(make, count, rows, length):
    """Each has scalars of its own where passes put them; one that is set is there for all."""
    sets = [each for each in make() if each.immediate]
    body = make()[len(sets):]
    x = bits(np.random.default_rng(rows).normal(size=(count, rows, 4)).astype(np.float32))
    many, = Machine(SHORT).run([*sets, programs.length(length, rows), *body], x.reshape(count, -1))
    for row, got in enumerate(many.reshape(rows, 4)):
        alone, = Machine(SHORT).run([*sets, programs.length(length), *body], x[:, row, :length])
        np.testing.assert_array_equal(got[:length], alone)


def test_a_scalar_has_one_number_again_once_it_is_set():
    """Numbers of rows stay where another scalar is put, and go where this one is; other lengths do not touch them."""
    x = bits(np.arange(8, dtype=np.float32))
    give = programs.vector(scalar(0), to="out")
    machine = Machine(SHORT)
    first, = machine.run([programs.length(2, 2), programs.vector(sum=0), programs.vector(sum=1), give], [x, x])
    np.testing.assert_array_equal(first.reshape(2, 4)[:, 0], bits([1, 9]))
    again, = machine.run([programs.length(3), programs.vector(max=1), programs.length(1, 2), give], [x[:3]])
    np.testing.assert_array_equal(again, first)
    for put in ([programs.load(0, 3.0)], [programs.length(4), programs.vector(max=0)]):
        one, = Machine(SHORT).run([programs.length(2, 2), programs.vector(sum=0), *put, programs.length(2, 2), give],
                                  [x, x[:4]][:len(put)])
        np.testing.assert_array_equal(one, bits([3.0] * 8))


@pytest.mark.parametrize("length, rows, what", [(5, 2, "length"), (4, 1, "rows"), (4, 7, "rows"), (0, 2, "length")])
def test_lengths_of_several_rows_that_are_reserved(length, rows, what):
    with pytest.raises(ReservedInstruction, match=f"is reserved: {what}$"):
        Machine(SHORT).run([programs.length(length, rows)])
    with pytest.raises(ReservedInstruction, match="is reserved: rows$"):
        Machine(VectorUnit(lanes=4, beats=6)).run([programs.length(4, 2)])
