"""Products of a model's own code: each of torch's functions gives HBFP, of the right values, shapes and gradients.

Covers: golden/nn/contract.py, golden/nn/convolution.py, golden/nn/recurrent.py, golden/nn/scope.py.
Covers: golden/nn/volume.py.
"""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.matmul import matmul  # noqa: E402

F = torch.nn.functional
FINE = gn.HBFPFormat(mantissa=16, block=(1, 4))


class Code(torch.nn.Module):
    """A module whose forward is one function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def r(*shape):
    return torch.randn(shape)


def recurrent(kind, *, bias=True, both=False, batch_first=False, layers=1, hidden=5, proj=0):
    """Arguments of torch.lstm and its like."""
    torch.manual_seed(2)
    cls = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn_tanh": torch.nn.RNN, "rnn_relu": torch.nn.RNN}[kind]
    options = {"nonlinearity": kind[4:]} if kind.startswith("rnn") else {"proj_size": proj} if proj else {}
    return cls(4, hidden, layers, bias=bias, bidirectional=both, batch_first=batch_first, **options)


MASK = torch.ones(5, 7, dtype=torch.bool).tril(2)
WHOLLY = MASK & (torch.arange(5) != 2)[:, None]
#: Name -> what is computed of which inputs.
CASES = {
    "@": (lambda a, b: a @ b, (3, 4), (4, 5)),
    "r@": (lambda a, b: a.__rmatmul__(b), (4, 5), (3, 4)),
    "vectors": (lambda a, b: a @ b, (4,), (4,)), "matrix vector": (torch.mv, (3, 4), (4,)),
    "vector matrix": (torch.matmul, (4,), (2, 4, 5)), "stack vector": (torch.matmul, (2, 3, 4), (4,)),
    "broadcast": (torch.matmul, (2, 1, 3, 4), (6, 4, 5)), "shared": (torch.matmul, (2, 3, 4), (4, 5)),
    "matrix stack": (torch.matmul, (3, 4), (2, 4, 5)), "mm": (lambda a, b: a.mm(mat2=b), (3, 4), (4, 5)),
    "bmm": (torch.bmm, (2, 3, 4), (2, 4, 5)), "dot": (torch.dot, (4,), (4,)), "vdot": (torch.vdot, (4,), (4,)),
    "linalg": (torch.linalg.matmul, (3, 4), (4, 5)),
    "vecdot": (lambda a, b: torch.linalg.vecdot(a, b, dim=0), (4, 3), (4, 3)),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), (3, 5), (3, 4), (4, 5)),
    "addmm bias": (torch.addmm, (5,), (3, 4), (4, 5)),
    "addmm beta 0": (lambda c, a, b: torch.addmm(c, a, b, beta=0), (3, 5), (3, 4), (4, 5)),
    "addmm_": (lambda c, a, b: (c * 1).addmm_(a, b), (3, 5), (3, 4), (4, 5)),
    "baddbmm": (torch.baddbmm, (2, 3, 5), (2, 3, 4), (2, 4, 5)),
    "addbmm": (torch.addbmm, (3, 5), (2, 3, 4), (2, 4, 5)), "addmv": (torch.addmv, (3,), (3, 4), (4,)),
    "inner": (torch.inner, (2, 3, 4), (5, 4)), "tensordot": (torch.tensordot, (3, 4, 5), (4, 5, 6)),
    "tensordot axes": (lambda a, b: torch.tensordot(a, b, ([2, 0], [0, 1])), (3, 4, 5), (5, 3, 6)),
    "multi_dot": (lambda *m: torch.linalg.multi_dot(m), (3, 4), (4, 5), (5, 2)),
    "einsum": (lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b), (2, 3, 4, 5), (2, 3, 6, 5)),
    "einsum dots": (lambda a, b: torch.einsum("...ij,...kj->i...k", a, b), (2, 3, 4), (2, 5, 4)),
    "einsum implicit": (lambda a, b: torch.einsum("ij,jk", a, b), (3, 4), (4, 5)),
    "einsum three": (lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c), (3, 4), (4, 5), (5, 2)),
    "einsum diagonal": (lambda a, b: torch.einsum("iij,jk->ik", a, b), (3, 3, 4), (4, 5)),
    "einsum two sums": (lambda a, b: torch.einsum("aijc,bicj->ab", a, b), (2, 3, 4, 5), (6, 3, 5, 4)),
    "einsum ones": (lambda a, b: torch.einsum("ij,jk->ik", a, b), (3, 1), (4, 5)),
    "einsum labels": (lambda a, b: torch.einsum(a, [0, 1], b, [1, 2], [2, 0]), (3, 4), (4, 5)),
    "einsum list": (lambda a, b: torch.einsum("ij,jk->ki", [a, b]), (3, 4), (4, 5)),
    "linear": (F.linear, (2, 3, 4), (5, 4), (5,)), "linear vector": (F.linear, (3, 4), (4,)),
    "bilinear": (F.bilinear, (3, 4), (3, 5), (2, 4, 5), (2,)),
    "attention": (F.scaled_dot_product_attention, (2, 5, 4), (2, 7, 4), (2, 7, 3)),
    "attention causal": (lambda *t: F.scaled_dot_product_attention(*t, is_causal=True, scale=0.3),
                         (2, 5, 4), (2, 7, 4), (2, 7, 3)),
    "attention mask": (lambda *t: F.scaled_dot_product_attention(*t, attn_mask=WHOLLY),
                       (2, 5, 4), (2, 7, 4), (2, 7, 3)),
    "attention groups": (lambda *t: F.scaled_dot_product_attention(*t, enable_gqa=True),
                         (2, 4, 5, 4), (2, 2, 7, 4), (2, 2, 7, 4)),
    "grouped": (lambda a, b: F.grouped_mm(a, b, offs=torch.tensor([2, 2, 8], dtype=torch.int32)), (8, 16), (3, 16, 8)),
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, 2, 1, 1, 2), (2, 4, 9), (6, 2, 3), (6,)),
    "conv1d single": (F.conv1d, (4, 9), (6, 4, 3)),
    "conv1d same": (lambda x, w: F.conv1d(x, w, padding="same", dilation=3), (2, 4, 9), (6, 4, 2)),
    "conv2d same": (lambda x, w: F.conv2d(x, w, padding="same"), (2, 4, 5, 6), (6, 4, 4, 2)),
    "conv2d valid": (lambda x, w: F.conv2d(x, w, padding="valid"), (2, 4, 5, 6), (6, 4, 4, 2)),
    "conv3d": (lambda x, w, b: F.conv3d(x, w, b, (2, 1, 2), (1, 0, 2), (1, 2, 1), 2),
               (2, 4, 5, 6, 5), (6, 2, 3, 2, 3), (6,)),
    "conv3d single": (F.conv3d, (4, 3, 4, 5), (2, 4, 2, 2, 2)),
    "conv_transpose1d": (lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1, 2), (2, 4, 5), (4, 3, 3), (6,)),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, None, (1, 3), (0, 1), (1, 2), 1, (2, 1)),
                         (2, 4, 5, 3), (4, 3, 2, 4)),
    "conv_transpose3d": (lambda x, w: F.conv_transpose3d(x, w, None, (2, 1, 1), 1, (1, 0, 0), 2),
                         (2, 4, 3, 4, 5), (4, 3, 3, 2, 3)),
    "lstm_cell": (lambda x, h, c, *w: torch.lstm_cell(x, (h, c), *w), (2, 4), (2, 3), (2, 3), (12, 4), (12, 3), (12,),
                  (12,)),
    "gru_cell": (torch.gru_cell, (2, 4), (2, 3), (9, 4), (9, 3), (9,), (9,)),
    "rnn_cell": (torch.rnn_relu_cell, (2, 4), (2, 3), (3, 4), (3, 3))}
#: Name -> a module of torch.nn and its inputs.
MODULES = {
    **{f"{kind} {text}": (lambda kind=kind, options=options: recurrent(kind, **options), (r(3, 2, 4),))
       for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu")
       for text, options in (("plain", {}), ("all", {"both": True, "layers": 2, "batch_first": True, "bias": False}))},
    "lstm projected": (lambda: recurrent("lstm", proj=3, both=True, layers=2), (r(3, 2, 4),)),
    "gru single": (lambda: recurrent("gru"), (r(3, 4),)),
    "lstm cell": (lambda: torch.nn.LSTMCell(4, 3), (r(2, 4),)), "gru cell": (lambda: torch.nn.GRUCell(4, 3), (r(4),)),
    "rnn cell": (lambda: torch.nn.RNNCell(4, 3), (r(2, 4),)),
    "bilinear": (lambda: torch.nn.Bilinear(4, 5, 3), (r(2, 4), r(2, 5))),
    **{f"conv {mode}": (lambda mode=mode: torch.nn.Conv2d(4, 3, 3, padding=2, padding_mode=mode), (r(2, 4, 5, 6),))
       for mode in ("reflect", "replicate", "circular")},
    "conv same": (lambda: torch.nn.Conv2d(4, 3, (2, 3), padding="same"), (r(2, 4, 5, 6),)),
    "conv single": (lambda: torch.nn.Conv2d(4, 3, 3), (r(4, 5, 6),)),
    "conv1d circular": (lambda: torch.nn.Conv1d(4, 3, 3, padding=1, padding_mode="circular"), (r(2, 4, 7),)),
    "conv3d": (lambda: torch.nn.Conv3d(4, 3, 2), (r(1, 4, 3, 4, 5),)),
    "transposed": (lambda: torch.nn.ConvTranspose2d(4, 3, 3, 2, 1, 1), (r(2, 4, 5, 6),)),
    "attention kdim": (lambda: torch.nn.MultiheadAttention(8, 2, kdim=4, vdim=5), (r(3, 2, 8), r(6, 2, 4), r(6, 2, 5))),
    "attention zero": (lambda: torch.nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True,
                                                           batch_first=True), (r(2, 3, 8), r(2, 6, 8), r(2, 6, 8))),
    "attention single": (lambda: torch.nn.MultiheadAttention(8, 2, add_zero_attn=True), (r(3, 8), r(6, 8), r(6, 8))),
    "weight norm": (lambda: torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 3)), (r(2, 4),)),
    "softmax": (lambda: torch.nn.AdaptiveLogSoftmaxWithLoss(8, 6, [2, 4]), (r(5, 8), torch.tensor([0, 1, 3, 4, 5])))}


def first(y):
    while isinstance(y, tuple):
        y = y[0]
    return y


def close(got, want):
    torch.testing.assert_close(got, want, rtol=2e-3, atol=2e-3)


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", CASES)
def test_functions(name):
    """As in FP32 but for the conversion, with gradients, and nothing left in FP32."""
    function, *shapes = CASES[name]
    torch.manual_seed(0)
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    want = first(function(*inputs))
    g = torch.randn_like(want)
    wants = torch.autograd.grad(want, inputs, g, allow_unused=True, materialize_grads=True)
    net = gn.convert(Code(function), FINE, strict=True)
    assert gn.fp32_products(net, *inputs) == []
    got = first(net(*inputs))
    close(got, want)
    for a, b in zip(torch.autograd.grad(got, inputs, g, allow_unused=True, materialize_grads=True), wants, strict=True):
        close(a, b)
    coarse = first(gn.convert(net, "hbfp4")(*inputs))
    assert coarse.shape == want.shape and not torch.equal(coarse, want)


@pytest.mark.filterwarnings("ignore:Using padding='same'|LSTM with projections|Initializing zero-element")
@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    torch.manual_seed(0)
    make, inputs = MODULES[name]
    net = make()
    want = first(net(*inputs))
    g = torch.randn_like(want)
    want.backward(g)
    wants = {name: p.grad.clone() for name, p in net.named_parameters() if p.grad is not None}
    net.zero_grad()
    assert gn.report(net, *inputs).left
    net = gn.convert(net, FINE, strict=True, example=inputs)
    got = first(net(*inputs))
    close(got, want)
    got.backward(g)
    for name, p in net.named_parameters():
        if name in wants:
            close(p.grad, wants[name])
    coarse = first(gn.convert(net, "hbfp3")(*inputs))
    assert coarse.shape == want.shape and not torch.equal(coarse, got)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_packed_sequences(kind):
    net = recurrent(kind, both=True, layers=2)
    x = torch.nn.utils.rnn.pack_padded_sequence(r(5, 3, 4), [2, 5, 3], enforce_sorted=False)
    want, end = net(x)
    got, last = gn.convert(net, FINE)(x)
    close(got.data, want.data)
    close(first(last), first(end))
    assert torch.equal(got.sorted_indices, want.sorted_indices)


@pytest.mark.parametrize("block", [(1, 8), (5, 5)])
def test_bits_are_those_of_the_golden_model(block):
    fmt = gn.HBFPFormat(mantissa=5, block=block)
    a, b, c = r(6, 19), r(19, 7), r(7)
    want = matmul(a.numpy(), b.numpy(), fmt)
    for function in (torch.matmul, lambda a, b: torch.einsum("ik,kj->ij", a, b), lambda a, b: F.linear(a, b.T),
                     lambda a, b: a.T.mT @ b, lambda a, b: (b.T @ a.T).T, lambda a, b: torch.bmm(a[None], b[None])[0]):
        assert np.array_equal(gn.convert(Code(function), fmt)(a, b).numpy(), want)
    net = gn.convert(Code(torch.addmm), fmt)
    assert np.array_equal(net(c, a, b).numpy(), want + c.numpy())


def test_a_parameter_has_the_role_of_weights():
    x, w = (gn.HBFPFormat(mantissa=m, block=(1, 8)) for m in (3, 6))
    weight, data = torch.nn.Parameter(r(5, 19)), r(19, 7)
    got = gn.convert(Code(lambda t: weight @ t), x, w=w, g=x)(data).detach().numpy()
    assert np.array_equal(got, matmul(weight.detach().numpy(), data.numpy(), w, w_fmt=x))


def test_convolution_in_space_equals_products_of_patches():
    fmt, x, w = gn.HBFPFormat(mantissa=4, block=(1, 8)), r(2, 3, 4, 5, 6), r(7, 3, 2, 2, 3)
    patches = x.unfold(2, 2, 1).unfold(3, 2, 1).unfold(4, 3, 1)       # N, C, D, H, W, kd, kh, kw
    rows = patches.permute(0, 2, 3, 4, 6, 7, 5, 1).reshape(-1, 36).numpy()
    want = matmul(rows, w.permute(3, 4, 2, 1, 0).reshape(36, 7).numpy(), fmt)
    got = gn.convert(Code(F.conv3d), fmt)(x, w).permute(0, 2, 3, 4, 1).reshape(-1, 7)
    assert np.array_equal(got.numpy(), want)


def test_transposed_convolution_exchanges_the_roles():
    """Its output and gradients are those of a convolution's input, output and weights."""
    fmt = gn.HBFPFormat(mantissa=4, block=(1, 8))
    formats = gn.Formats(x=fmt, w=fmt, g=gn.HBFPFormat(mantissa=7, block=(1, 8)))
    turned = gn.Formats(x=formats.g, w=fmt, g=fmt)
    options = {"stride": 2, "padding": 1}
    x, w, big = r(2, 8, 4, 5).requires_grad_(), r(8, 6, 3, 3).requires_grad_(), r(2, 6, 7, 9).requires_grad_()
    y = gn.convert(Code(lambda *t: F.conv_transpose2d(*t, **options)), formats)(x, w)
    gx, gw = torch.autograd.grad(y, (x, w), big)
    z = gn.convert(Code(lambda *t: F.conv2d(*t, **options)), turned)(big, w)
    g_big, g_w = torch.autograd.grad(z, (big, w), x)
    assert torch.equal(y, g_big) and torch.equal(gx, z) and torch.equal(gw, g_w)


