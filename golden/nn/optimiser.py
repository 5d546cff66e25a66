"""Optimisers: wide master weights, which are HBFP too, with W = 16 mantissas, and steps in the accelerator's bits."""

import functools
from types import MethodType
from typing import Any

import torch

from hbfp.format import HBFPFormat

from ..bfp import decode, encode
from ..fast import kernels
from ..ops.optimisers import check
from . import portable
from .memory import array
from .options import Optimiser
from .side import Side, sided

#: docs/numerics.md, section 8, with the published tile.
WIDE = HBFPFormat(mantissa=16, block=(24, 24))


@torch.no_grad()
def store(parameter: torch.Tensor, fmt: HBFPFormat = WIDE) -> None:
    """Round a parameter of two or more dimensions, seen as (first, rest), to ``fmt`` in place."""
    if parameter.dim() < 2 or not parameter.numel():
        return
    matrix = parameter.detach().reshape(parameter.shape[0], -1).contiguous()
    if not portable.on_host(matrix):
        values = portable.encoded(matrix, fmt).values()
    elif kernels.library():
        values = torch.from_numpy(kernels.encoded(array(matrix), fmt)[0])
    else:
        values = torch.from_numpy(decode(encode(array(matrix), fmt)))
    parameter.copy_(values.view(parameter.shape))


def wide_weights(optimiser: Optimiser, fmt: HBFPFormat = WIDE) -> Optimiser:
    """Make any ``torch.optim`` optimiser keep its weights in HBFP with wide mantissas.

    After each step every parameter of two or more dimensions is rounded to ``fmt``, as it would be
    stored; a layer's narrow copy is then the RNE of the wide mantissas, saturated. Biases and
    normalisation parameters stay FP32.

    Parameters
    ----------
    optimiser : torch.optim.Optimizer
        Any; its schedulers and ``state_dict`` work as before.
    fmt : HBFPFormat
        The storage format, ``rne`` or ``truncate``.

    Returns
    -------
    torch.optim.Optimizer
        The same optimiser.

    Raises
    ------
    TypeError
        If ``optimiser`` is no optimiser of torch.
    ValueError
        If the format is stochastic.
    """
    _check_kind(optimiser)
    if fmt.rounding == "stochastic":
        raise ValueError("Wide weights need rounding 'rne' or 'truncate', not 'stochastic'")

    def after(optimiser, args, kwargs):
        for group in optimiser.param_groups:
            for parameter in group["params"]:
                store(parameter, fmt)
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            store(parameter, fmt)
    optimiser.register_step_post_hook(after)
    return optimiser


def _check_kind(optimiser):
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise TypeError(f"optimiser must be a torch.optim.Optimizer, not {type(optimiser).__name__}")


def optimiser(optimiser: Optimiser, side: Side) -> Optimiser:
    """Make a ``torch.optim`` optimiser compute its steps as the accelerator does.

    Each parameter is updated by itself, in the operations of torch's own code, and each of these has the bits of the
    vector unit: together those of the program that :func:`golden.ops.optimisers.update` gives.

    Parameters
    ----------
    optimiser : torch.optim.Optimizer
        ``SGD``, ``Adam`` without ``amsgrad`` or ``AdamW``; schedulers and ``state_dict`` work as before.
    side : Side
        The accelerator, as of :func:`golden.nn.convert`.

    Returns
    -------
    torch.optim.Optimizer
        The same optimiser.

    Raises
    ------
    TypeError
        If ``optimiser`` or ``side`` is of another type.
    ValueError
        If the accelerator has no program for the optimiser or for an option of it.
    """
    _check_kind(optimiser)
    if not isinstance(side, Side):
        raise TypeError(f"side must be a Side, not {type(side).__name__}")
    check(optimiser)
    step = optimiser.step

    @functools.wraps(step)
    def sided_step(_: Any, *args: Any, **kwargs: Any) -> Any:
        for group in optimiser.param_groups:
            group["foreach"] = False                       # torch would compute all parameters at once
        check(optimiser)
        with sided(side):
            return step(*args, **kwargs)
    optimiser.step = MethodType(sided_step, optimiser)
    return optimiser
