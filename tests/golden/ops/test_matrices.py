"""What multiplies matrices is HBFP or an error in a strict model, whether it runs, is compiled or is exported."""

import importlib
import re

import pytest

torch = pytest.importorskip("torch")

from torch.nn.attention.flex_attention import flex_attention  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils.flop_counter import flop_registry  # noqa: E402

import golden.nn as gn  # noqa: E402
from golden.nn import handlers, scope  # noqa: E402
from golden.ops.matrices import multiplies, name_of, named  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")              # torch's own, of flex_attention and of old functions
F = torch.nn.functional


@torch.library.custom_op("hbfp_test::grouped_mm_fallback", mutates_args=())
def fallback(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """As a library of experts brings its own."""
    return x @ w[0]


@fallback.register_fake
def _(x, w):
    return x.new_empty(len(x), w.shape[-1])


class Of(torch.nn.Module):
    """A function of some weights and the inputs as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 512).reshape(2, 16, 16))

    def forward(self, *inputs):
        return self.function(self.weight, *inputs)


def inside(w, x):
    return Of(lambda w, x: torch.ops.aten.mm(x, w[0]))(x)


X = torch.linspace(-1, 2, 128).reshape(8, 16)
#: Name -> what multiplies, past the functions that have a form in HBFP.
ESCAPES = {
    "flex_attention": lambda w, x: flex_attention(*[x.reshape(1, 1, 8, 16)] * 3),
    "grouped_mm_fallback": lambda w, x: torch.ops.hbfp_test.grouped_mm_fallback(x, w),
    "mm": lambda w, x: torch.ops.aten.mm(x, w[0]), "linear": lambda w, x: torch.ops.aten.linear.default(x, w[0]),
    "_int_mm": lambda w, x: torch._int_mm(*[torch.ones(32, 32, dtype=torch.int8)] * 2) + x.sum(),
    "cov": lambda w, x: torch.cov(x)}
RUNS = {"eager": lambda net, x: net(x), "compiled": lambda net, x: torch.compile(net, backend="aot_eager")(x),
        "exported": lambda net, x: torch.export.export(net, (x,)).module()(x)}


def refused(name):
    return re.escape(f"The module (Of) cannot compute {name} in HBFP: {scope.NOT_OURS}; exclude=[''] leaves its "
                     "products in FP32")


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_escapes_a_strict_model(name, run):
    torch._dynamo.reset()
    with torch.no_grad(), pytest.raises(TypeError) as caught:
        RUNS[run](gn.convert(Of(ESCAPES[name]), "hbfp4", strict=True).eval(), X)
    first = str(caught.value).splitlines()[0]                 # torch.compile says behind it where that is
    assert re.fullmatch(refused(name), first)


@pytest.mark.parametrize("name", ["flex_attention", "grouped_mm_fallback", "mm"])
def test_the_report_has_what_a_model_that_is_not_strict_leaves(name):
    net = gn.convert(Of(ESCAPES[name]), "hbfp4").eval()
    entry, = gn.report(net, X).left
    assert (entry.operation, entry.reason) == (name, "no function of torch that has a form in HBFP")
    assert gn.fp32_products(net, X) == [("", name)]


@pytest.mark.parametrize("run", RUNS)
def test_excluded_parts_may_multiply(run):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part, self.head = Of(ESCAPES["mm"]), torch.nn.Linear(16, 4)

        def forward(self, x):
            return self.head(self.part(x)) @ self.head.weight
    torch._dynamo.reset()
    with torch.no_grad():
        net = gn.convert(Net(), "hbfp4", exclude="part", strict=True).eval()
        assert torch.equal(RUNS[run](net, X), net(X))


def test_a_quantised_layer_is_refused():
    net = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(16, 4)), {torch.nn.Linear},
                                                 dtype=torch.qint8)
    gn.convert(net, "hbfp8", strict=True)
    for run in ("eager", "compiled"):
        torch._dynamo.reset()
        with pytest.raises(TypeError) as caught:
            RUNS[run](net, X)
        assert str(caught.value) == (f"Module '0' (Linear) cannot compute linear_dynamic in HBFP: {scope.NOT_OURS}; "
                                     "exclude=['0'] leaves its products in FP32")


def test_branches_are_looked_at():
    def model(then):
        return gn.convert(Of(lambda w, x: torch.cond(x.sum() > -1e9, then, torch.relu, (x,))), strict=True).eval()
    with torch.no_grad(), pytest.raises(TypeError, match=refused("mm")):
        model(lambda y: torch.ops.aten.mm(y.t(), y)[:8])(X)
    assert torch.equal(model(torch.exp)(X), X.exp())


def test_products_of_integers_are_none():
    net = gn.convert(Of(lambda w, x: (x.long() @ w[0].long()) + torch.ops.aten.mm(x.int(), w[0].int())), strict=True)
    assert torch.equal(net(X), X.long() @ net.weight[0].long() + X.int() @ net.weight[0].int())


OFFS = torch.tensor([3, 8], dtype=torch.int32)


def grouped(w, x):
    return F.grouped_mm(x, w, offs=OFFS.to(x.device))


def test_experts_are_exported_as_one_operator():
    net = gn.convert(Of(grouped), "hbfp4", strict=True)
    program = torch.export.export(net, (X,))
    assert [node.target for node in program.graph.nodes if getattr(node.target, "namespace", "") == "hbfp"] == [
        torch.ops.hbfp.grouped.default]
    assert torch.equal(program.module()(X), net(X))
    bits = []
    for run in (net, program.module()):
        x = X.clone().requires_grad_()
        run(x).square().sum().backward()
        bits.append((x.grad, next(run.parameters()).grad))
    assert all(torch.equal(*pair) for pair in zip(*bits, strict=True))


@pytest.mark.parametrize("strict", [True, False])
def test_compiled_experts_are_refused(strict):
    """torch.compile takes them past all modes; they would stay in bfloat16."""
    net = gn.convert(Of(grouped).bfloat16(), "hbfp4", strict=strict).eval()
    torch._dynamo.reset()
    with torch.no_grad(), pytest.raises(TypeError) as caught:
        RUNS["compiled"](net, X.bfloat16())
    assert str(caught.value).splitlines()[0] == (
        f"The module (Of) cannot compute _grouped_mm in HBFP: {scope.UNSEEN}; exclude=[''] leaves its products in FP32")


def test_what_a_break_of_the_graph_leaves_is_found():
    def forward(w, x):
        torch._dynamo.graph_break()
        return torch.ops.aten.mm(x, w[0])
    torch._dynamo.reset()
    with torch.no_grad(), pytest.raises(TypeError, match=f"^{refused('mm')}$"):
        RUNS["compiled"](gn.convert(Of(forward), strict=True).eval(), X)


def test_all_that_has_a_form_and_all_that_torch_counts_is_known():
    assert [func for func in handlers.HANDLERS if not multiplies(func)] == []
    assert [name_of(func) for func in flop_registry if not multiplies(func)] == []
    ours = [getattr(torch.ops.hbfp, name) for name in ("linear", "matmul", "conv2d", "grouped")]
    assert not any(multiplies(each) or multiplies(each.default) for each in ours)


#: Words of names that are close to products'; each operator with one is either known or listed below.
NEAR = re.compile(r"mm|mv|dot|conv|linear|matmul|lstm|gru|rnn|attention|einsum|bilinear|cdist|gemm|multi_head|encoder")
#: What of these operators multiplies nothing: words that their names have, in part.
NOT = re.compile(r"(^|_|:)(prepack|unpack|pack|reorder|upsample|flatten|cumm\w*|hamming|dummy|search|indices|conj|norm|"
                 r"embedding)(_|$)|thnn_(fused|differentiable)|gamma|symmetric|::_*upsample|_convert_|::convert|linear_quantize|"
                 r"::conv(_transpose)?\dd_(stride|padding|dilation|groups|transpose|output_padding)$")


def test_no_operator_that_torch_has_registered_is_unknown_by_name():
    # Registers operators of its own; another test of the same process may have imported it, so this one always does.
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    names = {schema.name for schema in torch._C._jit_get_all_schemas()} | {
        name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    near = {name for name in names if NEAR.search(name.partition("::")[2]) and not name.startswith("hbfp")}
    assert len(near) > 200
    assert {name for name in near if not named(name.partition("::")[2])} == {name for name in near if NOT.search(name)}


class Seen(TorchDispatchMode):
    """The products that run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names += [name_of(func)] if multiplies(func) else []
        return func(*args, **(kwargs or {}))


def contracts(func, operands):
    """Whether a result depends on several elements of one operand, each as much as an element of another says."""
    x = [each.clone().requires_grad_() for each in operands]
    y = func(*x)
    if not isinstance(y, torch.Tensor) or not y.requires_grad or not y.numel():
        return False
    first, = torch.autograd.grad(y.flatten()[0], x[0], create_graph=True, allow_unused=True)
    if first is None or int((first != 0).sum()) < 2 or not first.requires_grad:
        return False
    turned = torch.autograd.grad(first.sum(), x[1:], allow_unused=True)
    return any(each is not None and int((each != 0).sum()) > 1 for each in turned)


#: What measures a distance or an angle of rows, or compares or solves with all of a matrix: no product of matrices.
MEASURES = re.compile(r"loss|_error|entropy|cosine|pairwise|dist|norm|solve|lstsq|kl_div|divergence|cross|var|std|"
                      r"softmax|grid_sample|cumulative|trapz|trapezoid|corr|embedding_bag|householder|ormqr|orgqr|geqrf")
#: What is not to be called here.
LEFT_ALONE = ("seed", "manual_seed", "compile", "save", "load", "share_memory_", "rename", "backward")


def test_no_function_of_torch_multiplies_unknown_when_it_runs():
    """Each is run on matrices: neither products inside it nor what its derivatives say may be unknown by its name."""
    generator = torch.Generator().manual_seed(1)
    assert contracts(torch.matmul, [X[:, :8], X[:, 8:]]) and not contracts(torch.mul, [X, X])
    unknown, ran = {}, 0
    for module in (torch, torch.linalg, torch.special, F, torch.Tensor):
        for name in sorted(dir(module)):
            func = getattr(module, name)
            if (name.startswith(("_", "set_")) or name in LEFT_ALONE or not callable(func) or isinstance(func, type)
                    or multiplies(func)):
                continue
            for count in (1, 2, 3):
                x = [torch.rand(4, 4, generator=generator) + torch.eye(4) for _ in range(count)]
                try:
                    with Seen() as seen:
                        func(*x)
                    found = seen.names or count > 1 and not MEASURES.search(name) and contracts(func, x)
                except Exception:                              # what does not take matrices
                    continue
                ran += 1
                if found:
                    unknown[f"{module.__name__}.{name}"] = found
    assert ran > 500 and not unknown
