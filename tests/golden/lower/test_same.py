"""Nothing of a model is left out that changes its numbers: drawn operations are refused, or have the model's own bits.

Covers: golden/lower/views.py.
"""

import random

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from golden.lower.errors import NO_OPERATION, LoweringError, instead
from golden.lower.graph import reference
from golden.lower.lowering import lower
from golden.lower.same import shorten
from golden.machine.machine import Machine
from golden.ops.table import OPERATIONS
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.system import Accelerator
from tests.cases import sweep

pytestmark = pytest.mark.filterwarnings("ignore")
aten = torch.ops.aten
MACHINE = Accelerator(core=Design(format=HBFPFormat(block=(1, 8)), rows=8, depth=32), x_words=256, w_words=512,
                      v_words=256)
INF = float("inf")


class Of(torch.nn.Module):
    """A function as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 64).reshape(8, 8))

    def forward(self, *inputs):
        return self.function(self.weight, *inputs)


def runs(function, *inputs):
    """Lower a function, run it, and hold its outputs to the converted model's; what was refused, or None."""
    model = Of(function).eval()
    try:
        lowered = lower(model, inputs, MACHINE)
    except LoweringError as error:
        return str(error)
    device = Machine(lowered.program, races=True)
    device.run()
    with torch.no_grad():
        outputs = torch.utils._pytree.tree_leaves(reference(model, MACHINE)(*inputs))
    for name, output in zip(lowered.outputs, outputs, strict=True):
        for values in (lowered.expected[name], device.get(name)):
            own = lowered.torch_order(name, values)
            assert own.dtype == np.float32 and own.shape == output.shape
            np.testing.assert_array_equal(own.view(np.uint32), output.float().numpy().view(np.uint32))
    return None


X, MASK = torch.randn(8, 8, generator=torch.Generator().manual_seed(1)), torch.eye(8)
WORDS = torch.arange(64).reshape(8, 8) % 3
RANDOM = ("it draws random numbers, others in each run; a model without it, or with training=False where it has that, "
          "would do")


@pytest.mark.parametrize("function, name", [
    (lambda w, x: F.dropout(x, 0.5, training=True), "dropout"), (lambda w, x: F.alpha_dropout(x, 0.5, True),
                                                                  "alpha_dropout"),
    (lambda w, x: F.feature_alpha_dropout(x[None], 0.5, True), "feature_alpha_dropout"),
    (lambda w, x: F.dropout2d(x[None, None], 0.5, True), "feature_dropout"),
    (lambda w, x: F.dropout((x * 2).add_(1), 0.5, True), "native_dropout"),
    (lambda w, x: x @ F.dropout(w, 0.5, True), "dropout"), (lambda w, x: x + torch.rand(8), "rand"),
    (lambda w, x: x * torch.bernoulli(torch.full((8,), 0.5)), "bernoulli"), (lambda w, x: F.rrelu(x, training=True),
                                                                             "rrelu"),
    (lambda w, x: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.5), "native_dropout")])
def test_what_draws_is_refused(function, name):
    assert runs(function, X) == f"The model ({name}) cannot be lowered: {RANDOM}"


@pytest.mark.parametrize("off", [
    lambda x: F.dropout(x, 0.5, False), lambda x: F.dropout(x, 0.0, True), lambda x: F.alpha_dropout(x, 0.5, False),
    lambda x: F.dropout1d(x, 0.0), lambda x: x + 0 * torch.rand(3).shape[0]])
def test_dropout_that_is_off_is_nothing(off):
    assert runs(lambda w, x: off(x) * 2, X) is None


