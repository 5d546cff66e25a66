"""Windows: pooling, and means over pixels."""

from collections.abc import Callable
from typing import Any

from hbfp.golden import vector_programs as programs
from hbfp.golden.nn.side import pair
from hbfp.golden.spec.vector import Instruction

from .. import vectors
from ..errors import LoweringError
from ..memory import Value, located
from ..nodes import Handler, Made, Nodes
from ..tensors import channels_last

Passes = list[Instruction]


def pool(border: float, program: Callable[[int], Passes]) -> Handler:
    """A handler of pooling over images; ``program`` takes a window's elements."""
    def handler(net, node):
        x, size, stride, padding, *rest = _padded(node.args)
        size = pair(size)
        stride, padding = pair(stride or size), pair(padding or 0)
        dilation, ceil = (1, 1), False
        if border:
            dilation, ceil = pair(rest[0] or 1), rest[1]
        else:
            ceil = rest[0]
            counted = True if rest[1] is None else rest[1]
            if rest[2] is not None or any(padding) and not counted:
                raise LoweringError("it divides by another number than the window's elements; count_include_pad=True "
                                    "without divisor_override would do")
        if ceil:
            raise LoweringError("ceil_mode=True has windows that hang over the edge; ceil_mode=False would do")
        return _windows(net, node, net.value(x), size, stride, padding, dilation, border, program)
    return handler


def pool_1d(border: float, program: Callable[[int], Passes]) -> Handler:
    """A handler of windows over (N, C, L) as windows over images of one row."""
    def handler(net, node):
        x, size, stride, padding, *rest = _padded(node.args)
        if net.graph.results[node].dim() != 3:
            raise LoweringError("its operand has two dimensions; (N, C, L) would do")
        size, stride, padding = ((1, first(each)) for each in (size, stride or size, padding or 0))
        dilation = (1, first(rest[0] or 1)) if border else (1, 1)
        if rest[1 if border else 0]:
            raise LoweringError("ceil_mode=True has windows that hang over the edge; ceil_mode=False would do")
        if not border and rest[1] is False and padding[1]:
            raise LoweringError("it divides by another number than the window's elements; count_include_pad=True would "
                                "do")
        output = net.fresh(node, [0, 2, 1])
        value, images = net.value(x), Value(output.where.unsqueeze(2), output.home)
        return _windows(net, node, Value(value.where.unsqueeze(2), value.home), size, stride, (0, padding[1]),
                        dilation, border, program, images)

    def first(value):
        return value if isinstance(value, int) else value[0]
    return handler


def _padded(args: Any) -> list[Any]:
    """A window's arguments, None for those behind the last."""
    return [*args, None, None, None, None, None]


def _windows(net, node, value, size, stride, padding, dilation, border, program, output=None):
    taps = size[0] * size[1]
    if not vectors.taps_fit(taps):
        raise LoweringError(f"windows of {taps} elements are more than a vector instruction's; at most "
                            f"{vectors.BODY - 1} would do")
    if len(value.shape) < 3:
        raise LoweringError(f"its operand has {len(value.shape)} dimensions; images (N, C, H, W) would do")
    output = net.fresh(node) if output is None else output
    if len(value.shape) == 3:                              # one image alone
        value, output = (Value(each.where[None], each.home) for each in (value, output))
    vectors.pool(net.build, value, output, program(taps), size, stride, padding, dilation, border)
    return node, ()


def adaptive(net: Nodes, node: Any) -> Made:
    """Averages of equal parts of images."""
    value, (oh, ow) = net.value(node.args[0]), pair(node.args[1])
    h, w = value.shape[-2:]
    if h % oh or w % ow:
        raise LoweringError(f"{h} x {w} pixels are no multiple of {oh} x {ow}; sides that divide would do")
    size = h // oh, w // ow
    return _windows(net, node, value, size, size, (0, 0), (1, 1), 0.0, programs.average)


def mean(net: Nodes, node: Any) -> Made:
    """Over pixels, or the middle one of three dimensions."""
    value = net.value(node.args[0])
    dims = len(value.shape)
    over = sorted(d % dims for d in node.args[1])
    keep = len(node.args) > 2 and node.args[2]
    if dims == 4 and over == [2, 3]:
        images = value
    elif dims == 3 and over == [1]:
        images = Value(value.where.permute(0, 2, 1).unsqueeze(-1), value.home)
    else:
        raise LoweringError(f"it is a mean over dimensions {over} of {dims}; over the pixels of images or the middle "
                            "dimension of three would do")
    n, c, h, w = images.shape
    order = channels_last(dims) if keep and dims == 4 else None
    output = net.fresh(node, order)
    rows = output.home
    own = Value(located((n, c, 1, 1), (rows.pitch, 1, 1, 1), rows.address), rows)
    return _windows(net, node, images, (h, w), (h, w), (0, 0), (1, 1), 0.0, programs.average, own)
