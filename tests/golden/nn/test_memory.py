"""Products read a tensor's numbers, however they lie in memory: each result has the bits of a plain copy's."""

import copy
import pathlib
import re
from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.two_tensor import TwoTensor  # noqa: E402

import golden.nn as gn  # noqa: E402
from golden.nn import functional, fused, memory, portable  # noqa: E402
from golden.nn.optimiser import store  # noqa: E402
from golden.noise import Stream  # noqa: E402
from tests.cases import sweep  # noqa: E402


def negative(x):
    """``x`` as the imaginary part of a conjugate: memory has the negated numbers, every other one."""
    return torch.complex(x.flip(0), -x).conj().imag


def turned(x):
    """The dimensions in reverse order in memory."""
    order = list(range(x.dim()))[::-1]
    return x.permute(order).contiguous().permute(order)


def expanded(dim):
    """All along a dimension are the first one, in memory once."""
    return lambda x: x.narrow(dim % x.dim(), 0, 1).expand(x.shape)


def zeros(x):
    """A tensor of zeros without memory, as autograd makes them."""
    return torch._efficientzerotensor(x.shape)


#: From a plain tensor to one of its shape that lies otherwise.
LAYOUTS = {
    "negative": negative, "negative and dense": lambda x: torch._neg_view(-x), "turned": turned,
    "turned and negative": lambda x: torch._neg_view(turned(-x)), "gaps": lambda x: torch.stack((x, x + 1), -1)[..., 0],
    "part": lambda x: torch.cat((x, x), -1).narrow(-1, 1, x.shape[-1]), "zeros": zeros,
    "expanded first": expanded(0), "expanded last": expanded(-1), "expanded middle": expanded(1),
    "negative and expanded": lambda x: negative(expanded(0)(x)),
    "overlapping": lambda x: x.flatten().as_strided(x.shape, (1,) * x.dim())}


def plain(x):
    return torch.empty(x.shape).copy_(x)


def conv(*options):
    return lambda a, b, formats, stream: functional.conv2d(a, b, None, *options, formats=formats, stream=stream)


#: Operation -> function of two operands, formats and stream, and the operands' shapes.
OPERATIONS = {
    "linear": (lambda a, b, f, s: functional.linear(a, b, None, f, stream=s), (5, 20), (6, 20)),
    "linear of three dimensions": (lambda a, b, f, s: functional.linear(a, b, None, f, stream=s), (2, 3, 20), (6, 20)),
    "row": (lambda a, b, f, s: functional.linear(a, b, None, f, stream=s), (1, 20), (1, 20)),
    "column": (lambda a, b, f, s: functional.linear(a, b, None, f, stream=s), (9, 1), (6, 1)),
    "bias": (lambda a, b, f, s: functional.linear(a, torch.ones(6, 4), b, f, stream=s), (5, 4), (6,)),
    "matmul": (lambda a, b, f, s: functional.matmul(a, b, f, stream=s), (3, 5, 20), (3, 20, 6)),
    "convolution": (conv(), (2, 8, 5, 5), (4, 8, 3, 3)),
    "padded convolution": (conv(2, 1), (2, 3, 5, 5), (4, 3, 3, 3)),
    "grouped convolution": (conv(1, 1, 1, 2), (2, 6, 5, 5), (4, 3, 3, 3)),
    "depthwise convolution": (conv(1, 1, 1, 6), (2, 6, 5, 5), (6, 1, 3, 3))}

#: Mode -> formats, and what runs around it.
MODES = {
    "kernels": (gn.Formats.of(gn.HBFPFormat(block=(1, 8))), nullcontext),
    "tiles": (gn.Formats.of(gn.HBFPFormat(block=(8, 8))), nullcontext),
    "wide": (gn.Formats.of(gn.HBFPFormat(mantissa=16, block=(1, 8))), nullcontext),
    "noise": (gn.Formats.of(gn.HBFPFormat(block=(1, 8), rounding="stochastic")), nullcontext),
    "aligned": (gn.Formats.of(gn.HBFPFormat(block=(1, 8)), accumulate="aligned"), nullcontext),
    "quick": (gn.Formats.of(gn.HBFPFormat(block=(1, 8)), order="quick"), nullcontext),
    "emulator": (gn.Formats.of(gn.HBFPFormat(block=(8, 8)), mode="emulator"), nullcontext),
    "torch": (gn.Formats.of(gn.HBFPFormat(block=(1, 8))), portable.forced)}
#: Modes that take time, and what is tried in them.
SLOW = ("wide", "noise", "aligned", "emulator", "torch")
SOME = ("negative", "turned and negative", "zeros", "expanded first")


def results(run, formats, a, b, g=None):
    """The product and both gradients."""
    stream = Stream(1, formats.lanes) if formats.stochastic else None
    a, b = (t.detach().requires_grad_() for t in (a, b))
    y = run(a, b, formats, stream)
    y.backward(torch.ones_like(y) if g is None else g)
    return y.detach(), a.grad, b.grad


@pytest.mark.parametrize("operation, mode", sweep(3, [
    (operation, mode) for operation in OPERATIONS for mode in MODES
    if (operation, mode) != ("bias", "emulator")]))         # whose sum is torch's, in the order of memory
def test_products_and_gradients(operation, mode):
    """Each operand by itself: of two negatives the signs would cancel out."""
    torch.manual_seed(0)
    (run, *shapes), (formats, around) = OPERATIONS[operation], MODES[mode]
    chosen = {name: LAYOUTS[name] for name in SOME} if mode in SLOW else LAYOUTS
    a, b = map(torch.randn, shapes)
    with around():
        g = torch.randn_like(results(run, formats, a, b)[0])
        for name, layout in chosen.items():
            for index in range(3):
                given = [a, b, g]
                if given[index].dim() == 1 and name == "expanded middle":
                    continue
                given[index] = layout(given[index])
                want = list(given)
                want[index] = plain(given[index])
                for one, other in zip(results(run, formats, *given), results(run, formats, *want), strict=True):
                    assert torch.equal(one, other), (name, "abg"[index])