def test_arguments_are_by_place_and_no_others():
    """Those that a model gives; what it leaves out stays out, so that patterns see the same however it is written."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    one = graph.call_function(aten.sum.dim_IntList, (x,), {"dim": [0]})
    two = graph.call_function(aten.sum.dim_IntList, (one,), {"keepdim": True, "dim": [1]})
    graph.output(graph.call_function(aten.add.Tensor, (two,), {"alpha": 2, "other": one}))
    shorten(graph)
    assert [(each.args, each.kwargs) for each in graph.nodes if each.op == "call_function"] == [
        ((x, [0]), {}), ((one, [1], True), {}), ((two, one), {"alpha": 2})]


def test_what_has_no_numbers_may_be_joined_and_is_nothing_else():
    assert runs(lambda w, x: torch.cat([x[:0], x * 2]), X) is None
    assert runs(lambda w, x: (lambda none: (torch.cat([none, x]), none + 1))(x[:0]), X) == (
        "The model (slice) cannot be lowered: it gives no numbers: its shape is (0, 8); one of numbers would do")


@pytest.mark.parametrize("function, name", [
    (lambda w, x, m: x.softmax(-1).masked_fill((m == -INF).all(-1, keepdim=True), 0.0), "all"),
    (lambda w, x, m: x.softmax(-1).masked_fill((x == INF).all(-1, keepdim=True), 0.0), "all"),
    (lambda w, x, m: x.softmax(-1).masked_fill((x == -INF).any(-1, keepdim=True), 0.0), "any"),
    (lambda w, x, m: x.softmax(-1).masked_fill((x == -INF).all(0, keepdim=True), 0.0), "all"),
    (lambda w, x, m: x.softmax(-1).masked_fill(torch.logical_not((x == -INF).any(-1, keepdim=True)), 0.0), "any"),
    (lambda w, x, m: x.softmax(-1).masked_fill((x == -INF).all(-1, keepdim=True), 1.0), "all"),
    (lambda w, x, m: x._neg_view() + 1, "neg_view"),
    (lambda w, x, m: (x * 2)[:, :5].as_strided((4, 2), (5, 1), 3) + 1, "as_strided"),
    (lambda w, x, m: torch.cond(x.sum() > 0, torch.exp, torch.relu, (x,)), "cond")])
def test_what_only_looks_like_nothing_is_refused(function, name):
    assert runs(function, X, MASK) == f"The model ({name}) cannot be lowered: {instead('', NO_OPERATION)}"


@pytest.mark.parametrize("function", [
    lambda w, x, m: x.masked_fill(m == 0, 0.0), lambda w, x, m: x.masked_fill(x == -INF, 0.0),
    lambda w, x, m: torch.where(m == 0, x, 0.0),
    lambda w, x, m: x.softmax(-1).masked_fill((x == -INF).all(-1, keepdim=True), 0.0),
    lambda w, x, m: x.softmax(-1).masked_fill(torch.logical_not(
        torch.logical_not(x == -INF).any(-1, keepdim=True)), 0.0)])
def test_masks_of_numbers(function):
    assert runs(function, X, MASK) is None


@pytest.mark.parametrize("function", [
    lambda w, x: torch.logical_and(x, w), lambda w, x: torch.logical_or(w > 0, x), lambda w, x: torch.logical_xor(w, x),
    lambda w, x: torch.logical_not(x), lambda w, x: torch.logical_and(x > 0, w > 0) * w])
def test_whatever_is_not_zero_is_true(function):
    x = X.clone()
    x[::2, ::3], x[3], x[4] = 0.0, -0.0, 1.0
    assert runs(function, x) is None
    model = Of(function).eval()
    assert torch.equal(reference(model, MACHINE)(x), model(x))


def test_rows_that_take_part_in_nothing():
    def attend(w, x, words):
        return F.scaled_dot_product_attention(x[None], x[None], x[None], words > 0)
    assert runs(attend, X, WORDS) is None
    assert runs(attend, X, WORDS * (torch.arange(8) > 0)[:, None]) == (
        "The model (masked_fill) cannot be lowered: a row of its softmax takes part in nothing and has no numbers on "
        "the accelerator; a mask with something for every row would do")


@pytest.mark.parametrize("function, refusal", [
    (lambda w, x: F.softmax(x, -1, dtype=torch.float64), "(to_copy) cannot be lowered: it gives float64"),
    (lambda w, x: (x @ w) + torch.ones(8, dtype=torch.float64), "(add) cannot be lowered: it gives float64"),
    (lambda w, x: x.view(torch.int32).view(torch.float32), "(view) cannot be lowered: it gives int32"),
    (lambda w, x: x.bfloat16().float(), "(to) cannot be lowered: it gives bfloat16")])
def test_other_numbers_are_refused(function, refusal):
    assert runs(function, X) == f"The model {refusal}; numbers of float32 would do"


def test_no_numbers_are_refused():
    assert runs(lambda w, x: x[:0] + 1, X) == ("The model (slice) cannot be lowered: it gives no numbers: its shape is "
                                               "(0, 8); one of numbers would do")


def test_a_model_is_held_to_itself_and_not_to_its_graph():
    assert runs(lambda w, x: x * random.random(), X) == (
        "The model cannot be lowered: it gives other numbers than torch's graph of it; a forward that always does the "
        "same would do")


#: What one step of a drawn model does with x of (8, 8), a weight w, reals m that are 0 or 1, and integers k.
STEPS = """\
x @ w
F.linear(x, w, w[0])
x + w
w - x
torch.add(x, w, alpha=2)
x * m
m * x + k
x / 0.0
x * 1e300
x * INF
x.masked_fill(k == 0, 0.0)
x.masked_fill(k == 1, -INF)
x.masked_fill(k.bool(), 2.5)
x.masked_fill(m == 0, 0.0)
x.masked_fill((k == 0).all(-1, keepdim=True), 0.0)
x.masked_fill((x == -INF).all(-1, keepdim=True), 0.0)
x.softmax(-1).masked_fill((x == -INF).all(-1, keepdim=True), 0.0)
x.softmax(0).masked_fill((x == -INF).all(-1, keepdim=True), 0.0)
torch.where(k > 0, x, 0.0)
x * torch.where(k > 0, 1.0, 0.5)
x + (1 - k.float()) * -1e9
F.dropout(x, 0.5)
F.dropout(x, 0.5, False)
x * F.dropout(w, 0.5)
F.alpha_dropout(x, 0.3)
F.alpha_dropout(x, 0.3, True)
F.dropout(x, 0.0)
x.relu_()
F.relu(x) + x
F.gelu(x)
F.gelu(x, approximate="tanh")
torch.exp(x)
x.double().float()
x.to(torch.bfloat16)
x.contiguous().detach()
x.t()
x.flip(0)
x.roll(1)
x.chunk(2)[1].repeat(2, 1)
torch.cat(x.split(3)[::-1])
torch.stack([x, w], -1)[..., 1]
x.view(4, 16).t().reshape(8, 8)
x._neg_view()
x.as_strided((8, 8), (1, 8))
x.unfold(1, 3, 1)[:, :, 0].repeat(1, 2)[:, :8]
x.expand(2, 8, 8)[1]
x[:, :5] @ w[:5]
x * k.sum().item()
x * x[0, 0]
F.layer_norm(x, (8,), w[0])
F.batch_norm(x, w[0], w[1].abs(), w[2])
F.batch_norm(x, None, None, w[2], training=True)
torch.nan_to_num(x)
x.clamp(-1, 1)
F.embedding(k[0], x)
F.embedding(k[0], w) + x
F.embedding(k[0], w, max_norm=0.5)
F.avg_pool2d(x[None], 1)[0]
F.max_pool2d(x[None, None], 2).repeat(1, 1, 2, 2)[0, 0]
F.max_pool1d(x, 3, 1, 1)
F.adaptive_avg_pool2d(x[None], 4).repeat(1, 2, 2)[0]""".splitlines()


def model_of(steps):
    """A model that does these steps, one after the other."""
    def forward(w, x, m, k):
        for step in steps:
            x = eval(step, {"x": x.clone(), "w": w, "m": m, "k": k, "torch": torch, "F": F, "INF": INF})
        return x
    return forward


def check_drawn(seeds):
    """Run drawn models; how many were lowered."""
    lowered = 0
    for seed in seeds:
        steps = random.Random(seed).choices(STEPS, k=random.Random(seed).randint(1, 4))
        try:
            lowered += runs(model_of(steps), X, MASK, WORDS) is None
        except (AssertionError, RuntimeError) as error:
            raise AssertionError(steps) from error
    return lowered


@pytest.mark.parametrize("every", sweep(2, [4, 1]))
def test_drawn_models_are_refused_or_have_their_own_bits(every):
    assert check_drawn(range(8 // every)) > 0
    steps = STEPS[::every]
    singles = [runs(model_of([step]), X, MASK, WORDS) for step in steps]
    assert len(steps) / 3 < singles.count(None) < len(steps) * 11 / 12


@pytest.mark.slow
def test_many_drawn_models():
    assert check_drawn(range(8, 1000)) > 200


def values(argument, rng, shape):
    """A value for an argument of one of torch's operations: by its name, or else by its type."""
    channels, kind = shape[1], str(argument.type)
    named = {"mask": MASK[0, :1] > 0 if rng.random() < 0.5 else WORDS.flatten()[:shape[-1]] > 0, "mode": "constant",
             "indices": WORDS % 2, "dim": rng.choice([0, 1, -1]), "approximate": rng.choice(["none", "tanh"]),
             "normalized_shape": shape[-1:], "kernel_size": 2, "running_mean": torch.ones(channels),
             "running_var": torch.full((channels,), 2.0), "eps": rng.choice([1e-5, 0.1])}
    if argument.name in named:
        return named[argument.name]
    if kind.removeprefix("Optional[").startswith("Tensor"):
        return torch.linspace(-1, 2, channels) if argument.name in ("weight", "bias") else torch.linspace(
            -1, 1, shape[-1])
    if "dtype" in argument.name or "int" not in kind and argument.type.kind() == "OptionalType" and "Type" in kind:
        return rng.choice([torch.float64, torch.float32])
    if "List" in kind:
        return [rng.choice([0, 1, 2]) for _ in range(2)]
    if "bool" in kind:
        return rng.random() < 0.5
    return rng.choice([0.5, 2.0]) if "number" in kind or "Scalar" in kind or "float" in kind else rng.choice([1, 2])