def test_outer_products_stay_exact():
    """With K = 1 nothing is summed: rotary embeddings multiply positions with frequencies so."""
    a, b = torch.arange(1000.0)[:, None], r(1, 5)
    net = gn.convert(Code(torch.matmul), "hbfp4")
    assert torch.equal(net(a, b), a * b) and gn.fp32_products(net, a, b) == []


@pytest.mark.parametrize("function, inputs, reason", [
    (torch.cdist, (r(3, 4), r(5, 4)),
     "there is no such product in HBFP; write it with torch.matmul or a convolution"),
    (torch.matmul, (r(3, 4).double(), r(4, 5).double()),
     "a tensor of float64; float32, bfloat16 and float16 are converted"),
    (torch.matmul, (r(3, 4).to_sparse(), r(4, 5)),
     "a tensor of layout sparse_coo; only dense ones are converted")], ids=["cdist", "double", "sparse"])
def test_what_has_no_form_in_hbfp(function, inputs, reason):
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), Code(function))
    want = net[1](*inputs)
    gn.convert(net)
    assert torch.equal(net[1](*inputs), want)                      # as it was, and reported
    gn.convert(net, strict=True)
    with pytest.raises(TypeError) as caught:
        net[1](*inputs)
    assert str(caught.value) == (f"Module '1' (Code) cannot compute {function.__name__} in HBFP: {reason}; "
                                 "exclude=['1'] leaves its products in FP32")
    gn.convert(net, exclude="1")                                   # already converted: stays as it is
    with pytest.raises(TypeError):
        net[1](*inputs)


