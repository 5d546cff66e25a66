"""The gradient of a convolution's images: for each phase of its stride, g convolved with the turned taps there."""

from dataclasses import replace
from typing import Any

import torch

from hbfp.golden.nn.phases import Phase, phases

from ..apart import WORD
from ..errors import LoweringError
from ..memory import Value
from ..nodes import Made, Nodes
from ..products.after import After
from ..products.draw import Pixels, of_gradient
from ..products.tiles import Tiles
from ..products.untouched import untouched
from ..products.weights import Steps, Weights, computed_weights, plan
from ..products.wide import widths
from ..tensors import channels_last
from .after import steps_after
from .convolutions import (
    Window,
    convolve,
    in_words,
    laid_within,
    patches_are_gathered,
    refuse_patches,
    space_for,
    window_of,
    work_of,
)

hbfp = torch.ops.hbfp
#: A convolution of single pixels.
_PIXELS = Window((1, 1), (1, 1), (0, 0), (1, 1))


def images_gradient(net: Nodes, node: Any) -> Made:
    """The gradient of a convolution's images: for each phase of its stride, g convolved with the turned taps there.

    Raises
    ------
    LoweringError
        If there is more padding than the kernel reaches.
    """
    g, w, _, stride, padding, dilation, groups, text = node.args
    wide, draw = widths(text, net.build.accelerator, "g", "w"), of_gradient(text)
    result, shape = net.graph.results[node], net.graph.results[w].shape
    window = window_of(shape, stride, padding, dilation)
    if min(window.reach[0] - padding[0], window.reach[1] - padding[1]) < 0:
        raise LoweringError(f"its padding {tuple(padding)} is more than its kernel reaches, {window.reach}; at most "
                            "that would do")
    found = phases(window.size, result.shape[2:], stride, padding, dilation)
    together = draw is None and all(in_words(net, Window(phase.size, (1, 1), phase.corner, phase.step), shape, groups,
                                             wide) for phase in found if not phase.empty)
    after, last = steps_after(net, node, channels_last(4)) if groups == 1 or together else (After(net.build), node)
    output = space_for(net, last, 1 if together else groups, any(phase.empty for phase in found))
    outs, drawn = shape[0] // groups, Pixels.of(draw, net.graph.results[g].shape, net.build.lanes)
    within = _Within(net, g, found)
    for phase in found:
        places = (slice(None), slice(None), *phase.places)
        target = Value(output.where[places], output.home)
        own = after.part((slice(None), *phase.places)) if len(found) > 1 else after
        if phase.empty:
            if own.steps:
                untouched(net.build, target.view(torch.permute, (0, 2, 3, 1)), own)
            continue
        images, turned = within.images(phase, outs, groups, drawn is not None, together)
        if drawn is not None and patches_are_gathered(net, turned, outs, groups):
            refuse_patches(net, outs, groups)
        anew = len(result) > 1 and phase.down.count * phase.across.count < WORD * net.accelerator.core.rows
        kernel = _turned(net, net.value(w), groups, wide, phase.taps, anew)
        convolve(net, images, outs, kernel, wide, turned, groups, Steps(), target, own, drawn)
    return last, (work_of(net.graph.results[g], shape, groups),)


class _Within:
    """A node's images, of which phases of a stride take patches; a copy with borders, to gather from, is made once."""

    def __init__(self, net: Nodes, node: Any, found: list[Phase]) -> None:
        self.net, self.node = net, node
        self.made: Value | None = None
        self.sides = net.graph.results[node].shape[2:]
        own = [phase for phase in found if not phase.empty]
        self.before, self.behind = ([max([0, *(ends(phase)[axis] for phase in own)]) for axis in range(2)]
                                    for ends in (lambda phase: phase.corner, self._behind))

    def _behind(self, phase):
        return tuple(side - corner - there for side, corner, there in zip(
            phase.sides, phase.corner, self.sides, strict=True))

    def images(self, phase: Phase, channels: int, groups: int, draws: bool, whole_words: bool) -> tuple[Any, Window]:
        """The images, or a part of them, with what a phase's convolution of them says; all of them if they draw, or if
        it takes whole words."""
        value, behind = self.net.value(self.node), self._behind(phase)
        whole = not any(phase.corner) and not any(behind)
        if phase.size == (1, 1) and (whole or max(*phase.corner, *behind) <= 0 and not draws):
            return self._part(value, [-corner for corner in phase.corner], phase), _PIXELS
        window = Window(phase.size, (1, 1), phase.corner, phase.step, max(behind) > 0)
        if phase.stride == (1, 1):
            return self.node, window
        if draws or whole_words or not patches_are_gathered(self.net, window, channels, groups):
            return value, window
        if self.made is None:
            sides = [sum(each) for each in zip(self.before, self.sides, self.behind, strict=True)]
            self.made = laid_within(self.net, value, sides, self.before)
        skips = [before - corner for before, corner in zip(self.before, phase.corner, strict=True)]
        return self._part(self.made, skips, phase), Window(phase.size, (1, 1), (0, 0), phase.step)

    @staticmethod
    def _part(value, skips, phase):
        where = value.where
        for dim, (skip, side) in enumerate(zip(skips, phase.sides, strict=True), 2):
            where = where.narrow(dim, skip, side)
        return Value(where, value.home)


def _turned(net, w, groups, wide, taps, anew):
    """Kernels of the same weights for the gradient of the images: K along O and these taps.

    ``anew`` is whether weights that stream come more often than once, and the array waits for single words of them.
    """
    lanes, whole = net.build.lanes, net.accelerator.whole

    def kernel(group, apart, count):
        outs = w.shape[0] // groups
        own = w.view(torch.narrow, 0, group * outs, count * outs)
        if count > 1:                                      # groups of one channel
            own = own.view(torch.transpose, 0, 1)
        outs, channels = own.shape[:2]
        if len(taps) == 1:
            return computed_weights(Value(own.where[:, :, taps[0][0], taps[0][1]], own.home), lanes, wide=wide)
        high = -(-outs // whole) * whole if apart else outs
        made = Weights(len(taps) * high, channels, wide=wide)
        if (anew and channels % lanes == 0 and channels > lanes and own.whole_words(1, lanes)
                and plan(net.build, made).group == 1):
            return replace(made, lines=Tiles(net.build, own, taps, high))
        rows = net.build.dram.empty((len(taps), high, channels))
        net.build.dram.zeros(rows.home)
        for number, (y, x) in enumerate(taps):
            net.copy(Value(own.where[:, :, y, x], own.home), Value(rows.where[number, :outs], rows.home))
        return computed_weights(rows.view(torch.flatten, 0, 1), lanes, wide=wide)
    return kernel
