"""Random small networks that follow from a number, lowered for an accelerator: layers, and operations of the table.

Parts are those of :mod:`golden.lower.training.random_models`, and what users call as functions: of each element, of
rows, of windows and moves, in chains with sums and joins around. What an accelerator is too small for is drawn anew.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from hbfp.system import Accelerator

from .fitting import DRAWS, Drawn
from .lowering import Lowered, lower
from .training.random_models import WORDS, Joined, Models, Residual

Function = Callable[[torch.Tensor], torch.Tensor]
#: Of each element.
ELEMENTS: dict[str, Function] = {
    "exp": lambda x: x.clamp(max=8).exp(), "log": lambda x: (x.abs() + 0.1).log(), "sqrt": lambda x: x.abs().sqrt(),
    "rsqrt": lambda x: (x.abs() + 0.5).rsqrt(), "reciprocal": lambda x: (x.abs() + 0.5).reciprocal(),
    "neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "round": torch.round, "floor": torch.floor,
    "ceil": torch.ceil, "trunc": torch.trunc, "frac": torch.frac, "sin": torch.sin, "cos": torch.cos,
    "erf": torch.erf, "silu": F.silu, "hardswish": F.hardswish, "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": F.elu, "celu": lambda x: F.celu(x, 1.5), "selu": F.selu, "hardtanh": F.hardtanh, "relu6": F.relu6,
    "hardsigmoid": F.hardsigmoid, "softshrink": lambda x: F.softshrink(x, 0.3), "tanhshrink": F.tanhshrink,
    "hardshrink": lambda x: F.hardshrink(x, 0.3), "threshold": lambda x: F.threshold(x, 0.1, -1.0),
    "log_sigmoid": F.logsigmoid, "log1p": lambda x: x.abs().log1p(), "expm1": lambda x: x.clamp(max=4).expm1(),
    "square": torch.square, "cube": lambda x: x ** 3, "power": lambda x: (x.abs() + 0.1) ** 1.5,
    "remainder": lambda x: x % 1.25, "fmod": lambda x: torch.fmod(x, 0.75), "floor_divide": lambda x: x // 0.5,
    "where": lambda x: torch.where(x > 0.1, x, 0.5 - x), "maximum": lambda x: torch.maximum(x, -0.5 * x),
    "minimum": lambda x: torch.minimum(x, 1 - x), "clamp": lambda x: x.clamp(-0.7, 0.9), "ge": lambda x: (x >= 0) * x,
    "lerp": lambda x: torch.lerp(x, x * x, 0.3), "rsub": lambda x: 2 - x, "div": lambda x: x / 3,
    "masked_fill": lambda x: x.masked_fill(x < -0.5, 2.0), "gated": lambda x: x * torch.sigmoid(1.7 * x)}
#: Along a dimension, which stays.
ROWS: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "softmax": torch.softmax, "log_softmax": torch.log_softmax, "cumsum": torch.cumsum,
    "sum": lambda x, d: x.sum(d, True), "mean": lambda x, d: x - x.mean(d, True), "amax": lambda x, d: x.amax(d, True),
    "amin": lambda x, d: x - x.amin(d, True), "logsumexp": lambda x, d: x.logsumexp(d, True),
    "var": lambda x, d: x.var(d, correction=0, keepdim=True),
    "norm": lambda x, d: x / (x.norm(dim=d, keepdim=True) + 1),
    "sort": lambda x, d: x.sort(d).values, "topk": lambda x, d: x.topk(min(2, x.shape[d]), d).values,
    "argmax": lambda x, d: x + x.argmax(d, True).float(), "max": lambda x, d: x.max(d, True).values,
    "flip": lambda x, d: x.flip(d), "roll": lambda x, d: x.roll(1, d), "narrow": lambda x, d: x.narrow(d, 0, -(
        -x.shape[d] // 2)), "repeat": lambda x, d: x.repeat_interleave(2, d), "cat": lambda x, d: torch.cat((x, -x), d),
    "strided": lambda x, d: x.index_select(d, torch.arange(0, x.shape[d], 2)), "prod": lambda x, d: x.prod(d, True),
    "normalise": lambda x, d: (x - x.mean(d, True)) * torch.rsqrt(x.var(d, correction=0, keepdim=True) + 1e-5),
    "glu": lambda x, d: F.glu(x, d) if not x.shape[d] % 2 else x, "std": lambda x, d: x.std(
        d, correction=0, keepdim=True)}
#: Of images (N, C, H, W).
IMAGES: dict[str, Function] = {
    "pad": lambda x: F.pad(x, (1, 0, 0, 2)), "reflect": lambda x: F.pad(x, (1, 1, 1, 1), "reflect") if min(
        x.shape[2:]) > 1 else x, "replicate": lambda x: F.pad(x, (1, 1, 1, 1), "replicate"),
    "nearest": lambda x: F.interpolate(x, scale_factor=2), "bilinear": lambda x: F.interpolate(
        x, scale_factor=2, mode="bilinear"), "adaptive_max": lambda x: F.adaptive_max_pool2d(x, 1),
    "unfold": lambda x: F.unfold(x, 1).reshape(x.shape), "shuffle": lambda x: F.channel_shuffle(x, 2) if not x.shape[
        1] % 2 else x, "pixels": lambda x: F.pixel_shuffle(x, 2) if not x.shape[1] % 4 else F.pixel_unshuffle(
            x, 2) if not (x.shape[2] % 2 or x.shape[3] % 2) else x, "transpose": lambda x: x.transpose(2, 3)}
#: Of sequences (N, T, F).
SEQUENCES: dict[str, Function] = {
    "scores": lambda x: torch.softmax(x @ x.mT, -1) @ x, "causal": lambda x: torch.tril(x @ x.mT) @ x,
    "einsum": lambda x: torch.einsum("ntf,nsf->nts", x, x), "transpose": lambda x: x.mT,
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x), "triu": torch.triu,
    "stack": lambda x: torch.stack((x, x.square()), 2).flatten(1, 2)}


class Applied(nn.Module):
    """A function of one tensor as a part of a network."""

    def __init__(self, text: str, function: Function) -> None:
        super().__init__()
        self.text, self.function = text, function

    def extra_repr(self) -> str:
        """Its name."""
        return self.text

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What it gives."""
        return self.function(x)


