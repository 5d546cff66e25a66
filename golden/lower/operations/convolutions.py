"""Convolutions and their gradients: gx is convolutions of g with turned weights, gw a product over all pixels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from hbfp.program import Product, Tensor

from ..errors import LoweringError
from ..memory import Home, Value, located
from ..nodes import Made, Nodes
from ..products.after import After
from ..products.apart import Apart
from ..products.convolution import bands_fit, convolution, tiles_fit
from ..products.depthwise import Taps, depthwise, depthwise_fits
from ..products.draw import Pixels, of_gradient
from ..products.gathered import gathered
from ..products.matrix import matrix
from ..products.paired import paired, pairs_fit
from ..products.patches import Patches
from ..products.planes import fits, planes
from ..products.turned import RUN, Lines, cycles, lines_fit, turned, windows_fit
from ..products.weights import Steps, Weights, computed_weights, constant_weights, plan, sparse_weights
from ..products.wide import Wide, widths
from ..tensors import channels_last
from .after import steps_after, windows_after
from .products import sparse
from .steps import steps_behind
from .vector import windows_space

hbfp = torch.ops.hbfp
Pair = tuple[int, int]
#: Gives the weights of a group: each tap begins in a word of X, where patches are addresses, and weights may be sparse;
#: or all taps lie one behind the other. Or those of so many groups of one channel from a first one on, side by side.
Kernel = Callable[[int, bool, int], Weights]


@dataclass(frozen=True)
class Window:
    """What a convolution says beside its operands; numbers are (down, across).

    ``beyond`` is whether patches reach further behind images than the padding in front of them says.
    """
    size: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    beyond: bool = False

    @property
    def reach(self) -> Pair:
        """Pixels from the first tap to the last."""
        return self.dilation[0] * (self.size[0] - 1), self.dilation[1] * (self.size[1] - 1)

    @property
    def plain(self) -> bool:
        """Whether it is of single pixels, without a border."""
        return self.size == (1, 1) and not any(self.padding) and not self.beyond


def weight_gradient(g: torch.Tensor, x: torch.Tensor, shape: Sequence[int], *options: Any) -> torch.Tensor:
    """The gradient of a convolution's weights, of this shape: a node of a step."""
    return hbfp.conv2d_backward(g, x, torch.zeros(shape), *options, [False, True])[1]


