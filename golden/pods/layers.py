"""What a program computes: matrix products with scale, bias and relu behind them, of one model or of several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hbfp.format import HBFPFormat
from hbfp.program import ProgramError

from ..perf.pods.chains import SAME
from ..perf.pods.graph import Gemm


@dataclass(frozen=True, eq=False)
class Layer:
    """``relu(X @ W * scale + bias)``, each step optional.

    Attributes
    ----------
    name : str
        For messages.
    x : ndarray of float32 (m, k), or int
        X, or the number of the earlier layer whose results it is.
    w : ndarray of float32 (k, n)
    scale, bias : ndarray of float32 (n,), optional
    relu : bool
    fmt : HBFPFormat, optional
        Format of both operands; that of the machine if not given. Its mantissas may be narrower than the machine's.
    """
    name: str
    x: np.ndarray | int
    w: np.ndarray
    scale: np.ndarray | None = None
    bias: np.ndarray | None = None
    relu: bool = False
    fmt: HBFPFormat | None = None


def rows(layers: Sequence[Layer], number: int) -> int:
    """Rows of a layer's X."""
    x = layers[number].x
    return rows(layers, x) if isinstance(x, int) else len(x)


def gemms(layers: Sequence[Layer]) -> list[Gemm]:
    """The products of layers, as the scheduler takes them.

    Raises
    ------
    ProgramError
        If a layer's X does not fit its W, or it reads none of the layers before it.
    """
    found = []
    for number, layer in enumerate(layers):
        k, n = layer.w.shape
        if isinstance(layer.x, int) and not 0 <= layer.x < number:
            raise ProgramError(f"Layer {layer.name} must read one of the layers before it, not number {layer.x}")
        columns = layers[layer.x].w.shape[1] if isinstance(layer.x, int) else layer.x.shape[1]
        if columns != k:
            raise ProgramError(f"Layer {layer.name} must have as many rows of W as columns of X, not {k} and {columns}")
        m = rows(layers, number)
        found.append(Gemm(layer.name, 1, m, k, n, height=m,
                          sources={layer.x: SAME} if isinstance(layer.x, int) else {}))
    return found


def fused(models: Sequence[Sequence[Layer]]) -> list[Layer]:
    """Several models of one shape as one list of layers: layer l of model b of B models is number ``l * B + b``.

    Formats, weights and steps may differ.

    Raises
    ------
    ProgramError
        If they cannot be fused; the line says which layer, and why.
    """
    first, count = models[0], len(models)
    for b, model in enumerate(models):
        if len(model) != len(first):
            raise ProgramError(f"Models cannot be fused: model {b} has {len(model)} layers, model 0 has {len(first)}")
        for number, (one, other) in enumerate(zip(first, model, strict=True)):
            reads = tuple(each.x if isinstance(each.x, int) else None for each in (one, other))
            if reads[0] != reads[1]:
                raise ProgramError(f"Models cannot be fused: layer {other.name} of model {b} reads another layer than "
                                   "that of model 0")
            shapes = tuple((rows(each, number), *each[number].w.shape) for each in (first, model))
            if shapes[0] != shapes[1]:
                raise ProgramError(f"Models cannot be fused: layer {other.name} of model {b} has shape "
                                   f"{'x'.join(map(str, shapes[1]))}, that of model 0 {'x'.join(map(str, shapes[0]))}")
    return [replace(model[number], name=f"{model[number].name}/{b}",
                    x=model[number].x * count + b if isinstance(model[number].x, int) else model[number].x)
            for number in range(len(first)) for b, model in enumerate(models)]