class Networks(Models):
    """Draws networks with functions of the table among their parts."""

    def network(self, kind: str, shape: tuple[int, ...]) -> nn.Module:
        """A network of samples of this shape; ``kind`` as of :meth:`Models.model`."""
        parts: list[nn.Module] = []
        if kind == "words":
            parts.append(nn.Embedding(WORDS, self._features()))
            shape = (*shape, parts[0].embedding_dim)
        for _ in range(self.pick.randint(2, 6)):
            part = self._function(len(shape)) if self.pick.random() < 0.6 else self._layer(shape)
            behind = self._shape(part, shape)
            if torch.Size(behind).numel() > 2048:
                continue
            if behind == shape and (chance := self.pick.random()) < 0.3:
                part = Residual(part) if chance < 0.2 else Joined([part, nn.Identity()])
                behind = self._shape(part, shape)
            parts.append(part)
            shape = behind
        if self.pick.random() < 0.5:
            parts += [nn.Flatten(), nn.Linear(torch.Size(shape).numel(), self.pick.randint(2, 12))]
        return nn.Sequential(*parts)

    def _layer(self, shape):
        if len(shape) == 3:
            return self._image(*shape)[0]
        return self._row(shape) if len(shape) == 1 or self.pick.random() < 0.5 else self._sequence(*shape)

    def _function(self, dims):
        """A function of samples of so many dimensions."""
        pick = self.pick
        tables: list[Any] = [ELEMENTS, ELEMENTS, ROWS, *([SEQUENCES] * (dims == 2)), *([IMAGES] * (dims == 3))]
        table = pick.choice(tables)
        name, function = pick.choice(list(table.items()))
        if table is not ROWS:
            return Applied(name, function)
        dim = pick.randint(1, dims)
        return Applied(f"{name} {dim}", lambda x: function(x, dim))


@dataclass
class DrawnNetwork(Drawn):
    """What a number stands for.

    Attributes
    ----------
    lowered : Lowered or None
        Its program, or None if every draw met a limit.
    """
    lowered: Lowered | None = None

    @property
    def fits(self) -> bool:
        return self.lowered is not None


def drawn_network(pick: Random) -> tuple[nn.Module, tuple[torch.Tensor], str]:
    """A network in evaluation, its inputs, and a line that says what they are."""
    samples, times = pick.choice((1, 2, 3, 4, 5, 9)), pick.randint(1, 6)
    kind, shape = pick.choice((("rows", (pick.randint(1, 24),)), ("sequences", (times, pick.randint(1, 16))), (
        "words", (times,)), ("images", (pick.randint(1, 6), pick.randint(2, 6), pick.randint(2, 6)))))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(pick.getrandbits(32))
        model = Networks(pick, samples, False).network(kind, shape).eval()
        x = torch.randint(WORDS, (samples, *shape)) if kind == "words" else torch.randn(samples, *shape)
    return model, (x,), f"{' '.join(repr(model).split())} of {samples} {kind} {shape}"


def random_network(accelerator: Accelerator, seed: int) -> DrawnNetwork:
    """The network of a number, the same whenever it is drawn, as a program of an accelerator."""
    drawn = DrawnNetwork()

    def make(number: int) -> None:
        model, inputs, drawn.text = drawn_network(Random(f"network {seed} {number}"))
        drawn.lowered = lower(model, inputs, accelerator)
    drawn.until_it_fits(make, ValueError, DRAWS)
    return drawn