def conv2d(net: Nodes, node: Any) -> Made:
    """A convolution of x (N, C, H, W) with w (O, C / groups, kh, kw), one group after the other."""
    x, w, stride, padding, dilation, groups, text = node.args
    wide = widths(text, net.build.accelerator)
    of_gradient(text)                                      # which refuses what draws here
    result, shape = net.graph.results[node], net.graph.results[w].shape
    steps, last = steps_behind(net, node, 1)
    window = window_of(shape, stride, padding, dilation)
    together = in_words(net, window, shape, groups, wide)
    after, last = steps_after(net, last, channels_last(4)) if groups == 1 or together else (After(net.build), last)
    is_sparse = sparse(net, w, result.numel() // shape[0], wide)
    if groups == 1:
        after, last = windows_after(net, last, after, lambda after: _takes_windows(
            net, x, Weights(shape[1] * shape[2] * shape[3], shape[0], wide=wide), window, result.shape[2:], after))
    kernel = _constant(net, net.constant(w), groups, wide, is_sparse) if net.is_constant(w) else _forward(
        net, net.value(w), groups, wide, is_sparse)
    output = windows_space(net, last, after.windows) if after.windows is not None else space_for(
        net, last, 1 if together else groups)
    convolve(net, x, shape[1], kernel, wide, window, groups, steps, output, after)
    return last, (work_of(result, shape, groups),)


def weights_gradient(net: Nodes, node: Any) -> Made:
    """The gradient of a convolution's weights: a product over all pixels of all images, of g turned and patches."""
    g, x, shape, stride, padding, dilation, groups, text = node.args
    wide, draw = widths(text, net.build.accelerator, "g", "x"), of_gradient(text)
    if draw is not None and groups > 1:
        refuse_patches(net, shape[0] // groups, groups)
    draw, top = draw and replace(draw, turned=True), net.value(g)
    window = window_of(shape, stride, padding, dilation)
    outs, ins = shape[0] // groups, shape[1]
    if (rows := _one_matrix(top)) is None:
        top = net.build.dram.empty(top.shape, channels_last(4))
        net.copy(net.value(g), top)
        rows = _one_matrix(top)
    output, together = net.fresh(node), net.build.lanes if (
        outs == ins == 1 and not net.accelerator.core.format.square) else 1
    parts = [range(group, min(group + together, groups)) for group in range(0, groups, together)]
    every = _pixels(net, window, x, [(part.start * ins, len(part) * ins) for part in parts], top, wide)
    for part, weights in zip(parts, every, strict=True):
        left = rows.view(torch.narrow, 1, part.start * outs, len(part) * outs).view(torch.t)
        own = Value(output.where[part.start * outs:part.stop * outs].permute(0, 2, 3, 1), output.home)
        if ins % net.build.lanes:                          # rows would be stored from within a word
            dense = net.build.dram.empty((len(left.where), weights.columns))
            matrix(net.build, left, weights, Steps(), dense, After(net.build), draw)
            where = dense.where.unflatten(1, (*own.shape[1:3], -1))
            if together > 1:                               # of each channel with all others its own
                where = where.diagonal(0, 0, 3).permute(2, 0, 1)[..., None]
            net.copy(Value(where, dense.home), own)
        else:
            matrix(net.build, left, weights, Steps(), Value(own.where.flatten(1), own.home), After(net.build), draw)
        net.build.forget()
    return node, (work_of(net.graph.results[g], shape, groups),)


def _pixels(net, window, x, parts, top, wide):
    """For each part, its first channel and how many it has, the second operand of gw: patches of all images, one below
    the other.
    """
    build, images, pixels = net.build, net.value(x), top.shape[2:]
    if len(parts) == 1 and _by_words(net, window, x, top, wide):
        size, stride, padding, dilation = window.size, window.stride, window.padding, window.dilation
        if window.plain:
            images, stride = Value(images.where[:, :, ::stride[0], ::stride[1]], images.home), (1, 1)
        made = Apart(build, images, padding, size, stride, dilation, pixels)
        yield Weights(made.terms, made.columns, lines=made, wide=wide)
        return
    if any(window.padding) or _apart(images):
        images = _bordered(net, x, window.padding)
    flat = _one_matrix(images)
    if len(parts) == 1 and window.plain and window.stride == (1, 1) and flat is not None:
        yield computed_weights(flat, build.lanes, wide=wide)
        return
    for part in parts:
        patches = Patches(images.view(torch.narrow, 1, *part), window.size, window.stride, window.dilation, pixels)
        yield Weights(patches.terms, patches.columns, lines=patches, wide=wide)


def _one_matrix(images):
    """All pixels of images (N, C, H, W), one below the other; None where no strides say so."""
    where = images.where.permute(0, 2, 3, 1)
    try:
        return Value(where.view(-1, where.shape[3]), images.home)
    except RuntimeError:
        return None


def refuse_patches(net: Nodes, channels: int, groups: int) -> None:
    """LoweringError: patches are rounded once they are put together, and then a word has numbers of several pixels."""
    fmt = net.accelerator.core.format
    raise LoweringError(f"its output's gradient, {channels} channels in {'each of ' * (groups > 1)}{groups} "
                        f"group{'s' * (groups > 1)}, comes in patches before it is rounded stochastically; one group "
                        f"of a multiple of {fmt.terms} channels in blocks (1, B), or rounding to nearest, would do")


def window_of(shape: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> Window:
    """Of weights of this shape."""
    size, *others = ((each[0], each[1]) for each in (shape[2:], stride, padding, dilation))
    return Window(size, others[0], others[1], others[2])


def work_of(y: torch.Tensor, shape: Sequence[int], groups: int) -> Product:
    """The product that a convolution with results of the shape of ``y`` is; its gradients take as many steps."""
    return Product(y.numel() // shape[0], shape[1] * shape[2] * shape[3], shape[0] // groups, groups)


def patches_are_gathered(net: Nodes, window: Window, channels: int, groups: int) -> bool:
    """Whether patches of ``channels`` are no addresses."""
    fmt = net.accelerator.core.format
    return not window.plain and (groups > 1 or channels % fmt.terms > 0 or fmt.square)


def in_words(net: Nodes, window: Window, shape: Sequence[int], groups: int, wide: Wide) -> bool:
    """Whether a convolution with weights of this shape is depthwise, and words of channels are taken together."""
    taps = Weights(window.size[0] * window.size[1], net.build.lanes, wide=wide)
    return (groups == shape[0] and shape[1] == 1 < groups and 1 in (window.size[0], window.dilation[0])
            and depthwise_fits(net.build, taps, groups))


def space_for(net: Nodes, node: Any, groups: int, filled: bool = False) -> Value:
    """Space for a convolution's result; if ``filled``, and of groups that share words, it is zeros at first."""
    shared = groups > 1 and net.graph.results[node].shape[1] // groups % net.build.lanes > 0
    return net.fresh(node, filled=0.0 if filled or shared else None)


def convolve(net: Nodes, x: Any, channels: int, kernel: Kernel, wide: Wide, window: Window, groups: int, steps: Steps,
             output: Value, after: After, drawn: Pixels | None = None) -> None:
    """A convolution of a node's images, or of those at a value with their borders, group after group.

    ``drawn`` is how the images are rounded, if not to nearest.
    """
    build, outs, pixels = net.build, output.shape[1] // groups, after.pixels(output)
    size, stride, padding, dilation = window.size, window.stride, window.padding, window.dilation
    given = isinstance(x, Value)
    if in_words(net, window, (groups * outs, channels), groups, wide) and drawn is None:
        value = x if given else net.value(x)
        if not value.whole_words(1, build.lanes):
            value, part = build.dram.empty(value.shape, channels_last(4)), value
            net.copy(part, value)
        depthwise(build, Taps(value, size, stride, padding, dilation[1], pixels),
                  lambda first, count: kernel(first, False, count), steps, output, after)
        return
    way = _way(net, x, Weights(size[0] * size[1] * channels, outs, wide=wide), window, groups, pixels, after)
    if way is turned:
        turned(build, _lines(net, x, window, pixels), groups,
               lambda group: (kernel(group, False, 1), steps.part(group * outs, outs)), output, after)
        return
    value = x if given else net.value(x) if way is not gathered else _bordered(net, x, padding)
    for group in range(groups):
        part = value.view(torch.narrow, 1, group * channels, channels)
        target = output.view(torch.narrow, 1, group * outs, outs)
        mine, weights = steps.part(group * outs, outs), kernel(group, way in (convolution, matrix), 1)
        if way is matrix:
            pixels = part.where[:, :, ::stride[0], ::stride[1]].permute(0, 2, 3, 1)
            matrix(build, Value(pixels, part.home), weights, mine, target.view(torch.permute, (0, 2, 3, 1)), after,
                   None if drawn is None else drawn.draw)
        elif way is paired:
            paired(build, part, weights, mine, target, size, padding, dilation, after)
        elif way is planes:
            planes(build, part, weights, mine, target, size, stride, padding, dilation, after)
        elif way is gathered:
            gathered(build, part, weights, mine, target, size, stride, dilation, after)
        else:
            convolution(build, part, weights, mine, target, size, stride, padding, dilation, after, drawn)
        build.forget()


def _way(net, x, weights, window, groups, pixels, after):
    """What does a convolution of a node's images, or of those at a value, with such weights of a group, unless words of
    channels are taken together.
    """
    build, given, channels = net.build, isinstance(x, Value), weights.terms // (window.size[0] * window.size[1])
    if window.plain:
        return matrix
    if not patches_are_gathered(net, window, channels, groups):
        return convolution
    if groups == 1 and not given and net.is_there(x):
        whole = channels % build.lanes == 0                # else an input may come in another order
        if whole and pairs_fit(build, net.value(x), weights, window.size, window.stride, window.dilation, pixels):
            return paired
        if x not in net.graph.inputs and fits(build, net.value(x), weights, window.size, window.stride, window.padding,
                                              window.dilation):
            return planes
        if whole and tiles_fit(build, net.value(x), weights.wide, window.size, window.stride, window.dilation, pixels):
            return convolution
    turns = not given and _turns(net, x, window, weights, groups, pixels[1], after)
    return turned if turns else gathered


def _takes_windows(net, x, weights, window, pixels, after):
    """Whether windows can follow such a convolution of a node's images before anything is stored."""
    way, across = _way(net, x, weights, window, 1, pixels, after), pixels[1]
    if way is turned:
        return windows_fit(net.build, weights, window.size[0], window.stride[0], across, after)
    return way is convolution and bands_fit(net.build, net.graph.results[x].shape, weights, window.size, window.stride,
                                            window.padding, window.dilation, across, after)


def _constant(net, w, groups, wide, is_sparse):
    """Kernels of weights that are constants."""
    outs, channels, whole = len(w) // groups, w.shape[1], net.accelerator.whole

    def kernel(group, apart, count):
        own = w[group * outs:(group + count) * outs].permute(0, 2, 3, 1).flatten(1).contiguous().numpy()
        made = None
        if is_sparse and apart and (channels % whole == 0 or own.shape[1] == channels):
            made = sparse_weights(net.build.dram.constant(own), net.build, wide=wide)
        return made or constant_weights(net.build, np.ascontiguousarray(own.T), channels if apart else own.shape[1],
                                        wide)
    return kernel


def _forward(net, w, groups, wide, is_sparse):
    """Kernels of weights (O, C, kh, kw) that are computed, with K along C and the taps."""
    outs, channels, lanes, whole = w.shape[0] // groups, w.shape[1], net.build.lanes, net.accelerator.whole
    taps = w.shape[2] * w.shape[3]

    def kernel(group, apart, count):
        own = w.view(torch.narrow, 0, group * outs, count * outs).view(torch.permute, (0, 2, 3, 1))
        pitch = -(-channels // whole) * whole
        if (apart or pitch == channels or taps == 1) and own.whole_words(3, lanes) and own.where.stride()[:3] == (
                taps * pitch, w.shape[3] * pitch, pitch):
            terms = channels if taps == 1 else taps * pitch
            where = located((count * outs, terms), (taps * pitch, 1), own.address)
            rows = Value(where, Home(own.address, count * outs, terms, taps * pitch))
        else:
            length = pitch if apart else channels
            rows = net.build.dram.empty((count * outs, taps * length))
            net.build.dram.zeros(rows.home)
            net.copy(own, rows.view(torch.unflatten, 1, (*own.shape[1:3], length)).view(
                torch.narrow, 3, 0, channels))
        made = sparse_weights(rows, net.build, wide=wide) if is_sparse and apart else None
        return made or computed_weights(Value(rows.where.t(), rows.home), lanes, wide=wide)
    return kernel


def _apart(images):
    """Whether channels do not lie side by side, as in what has torch's own order."""
    return images.shape[1] > 1 and images.dims()[1][1] != 1


def _by_words(net, window, x, top, wide):
    """Whether gw takes one word of each patch at a time, of several, and each again for the next tap or band.

    Not where patches are all pixels: these are a matrix as they lie.
    """
    lanes, channels = net.build.lanes, net.graph.results[x].shape[1]
    taps = window.size[0] * window.size[1]
    weights = Weights(top.where.numel() // top.shape[1], taps * channels, wide=wide)
    return (not (window.plain and window.stride == (1, 1)) and channels % lanes == 0
            and (channels > lanes or taps > 1 and window.stride[1] > 1) and plan(net.build, weights).group == 1)


def _is_given(net, node):
    """Whether a node is an input that a host puts where a convolution, which alone takes it, wants it."""
    return node in net.graph.inputs and node not in net.values and len(node.users) == 1 and not net.batches


def _turns(net, node, window, weights, groups, across, after):
    """Whether lines of pixels are turned on chip, and patches not gathered from DRAM: cycles of a line of patches."""
    build, (kh, kw), (sh, sw) = net.build, window.size, window.stride
    channels, given = weights.terms // (kh * kw), _is_given(net, node)
    if not given and groups == 1 or given and sw > 1 or not lines_fit(
            build, weights, window.dilation, across, after.operands):
        return False
    beside = kw if groups == 1 and window.dilation[1] == 1 else 1
    runs = kh * kw // beside * -(-beside * channels // build.lanes)
    copied = 0 if given else channels * sh * sw
    return cycles(build, weights.terms, across, 8) + copied * RUN * across < runs * RUN * across


def _lines(net, node, window, pixels):
    """The lines of images within zeros, channel by channel; an input is given so."""
    result, (ph, pw), sw, dw = net.graph.results[node], window.padding, window.stride[1], window.dilation[1]
    n, c, h, w = result.shape
    tall, half = h + 2 * ph, -(-(w + 2 * pw) // sw)
    home = net.build.dram.home(n * c * tall, sw * half, sw * half)
    where = located((n, c, tall, sw * half), (c * tall * sw * half, tall * sw * half, sw * half, 1), home.address)
    if _is_given(net, node):
        laid = torch.nn.functional.pad(result, (pw, pw, ph, ph)).contiguous().numpy()
        _give(net, node, home, laid, range(4))
    else:
        net.build.dram.zeros(home)
        value = net.value(node)
        for phase in range(sw):
            first = (phase - pw) % sw                      # pixels first, first + sw, ... are of this phase
            at = phase * half + (first + pw) // sw
            own = value.view(lambda where, first=first: where[..., first::sw])
            if own.shape[3]:
                net.copy(own, Value(where[:, :, ph:ph + h, at:at + own.shape[3]], home))
    starts = [column * dw % sw * half + column * dw // sw for column in range(window.size[1])]
    return Lines(Value(where, home), window.size, window.stride, starts, pixels)


def _give(net, node, home, laid, order):
    """Let an input be there as ``laid`` before the program runs."""
    net.build.dram.given(home, laid)
    name = net.name(node)
    net.tensors[name] = Tensor(4 * home.address, laid.shape, "dense", "input")
    net.expected[name], net.orders[name] = laid, list(order)


def _bordered(net, node, padding):
    """A dense copy of images (N, C, H, W) with zeros around, channels innermost; an input is given as one."""
    result, (ph, pw) = net.graph.results[node], padding
    n, c, h, w = result.shape
    tall, wide = h + 2 * ph, w + 2 * pw
    if _is_given(net, node):
        home = net.build.dram.home(n * tall, wide * c, wide * c)
        laid = torch.nn.functional.pad(result, (pw, pw, ph, ph)).permute(0, 2, 3, 1).contiguous().numpy()
        _give(net, node, home, laid, channels_last(4))
        return Value(located((n, c, tall, wide), (tall * wide * c, 1, wide * c, c), home.address), home)
    if (node, tuple(padding)) not in net.bordered:
        net.bordered[node, tuple(padding)] = laid_within(net, net.value(node), (tall, wide), (ph, pw))
    return net.bordered[node, tuple(padding)]


def laid_within(net: Nodes, value: Value, sides: Sequence[int], corner: Sequence[int]) -> Value:
    """A dense copy of images within zeros, whose sides these are, from the pixel ``corner`` on."""
    n, c, h, w = value.shape
    tall, wide = sides
    home = net.build.dram.home(n * tall, wide * c, wide * c)
    where = located((n, c, tall, wide), (tall * wide * c, 1, wide * c, c), home.address)
    net.build.dram.zeros(home)
    inside = where[:, :, corner[0]:corner[0] + h, corner[1]:corner[1] + w]
    net.copy(value, Value(inside, home))
    return Value(where, home)
