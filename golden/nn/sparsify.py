"""Makes the weights of a converted model N:M sparse for training, and dense again; the layers are in :mod:`.sparse`."""

from collections.abc import Iterable

import torch

from hbfp.checks import check_choice, check_kind, check_range
from hbfp.values import given

from ..sparsity import GROUP_RANGE
from .layers import HBFPConv2d, HBFPLinear
from .options import Model
from .replace import hbfp_layers
from .scope import OwnProducts, plain
from .select import Choice, choices, inside, matches
from .sparse import SPARSE_ORDERS, Interval, Sparse, SparseConv2d, SparseLinear, mask_of, unfit

_SPARSE: dict[type, type] = {HBFPLinear: SparseLinear, HBFPConv2d: SparseConv2d}
_DENSE = {sparse: dense for dense, sparse in _SPARSE.items()}


def _after_steps(layers, interval):
    """The hook of an optimiser that counts steps; layers that have another interval by now are left alone."""
    def after(optimiser, args, kwargs):
        for layer in layers:
            if layer.mask_interval is interval:
                layer.mask_rule[3] += 1
                if int(layer.mask_rule[3]) % interval.steps == 0:
                    layer.refresh_mask()
    return after


def sparsify(module: Model, sparsity: str = "2:4", order: str = "sparsify-quantise", *,
             layers: Choice | Iterable[Choice] | None = None, optimiser: torch.optim.Optimizer | None = None,
             every: int = 1) -> Model:
    """Make weights of a converted model N:M sparse, in place, now and in training; all layers asked for, or none.

    Parameters, their names and optimisers stay as they are. Each layer gets its mask as a buffer, made of its weight as
    it is now; :func:`densify` ends it. Again on a sparse layer it makes another mask, and ends the interval of before.
    Make models sparse before they become a job of :mod:`golden.nn.fused`, whose layers do not see it afterwards.

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
        After how many steps of ``optimiser`` masks are made anew.

    Returns
    -------
    torch.nn.Module
        ``module``.

    Raises
    ------
    TypeError
        If ``module`` is no module or ``optimiser`` no optimiser, or ``layers`` holds anything else.
    ValueError
        If sparsity, order or interval is not valid, there is no HBFP layer, or a layer cannot be sparse. The model is
        as it was.
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
    masks = [mask_of(layer, n, m, order) for _, layer in chosen]
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
def densify(module: Model) -> Model:
    """Undo :func:`sparsify`, in place: the weights become what their products saw, so that results keep their bits.

    Returns
    -------
    torch.nn.Module
        ``module``.
    """
    check_kind("module", module, torch.nn.Module)
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
        names = [name for choice in choices(layers) for name in matches(module, choice, "Layers")]
        every = [(name, layer) for name, layer in every if inside(name, names)]
    if not every:
        raise ValueError("There is no HBFP layer with weights to make sparse; golden.nn.convert(model, fmt) makes them")
    return every


def _kind(layer):
    return plain(type(layer)).__name__


def _problem(layer, order, held):
    """Why :func:`sparsify` refuses a layer, or None; ``held`` are the optimiser's parameters."""
    if type(layer) not in (*_SPARSE, *_DENSE):
        return "only HBFPLinear and HBFPConv2d can be"
    if layer.weight.is_meta:
        return "its weight has no values on the device meta; load them first"
    if layer.weight.untyped_storage().nbytes() != layer.weight.nbytes:
        return "its weight is part of a larger tensor, as in a job of golden.nn.fused; sparsify first, then fuse"
    if held is not None and id(layer.weight) not in held:
        return "the optimiser does not have its weight; leave optimiser out to keep the mask as it is"
    return unfit(layer, layer.formats, order)


def _named_sparsity(sparsity):
    """N and M of text such as ``"2:4"``."""
    n, colon, m = sparsity.partition(":") if isinstance(sparsity, str) else ("", "", "")
    if not (colon and n.isdecimal() and m.isdecimal()):
        raise ValueError(f"Sparsity must be N:M such as '2:4', not {given(sparsity)}")
    check_range("Group M", int(m), *GROUP_RANGE, " elements")
    check_range("Kept N", int(n), 0, int(m), f" of a group of {m}")
    return int(n), int(m)
