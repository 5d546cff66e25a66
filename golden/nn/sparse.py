"""N:M sparse weights in training: products see what a mask leaves, the dense master weight gets the gradient.

The law is that of :mod:`golden.sparsity` along K, in a convolution over (kernel row, kernel column, channel). With
order ``sparsify-quantise`` a product converts the masked weight. With ``quantise-sparsify`` the mask ranks the weight
as converted along K of the forward product, and lies over those values; every product then converts what it leaves,
which in the forward product changes no bit. The gradient passes straight through, to pruned elements, too.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from hbfp.fields import check_choice, check_range

from ..sparsity import GROUP_RANGE, keep_mask
from .formats import FormatLike, Formats
from .layers import HBFPConv2d, HBFPLayer, HBFPLinear
from .products import check_float32
from .quantise import quantise
from .replace import hbfp_layers
from .scope import OwnProducts, plain
from .select import Choice, inside, matches

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


def _obeys(mask, n, m):
    """Whether a mask keeps ``n`` of every ``m`` along K, of a shorter last group as many as it has of them."""
    matrix = _matrix(mask).cpu().numpy()
    starts = np.arange(0, len(matrix), m)
    wanted = np.minimum(n, len(matrix) - starts)[:, None]
    return bool((np.add.reduceat(matrix.astype(np.int64), starts) == wanted).all())


class Interval:
    """After how many steps of an optimiser a layer's mask is made anew; another object, another optimiser's call."""

    def __init__(self, steps: int) -> None:
        self.steps = steps


def _after_steps(layers, interval):
    """The hook of an optimiser that counts steps; layers that have another interval by now are left alone."""
    def after(optimiser, args, kwargs):
        for layer in layers:
            if layer.mask_interval is interval:
                layer.mask_rule[3] += 1
                if int(layer.mask_rule[3]) % interval.steps == 0:
                    layer.refresh_mask()
    return after


class Sparse(HBFPLayer):
    """Mixed into layers with N:M sparse weights; :func:`sparsify` makes them.

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
        self.weight_mask.copy_(_mask(self, *self.sparsity, self.mask_order))

    def used_weight(self) -> torch.Tensor:
        """What products take as the weight; its gradient goes to all of ``weight``."""
        formats = ""
        if self.mask_order == "quantise-sparsify":
            check_float32(weight=self.weight)
            formats = self.hbfp_now.text
        return _sparse_weight(self.weight, self.weight_mask, getattr(self, "groups", 1), formats)

    def hbfp_set_formats(self, formats: FormatLike) -> None:
        """Change the formats; the mask stays until it is made anew."""
        problem = _unfit(self, Formats.of(formats), self.mask_order)
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


_SPARSE: dict[type, type] = {HBFPLinear: SparseLinear, HBFPConv2d: SparseConv2d}
_DENSE = {sparse: dense for dense, sparse in _SPARSE.items()}


