"""Models on the golden machine have the bits of PyTorch after ``golden.nn.convert(side=...)``, every layer.

Covers: golden/lower/products/weights.py, golden/lower/products/core.py, golden/lower/products/matrix.py,
golden/lower/products/passes.py, golden/lower/products/planes.py, golden/lower/products/after.py,
golden/lower/operations/after.py, golden/lower/products/convolution.py, golden/lower/products/gathered.py,
golden/lower/vectors.py, golden/lower/sums.py, golden/lower/builder.py, golden/lower/graph.py,
golden/lower/errors.py, golden/lower/export.py,
golden/lower/tensors.py, golden/lower/nodes.py, golden/lower/network.py,
golden/lower/operations/table.py, golden/lower/operations/steps.py, golden/lower/operations/products.py,
golden/lower/operations/vector.py, golden/lower/operations/forms.py, golden/lower/operations/moves.py,
golden/ops/patterns.py.
"""

import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from golden.lower.errors import LoweringError
from golden.lower.export import exported
from golden.lower.graph import reference
from golden.lower.lowering import lower
from golden.lower.scaled import scaled
from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Memory, Opcode
from hbfp.program import Product
from hbfp.system import NUMBERS, Accelerator
from tests.cases import sweep

from .running import checked

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("costs")]
aten = torch.ops.aten


def accelerator(rows, block, mantissa=8, accumulate="fp32", cols=None, **sizes):
    """A small one, so that everything is cut."""
    fmt = HBFPFormat(mantissa=mantissa, block=block)
    return Accelerator(core=Design(format=fmt, rows=rows, cols=cols, accumulate=accumulate, depth=32),
                       **{"x_words": 256, "w_words": 512, "v_words": 256} | sizes)


MACHINES = {
    "8": accelerator(8, (1, 8)), "8-aligned": accelerator(8, (1, 8), accumulate="aligned", vector_lanes=2),
    "16-hbfp4": accelerator(16, (1, 16), 4, w_words=1024),
    "16-long": accelerator(16, (1, 32), v_words=512, vector_rows=3),
    "16-short": accelerator(16, (1, 8), row_words=4, vector_lanes=4),
    "16-tiles": accelerator(16, (16, 16), v_words=1024, x_words=512),
    **{f"8-{name}": Accelerator(core=Design(arithmetic=name, rows=8, depth=32), x_words=256, w_words=512, v_words=256)
       for name in NUMBERS if name != "hbfp"},
    "8-large-tiles": accelerator(8, (16, 16), v_words=1024, x_words=1024), "32": accelerator(32, (1, 16), w_words=1024),
    "4x16": accelerator(4, (1, 8), cols=16, x_words=512), "16x8": accelerator(16, (1, 8), cols=8),
    "8x16-tiles": accelerator(8, (16, 16), cols=16, v_words=1024, x_words=1024),
    "16x4-long": accelerator(16, (1, 32), cols=4, v_words=1024, vector_rows=3),
    "16x4-bf16": Accelerator(core=Design(arithmetic="bf16", rows=16, cols=4, depth=32), x_words=256, w_words=512,
                             v_words=512)}


class Of(nn.Module):
    """A function as a model."""

    def __init__(self, function, *parts):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, *inputs):
        return self.function(*self.parts, *inputs)


def attention(causal):
    def forward(project, x):
        q, k, v = (t.unflatten(-1, (3, 8)).transpose(1, 2) for t in project(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2)
    return Of(forward, nn.Linear(24, 72))


def network():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 24, 3, 2, 1), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(24, 10), nn.Softmax(-1))


class ByHand(nn.Module):
    """RMSNorm as language models write it."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size))

    def forward(self, x):
        kind = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(kind)


def softmax_by_hand(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


class Gated(nn.Module):
    """As in SwiGLU."""

    def __init__(self, terms, inner):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(terms, inner, False), nn.Linear(terms, inner), nn.Linear(inner, terms)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def norm_by_hand(w, b, x):
    x = x - x.mean(-1, keepdim=True)
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w + b


def rest(conv, x):
    return torch.relu(conv(x) + x)


def planar(first, same, half, last, x):
    """Convolutions whose patches are of few channels, the first of them of a sum's term."""
    x = first(x)
    x = torch.relu(same(x) + x)
    return last(half(x))


def words(*shape):
    return torch.randint(20, shape)


