"""Errors of sparsity alone, of quantisation alone, and of both in either order, layer by layer.

If the two were orthogonal, the error of both would stay within the sum of the errors of each. An error is the norm of
the difference to FP32 over the norm in FP32, in float64: of a layer's weights, and of its outputs ``x @ w``, where what
is quantised has quantised inputs, too. Quantised values are multiplied without further rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ..formats import coded, names
from ..sparsity import prune
from ..spec.numbers import Number
from .error import encoded

#: What is compared, in the order of the columns.
CASES = ("sparsity", "quantisation", "sparsify-quantise", "quantise-sparsify")


@dataclass(frozen=True)
class Row:
    """Errors of one layer in one format, by :data:`CASES`."""
    layer: str
    format: str
    weights: dict[str, float]
    outputs: dict[str, float]

    def beyond(self, order: str) -> float:
        """Outputs' error with both, in an order, over the sum of the errors of each: above 1 is not orthogonal."""
        alone = self.outputs["sparsity"] + self.outputs["quantisation"]
        return self.outputs[order] / alone if alone else 1.0


def values(x: np.ndarray, name: str, axis: int) -> np.ndarray:
    """float32 ``x`` as a format of :mod:`golden.formats.names` holds it."""
    fmt = names.read(name)
    return coded.rounded(x, fmt, axis=axis) if isinstance(fmt, Number) else encoded(x, fmt, axis=axis)


def errors(x: np.ndarray, w: np.ndarray, name: str, n: int = 2, m: int = 4
           ) -> tuple[dict[str, float], dict[str, float]]:
    """Errors of weights and of outputs by :data:`CASES`, of float32 inputs (rows, K) and weights (K, O)."""
    sparse, narrow, inputs = prune(w, n, m), values(w, name, 0), values(x, name, -1)
    pairs = {"sparsity": (x, sparse), "quantisation": (inputs, narrow),
             "sparsify-quantise": (inputs, values(sparse, name, 0)), "quantise-sparsify": (inputs, prune(narrow, n, m))}
    exact = x.astype(np.float64) @ w
    return ({case: _relative(used, w) for case, (_, used) in pairs.items()},
            {case: _relative(given.astype(np.float64) @ used, exact) for case, (given, used) in pairs.items()})


def _relative(y, exact):
    exact = exact.astype(np.float64)
    size = np.linalg.norm(exact)
    return float(np.linalg.norm(y - exact) / size) if size else 0.0


def measure(model: torch.nn.Module, inputs: torch.Tensor, formats: Sequence[str], n: int = 2, m: int = 4) -> list[Row]:
    """Errors of every ``Linear`` of an FP32 model, with the inputs that it gets in FP32."""
    found: list[tuple[str, np.ndarray, np.ndarray]] = []
    hooks = [layer.register_forward_hook(_keep(name, found)) for name, layer in model.named_modules()
             if isinstance(layer, torch.nn.Linear)]
    try:
        with torch.no_grad():
            model(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return [Row(name, fmt, *errors(x, w, fmt, n, m)) for name, x, w in found for fmt in formats]


def _keep(name, found):
    def hook(layer, inputs, output):
        x = inputs[0].reshape(-1, layer.in_features)
        found.append((name, np.ascontiguousarray(x.numpy()), np.ascontiguousarray(layer.weight.numpy().T)))
    return hook


def picture(rows: Sequence[Row], path: Path) -> None:
    """Bars of the outputs' errors, a panel for each layer, as PNG; a line is the sum of the errors of each alone."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    names = list(dict.fromkeys(row.layer for row in rows))
    figure = Figure((4.5 * len(names), 4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        own = [row for row in rows if row.layer == name]
        places = np.arange(len(own))
        for i, case in enumerate(CASES):
            axes.bar(places + 0.2 * (i - 1.5), [row.outputs[case] for row in own], 0.2, label=case)
        axes.hlines([row.outputs["sparsity"] + row.outputs["quantisation"] for row in own], places - 0.4, places + 0.4,
                    color="black", label="sum of the first two")
        axes.set_xticks(places, [row.format for row in own], rotation=30, ha="right")
        axes.set_title(f"layer {name}")
    panels[0].set_ylabel("relative error of the outputs")
    panels[-1].legend()
    figure.savefig(path, dpi=120)
