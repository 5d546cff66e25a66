"""Networks with convolutions train on the golden machine with the bits of PyTorch: products, pooling, batch norm.

Covers: golden/lower/operations/convolutions.py, golden/lower/operations/image_gradients.py,
golden/lower/operations/chained.py, golden/lower/products/patches.py, golden/lower/products/apart.py,
golden/lower/products/untouched.py, golden/lower/products/tiles.py.
"""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from cosim.accelerator.training import on_machine
from golden.lower.errors import LoweringError
from golden.lower.operations import convolutions, image_gradients
from golden.lower.operations.convolutions import weight_gradient
from golden.lower.products import matrix
from golden.lower.training.step import lower_step
from golden.lower.transposed import input_gradient
from golden.nn.formats import Formats
from golden.schedule import MixedMantissa
from golden.study.resnet import Block
from hbfp.isa.instructions import Opcode
from tests.cases import sweep

from .steps import accelerator, follow, sgd

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("costs")]
MACHINES = {"8": accelerator(8, (1, 8)), "8-aligned": accelerator(8, (1, 8), accumulate="aligned"),
            "8-hbfp4": accelerator(8, (1, 8), 4, w_words=256), "16-short": accelerator(16, (1, 8)),
            "16-long": accelerator(16, (1, 32), v_words=512, vector_rows=4),
            "8-tiles": accelerator(8, (8, 8), v_words=1024, x_words=512),
            "16-tiles": accelerator(16, (16, 16), v_words=1024, x_words=1024)}
#: Of whose products both operands have 6 bits, or 7, in place of 4.
WIDE = {"8": accelerator(mantissa=4, wide=6, x_words=512),
        "8-aligned": accelerator(mantissa=4, accumulate="aligned", wide=7, x_words=512),
        "8-short": accelerator(mantissa=4, wide=6, w_words=128, x_words=512),
        "16-long": accelerator(16, (1, 32), 4, wide=6, v_words=512, x_words=512, w_words=1024),
        "8-tiles": accelerator(8, (8, 8), 4, wide=6, v_words=1024, x_words=1024)}


def between(*options, channels=16, **named):
    """A convolution of ``channels`` between others, so that it has both gradients."""
    return lambda: nn.Sequential(nn.Conv2d(5, channels, 1, bias=False), nn.ReLU(),
                                 nn.Conv2d(channels, *options, **named), nn.ReLU(), *head(options[0]))


def head(channels):
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)


def before(*layers, last=16):
    """Layers behind a convolution and before another."""
    return lambda: nn.Sequential(nn.Conv2d(5, 16, 3, padding=1), *layers, nn.Conv2d(16, last, 3, padding=1),
                                 *head(last))


class Frozen(nn.Sequential):
    """A network whose first convolution stays as it is, and with it one input that a convolution alone reads."""

    def __init__(self):
        super().__init__(*before(nn.ReLU())())
        self[0].requires_grad_(False)


#: Network of images (N, 5, H, W).
CASES = {
    "same": between(16, 3, padding=1), "valid": between(24, 3), "wide": between(40, 3, padding=1),
    "stride": between(24, 3, 2, 1), "uneven": between(9, (3, 2), (2, 3), (1, 0)),
    "dilation": between(16, 3, 1, 2, 2), "all": between(24, (3, 5), (1, 2), (2, 4), (2, 1)),
    "pixels": between(12, 1), "strided pixels": between(12, 1, 2), "few": between(6, 3, 1, 1, channels=3),
    "groups": between(16, 3, 1, 1, groups=2), "strided groups": between(32, 3, 2, 1, groups=4, bias=False),
    "depthwise": between(16, 3, 1, 1, groups=16), "strided depthwise": between(16, 3, 2, groups=16),
    "ragged depthwise": between(11, 3, 1, 1, groups=11, channels=11),
    "large depthwise": between(24, 5, 2, 2, groups=24, channels=24, bias=False),
    "maximum": before(nn.MaxPool2d(2), nn.ReLU()), "overlapping": before(nn.MaxPool2d(3, 2), nn.ReLU()),
    "bordered": before(nn.MaxPool2d(3, 2, 1)), "average": before(nn.AvgPool2d(2), nn.ReLU()),
    "norm": before(nn.BatchNorm2d(16), nn.ReLU()), "no parameters": before(nn.BatchNorm2d(16, affine=False)),
    "instances": before(nn.InstanceNorm2d(16), nn.ReLU()),
    "affine instances": before(nn.InstanceNorm2d(16, affine=True, track_running_stats=True), nn.ReLU()),
    "no statistics": before(nn.BatchNorm2d(16, track_running_stats=False)), "frozen": Frozen,
    "rows": lambda: nn.Sequential(nn.Flatten(), nn.Linear(150, 20), nn.BatchNorm1d(20, 1e-3, 0.3), nn.Linear(20, 10)),
    "blocks": lambda: nn.Sequential(nn.Conv2d(5, 16, 3, padding=1), Block(16, 16, 1), Block(16, 32, 2), *head(32))}