r = torch.randn
#: Name -> how to make a model, and the shapes of its inputs.
CASES = {
    "mlp": (lambda: nn.Sequential(nn.Linear(20, 33), nn.ReLU(), nn.Linear(33, 5)), (2, 3, 20)),
    "linear": (lambda: nn.Linear(300, 150), (70, 300)),
    "tall": (lambda: nn.Sequential(nn.Linear(1100, 40), nn.GELU()), (35, 1100)),
    "tall patches": (lambda: nn.Conv2d(64, 40, 3, padding=1), (1, 64, 5, 5)),
    "tall product": (lambda: Of(torch.matmul), (9, 700), (700, 20)),
    "tall turned": (lambda: Of(lambda x, y: x @ y.t()), (9, 700), (20, 700)),
    "network": (network, (2, 1, 8, 8)),
    "residual": (lambda: Of(rest, nn.Conv2d(16, 16, 3, padding=1)), (2, 16, 5, 6)),
    "pixels' residual": (lambda: Of(lambda f, g, x: torch.relu(f(x) + g(x)), nn.Conv2d(16, 40, 1),
                                    nn.Conv2d(16, 40, 1)), (2, 16, 5, 6)),
    "planes": (lambda: Of(planar, nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 3, padding=1),
                          nn.Conv2d(4, 4, (5, 3), (2, 1), (0, 1)), nn.Conv2d(4, 40, 3, padding=2, dilation=2)),
               (2, 3, 11, 7)),
    "gathered residual": (lambda: Of(rest, nn.Conv2d(6, 6, 3, padding=1)), (2, 6, 5, 6)),
    "behind": (lambda: Of(lambda f, x, y: torch.sigmoid((y + F.gelu(f(x))) * 3 / 7), nn.Linear(20, 32)),
               (9, 20), (32,)),
    "behind products": (lambda: Of(lambda x, y, z: (x @ y) / 3 + z), (2, 9, 20), (2, 20, 15), (9, 15)),
    "stride": (lambda: nn.Conv2d(16, 9, 3, 2, 1), (2, 16, 7, 9)),
    "dilation": (lambda: nn.Conv2d(16, 40, (3, 5), (1, 2), (2, 4), (2, 1)), (1, 16, 9, 11)),
    "straddling": (lambda: nn.Conv2d(3, 7, (2, 3), padding=(1, 0)), (2, 3, 6, 5)),
    "pixels": (lambda: nn.Conv2d(10, 7, 1, 2), (2, 10, 6, 5)),
    "bordered pixels": (lambda: nn.Conv2d(16, 7, 1, 1, 1), (2, 16, 4, 5)),
    "wide": (lambda: nn.Conv2d(16, 50, 3, padding=1), (1, 16, 20, 20)),
    "groups": (lambda: nn.Conv2d(32, 32, 3, groups=2, padding=1), (1, 32, 5, 5)),
    "small groups": (lambda: nn.Conv2d(8, 12, 3, groups=4, dilation=2), (1, 8, 7, 7)),
    "depthwise": (lambda: nn.Conv2d(6, 12, 3, groups=6, padding=1, stride=2), (1, 6, 5, 5)),
    "conv1d": (lambda: nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2), nn.AvgPool1d(2)),
               (2, 4, 12)),
    "attention": (lambda: attention(False), (2, 5, 24)), "causal": (lambda: attention(True), (2, 5, 24)),
    "encoder": (lambda: nn.TransformerEncoderLayer(24, 3, 40, 0.0, "gelu", batch_first=True), (2, 5, 24)),
    "pools": (lambda: nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2, 1, 1)), (2, 5, 7, 8)),
    "dilated pool": (lambda: nn.MaxPool2d(2, 1, 1, 2), (2, 20, 7, 8)),
    "parts": (lambda: nn.AdaptiveAvgPool2d((2, 3)), (2, 5, 4, 6)),
    "mean": (lambda: Of(lambda x: x.mean(1)), (2, 5, 12)), "pixels' mean": (lambda: Of(lambda x: x.mean((2, 3))),
                                                                           (2, 5, 4, 3)),
    "rows' mean": (lambda: Of(lambda x: x.mean(-1) + x.mean(-1, keepdim=True).relu().squeeze(-1)), (2, 3, 21)),
    "means": (lambda: Of(lambda x: (x.mean(0), x.mean((0, 2, 3)), x.mean(1, keepdim=True))), (2, 5, 4, 3)),
    "quotient": (lambda: Of(lambda x, y: x / y), (2, 5, 12), (5, 1)),
    "layer norm": (lambda: nn.LayerNorm(20), (3, 20)),
    "layer norm of planes": (lambda: nn.LayerNorm((3, 7)), (2, 5, 3, 7)),
    "plain norm": (lambda: nn.LayerNorm(40, elementwise_affine=False), (2, 3, 40)),
    "batch norm": (lambda: nn.BatchNorm1d(12), (5, 12)), "sequences' norm": (lambda: nn.BatchNorm1d(12), (5, 12, 4)),
    "numbers": (lambda: Of(lambda x, y: x * y - y + x / 3 + 1.5 - 2 * x), (2, 5, 12), (12,)),
    "multiples": (lambda: Of(lambda x, y: torch.sub(1 - torch.add(x, y, alpha=0.3), -y, alpha=-2)), (2, 12), (2, 12)),
    "log softmax": (lambda: nn.LogSoftmax(-1), (2, 3, 20)),
    "one number": (lambda: Of(lambda x, y: (x * y + y, y - x)), (5, 21), (1,)),
    "gates": (lambda: Of(lambda f, x, y: aten.threshold_backward(f(x), y, 0), nn.Linear(20, 13)), (9, 20), (9, 13)),
    "columns": (lambda: Of(lambda x, y: x + y), (2, 5, 12), (5, 1)),
    "channels": (lambda: Of(lambda x, y: y * x), (2, 5, 12, 3), (2, 5, 1, 1)),
    "functions": (lambda: Of(lambda x: F.gelu(x) + F.silu(x) + torch.sigmoid(x) * torch.tanh(x) + torch.exp(x)),
                  (4, 13)),
    "rows": (lambda: Of(lambda x, y: torch.cat([x, y])), (2, 5), (3, 5)),
    "cat": (lambda: Of(lambda x, y: torch.cat([x, y, x], 1)), (2, 5), (2, 11)),
    "images": (lambda: Of(lambda x, y: torch.cat([x, y], 1)), (2, 5, 3, 4), (2, 11, 3, 4)),
    "softmax": (lambda: nn.Softmax(1), (2, 5, 3)),
    "softmax of an odd row": (lambda: nn.Softmax(-1), (5, 20)),
    "views": (lambda: Of(lambda x: x.transpose(0, 1).reshape(5, -1)[:, 1:7].t() + 1), (2, 5, 6)),
    "stack": (lambda: Of(lambda x: torch.stack([x, x * 2], 1)), (3, 5)),
    "repeat": (lambda: Of(lambda x, y: (x.repeat(3), y.repeat(2, 1, 3), x.repeat(2, 1))), (5,), (3, 13)),
    "affine instance norm": (lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 5)),
    "pad": (lambda: Of(lambda x: F.pad(x, (1, 2, 0, 1))), (2, 3, 4, 5)),
    "flatten": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(60, 4)), (2, 3, 4, 5)),
    "mask": (lambda: Of(lambda x: x.masked_fill(torch.eye(5, dtype=torch.bool), -2.5)), (2, 5, 5)),
    "mask of -0": (lambda: Of(lambda x: x.masked_fill(torch.eye(5, dtype=torch.bool), -0.0)), (2, 5, 5)),
    "lstm": (lambda: nn.LSTM(8, 12, 2, bidirectional=True), (3, 2, 8)), "gru": (lambda: nn.GRU(8, 12), (3, 2, 8)),
    "product": (lambda: Of(torch.matmul), (2, 5, 20), (2, 20, 9)),
    "turned": (lambda: Of(lambda x, y: x @ y.mT), (2, 5, 20), (2, 9, 20)),
    "large product": (lambda: Of(torch.matmul), (40, 100), (100, 70)),
    "large turned": (lambda: Of(lambda x, y: x @ y.t()), (40, 100), (70, 100)),
    "columns' product": (lambda: Of(lambda x, y: x.t() @ y), (50, 45), (50, 20)),
    "large columns' product": (lambda: Of(lambda x, y: x.t() @ y), (130, 70), (130, 70)),
    "tall columns' product": (lambda: Of(lambda x, y: x.t() @ y), (700, 9), (700, 20)),
    "columns' layer": (lambda: Of(lambda f, x: torch.relu(f(x.transpose(1, 2))), nn.Linear(21, 9)), (1, 21, 40)),
    "columns' products": (lambda: Of(lambda x, y: x.mT @ y), (2, 20, 5), (2, 20, 9)),
    "hardswish": (nn.Hardswish, (5, 21)), "leaky relu": (lambda: nn.LeakyReLU(0.2), (5, 21)),
    "relu6": (nn.ReLU6, (5, 21)), "elu": (lambda: nn.ELU(0.7), (5, 21)), "selu": (nn.SELU, (5, 21)),
    "behind layers": (lambda: nn.Sequential(nn.Linear(20, 24), nn.Hardswish(), nn.Linear(24, 13), nn.ELU()), (5, 20)),
    "rms norm": (lambda: nn.RMSNorm(20), (2, 3, 20)),
    "plain rms norm": (lambda: Of(lambda x: F.rms_norm(x, (40,), eps=1e-3)), (3, 40)),
    "rms norm by hand": (lambda: ByHand(20), (2, 3, 20)), "rms norm of heads": (lambda: ByHand(12), (2, 3, 5, 12)),
    "group norm": (lambda: nn.GroupNorm(2, 6), (2, 6, 3, 5)),
    "plain group norm": (lambda: nn.GroupNorm(3, 12, affine=False), (4, 12)),
    "instances' norm": (lambda: Of(lambda x: F.group_norm(x, 4)), (2, 4, 5)),
    "layer norm by hand": (lambda: Of(lambda x: norm_by_hand(torch.arange(20) / 7, torch.ones(20), x)), (3, 20)),
    "half a norm by hand": (lambda: Of(lambda x, y: norm_by_hand(torch.arange(20) / 7, y, x)), (3, 20), (20,)),
    "variance": (lambda: Of(lambda x: x / torch.sqrt(x.var(-1, correction=0, keepdim=True) + 1e-5)), (3, 20)),
    "gated unit": (lambda: Gated(20, 24), (2, 3, 20)), "narrow gated unit": (lambda: Gated(20, 13), (3, 20)),
    "sums of gates": (lambda: Of(lambda x, y: (x * torch.sigmoid(y) + torch.tanh(x) * F.gelu(y)) * F.relu(y)), (3, 21),
              (3, 21)),
    "glu": (lambda: nn.GLU(), (3, 42)), "behind a product": (
        lambda: Of(lambda f, x, y: (f(x) - y) * y, nn.Linear(20, 24)), (5, 20), (5, 24)),
    "softmax by hand": (lambda: Of(softmax_by_hand), (2, 3, 20)),
    "norm": (lambda: Of(lambda x: torch.linalg.vector_norm(x).clamp(max=3.0) * x.clamp(min=0.25)), (3, 21)),
    "powers": (lambda: Of(lambda x: x ** 2 + x ** 3 - x.pow(4)), (3, 21)),
    "sums": (lambda: Of(lambda x: x.sum(-1, keepdim=True) * x.amax(-1, keepdim=True)), (2, 3, 21)),
    "long totals": (lambda: Of(lambda x: (x.sum(0), x.sum())), (300, 21)),
    "totals": (lambda: Of(lambda x: (x.sum(0), x.sum((0, 2, 3)), x.sum(1, keepdim=True), x.sum((1, 3)), x.sum())),
               (3, 5, 4, 21)),
    "gradients": (lambda: Of(lambda x, g: tuple(function(g, x, *rest) for function, *rest in (
        (aten.threshold_backward, 0), (aten.gelu_backward,), (aten.sigmoid_backward,), (aten.tanh_backward,),
        (aten._softmax_backward_data, -1, torch.float32), (aten._log_softmax_backward_data, -1, torch.float32),
        (aten.silu_backward,), (aten.hardswish_backward,), (aten.leaky_relu_backward, 0.2, False),
        (aten.hardtanh_backward, -0.5, 1.0)))), (3, 21), (3, 21))}


