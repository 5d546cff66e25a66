"""Linear layers, products of matrices, and convolutions."""

from typing import Any

import numpy as np
import torch

from hbfp.golden.vector import programs
from hbfp.program import Product, Tensor

from ..errors import LoweringError
from ..memory import Value, located
from ..nodes import Made, Nodes
from ..products.after import After
from ..products.convolution import convolution
from ..products.gathered import gathered
from ..products.matrix import matrix
from ..products.planes import fits, planes
from ..products.weights import Weights, computed_weights, constant_weights
from ..tensors import channels_last
from .after import steps_after
from .steps import steps_behind
from .vector import elementwise


def linear(net: Nodes, node: Any) -> Made:
    """``x W^T`` of x (..., K) and W (N, K), which is constant or computed."""
    x, w = node.args[0], node.args[1]
    value = net.value(x)
    steps, last = steps_behind(net, node, -1)
    result = net.graph.results[node]
    order = list(range(result.dim()))
    after, last = steps_after(net, last, order)
    if net.is_constant(w):
        weight = net.constant(w).numpy().T
        weights = constant_weights(net.build, weight, len(weight))
    else:
        computed = net.value(w)
        weights = computed_weights(Value(computed.where.t(), computed.home))
    matrix(net.build, value, weights, steps, net.fresh(last, order), after)
    return last, (Product(result.numel() // weights.columns, weights.terms, weights.columns),)


def matmul(net: Nodes, node: Any) -> Made:
    """Products of a (..., M, K) and b (..., K, N): one for each place of the dimensions before the last two."""
    a, b = (net.value(each) for each in node.args[:2])
    steps, last = steps_behind(net, node, -1)
    order = list(range(len(a.shape)))
    after, last = steps_after(net, last, order)
    output = net.fresh(last, order)
    for place_ in np.ndindex(*a.shape[:-2]):
        left, right, own = (Value(each.where[place_], each.home) for each in (a, b, output))
        matrix(net.build, left, computed_weights(right), steps, own, after.part(place_))
        net.build.forget()
    return last, (Product(a.shape[-2], a.shape[-1], b.shape[-1], int(np.prod(a.shape[:-2], dtype=np.int64))),)


def add_bias(net: Nodes, node: Any) -> Made:
    """The sum of a product and a bias that the core has not added."""
    return elementwise(net, node, programs.add(), *(net.value(each) for each in node.args))


def conv2d(net: Nodes, node: Any) -> Made:
    """A convolution of x (N, C, H, W) with w (O, C / groups, kh, kw), one group after the other.

    Raises
    ------
    LoweringError
        If w is no constant.
    """
    x, w, stride, padding, dilation, groups = node.args[:6]
    if not net.is_constant(w):
        raise LoweringError("its weight is trained, or depends on the inputs; a constant one would do")
    weight = net.constant(w).numpy()
    build, fmt = net.build, net.accelerator.core.format
    result = net.graph.results[node]
    steps, last = steps_behind(net, node, 1)
    after, last = steps_after(net, last, channels_last(4)) if groups == 1 else (After(build), last)
    output = net.fresh(last)
    size, channels = weight.shape[2:], weight.shape[1]
    plain = tuple(size) == (1, 1) and not any(padding)
    gathers = not plain and (groups > 1 or channels % fmt.terms > 0 or fmt.square)
    laid = weight.transpose(2, 3, 1, 0).reshape(-1, len(weight))
    planar = gathers and groups == 1 and net.is_there(x) and x not in net.graph.inputs and fits(
        build, net.value(x), Weights(len(laid), len(weight)), size, stride, padding, dilation)
    if planar or not gathers:
        value = net.value(x)
    if groups > 1 and result.shape[1] // groups % build.lanes:
        build.dram.zeros(output.home)
    if gathers and not planar:
        value = _bordered(net, x, padding)
    for group in range(groups):
        ins, outs = channels, len(weight) // groups
        own = weight[group * outs:(group + 1) * outs]
        part = value if groups == 1 else Value(value.where[:, group * ins:(group + 1) * ins], value.home)
        target = output if groups == 1 else Value(output.where[:, group * outs:(group + 1) * outs], output.home)
        mine = steps.part(group * outs, outs)
        laid = own.transpose(2, 3, 1, 0).reshape(-1, outs)
        if plain:
            pixels = part.where[:, :, ::stride[0], ::stride[1]].permute(0, 2, 3, 1)
            weights = constant_weights(build, laid, len(laid))
            matrix(build, Value(pixels, part.home), weights, mine,
                   Value(target.where.permute(0, 2, 3, 1), target.home), after)
        elif planar:
            weights = constant_weights(build, laid, len(laid))
            planes(build, part, weights, mine, target, size, stride, padding, dilation, after)
        elif gathers:
            weights = constant_weights(build, laid, len(laid))
            gathered(build, part, weights, mine, target, size, stride, dilation, after)
        else:
            weights = constant_weights(build, laid, channels)
            convolution(build, part, weights, mine, target, size, stride, padding, dilation, after)
        build.forget()
    return last, (Product(result.numel() // len(weight), weight[0].size, len(weight) // groups, groups),)


def _bordered(net, node, padding):
    """A dense copy of images (N, C, H, W) with zeros around, channels innermost; an input is given as one."""
    result, (ph, pw) = net.graph.results[node], padding
    n, c, h, w = result.shape
    tall, wide = h + 2 * ph, w + 2 * pw
    home = net.build.dram.home(n * tall, wide * c, wide * c)
    where = located((n, c, tall, wide), (tall * wide * c, 1, wide * c, c), home.address)
    if node in net.graph.inputs and node not in net.values and len(node.users) == 1:
        laid = torch.nn.functional.pad(result, (pw, pw, ph, ph)).permute(0, 2, 3, 1).contiguous().numpy()
        net.build.dram.given(home, laid)
        name = net.name(node)
        net.tensors[name] = Tensor(4 * home.address, laid.shape, "dense", "input")
        net.expected[name], net.orders[name] = laid, channels_last(4)
    else:
        net.build.dram.zeros(home)
        net.copy(net.value(node), Value(where[:, :, ph:ph + h, pw:pw + w], home))
    return Value(where, home)