#: Bands of patches that come to X while the one before is multiplied, behind layers that have left it anywhere.
AHEAD = [("depthwise", "8-hbfp4"), ("blocks", "16-long")]
#: Some run by default, the others in the long part.
PAIRS = [(name, machine) for name in CASES for machine in MACHINES]


def draw(count, shape=(5, 6, 5)):
    return (torch.randn(count, *shape),), (torch.randint(10, (count,)),)


@pytest.mark.parametrize(("name", "machine"), sweep(47, PAIRS, AHEAD))
def test_steps(name, machine):
    """Sums over 90 pixels straddle lines, images and blocks."""
    torch.manual_seed(2)
    follow(CASES[name](), F.cross_entropy, [draw(3), draw(3)], MACHINES[machine])


@pytest.mark.parametrize(("name", "machine"), sweep(67, [(name, machine) for name in CASES for machine in WIDE]))
def test_wide_steps(name, machine):
    """Both digits of pixels, of words of them, and of weights that are computed."""
    torch.manual_seed(2)
    plan = MixedMantissa(base=4, boosted=WIDE[machine].core.wide, epochs=1)
    step, _ = follow(CASES[name](), F.cross_entropy, [draw(3)], WIDE[machine], mixed=plan)
    assert all(each["wide_x"] and each["wide_w"] for each in step.lowered.program.instructions
               if each.opcode == Opcode.MULTIPLY)


def test_single_pixels_of_unequal_strides():
    torch.manual_seed(2)
    follow(between(12, 1, (2, 1))(), F.cross_entropy, [draw(2)], MACHINES["8"])


#: Networks whose gradients of convolutions' outputs are rounded stochastically: pixels that a stride sets apart, too.
DRAWN = {**{name: CASES[name] for name in ("dilation", "pixels", "norm", "frozen", "blocks")},
         "wide": between(48, 3, padding=1), "stride": between(16, 3, 2, 1), "strided pixels": between(16, 1, 2)}
DRAWING = {"8": accelerator(rounding="stochastic"), "8-long": accelerator(8, (1, 16), rounding="stochastic"),
           "8-wide": accelerator(mantissa=4, rounding="stochastic", wide=6, x_words=512)}


@pytest.mark.parametrize(("name", "machine"), sweep(11, [(name, machine) for name in DRAWN for machine in DRAWING]))
def test_stochastic_steps(name, machine):
    """In two steps, and every tensor of each by its graph."""
    torch.manual_seed(2)
    plan = {"mixed": MixedMantissa(base=4, boosted=6, epochs=1)} if machine == "8-wide" else {}
    model, batches = DRAWN[name](), [draw(3), draw(3)]
    step = lower_step(model, F.cross_entropy, sgd(), batches[0], DRAWING[machine], stochastic=("g",), **plan)
    drawn = [each for each in step.lowered.program.instructions if each["stochastic"]]
    assert any(each["to_w"] == 0 and each["columns"] for each in drawn) and not any(each["to_w"] for each in drawn)
    assert any(not each["columns"] for each in drawn)
    found = on_machine(step, iter(batches), 2, every=True, layers=True)
    assert found.total.mismatches == 0