def made(name):
    """A model with lively numbers, and its inputs."""
    torch.manual_seed(1)
    make, *shapes = CASES[name]
    model = make().eval()
    for part in model.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            nn.init.uniform_(part.running_var, 0.5, 2)
            for numbers in (part.running_mean, part.weight, part.bias):
                nn.init.normal_(numbers)
    return model, tuple(torch.randn(shape) for shape in shapes)


def check(model, inputs, machine):
    """Run on the golden machine with its check for races; every tensor, and the outputs against PyTorch."""
    model = scaled(model, [inputs], machine) if machine.core.number.sums else model
    lowered = lower(model, inputs, machine)
    device = checked(lowered)
    with torch.no_grad():
        outputs = torch.utils._pytree.tree_leaves(reference(model, machine)(*inputs))
    for name, output in zip(lowered.outputs, outputs, strict=True):
        own = lowered.torch_order(name, device.get(name))
        np.testing.assert_array_equal(own.view(np.uint32), output.float().numpy().view(np.uint32))
    return lowered


def fits(name, machine):
    """Memories of squares hold no 16 rows of so many terms: that is refused below, as is what follows.

    Integers have a scale for each input of a layer, and V has no room for a row of 1100 numbers beside 1100 scales.
    """
    return not ((name == "linear" or "tall" in name) and "tiles" in machine) and (name, machine) != ("tall", "8-int8")


