"""What a core offers to a host, and a network that runs on any core: golden, simulated or built."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hbfp.checks import check_kind
from hbfp.design import Design

from ..number.blocks import Blocks
from . import core


@dataclass(frozen=True, eq=False)
class Layer:
    """``relu(x @ weight + bias)``.

    Attributes
    ----------
    weight, bias : ndarray of float32
        (K, N) and (N,).
    relu : bool
        Whether the activation is there; the last layer has none.
    """
    weight: np.ndarray
    bias: np.ndarray
    relu: bool


class Device(Protocol):
    """A core that encodes and multiplies tensors: :class:`Golden`, or cosim's ``Core``, which is under simulation."""

    @property
    def design(self) -> Design:
        """Of the core."""

    def encode(self, x: np.ndarray, axis: int = -1, *, seed: int = 1, wide: bool = False) -> Blocks:
        """FP32 to blocks along ``axis``, of wide mantissas or not; ``seed`` is that of ``stochastic`` rounding."""

    def matmul(self, x: Any, w: Any, *, scale: np.ndarray | None = None, bias: np.ndarray | None = None,
               relu: bool = False) -> np.ndarray:
        """``x @ w``, and the side unit's steps."""


class Golden:
    """The golden core as a :class:`Device`.

    Parameters
    ----------
    design : hbfp.design.Design
        The core.
    """

    def __init__(self, design: Design) -> None:
        check_kind("Design", design, Design)
        self.design = design

    def encode(self, x: np.ndarray, axis: int = -1, *, seed: int = 1, wide: bool = False) -> Blocks:
        """FP32 to blocks."""
        return core.encode(self.design, x, axis, seed=seed, wide=wide)

    def matmul(self, x: Blocks | np.ndarray, w: Blocks | np.ndarray, **steps: Any) -> np.ndarray:
        """Product and side unit's steps."""
        return core.matmul(self.design, x, w, **steps)


def quantise(x: np.ndarray, mantissa: int) -> tuple[np.ndarray, float]:
    """Integers and the step of a tensor, for ``int`` and ``int8``: one scale a tensor, ties to even.

    Returns
    -------
    (ndarray of int64, float)
        ``x`` is about the integers times the step.
    """
    limit = 2 ** (mantissa - 1) - 1
    step = float(np.abs(x).max(initial=0)) / limit or 1.0
    return np.rint(np.float64(x) / step).astype(np.int64), step


def forward(device: Device, x: np.ndarray, layers: Sequence[Layer]) -> Iterator[tuple[str, Any]]:
    """Run a network on a device.

    Numbers without shared exponents skip the conversions. Operands of ``int8`` come over their scales, and its side
    unit multiplies by them. ``int`` has neither converter nor side unit: scales, biases and ReLU are the host's, in
    float32.

    Parameters
    ----------
    device : Device
        Where it runs.
    x : ndarray of float32
        (M, K).
    layers : sequence of Layer
        The network.

    Yields
    ------
    (str, result)
        Name and value of every result in order: ``layer 1 weight``, ``layer 1 input`` (Blocks) and ``layer 1 output``
        (an array), and so on; the last is the scores (M, classes).
    """
    arithmetic = device.design.arithmetic
    for number, layer in enumerate(layers, 1):
        if arithmetic == "int":
            (a, a_step), (b, b_step) = (quantise(part, device.design.format.mantissa) for part in (x, layer.weight))
            total = device.matmul(a, b)
            yield f"layer {number} sums", total
            x = (total * (a_step * b_step)).astype(np.float32) + layer.bias
            x = np.maximum(x, 0) if layer.relu else x
            continue
        w, scale = layer.weight, None
        if device.design.number.sums:
            (x, step), (w, w_step) = (quantise(part, device.design.lane_width) for part in (x, w))
            x, w, scale = x.astype(np.float32), w.astype(np.float32), np.full(w.shape[1], step * w_step, np.float32)
        if arithmetic == "hbfp":
            w = device.encode(w, -2)
            yield f"layer {number} weight", w
            x = device.encode(x)
            yield f"layer {number} input", x
        x = device.matmul(x, w, scale=scale, bias=layer.bias, relu=layer.relu)
        yield f"layer {number} output", x
    if arithmetic == "int":
        yield "scores", x