def test_stochastic_convolutions_that_cannot_be_lowered():
    def lowered(model, *roles):
        return lower_step(model(), F.cross_entropy, sgd(), draw(3), DRAWING["8"], stochastic=roles)
    for roles, said in (("x", "x"), ("xg", "x"), ("xw", "x and w")):
        line = (f"Layer '0' (Conv2d) cannot be lowered: its {said} would be rounded stochastically, which those of "
                "linear layers and of products of matrices are; g alone (--stochastic g), or none, would do")
        with pytest.raises(LoweringError, match=f"^{re.escape(line)}$"):
            lowered(CASES["norm"], *roles)
    for name, channels in (("uneven", "9 channels in 1 group,"), ("groups", "8 channels in each of 2 groups,")):
        line = (f"Layer 'gx 2' (input_gradient) cannot be lowered: its output's gradient, {channels} comes in patches "
                "before it is rounded stochastically; one group of a multiple of 8 channels in blocks (1, B), or "
                "rounding to nearest, would do")
        with pytest.raises(LoweringError, match=f"^{re.escape(line)}$"):
            lowered(CASES[name], "g")
    line = ("Layer 'gw 0' (weight_gradient) cannot be lowered: its output's gradient, 4 channels in each of 2 groups, "
            "comes in patches")
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}"):    # of the first layer, whose gx nobody needs
        lower_step(nn.Sequential(nn.Conv2d(6, 8, 3, groups=2), *head(8)), F.cross_entropy, sgd(),
                   draw(3, (6, 6, 5)), DRAWING["8"], stochastic=("g",))


def test_rows_in_registers_leave_streams_for_others():
    """A gradient in torch's own order, of statistics for each image: five operands, of which three lie in registers."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(5, 4, 3, padding=1), nn.InstanceNorm2d(4), nn.Flatten(), nn.Linear(120, 10))
    follow(model, F.cross_entropy, [draw(3)], MACHINES["8"])


def test_running_statistics_are_state_of_the_program():
    torch.manual_seed(2)
    step, _ = follow(CASES["norm"](), F.cross_entropy, [draw(3), draw(3)], MACHINES["8"], sgd(momentum=0.0))
    tensors, norm = step.lowered.program.tensors, step.reference.model[1]
    for name in ("running_mean", "running_var"):
        assert tensors[f"1.{name}"].address + len(step.place) == tensors[f"1.{name} after"].address
        assert not torch.equal(getattr(norm, name), getattr(nn.BatchNorm2d(16), name))
    assert not any("num_batches_tracked" in name for name in tensors) and norm.num_batches_tracked == 2


@pytest.mark.parametrize(("block", "rows"), sweep(2, [((1, 16), {16, 8}), ((1, 8), {24})]))
def test_pixels_of_a_batch_may_be_more_than_x_holds(block, rows):
    """For a row of the array, 96 words of it; g comes in portions, and by words, then."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(5, 16, 1), nn.Conv2d(16, 24, 3, padding=1), *head(24))
    machine = accelerator(8, block, x_words=64, w_words=128)
    step, _ = follow(model, F.cross_entropy, [draw(3)], machine, sgd(momentum=0.0))
    program = step.lowered.program
    layer = next(each for each in program.layers if each.name == "gw 1")
    own = program.instructions[layer.first:layer.stop]
    parts = [each for each in own if each.opcode == Opcode.MULTIPLY]
    assert {each["rows0"] for each in parts} == rows and not all(each["first"] and each["last"] for each in parts)
    assert not any(each["elements"] and each["run"] == 1 for each in own if each.opcode == Opcode.LOAD)