@pytest.mark.parametrize(("name", "machine"), sweep(2, [
    (name, next(each for each in (list(MACHINES) * 2)[number % len(MACHINES):] if fits(name, each)))
    for number, name in enumerate(CASES)]))
def test_operators(name, machine):
    check(*made(name), MACHINES[machine])


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", CASES)
def test_operators_on_all_machines(name, machine):
    if fits(name, machine):
        check(*made(name), MACHINES[machine])


@pytest.mark.parametrize("machine", sweep(2, ["8", "16-tiles"]))
def test_operators_on_small_and_square(machine):
    for name in ("network", "causal", "large turned"):
        check(*made(name), MACHINES[machine])


@pytest.mark.parametrize(("model", "shapes", "words"), [
    (Of(lambda layer, x, y: layer(x) + y, nn.Linear(300, 12)), ((60, 300), (60, 12)), 128),
    (Of(lambda layer, x, *more: sum(more, layer(x)), nn.Linear(100, 12)), ((20, 100), *6 * ((20, 12),)), 64),
    (Of(lambda layer, x, *more: sum(more, layer(x)), nn.Conv2d(4, 20, 3)), ((2, 4, 11, 7), *6 * ((2, 20, 9, 5),)), 64),
    (Of(lambda layer, x, *more: sum(more, layer(x)), nn.Conv2d(1, 20, 3)), ((2, 1, 9, 14), *4 * ((2, 20, 7, 12),)), 64),
    (Of(lambda x: x.mean((2, 3), keepdim=True)), ((2, 100, 5, 4),), 64),
    (nn.AvgPool2d((3, 2), 1, (1, 1)), ((2, 76, 6, 5),), 64)])
