"""The accelerator's formats as ``golden.nn`` says them, and models that have formats of their own."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import torch

from hbfp.format import HBFPFormat
from hbfp.golden.nn.formats import Formats
from hbfp.golden.nn.inspect import Watch, names_running
from hbfp.golden.nn.layers import HBFPLinear
from hbfp.golden.nn.options import FormatOptions
from hbfp.golden.nn.placed import ROLES
from hbfp.golden.nn.record import listening
from hbfp.golden.nn.replace import hbfp_layers
from hbfp.golden.nn.report import evaluating
from hbfp.golden.nn.sparse import Sparse
from hbfp.golden.nn.sparsify import sparsify
from hbfp.golden.nn.state import HBFPState
from hbfp.system import Accelerator

from .errors import LoweringError, layer


def formats(accelerator: Accelerator, stochastic: Sequence[str] = ()) -> Formats:
    """The formats with which :func:`golden.nn.convert` gives an accelerator's products.

    Tensors in the roles ``stochastic`` are rounded so, all others to nearest.

    Raises
    ------
    LoweringError
        If the accelerator has no stochastic rounding.
    """
    core, fmt = accelerator.core, accelerator.nearest
    if stochastic and not accelerator.stochastic:
        raise LoweringError(f"Rounding {', '.join(stochastic)} stochastically cannot be lowered: the accelerator has "
                            f"rounding {fmt.rounding}; --rounding stochastic would do")
    sums: FormatOptions = {"accumulate": core.accumulate, "mode": accelerator.plain or "hbfp"}
    if core.accumulate == "aligned":
        sums |= {"guard": core.guard, "growth": core.growth}
    made = Formats.of(fmt, **sums)
    roles: dict[str, Any] = {role: core.format for role in stochastic}
    return replace(made, **roles)


def keep_widths(model: torch.nn.Module, twin: torch.nn.Module, accelerator: Accelerator) -> torch.nn.Module:
    """A model's copy that was converted anew, with the wide mantissas that layers of the model have."""
    others = dict(hbfp_layers(twin, own=True))
    for name, own in hbfp_layers(model, own=True):
        others[name].formats = with_widths(others[name].formats, own.formats, accelerator)
    return twin


def sparse(model: torch.nn.Module, accelerator: Accelerator) -> torch.nn.Module:
    """A converted model, its linear layers with sparse weights, in place, if the accelerator has such.

    Each keeps the mask that :func:`golden.nn.sparsify` makes of its weight as it is now. A model that has sparse layers
    already stays as it is, so that it says which they are.
    """
    layers = [layer for _, layer in hbfp_layers(model)]
    if not accelerator.core.takes_sparse or any(isinstance(each, Sparse) for each in layers) or not any(
            type(each) is HBFPLinear for each in layers):
        return model
    return sparsify(model, "{}:{}".format(*accelerator.core.sparse), layers=[HBFPLinear])


def masks_anew(model: torch.nn.Module, optimiser: torch.optim.Optimizer, sparsity: tuple[int, int]) -> None:
    """Let an optimiser make the masks of a model's sparse layers anew behind each step, of the N:M that they have.

    Raises
    ------
    LoweringError
        If a layer has another N:M than an accelerator prunes to, or is pruned when it is quantised.
    """
    chosen = {name: each for name, each in hbfp_layers(model) if isinstance(each, Sparse)}
    for name, each in chosen.items():
        if each.sparsity != sparsity or each.mask_order != "sparsify-quantise":
            own, theirs = ("{}:{}".format(*shape) for shape in (each.sparsity, sparsity))
            raise LoweringError(f"{layer(name)} has a mask of {own}, {each.mask_order}, which an accelerator of "
                                f"{theirs} does not make anew; {theirs}, sparsify-quantise would do")
    sparsify(model, "{}:{}".format(*sparsity), layers=list(chosen), optimiser=optimiser)


def with_widths(made: Formats, own: Formats, accelerator: Accelerator) -> Formats:
    """Formats, wide in the roles in which others are as wide as the accelerator's wide mantissas."""
    wide: dict[str, Any] = {role: replace(getattr(made, role), mantissa=accelerator.core.wide) for role in ROLES
                            if getattr(own, role).mantissa == accelerator.core.wide}
    return replace(made, **wide)


def check_formats(model: torch.nn.Module, inputs: tuple[Any, ...], accelerator: Accelerator) -> None:
    """Run a model once, and refuse it if it is converted to other products than an accelerator's.

    A model that was never converted has no formats of its own and takes those of the accelerator. Only evaluation
    counts: formats of gradients and noise may differ.

    Raises
    ------
    LoweringError
        If a product differs; one line with the first such layer, what is different, and what would work.
    """
    if not any(isinstance(part, HBFPState) for part in model.modules()):
        return
    theirs = formats(accelerator)
    different: list[str] = []

    def hear(_operation: str, own: Formats | None, _macs: int, _reason: str) -> None:
        found = _difference(own, theirs, accelerator.core.wide) if own is not None else None
        if found:
            different.append(f"{layer(running())} has {found}")

    def watch(*_: Any) -> None:
        different.append(f"{layer(running())} multiplies in FP32, in a model that golden.nn.convert has converted; to "
                         "convert it, too, would do")
    with names_running(model) as running, evaluating(model), torch.no_grad(), Watch(watch), listening(hear):
        model(*inputs)
    if different:
        raise LoweringError(different[0])


def _difference(own, theirs, wide):
    """What of a product differs from the accelerator's, and what would work; None if nothing does.

    ``wide``: a mantissa's width that is not the format's, but may be a product's.
    """
    for role in ("x", "w"):
        mine, wanted = getattr(own, role), getattr(theirs, role)
        for name in (each.name for each in fields(HBFPFormat)):
            if name == "noise_bits" or (name, getattr(mine, name)) == ("mantissa", wide):    # no noise in evaluation
                continue
            if getattr(mine, name) != getattr(wanted, name):
                return _words(name, f" for {role}", getattr(mine, name), getattr(wanted, name), role == "x")
    for name in ("accumulate", "guard", "growth", "order", "mode"):
        if name == "growth" and own.growth is None:        # any that has room for the blocks
            continue
        if getattr(own, name) != getattr(theirs, name):
            return _words(name, "", getattr(own, name), getattr(theirs, name), name not in ("order", "mode"))
    return None


def _words(name, role, own, wanted, option):
    """A line's end; ``option``: whether an accelerator could have what the model has."""
    own, wanted = (",".join(map(str, each)) if isinstance(each, tuple) else each for each in (own, wanted))
    other = f", or a program of its own with --{name} {own}," if option else ""
    if name == "mantissa" and wanted < own < 2 * wanted:
        other += f" or an accelerator with --wide {own}{',' * option}"
    return f"{name} {own}{role}, the accelerator {wanted}; golden.nn.convert to that{other} would do"