def test_products_of_integers_are_left_alone():
    a = torch.arange(12).view(3, 4)
    net = gn.convert(Code(torch.matmul), "hbfp4", strict=True)
    assert torch.equal(net(a, a.T), a @ a.T) and gn.fp32_products(net, a, a.T) == []


class Nested(torch.nn.Module):
    """Own code around own code around a layer."""

    def __init__(self):
        super().__init__()
        self.inner = Code(torch.matmul)
        self.listed = torch.nn.ModuleList([torch.nn.Linear(8, 8), Code(torch.matmul)])

    def forward(self, x):
        y = self.listed[1](self.listed[0](x), x.T)
        return self.inner(y, y) + x @ x.T


@pytest.mark.parametrize("exclude, fp32", [
    ((), []), ("inner", ["inner"]), ("listed", ["listed.0", "listed.1"]), ("listed.0", ["listed.0"]),
    (Code, ["inner", "listed.1"]), (lambda name, part: name == "listed.1", ["listed.1"])])
def test_the_innermost_module_counts(exclude, fp32):
    net, x = gn.convert(Nested(), exclude=exclude), r(8, 8)
    assert sorted({name for name, _ in gn.fp32_products(net, x)}) == fp32
    assert {entry.layer for entry in gn.report(net, x).left} == set(fp32)
    net = gn.convert(net)
    assert gn.fp32_products(net, x) == []