def test_pieces_of_a_small_memory_stay_until_they_are_used(model, shapes, words):
    torch.manual_seed(2)
    check(model.eval(), tuple(map(torch.randn, shapes)), accelerator(8, (1, 8), v_words=words, x_words=512))


def test_windows_that_share_no_line_load_each_once():
    """Bands of lines: the last windows of one reach no line of the next."""
    lowered = check(nn.MaxPool2d(2), (r(1, 8, 16, 6),), accelerator(8, (1, 8), v_words=64))
    loads = [each for each in lowered.program.instructions if each.opcode == Opcode.LOAD and each["memory"] == Memory.V]
    assert len(loads) > 1
    assert sum(each["count0"] * each["count1"] * each["count2"] for each in loads) == 16 * 6


def test_rows_that_do_not_fit_beside_each_other_are_refused():
    line = ("The model (mul) cannot be lowered: it needs 32 words of memory V beside 64 others, of 64; larger "
            "--v-words would do")
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}$"):
        lower(Of(lambda x, y: x * y + y), (r(5, 256), r(5, 256)), accelerator(8, (1, 8), v_words=64))


def test_scales_that_do_not_fit_beside_a_row_are_refused():
    with pytest.raises(LoweringError, match=r"it needs 138 words of memory V beside 138 others, of 256; larger --v-wo"):
        lower(*made("tall"), MACHINES["8-int8"])


def test_tensors_that_stand_for_other_numbers_than_memory_holds():
    layer, x = nn.Linear(9, 5), torch.randn(3, 9)
    layer.weight = nn.Parameter(torch._neg_view(layer.weight.detach()))
    check(nn.Sequential(layer, nn.ReLU()), (torch.complex(x, x).conj().imag,), MACHINES["8"])


def test_embedding_rows_are_gathered():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(20, 12), nn.Linear(12, 9)).eval()
    lowered = check(model, (words(2, 5),), MACHINES["8"])
    assert [layer.name for layer in lowered.program.layers] == ["0", "1"]


def test_special_values_go_through():
    torch.manual_seed(1)
    x = torch.randn(6, 20)
    x[1, 3], x[2, 7], x[3] = float("nan"), float("inf"), 1e-39
    check(nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.LayerNorm(20), nn.Linear(20, 3)).eval(), (x,), MACHINES["8"])


def test_layers_have_names_and_multiply_adds():
    program = lower(*made("network"), MACHINES["8"]).program
    names = {layer.name: layer.macs for layer in program.layers}
    assert names["0"] == 2 * 64 * 16 * 9
    assert names["9"] == 2 * 24 * 10
    assert set(names) == {"0", "4", "5", "6", "7", "9", "10"}
    assert all(first.stop == second.first for first, second in
               zip(program.layers, program.layers[1:], strict=False))


@pytest.mark.parametrize("model, shape, products", [
    (nn.Linear(5, 7), (2, 3, 5), [Product(6, 5, 7)]),
    (nn.Conv2d(8, 6, 3, stride=2, padding=1), (2, 8, 5, 4), [Product(2 * 3 * 2, 72, 6)]),
    (nn.Conv2d(4, 8, (1, 2), groups=4), (1, 4, 3, 3), [Product(6, 2, 2, 4)]),
    (nn.Conv1d(3, 4, 2), (2, 3, 5), [Product(8, 6, 4)]),
    (Of(lambda x: x @ x.transpose(1, 2)), (3, 4, 5), [Product(4, 5, 4, 3)]),
    (nn.ReLU(), (2, 3), [])])
