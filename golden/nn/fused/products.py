"""Products of many pairs of matrices at once, each pair in the formats of its model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ...fast import kernels, stack
from ...fast.patches import Patches
from ..formats import Formats
from ..layers import HBFPLayer
from ..memory import array
from ..once import once_differentiable
from ..pairs import ROLES, quick
from ..products import Operand, product
from ..record import note
from ..state import runs_once


class Products:
    """Products of the models of a job in the formats that their layers have at the moment.

    Parameters
    ----------
    layers : sequence of HBFPLayer
        The same layer of each model.
    """

    def __init__(self, layers: Sequence[HBFPLayer]) -> None:
        self.layers, self.count = list(layers), len(layers)
        self._formats: list[Formats] = []
        self._kernels: dict[tuple[str, int], Any] = {}

    def refresh(self) -> "Products":
        """Take up the formats of a call made now, which schedules and modes change; called before a forward pass."""
        formats = [layer.hbfp_now for layer in self.layers]
        if formats != self._formats:
            self._formats, self._kernels = formats, {}
            self.taken = object()
            self.all_quick = all(map(quick, formats))
        return self

    def serve(self, *inputs: torch.Tensor) -> bool:
        """Whether a forward pass on ``inputs`` can go through here; if not, it goes model by model."""
        return (all(x.dtype == torch.float32 for x in inputs) and all(f.mode == "hbfp" for f in self._formats)
                and (runs_once() or not any(f.stochastic for f in self._formats)))

    def formats_of(self, which: str) -> stack.Formats:
        """Of one product of each model in the roles of :data:`ROLES`, as the kernels read them."""
        return self._kernel(which, 1)[0]

    def _kernel(self, which, repeat):
        found = self._kernels.get((which, repeat))
        if found is None:
            each = [f for f in self._formats for _ in range(repeat)]
            first, second = ROLES[which]
            skip = np.array([not quick(f) for f in each])
            sums = [f.accumulate if quick(f) else "fp32" for f in each]
            found = (stack.Formats([getattr(f, first) for f in each], [getattr(f, second) for f in each], sums),
                     skip if skip.any() else None)
            self._kernels[which, repeat] = found
        return found

    def __call__(self, a: torch.Tensor, b: torch.Tensor, which: str) -> tuple[torch.Tensor, list[int]]:
        """Products of (models * R, M, K) and (models * R, K, N) in the roles of :data:`ROLES`.

        Returns
        -------
        tuple of (Tensor, list of int)
            (models * R, M, N), and the pairs that are left out, to be multiplied one by one from :meth:`operand`.
        """
        formats, skip = self._kernel(which, len(a) // self.count)
        y = torch.from_numpy(stack.product(array(a), array(b), formats, skip))
        return y, [] if skip is None else skip.nonzero()[0].tolist()

    def note(self, operation: str, macs: int) -> None:
        """Tell those who listen that all models did a product of ``macs`` multiply-accumulates."""
        for formats in self._formats:
            note(operation, formats, macs // self.count)

    def patches(self, places: Patches, step: int, b: torch.Tensor, which: str) -> torch.Tensor:
        """Products of each model's patches, turned in the role ``gb``, with b (models, K, N); all formats are quick."""
        formats, _ = self._kernel(which, 1)
        return torch.from_numpy(stack.patches_product(places, step, array(b), formats, turned=which == "gb"))

    def formats(self, pair: int, pairs: int) -> Formats:
        """Of one pair of ``pairs``."""
        return self._formats[pair * self.count // pairs]

    def operand(self, source: torch.Tensor, role: str, pair: int, pairs: int) -> Operand:
        """A matrix of one pair, to be converted the general way."""
        model = pair * self.count // pairs
        return Operand(source, getattr(self._formats[model], role), self.layers[model].stream)


class Linear(torch.autograd.Function):
    """``y = x w^T + bias`` of every model: x (models, M, I), w (models, O, I), bias (models, O) or None."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None,
                products: Products) -> torch.Tensor:
        """(models, M, O)."""
        ctx.save_for_backward(x, w)
        ctx.products, ctx.operands, pairs = products, {}, len(x)
        y, left = products(x.detach(), w.detach().transpose(1, 2), "y")
        for i in left:
            one, other = products.operand(x[i], "x", i, pairs), products.operand(w[i], "w", i, pairs)
            ctx.operands[i] = one, other
            y[i] = product(one.along(-1), other.along(-1), products.formats(i, pairs), turn_b=True)
        return y if bias is None else y.add_(bias.detach()[:, None])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x``, ``w`` and ``bias``."""
        x, w = ctx.saved_tensors
        products, g, pairs = ctx.products, g.contiguous(), len(x)
        gx: Any = None
        gw: Any = None
        gb = None
        left_x: list[int] = []
        left_w: list[int] = []
        if ctx.needs_input_grad[0]:
            gx, left_x = products(g, w.detach(), "ga")
        if ctx.needs_input_grad[1]:
            gw, left_w = products(g.transpose(1, 2), x.detach(), "gb turned")
        for i in sorted({*left_x, *left_w}):
            formats = products.formats(i, pairs)
            one, other = ctx.operands.get(i) or (products.operand(x[i], "x", i, pairs),
                                                 products.operand(w[i], "w", i, pairs))
            top = products.operand(g[i], "g", i, pairs)
            if i in left_x:
                gx[i] = product(top.along(-1), other.along(0), formats)
            if i in left_w:
                gw[i] = product(top.along(0), one.along(0), formats, turn_a=True)
        if ctx.needs_input_grad[2]:
            gb = torch.from_numpy(kernels.row_sums(array(g)))
        return gx, gw, gb, None