def sparsify(module: torch.nn.Module, sparsity: str = "2:4", order: str = "sparsify-quantise", *,
             layers: Choice | Iterable[Choice] | None = None, optimiser: torch.optim.Optimizer | None = None,
             every: int = 1) -> torch.nn.Module:
    """Make weights of a converted model N:M sparse, in place, now and in training; all layers asked for, or none.

    Parameters, their names and optimisers stay as they are. Each layer gets its mask as a buffer, made of its weight as
    it is now; :func:`densify` ends it. Again on a sparse layer it makes another mask, and ends the interval of before.
    Make models sparse before they become a job of :mod:`golden.nn.fused`, which does not see it afterwards.

    Parameters
    ----------
    module : torch.nn.Module
        A model that :func:`golden.nn.convert` has converted.
    sparsity : str
        N:M, such as ``"2:4"``: of each M weights along K the N of largest magnitude stay; see
        :func:`golden.sparsity.prune`.
    order : str
        One of :data:`SPARSE_ORDERS`.
    layers : sequence of str, type or function, optional
        Which layers, as ``exclude`` of :func:`golden.nn.convert` says them; a container stands for all HBFP layers in
        it. All HBFP layers with weights by default.
    optimiser : torch.optim.Optimizer, optional
        Masks are made anew after its steps. Without it they stay as they are; so they do in copies of the model.
    every : int
        After how many steps.

    Returns
    -------
    torch.nn.Module
        ``module``.

    Raises
    ------
    TypeError
        If ``module`` is no module or ``optimiser`` no optimiser, or ``layers`` holds anything else.
    ValueError
        If sparsity, order or interval is none, there is no HBFP layer, or a layer cannot be sparse. The model is as it
        was.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, not {type(module).__name__}")
    if optimiser is not None and not isinstance(optimiser, torch.optim.Optimizer):
        raise TypeError(f"optimiser must be a torch.optim.Optimizer, not {type(optimiser).__name__}")
    n, m = _named_sparsity(sparsity)
    check_choice("Order", order, SPARSE_ORDERS)
    check_range("Interval", every, 1, 2 ** 31 - 1, " steps")
    if optimiser is None and every != 1:
        raise ValueError(f"An interval of {every} steps needs the optimiser that makes them; give optimiser=...")
    held = None if optimiser is None else {id(p) for group in optimiser.param_groups for p in group["params"]}
    chosen = _chosen(module, layers)
    for name, layer in chosen:
        problem = _problem(layer, order, held)
        if problem:
            raise ValueError(f"Layer {name!r} ({_kind(layer)}) cannot be sparse: {problem}; layers=... chooses others")
    masks = [_mask(layer, n, m, order) for _, layer in chosen]
    interval = None if optimiser is None else Interval(every)
    for (name, layer), mask in zip(chosen, masks, strict=True):
        layer.__class__ = _SPARSE.get(type(layer), type(layer))
        layer.sparsity, layer.mask_order, layer.mask_name, layer.mask_interval = (n, m), order, name, interval
        layer.register_buffer("weight_mask", mask)
        layer.register_buffer("mask_rule", torch.tensor([n, m, SPARSE_ORDERS.index(order), 0]))
    if optimiser is not None:
        optimiser.register_step_post_hook(_after_steps([layer for _, layer in chosen], interval))
    return module


@torch.no_grad()
def densify(module: torch.nn.Module) -> torch.nn.Module:
    """Undo :func:`sparsify`, in place: the weights become what their products saw, so that results keep their bits.

    Returns
    -------
    torch.nn.Module
        ``module``.
    """
    for layer in module.modules():
        if isinstance(layer, Sparse):
            layer.weight.copy_(layer.used_weight())
            for name in ("weight_mask", "mask_rule"):
                delattr(layer, name)
            for name in ("sparsity", "mask_order", "mask_name", "mask_interval"):
                delattr(layer, name)
            layer.__class__ = _DENSE[type(layer)]
    return module


def _chosen(module, layers):
    """Name and layer of all that are meant."""
    every = [(name, layer.module if isinstance(layer, OwnProducts) else layer) for name, layer in hbfp_layers(module)]
    if layers is not None:
        choices = [layers] if isinstance(layers, (str, type)) or callable(layers) else layers
        names = [name for choice in choices for name in matches(module, choice, "Layers")]
        every = [(name, layer) for name, layer in every if inside(name, names)]
    if not every:
        raise ValueError("There is no HBFP layer with weights to make sparse; golden.nn.convert(model, fmt) makes them")
    return every


def _kind(layer):
    return plain(type(layer)).__name__


def _mask(layer, n, m, order):
    """The mask of a layer's weight, on its device."""
    weight = layer.weight.detach().float()
    if order == "quantise-sparsify":
        weight = _quantised(weight, getattr(layer, "groups", 1), layer.formats)
    kept = torch.from_numpy(keep_mask(_matrix(weight).cpu().numpy(), n, m, axis=0))
    return _unfolded(kept, weight.shape).contiguous().to(weight.device)


def _unfit(layer, formats, order):
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


def _problem(layer, order, held):
    """Why :func:`sparsify` refuses a layer, or None; ``held`` are the optimiser's parameters."""
    if type(layer) not in (*_SPARSE, *_DENSE):
        return "only HBFPLinear and HBFPConv2d can be"
    if layer.weight.is_meta:
        return "its weight has no values on the device meta; load them first"
    if held is not None and id(layer.weight) not in held:
        return "the optimiser does not have its weight; leave optimiser out to keep the mask as it is"
    return _unfit(layer, layer.formats, order)


def _named_sparsity(sparsity):
    """N and M of text such as ``"2:4"``."""
    n, colon, m = sparsity.partition(":") if isinstance(sparsity, str) else ("", "", "")
    if not (colon and n.isdecimal() and m.isdecimal()):
        raise ValueError(f"Sparsity must be N:M such as '2:4', not {sparsity!r}")
    check_range("Group M", int(m), *GROUP_RANGE, " elements")
    check_range("Kept N", int(n), 0, int(m), f" of a group of {m}")
    return int(n), int(m)