def test_layers_have_their_products(model, shape, products):
    layers = lower(model.eval(), (r(*shape),), MACHINES["8"]).program.layers
    assert [each for layer in layers for each in layer.products] == products
    assert sum(layer.macs for layer in layers) == sum(each.macs for each in products)


@pytest.mark.parametrize("multiply", [
    torch.matmul, lambda x, y: x.t().contiguous().t() @ y, lambda x, y: x @ y.t().contiguous().t(),
    lambda x, y: F.linear(x, y.t()), lambda x, y: F.linear(x, y.t().contiguous())])
def test_a_computed_matrix_is_read_along_what_lies_side_by_side(multiply):
    """Element by element it would take ten times as long, whichever side of which matrix that is."""
    model = Of(lambda x, y: multiply(torch.relu(x), torch.relu(y)))
    lowered = check(model, (r(16, 64), r(64, 32)), MACHINES["8"])
    loads = [each for each in lowered.program.instructions if each.opcode == Opcode.LOAD and each["elements"]]
    assert not [each for each in loads if each["run"] == 1]


@pytest.mark.parametrize("by_hand, whole", [
    (ByHand(20), nn.RMSNorm(20)), (Of(softmax_by_hand), nn.Softmax(-1)),
    (Of(lambda x: norm_by_hand(torch.ones(20), torch.ones(20), x)), nn.LayerNorm(20))])
def test_what_is_written_by_hand_is_one_layer(by_hand, whole):
    """With the bits of its parts, as all cases are held to, and the instructions of torch's own function."""
    one, other = (lower(each.eval(), (r(3, 20),), MACHINES["8"]).program for each in (by_hand, whole))
    assert [len(each.layers) for each in (one, other)] == [1, 1]
    assert len(one.instructions) == len(other.instructions)


@pytest.mark.parametrize(("model", "layers"), [
    (Of(lambda x, y: torch.sigmoid(y) * x), 1), (Of(lambda x, y: x * F.silu(y)), 1),
    (Of(lambda x, y: torch.sigmoid(x) * torch.tanh(y)), 2), (Of(lambda x, y: x * F.gelu(y, approximate="none")), 1),
    (Of(lambda x, y: x * F.silu(y[:, :1])), 2)])
def test_a_gated_unit_is_one_layer(model, layers):
    assert len(check(model.eval(), (r(3, 20), r(3, 20)), MACHINES["8"]).program.layers) == layers


def test_a_gate_that_others_take_too_stays_as_it_is():
    def both(x, y):
        opened = F.silu(y)
        return x * opened, opened.exp()
    assert len(check(Of(both).eval(), (r(3, 20), r(3, 20)), MACHINES["8"]).program.layers) == 3


@pytest.mark.parametrize("near", [
    lambda x: x * torch.rsqrt((x * (x + 1)).mean(-1, keepdim=True) + 1e-5),
    lambda x: x * torch.rsqrt(x.pow(2).mean(0, keepdim=True) + 1e-5),
    lambda x: x * torch.rsqrt(x.pow(3).mean(-1, keepdim=True) + 9.0),
    lambda x: torch.exp(x - x.amax(-1, keepdim=True)) / torch.exp(x).sum(-1, keepdim=True)])
def test_what_is_nearly_written_so_stays_as_it_is(near):
    assert len(check(Of(near).eval(), (r(3, 20),), MACHINES["8"]).program.layers) > 3


def test_a_program_is_the_same_every_time():
    model, inputs = made("network")
    assert lower(model, inputs, MACHINES["8"]).program.to_bytes() == \
        lower(model, inputs, MACHINES["8"]).program.to_bytes()


