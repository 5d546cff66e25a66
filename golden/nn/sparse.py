"""N:M sparse weights in training: products see what a mask leaves, the dense master weight gets the gradient.

The law is that of :mod:`golden.sparsity` along K, in a convolution over (kernel row, kernel column, channel). With
order ``sparsify-quantise`` a product converts the masked weight. With ``quantise-sparsify`` the mask ranks the weight
as converted along K of the forward product, and lies over those values; every product then converts what it leaves,
which in the forward product changes no bit. The gradient passes straight through, to pruned elements, too.
"""

from typing import Any

import numpy as np
import torch

from ..sparsity import keep_mask
from .formats import FormatLike, Formats
from .layers import HBFPConv2d, HBFPLayer, HBFPLinear
from .memory import array
from .products import check_float32
from .quantise import quantise

#: What comes first; what a weight loses in the second step is as the first left it.
SPARSE_ORDERS = ("sparsify-quantise", "quantise-sparsify")
#: Dimensions of a weight, in the order in which they make a matrix (K, O).
_ORDER = {2: (1, 0), 4: (2, 3, 1, 0)}


def _matrix(w):
    """A layer's weight as (K, O)."""
    return w.permute(_ORDER[w.dim()]).reshape(-1, w.shape[0])


def _unfolded(matrix, shape):
    """The way back from :func:`_matrix`."""
    order = _ORDER[len(shape)]
    return matrix.reshape([shape[d] for d in order]).permute(sorted(range(len(shape)), key=order.__getitem__))


def _quantised(weight, groups, formats):
    """A weight as the forward product converts it: along K, the outputs of each group by themselves."""
    parts = [quantise(_matrix(part), formats.w, axis=0) for part in weight.detach().chunk(groups)]
    return _unfolded(torch.cat(parts, 1), weight.shape)


@torch.library.custom_op("hbfp::sparse_weight", mutates_args=())
def _sparse_weight(weight: torch.Tensor, mask: torch.Tensor, groups: int, formats: str) -> torch.Tensor:
    """What a mask leaves of a weight, converted first if there are formats; an operator, so that programs keep it."""
    values = _quantised(weight, groups, Formats.read(formats)) if formats else weight
    return torch.where(mask, values, values.new_zeros(())).contiguous()


@_sparse_weight.register_fake
def _(weight, mask, groups, formats):
    return weight.new_empty(weight.shape)


_sparse_weight.register_autograd(lambda ctx, g: (g, None, None, None))


@torch.library.custom_op("hbfp::pruned", mutates_args=())
def _pruned(weight: torch.Tensor, n: int, m: int) -> torch.Tensor:
    """What N:M pruning leaves of a weight (O, K), a graph's stand-in for a mask that is made anew each time."""
    kept = torch.from_numpy(keep_mask(array(weight.detach()), n, m, axis=1))
    return torch.where(kept, weight, weight.new_zeros(()))


@_pruned.register_fake
def _(weight, n, m):
    return weight.new_empty(weight.shape)


def _obeys(mask, n, m):
    """Whether a mask keeps ``n`` of every ``m`` along K, of a shorter last group as many as it has of them."""
    matrix = array(_matrix(mask).cpu())
    starts = np.arange(0, len(matrix), m)
    wanted = np.minimum(n, len(matrix) - starts)[:, None]
    return bool((np.add.reduceat(matrix.astype(np.int64), starts) == wanted).all())


class Interval:
    """After how many steps of an optimiser a layer's mask is made anew; another object, another optimiser's call."""

    def __init__(self, steps: int) -> None:
        self.steps = steps


def mask_of(layer: HBFPLayer, n: int, m: int, order: str) -> torch.Tensor:
    """The mask of a layer's weight, on its device."""
    weight = layer.weight.detach().float()
    if order == "quantise-sparsify":
        weight = _quantised(weight, getattr(layer, "groups", 1), layer.formats)
    kept = torch.from_numpy(keep_mask(array(_matrix(weight).cpu()), n, m, axis=0))
    return _unfolded(kept, weight.shape).contiguous().to(weight.device)