def test_weights_that_stream_come_once_for_all_rows():
    """24 rows of g, three of the array's, that X holds: each column tile of the patches is converted once for them."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(5, 16, 1), nn.Conv2d(16, 24, 3, padding=1), *head(24))
    machine = accelerator(8, (1, 8), x_words=1024, w_words=128, v_words=1024)
    step, _ = follow(model, F.cross_entropy, [draw(3)], machine, sgd(momentum=0.0))
    program = step.lowered.program
    layer = next(each for each in program.layers if each.name == "gw 1")
    own = program.instructions[layer.first:layer.stop]
    weights = [each for each in own if each.opcode == Opcode.WEIGHTS]
    assert sum(each["tiles"] for each in weights) == 12 * 18 and {
        each["rows0"] for each in own if each.opcode == Opcode.MULTIPLY} == {24}


def test_rows_come_anew_where_less_is_converted_then(monkeypatch):
    """32 rows of g, of which X holds 8: in four bands each column tile is converted four times, and g once, else g
    comes with both column tiles, in long bursts.
    """
    def moved():
        torch.manual_seed(2)
        model = nn.Sequential(nn.Conv2d(5, 16, 1), nn.ReLU(), nn.Conv2d(16, 32, 1), *head(32))
        machine = accelerator(8, (1, 8), x_words=128, w_words=64, v_words=1024)
        step, _ = follow(model, F.cross_entropy, [draw(3)], machine, sgd(momentum=0.0))
        layer = next(each for each in step.lowered.program.layers if each.name == "gw 2")
        own = step.lowered.program.instructions[layer.first:layer.stop]
        loads = [each for each in own if each.opcode == Opcode.LOAD]
        return (sum(each["rows"] * each["words"] for each in own if each.opcode == Opcode.CONVERT),
                sum(each["count1"] * each["count2"] for each in loads))
    converted, bursts = moved()
    monkeypatch.setattr(matrix, "_passes", lambda *given: False)
    assert converted == 90 * (4 * 2 + 2) and moved() > (converted, bursts)


@pytest.mark.parametrize(("channels", "options", "fewer"), sweep(5, [
    (16, (3, 1, 1), True), (16, (3, 2, 1), True), (8, (3, 2, 1), True), (16, ((3, 2), (1, 3), (2, 0)), True),
    (16, ((2, 3), 1, (1, 2), (3, 2)), True), (8, (3, 1, 1), False), (16, (1,), False), (12, (3, 1, 1), False)]))
def test_words_of_a_column_tile_come_line_by_line(channels, options, fewer, monkeypatch):
    """Of patches whose words lie apart those that a line's patches take for a tap are a burst, also of a stride."""
    def bursts():
        torch.manual_seed(2)
        model = nn.Sequential(nn.Conv2d(5, channels, 1), nn.ReLU(), nn.Conv2d(channels, 16, *options), *head(16))
        machine = accelerator(8, (1, 8), w_words=64, v_words=1024)
        step, _ = follow(model, F.cross_entropy, [draw(3)], machine, sgd(momentum=0.0))
        layer = next(each for each in step.lowered.program.layers if each.name == "gw 2")
        own = step.lowered.program.instructions[layer.first:layer.stop]
        loads = [each for each in own if each.opcode == Opcode.LOAD and not each["elements"]]
        return sum(each["count1"] * each["count2"] for each in loads)
    found = bursts()
    monkeypatch.setattr(convolutions, "_by_words", lambda *given: False)
    assert (found < bursts()) == fewer


@pytest.mark.parametrize(("channels", "options", "fewer"), sweep(2, [(16, (3, 1, 1), True), (24, (3, 2, 1), True),
                                                                    (8, (3, 1, 1), False), (16, (1,), False)]))
def test_taps_come_in_long_bursts(channels, options, fewer, monkeypatch):
    """Of gx's weights, where column tiles come one at a time: a copy, which is made anyway, has each in one piece."""
    def bursts():
        torch.manual_seed(2)
        model = nn.Sequential(nn.Conv2d(5, channels, 1), nn.ReLU(), nn.Conv2d(channels, 16, *options), *head(16))
        step, _ = follow(model, F.cross_entropy, [draw(3)], accelerator(8, (1, 8), w_words=64, v_words=1024))
        layer = next(each for each in step.lowered.program.layers if each.name == "gx 2")
        own = step.lowered.program.instructions[layer.first:layer.stop]
        return sum(each["count1"] * each["count2"] for each in own if each.opcode == Opcode.LOAD)
    found = bursts()
    monkeypatch.setattr(image_gradients, "Tiles", None)
    monkeypatch.setattr(image_gradients, "plan", lambda *given: SimpleNamespace(group=0))
    assert (found < bursts()) == fewer