@pytest.mark.parametrize(("model", "inputs", "sizes", "layer", "why"), [
    (Of(torch.matmul), (r(16, 600), r(600, 20)), {"block": (16, 16)}, "The model (linear)",
     ("a product over 600 terms with a matrix that is computed needs 1216 rows of memory W, not 512; --w-words 2048 "
      "would do")),
    (Of(lambda x: aten._softmax_backward_data(x, x, -1, torch.float32).float() + aten.native_layer_norm_backward(
        x, x, [600], x[:, :1], x[:, :1], None, None, [True, False, False])[0]), (r(2, 600),), {"row_words": 8},
     "The model (layer_norm_backward)",
     "rows of 600 numbers are longer than the vector unit's 64; --row-words 75 would do"),
    (Of(lambda x: aten._adaptive_avg_pool2d(x, (1, 0))), (r(1, 2, 5, 5),), {}, "The model (adaptive_avg_pool2d)",
     "it gives no numbers: its shape is (1, 2, 1, 0); one of numbers would do"),
    (nn.Sequential(nn.AvgPool2d((1, 300))), (r(1, 2, 1, 300),), {}, "Layer '0' (avg_pool2d)",
     "windows of 1 x 300 elements are more than a vector instruction's; at most 254 a side would do"),
    (Of(lambda x: x.argmax(-1) / 2), (r(2, 6),), {}, "The model (div)",
     "it takes whole numbers alone; numbers of float32 would do"),
    (Of(lambda x, y: y[x.argmax(-1)]), (r(2, 6), r(6, 3)), {}, "The model (index)",
     "its places depend on real numbers; whole numbers among the inputs would do"),
    (Of(lambda x, y: F.embedding_bag(x.argsort(-1), y)), (r(2, 6), r(6, 3)), {}, "The model (embedding_bag)",
     "its indices depend on real numbers, or change; whole numbers among the inputs would do"),
    (Of(lambda y: F.embedding_bag(torch.tensor([[1, 2]]), y, mode="max")), (r(6, 3),), {}, "The model (embedding_bag)",
     "mode='max' has no program; 'sum' or 'mean' would do"),
    (Of(lambda x, y: F.embedding_bag(torch.tensor([[1, 2]]), y, mode="sum", per_sample_weights=x)),
     (r(1, 2), r(6, 3)), {}, "The model (embedding_bag)",
     "per_sample_weights are products of rows; an embedding and products would do"),
    (Of(lambda x: torch.round(x, decimals=1)), (r(2, 6),), {}, "The model (round)",
     "decimals=1; a product before it, and one behind, would do"),
    (Of(torch.atan), (r(2, 6),), {}, "The model (atan)",
     ("the accelerator has no such operation; a model without it would do, and so would a layer of its own for it, "
      "which --exclude runs on the host")),
    (Of(lambda x: x.sum()), (r(2, 6),), {"vector_rows": 1}, "The model (sum)",
     "its program keeps 2 rows in the vector unit, which has 1; --vector-rows 2 would do"),
    (Of(lambda x: x.softmax(1)), (r(2, 6),), {"functions": ("rsqrt",)}, "The model (softmax)",
     "its program has exp and recip, which the vector unit lacks; --functions exp,recip,rsqrt would do"),
    (Of(lambda x: x ** x), (r(2, 6),), {}, "The model (pow)",
     "its base and its exponent are tensors; a number for one of them would do"),
    (nn.Conv2d(8, 8, 3, padding=1), (r(1, 8, 30, 30),), {"x_words": 64}, "The model (conv2d)",
     "rows of 30 pixels of 8 channels, 3 of them, need 121 words of memory X, not 64; --x-words 128 would do"),
    (nn.Conv2d(8, 8, 3), (r(1, 8, 5, 70),), {"v_words": 64, "x_words": 1024}, "The model (conv2d)",
     "a row of 70 pixels of 8 channels needs 140 words of memory V, not 63; larger --v-words would do")])
def test_refusals(model, inputs, sizes, layer, why):
    with pytest.raises(LoweringError, match=f"^{re.escape(f'{layer} cannot be lowered: {why}')}$"):
        lower(model.eval(), inputs, accelerator(8, **{"block": (1, 8)} | sizes))


class Gained(nn.Module):
    """Its path depends on a number of its own, which torch.export does not look at."""

    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.Sequential(nn.Linear(20, 12), nn.Tanh()), nn.Linear(12, 5)
        self.register_buffer("gain", torch.tensor(2.0))

    def forward(self, x):
        y = self.layers(x)
        return self.head(y * self.gain if self.gain.item() > 1 else y) + 1


def test_a_model_that_torch_fx_alone_traces():
    torch.manual_seed(1)
    model, inputs = Gained().eval(), (r(3, 20),)
    with pytest.raises(RuntimeError, match="data-dependent"):
        torch.export.export(model, inputs, strict=False)
    names = [layer.name for layer in check(model, inputs, MACHINES["8"]).program.layers]
    assert names == ["layers.0", "head", "add"]


class Several(Gained):
    """The same with any number of arguments, and no wrapper whose code torch.fx would write anew."""

    def forward(self, *given):
        return super().forward(given[0])


def test_arguments_of_any_number_are_traced_where_nothing_is_written_anew():
    torch.manual_seed(1)
    model, x = Several().eval(), r(3, 20)
    assert torch.equal(exported(model, (x,)).module()(x), model(x))