def test_layouts_are_what_they_say():
    """Else the tests above would test nothing."""
    x = torch.randn(4, 6, 8)
    made = {name: layout(x) for name, layout in LAYOUTS.items()}
    assert {name for name, t in made.items() if t.is_neg()} == {name for name in made if "negative" in name}
    assert {name for name, t in made.items() if 0 in t.stride() and t.dim() > 1} == {
        name for name in made if name.startswith("expanded")}
    assert made["zeros"]._is_zerotensor() and made["overlapping"].stride() == (1, 1, 1)
    assert not any(t.is_contiguous() for name, t in made.items() if name in ("negative", "turned", "gaps", "part"))


@pytest.mark.parametrize("name", LAYOUTS)
def test_everything_beside_products(name):
    """Rounding, master weights, masks, the accelerator's arithmetic, frozen layers, jobs, and operators of programs."""
    torch.manual_seed(0)
    layer, x = gn.HBFPLinear(8, 8, fmt=gn.HBFPFormat(block=(1, 4))), LAYOUTS[name](torch.randn(8, 8))
    want = layer(plain(x))
    assert torch.equal(torch.ops.hbfp.linear(x, layer.weight, layer.formats.text) + layer.bias, want)
    assert torch.equal(torch.compile(layer, backend="eager")(x), want)
    with torch.no_grad():
        assert torch.equal(gn.freeze(copy.deepcopy(layer))(x), want)
    job = fused.fuse([copy.deepcopy(layer) for _ in range(2)])
    assert torch.equal(job(torch.cat((x, x))), torch.cat((want, want)))
    assert torch.equal(gn.quantise(x, "hbfp4", axis=0), gn.quantise(plain(x), "hbfp4", axis=0))
    for part in (torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8)):
        net = gn.convert(torch.nn.Sequential(part), side=gn.DESIGN_SIDE).eval()
        assert torch.equal(net(x), net(plain(x)))
    if "expanded" in name or name in ("zeros", "overlapping"):
        return                                           # as a parameter nothing could be written to them
    layers = [copy.deepcopy(layer), copy.deepcopy(layer)]
    for own, weight in zip(layers, (x, plain(x)), strict=True):
        own.weight = torch.nn.Parameter(weight)
        store(own.weight, gn.HBFPFormat(mantissa=4, block=(4, 4)))
        if x.untyped_storage().nbytes() == x.nbytes:     # else it is refused
            gn.sparsify(own, "2:4")
    assert torch.equal(layers[0].weight, layers[1].weight) and torch.equal(layers[0](x), layers[1](plain(x)))
    assert all(map(torch.equal, layers[0].buffers(), layers[1].buffers()))


def test_a_frozen_layer_sees_that_its_weight_is_negated():
    """The same place in memory, of other numbers."""
    layer, x = gn.freeze(gn.HBFPLinear(8, 4, bias=False)), torch.randn(3, 8)
    with torch.no_grad():
        y = layer(x)
        layer.weight = torch.nn.Parameter(torch._neg_view(layer.weight.detach()))
        assert torch.equal(layer(x), -y)


NESTED = [torch.ones(2, 8), torch.ones(3, 8)]
#: What is refused -> what the line says.
FOREIGN = {
    "array": (lambda: torch.ones(2, 8).numpy(), "one of type ndarray"), "list": (lambda: [1.0], "one of type list"),
    "nested": (lambda: torch.nested.nested_tensor(NESTED), "a nested tensor"),
    "sparse": (lambda: torch.ones(2, 8).to_sparse(), "a tensor of layout sparse_coo"),
    "subclass": (lambda: TwoTensor(torch.ones(2, 8), torch.ones(2, 8)), "a tensor of class TwoTensor")}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_has_no_matrix_of_numbers_is_refused(name):
    make, what = FOREIGN[name]
    message = f"^Operands of HBFP products must be dense tensors, not {re.escape(what)}$"
    layers = [gn.HBFPLinear(8, 4), gn.HBFPConv2d(8, 4, 1), gn.HBFPLSTM(8, 4), gn.HBFPMultiheadAttention(8, 2)]
    calls = [*((layer, (make(),) * (3 if isinstance(layer, gn.HBFPMultiheadAttention) else 1)) for layer in layers),
             *((gn.freeze(layer), (make(),)) for layer in layers[:2]),
             (functional.matmul, (make(), torch.ones(8, 2))), (functional.matmul, (torch.ones(2, 8), make())),
             (functional.linear, (torch.ones(2, 8), make())), (gn.quantise, (make(),))]
    for call, given in calls:
        with torch.no_grad(), pytest.raises(TypeError, match=message):
            call(*given)


def test_memory_is_read_in_one_place():
    """Of a tensor that is to be read nobody else asks for an array or an address."""
    root = pathlib.Path(gn.__file__).parent
    readers = re.compile(r"\.numpy\(|from_dlpack\((?!plain\()|__array__|ctypes\.c_void_p")
    found = [str(path.relative_to(root)) for path in sorted(root.rglob("*.py")) if readers.search(path.read_text())]
    assert found == ["memory.py"]


def test_plain_tensors_are_not_copied():
    x = torch.randn(3, 4)
    assert memory.array(x.T).ctypes.data == x.data_ptr() and memory.plain(x).data_ptr() == x.data_ptr()