@pytest.mark.slow
@pytest.mark.parametrize("target", [
    getattr(call, name) for each in OPERATIONS for call in each.calls for name in call.overloads()
    if "out" not in name.split("_") and not each.gradient          # these take what a forward pass has kept
    and name != "no_stats"                                         # torch itself crashes on channels that do not fit
    and getattr(call, name)._schema.returns], ids=str)             # others sort lists of Python
def test_every_argument_of_what_is_lowered_counts(target):
    """Each argument in turn, beside those that have no default, is set; torch itself refuses some."""
    schema, done = target._schema, 0
    for number, each in enumerate(schema.arguments[1:], 1):
        rng = random.Random(number)
        for shape in ((2, 8), (2, 8, 4), (2, 3, 4, 4)):
            needed = [other for other in schema.arguments[1:] if not other.has_default_value() or other is each]
            options = {other.name: values(other, rng, shape) for other in needed}

            def forward(w, x, options=options, first=schema.arguments[0]):
                x = x * 1
                return target([x, x] if "List" in str(first.type) else x, **options)
            x = torch.linspace(0.5, 3, int(np.prod(shape))).reshape(shape)
            try:
                forward(None, x)
            except (RuntimeError, IndexError, TypeError, ValueError):
                continue
            runs(forward, x)
            done += 1
            break
    if not done and len(schema.arguments) > 1:
        pytest.skip("torch takes none of the arguments that are drawn")