def test_operations_are_one_program_as_far_as_registers_go():
    """With two of them a program does less at a time, and the same."""
    torch.manual_seed(2)
    count = {}
    for registers in (8, 2):
        machine = accelerator(8, (1, 8), vector_rows=registers)
        step, _ = follow(CASES["norm"](), F.cross_entropy, [draw(3)], machine, sgd(momentum=0.0))
        count[registers] = len([each for each in step.lowered.program.tensors.values() if each.role == "inner"])
    assert count[8] < count[2]


def test_readers_do_again_what_takes_one_tensor():
    """A norm's x - mean, and its product with the root, are stored nowhere: whoever reads them takes x itself."""
    torch.manual_seed(2)
    machine = accelerator(8, (1, 8), v_words=4096)
    step, _ = follow(CASES["norm"](), F.cross_entropy, [draw(3)], machine, sgd(momentum=0.0))
    program = step.lowered.program
    stored = {}
    for layer in program.layers:
        own = [each for each in program.instructions[layer.first:layer.stop] if each.opcode == Opcode.STORE]
        stored[layer.name] = sum(each["count0"] * each["count1"] * each["count2"] for each in own)
    pixels = 3 * 30 * 2                                    # words of all images
    assert [name for name in stored if name.startswith("forward 1") and stored[name] >= pixels] == []
    assert stored["forward 2"] == pixels