class Scaled(nn.Module):
    """Takes what is no tensor beside one."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x, factor, y=None):
        x = self.layer(x) * factor
        return x if y is None else x + y


@pytest.mark.parametrize("more", [(3,), (0.5, None), (2, r(3, 8))], ids=["number", "None", "both"])
def test_inputs_that_are_no_tensors(more):
    torch.manual_seed(1)
    check(Scaled(), (r(3, 8), *more), MACHINES["8"])


class Choice(nn.Module):
    """A path that depends on values, and arguments by position alone."""

    def forward(self, x):
        return x if x.sum() > 0 else -x


# A model of `Of` has any number of arguments: torch.fx alone would end the process on Python 3.12 and newer.
@pytest.mark.parametrize("model", [Choice(), Of(lambda x: x if x.sum() > 0 else -x)],
                         ids=["by position", "any number"])
def test_a_model_that_torch_does_not_trace_is_refused(model):
    with pytest.raises(LoweringError, match=r"^The model cannot be lowered: neither torch\.export nor torch\.fx traces "
                                            r"it \(.*\); a forward whose path does not depend on values would do$"):
        lower(model.eval(), (r(2, 3),), MACHINES["8"])


def test_blocks_of_more_rows_than_there_are_sums():
    """A command of a block's rows would be one that the core refuses."""
    core = Design(rows=8, cols=8, depth=12, format=HBFPFormat(block=(16, 16)))
    with pytest.raises(LoweringError, match=r"^The model \(linear\) cannot be lowered: blocks of 16 rows, which are "
                       r"multiplied together, are more than the 12 whose sums the core has; --depth 16 would do$"):
        lower(nn.Linear(16, 4), (r(20, 16),), Accelerator(core=core))


def test_a_block_takes_all_of_memory_v_and_no_word_more():
    """32 words beside 16 of results and 16 of another tensor; a bias stays in one."""
    machine, inputs = accelerator(8, (16, 16), v_words=64, x_words=1024), (r(16, 16), r(16, 8))
    for bias in (False, True):
        model = Of(lambda f, x, y: f(x) + y, nn.Linear(16, 8, bias))
        if not bias:
            check(model.eval(), inputs, machine)
            continue
        with pytest.raises(LoweringError, match="blocks of 16 rows and 2 words need 32 words of memory V, not 31; "):
            lower(model.eval(), inputs, machine)


@pytest.mark.parametrize(("size", "stride"), [((1, 5), 1), ((5, 1), 1), ((5, 1), (1, 2)), ((5, 1), (2, 1))])
def test_planes_of_few_channels_where_they_take_fewer_runs(size, stride):
    """Of kernels that are a line; else patches are gathered."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.ReLU(), nn.Conv2d(2, 5, size, stride, (size[0] // 2, size[1] // 2)))
    check(model.eval(), (r(1, 2, 6, 7),), MACHINES["8"])


def test_planes_whose_lines_come_in_parts():
    torch.manual_seed(1)
    model = nn.Sequential(nn.ReLU(), nn.Conv2d(2, 5, 3, padding=1))
    check(model.eval(), (r(2, 2, 5, 14),), accelerator(8, (1, 8), v_words=128))


def test_a_row_of_pixels_may_take_half_of_memory_v():
    torch.manual_seed(1)
    model = nn.Sequential(nn.ReLU(), nn.Conv2d(8, 8, 3, bias=False))
    check(model.eval(), (r(1, 8, 5, 32),), accelerator(8, (1, 8), v_words=64, x_words=1024))


def test_a_weight_that_comes_often_is_copied_so_that_a_column_tile_is_one_burst():
    check(*made("tall product"), MACHINES["16x4-long"])


@pytest.mark.parametrize("rows", [1, 2, 6, 7, 9])
def test_rows_of_a_word_come_several_at_a_time(rows):
    """In halves that take turns where they are an even number, else as many as a pass takes, and the others."""
    machine = accelerator(8, (1, 8), row_words=4, short_rows=4)
    check(nn.Softmax(-1), (r(rows, 5),), machine)


@pytest.mark.parametrize("lanes", [1, 4])
def test_long_rows_of_fewer_lanes_than_a_word_has(lanes):
    """A sum has the order of the unit's lanes, not of the word's."""
    machine = accelerator(8, (1, 8), row_words=2, vector_lanes=lanes)
    check(Of(lambda x: torch.cat((x.softmax(-1), F.layer_norm(x, (21,))))), (r(2, 21),), machine)


@pytest.mark.parametrize("length", [16, 17, 53])
def test_rows_that_are_longer_than_the_vector_unit_s_and_fill_no_word(length):
    """What makes other numbers than zeros of zeros must leave alone what fills up a row's last word."""
    machine = accelerator(8, (1, 8), row_words=2)
    check(Of(lambda x: torch.cat((x.exp(), F.hardsigmoid(x), torch.where(x > 0, x, 2.0) + x[:, :1] * 3,
                                  F.gelu(x + torch.linspace(1, 2, length))))), (r(3, length),), machine)