def test_formats_of_some_layers():
    net = gn.convert(Nested(), "hbfp8", layers={"listed": "hbfp4", Code: gn.HBFPFormat(mantissa=6)})
    formats = {entry.layer: entry.format for entry in gn.report(net, r(8, 8)).entries}
    assert formats == {"listed.0": "hbfp4 (1, 32)", "listed.1": "hbfp6 (1, 32)", "inner": "hbfp6 (1, 32)",
                       "": "hbfp8 (1, 32)"}


def test_schedules_reach_own_products():
    net = gn.convert(torch.nn.Sequential(torch.nn.Conv1d(4, 4, 1), torch.nn.Linear(5, 5), Code(torch.square)), "hbfp4")
    assert [name for name, _ in gn.hbfp_layers(net)] == ["0", "1"]
    gn.MixedMantissa(base=4, boosted=6, epochs=2, ends=False).apply(gn.hbfp_layers(net, own=True), 1)
    assert [layer.formats.x.mantissa for _, layer in gn.hbfp_layers(net, own=True)] == [6, 6, 6]
    assert gn.report(net, r(1, 4, 5)).shares == {"hbfp6 (1, 32)": 1.0}


def test_copies_pickles_and_types():
    net, x = gn.convert(Nested(), "hbfp4"), r(8, 8)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(gn.convert(torch.nn.GRUCell(8, 8), "hbfp4")))):
        assert type(twin).__name__ in ("Nested", "GRUCell")
    assert torch.equal(copy.deepcopy(net)(x), net(x)) and isinstance(net, Nested)
    cell = gn.convert(torch.nn.GRUCell(8, 8), "hbfp4")
    assert torch.equal(pickle.loads(pickle.dumps(cell))(x), cell(x))


def test_nothing_stays_behind_after_an_error():
    net = gn.convert(Nested())
    with pytest.raises(ValueError, match="^Shapes of input and weight must be"):
        net(r(8, 7))
    a = r(4, 4)
    assert torch._C._len_torch_function_stack() == 0 and gn.fp32_products(Code(torch.matmul), a, a)
    net(r(8, 8))