#: Kernel, stride, padding, dilation: phases with a tap and without, with borders that are less than none, and beyond.
PHASES = [(kernel, stride, padding, 1) for kernel in (1, 3, 7) for stride in (1, 2, 3)
          for padding in sorted({0, kernel // 2, kernel - 1})]
PHASES += [((3, 2), (2, 3), (1, 0), 1), (2, 2, 1, 1), ((3, 2), (2, 1), 2, 2), ((2, 3), (4, 2), (0, 2), (2, 3)),
           (3, 2, 1, 3)]


@pytest.mark.parametrize(("options", "machine"), sweep(61, [
    (options, machine) for machine in ("8", "8-tiles", "16-long") for options in PHASES]))
def test_phases_of_a_stride(options, machine):
    """On images with odd sides, of which each pixel has another gradient."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(4, 6, 1), nn.Conv2d(6, 8, *options), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1),
                          nn.ReLU(), *head(8))
    follow(model, F.cross_entropy, [((torch.randn(2, 4, 9, 7),), (torch.randint(10, (2,)),))], MACHINES[machine])


class Both(nn.Module):
    """Of its two branches one reads every second pixel: the sum of both gradients stands behind what no tap meets."""

    def __init__(self):
        super().__init__()
        self.first, self.all, self.some = nn.Conv2d(5, 8, 1), nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 8, 1, 2)
        self.last = nn.Linear(72, 10)

    def forward(self, x):
        x = self.first(x)
        return self.last((self.some(x) * 2 + self.all(x)).flatten(1))


def test_pixels_that_no_tap_meets(monkeypatch):
    """They are zeros from the start on, or what is behind makes them of zeros, and the array has no part in either."""
    torch.manual_seed(2)
    seen = []
    real = image_gradients.untouched
    monkeypatch.setattr(image_gradients, "untouched", lambda *given: seen.append(given) or real(*given))
    step, _ = follow(Both(), F.cross_entropy, [draw(3), draw(3)], MACHINES["8"])
    assert len(seen) == 3
    program = step.lowered.program
    rows = {layer.name: sum(each["rows0"] * each["rows1"] for each in program.instructions[layer.first:layer.stop]
                            if each.opcode == Opcode.MULTIPLY) for layer in program.layers}
    assert rows["gx some"] == 3 * 9 and rows["gx all"] == 3 * 30


def test_products():
    torch.manual_seed(2)
    step = lower_step(CASES["stride"](), F.cross_entropy, sgd(momentum=0.0), draw(3), MACHINES["8"])
    macs = {layer.name: layer.macs for layer in step.lowered.program.layers if layer.macs}
    first, second = 3 * 30 * 5 * 16, 3 * 9 * 16 * 24 * 9
    assert macs == {"forward 0": first, "gw 0": first, "forward 2": second, "gx 2": second, "gw 2": second,
                    **dict.fromkeys(("forward 6", "gx 6", "gw 6"), 3 * 24 * 10)}
    assert {layer.name.split()[0] for layer in step.lowered.program.layers} == {"forward", "backward", "gx", "gw",
                                                                                "update"}


@pytest.mark.parametrize("name", sweep(2, ["norm", "strided depthwise"]))
def test_special_values_go_through(name):
    """A weight that is no number makes all that it is multiplied with none, between the pixels of a stride, too."""
    torch.manual_seed(2)
    model, batch = CASES[name](), draw(3)
    with torch.no_grad():
        model[2 if name != "norm" else 3].weight[1, 0, 1, 1] = float("nan")
    batch[0][0][1, 2, 3, 3], batch[0][0][2, 0, 0, 0] = float("inf"), 1e-39
    follow(model, F.cross_entropy, [batch], MACHINES["8"], sgd(momentum=0.0))


def test_gradients_are_those_of_the_layer():
    """What nodes of a step compute, each by itself."""
    torch.manual_seed(2)
    options = [2, 1], [1, 2], [1, 1], 2, Formats.of("hbfp8").text
    x, w = torch.randn(2, 6, 7, 5, requires_grad=True), torch.randn(8, 3, 3, 3, requires_grad=True)
    y = torch.ops.hbfp.conv2d(x, w, *options)
    g = torch.randn_like(y)
    gx, gw = torch.autograd.grad(y, (x, w), g)
    torch.testing.assert_close(input_gradient(g, w, [7, 5], *options), gx, rtol=0, atol=0)
    torch.testing.assert_close(weight_gradient(g, x, w.shape, *options), gw, rtol=0, atol=0)


@pytest.mark.parametrize(("model", "sizes", "line"), [
    (before(nn.BatchNorm2d(16, momentum=None)), {},
     ("Layer '1' (BatchNorm2d) cannot be lowered: its running statistics are means over all steps, with "
      "momentum=None; a momentum would do")),
    (between(12, 1, 1, 1), {}, ("Layer 'gx 2' (input_gradient) cannot be lowered: its padding (1, 1) is more than its "
                                "kernel reaches, (0, 0); at most that would do"))])
def test_refusals(model, sizes, line):
    torch.manual_seed(2)
    with pytest.raises(LoweringError, match=f"^{re.escape(line)}$"):
        lower_step(model(), F.cross_entropy, sgd(momentum=0.0), draw(3), accelerator(8, (1, 8), **sizes))


def test_a_buffer_that_stays_is_a_constant():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(150, 10)
            self.register_buffer("scale", torch.rand(10))
            self.register_buffer("places", torch.arange(10).flip(0))

        def forward(self, x):
            return self.layer(x.flatten(1))[:, self.places] * self.scale
    torch.manual_seed(2)
    with pytest.raises(LoweringError, match="new_zeros"):
        lower_step(Masked(), F.cross_entropy, sgd(momentum=0.0), draw(3), MACHINES["8"])
    Masked.forward = lambda self, x: self.layer(x.flatten(1)) * self.scale
    step, _ = follow(Masked(), F.cross_entropy, [draw(3), draw(3)], MACHINES["8"], sgd(momentum=0.0))
    assert not any("scale" in name for name in step.lowered.program.tensors)
    assert np.isfinite(step.lowered.expected["loss"])


def test_no_image_is_put_together_number_by_number():
    """Images, their gradients and constants of their shape lie alike: words move, but of those with 5 channels."""
    torch.manual_seed(0)
    model, batch = CASES["maximum"](), draw(2)
    program = lower_step(model, F.cross_entropy, sgd(momentum=0.0), batch, MACHINES["8"]).lowered.program
    runs = {layer.name for layer in program.layers for each in program.instructions[layer.first:layer.stop]
            if each.opcode == Opcode.LOAD and each["elements"] and each["count0"] * each["count1"] * each["count2"] > 1}
    assert runs == {"forward 0", "gw 0"}


@pytest.mark.parametrize("size", [1, 3])
def test_channels_that_lie_apart(size):
    """Instance norm gives images in torch's own order, which a convolution without a border reads as they lie."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.InstanceNorm2d(5), nn.Conv2d(5, 8, size), *head(8))
    follow(model, F.cross_entropy, [((torch.randn(3, 5, 4, 4),), (torch.randint(10, (3,)),))])