def unfit(layer: HBFPLayer, formats: Formats, order: str) -> str | None:
    """Why a layer cannot be sparse in this way, or None."""
    if order == "sparsify-quantise":
        return None
    if formats.w.rounding == "stochastic":
        return "order 'quantise-sparsify' needs rounding 'rne' or 'truncate' for w, not 'stochastic'"
    if formats.mode != "hbfp":
        return f"order 'quantise-sparsify' needs mode 'hbfp', not {formats.mode!r}"
    if layer.weight.dtype != torch.float32:
        return f"order 'quantise-sparsify' needs float32 weights, not {str(layer.weight.dtype).removeprefix('torch.')}"
    return None


class Sparse(HBFPLayer):
    """Mixed into layers with N:M sparse weights; :func:`golden.nn.sparsify` makes them.

    Attributes
    ----------
    weight_mask : Tensor of bool
        Which elements stay; a buffer, shape of the weight.
    mask_rule : Tensor of int64
        N, M, place in :data:`SPARSE_ORDERS`, and steps of the optimiser so far; a buffer, for checkpoints.
    sparsity : tuple of int
        N and M.
    mask_order : str
        One of :data:`SPARSE_ORDERS`.
    """
    weight: torch.nn.Parameter
    weight_mask: torch.Tensor
    mask_rule: torch.Tensor
    sparsity: tuple[int, int]
    mask_order: str
    #: Name for messages.
    mask_name: str
    mask_interval: Interval | None

    @torch.no_grad()
    def refresh_mask(self) -> None:
        """Make the mask anew, of the weight as it is now."""
        self.weight_mask.copy_(mask_of(self, *self.sparsity, self.mask_order))

    def used_weight(self) -> torch.Tensor:
        """What products take as the weight; its gradient goes to all of ``weight``."""
        formats = ""
        if self.mask_order == "quantise-sparsify":
            check_float32(weight=self.weight)
            formats = self.hbfp_now.text
        return _sparse_weight(self.weight, self.weight_mask, getattr(self, "groups", 1), formats)

    def hbfp_set_formats(self, formats: FormatLike) -> None:
        """Change the formats; the mask stays until it is made anew."""
        problem = unfit(self, Formats.of(formats), self.mask_order)
        if problem:
            raise ValueError(f"Layer {self.mask_name!r} is sparse and cannot have this format: {problem}")
        super().hbfp_set_formats(formats)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, metadata: Any, strict: bool,
                              missing: list[str], unexpected: list[str], errors: list[str]) -> None:
        """As of torch; a dense checkpoint gives the mask of its weights, a mask that does not fit is refused."""
        names = [f"{prefix}weight_mask", f"{prefix}mask_rule"]
        mask, rule = map(state_dict.get, names)
        dense = mask is None and rule is None
        problem = None if dense else self._misfit(mask, rule)
        if problem:
            errors.append(f"Layer {self.mask_name!r} cannot take the mask of the checkpoint: {problem}")
            return
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, unexpected, errors)
        if dense:
            missing[:] = [name for name in missing if name not in names]
            if f"{prefix}weight" in state_dict:
                self.mask_rule[3] = 0
                self.refresh_mask()

    def _misfit(self, mask, rule):
        """Why a checkpoint's mask does not fit, or None."""
        if mask is None or rule is None:
            return "weight_mask and mask_rule belong together"
        n, m, order = found = rule[:3].tolist()
        own = self.mask_rule[:3].tolist()
        if found != own:
            there, here = (f"{n}:{m}, {SPARSE_ORDERS[order]!r}" for n, m, order in (found, own))
            return f"it is {there}, the layer {here}; sparsify the model as the checkpoint's was"
        if mask.shape != self.weight_mask.shape:
            return f"its shape is {tuple(mask.shape)}, the layer's {tuple(self.weight_mask.shape)}"
        if mask.dtype != torch.bool or not _obeys(mask, n, m):
            return f"it does not keep {n} of every {m} along K"
        return None

    def extra_repr(self) -> str:
        """The dense layer's text, and the sparsity."""
        n, m = self.sparsity
        return f"{super().extra_repr()}, sparsity='{n}:{m}', mask={self.mask_order!r}"


class SparseLinear(Sparse, HBFPLinear):
    """:class:`~golden.nn.HBFPLinear` with N:M sparse weights."""


class SparseConv2d(Sparse, HBFPConv2d):
    """:class:`~golden.nn.HBFPConv2d` with N:M sparse weights."""
