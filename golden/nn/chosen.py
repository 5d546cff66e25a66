"""Which modules of a model a conversion is about, one by one: layers that have a twin, and others that multiply."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

import torch

from hbfp.values import given

from . import scope
from .layers import HBFPLSTM, HBFPConv2d, HBFPLayer, HBFPLinear, HBFPMultiheadAttention
from .select import inside

#: Says of a module that would be converted, by name and module, whether it is.
Only = Callable[[str, torch.nn.Module], bool]
#: Which layer replaces which; exact types: a subclass runs its own forward, in HBFP.
TWINS = {torch.nn.Linear: HBFPLinear, torch.nn.Conv2d: HBFPConv2d, torch.nn.LSTM: HBFPLSTM,
         torch.nn.MultiheadAttention: HBFPMultiheadAttention}
#: Modules of torch.nn that multiply matrices in their own code; those of other packages may all do so.
MULTIPLIES = (torch.nn.modules.conv._ConvNd, torch.nn.RNNBase, torch.nn.RNNCellBase, torch.nn.Bilinear, torch.nn.Linear,
              torch.nn.MultiheadAttention, torch.nn.AdaptiveLogSoftmaxWithLoss)


def whole(layer: torch.nn.Module) -> bool:
    """Whether a layer is converted with all its parts."""
    return type(layer) in TWINS or isinstance(layer, (HBFPLayer, torch.nn.MultiheadAttention))


def twin_of(layer: torch.nn.Module) -> type[HBFPLayer] | None:
    """The class that replaces a layer, or None."""
    if isinstance(layer, torch.nn.MultiheadAttention) and not HBFPMultiheadAttention.serves(layer):
        return None
    return TWINS.get(type(layer))


@dataclass
class Chosen:
    """What a conversion is about.

    Attributes
    ----------
    layers : list of (str, Module)
        Name and layer, in order, of all that a twin replaces, or is; the parts of such a layer go with it.
    others : list of (str, Module)
        Name and module, each once, of all that may multiply in its own code and has no twin.
    left : list of str
        Names of what would be one of these, had ``only`` not said no.
    """
    layers: list[tuple[str, torch.nn.Module]] = field(default_factory=list)
    others: list[tuple[str, torch.nn.Module]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, module: torch.nn.Module, out: Iterable[str], only: Only | None) -> Self:
        """All of a model but what ``out`` names and what is in that; ``only`` is asked of each module alone."""
        if only is not None and not callable(only):
            raise TypeError(f"only must be a function of name and module, not {given(only)}")
        found, every = cls(), {}
        for place, parts in ((found.layers, _layers(module, out)), (found.others, _others(module, out))):
            for name, part in parts:
                every[name] = only is None or bool(only(name, part))
                if every[name]:
                    place.append((name, part))
        found.left = [name for name, wanted in every.items() if not wanted]
        if found.left and not found.layers and not found.others:
            raise ValueError("only must leave a module of the model to convert")
        return found


def _layers(module, out):
    found, done = [], list(out)
    for name, layer in module.named_modules(remove_duplicate=False):
        if (twin_of(layer) or isinstance(layer, HBFPLayer)) and not inside(name, done):
            found.append((name, layer))
            done.append(name)
    return found


def _others(module, out):
    found, done = [], list(out)
    for name, part in module.named_modules():
        if inside(name, done):
            continue
        if whole(part):
            done.append(name)
        if twin_of(part) is None and not isinstance(part, HBFPLayer) and _multiplies(part):
            found.append((name, part))
    return found


def _multiplies(part):
    if isinstance(part, torch.jit.ScriptModule):    # its class has no forward to look at
        return True
    kind = scope.plain(type(part))
    if kind.__module__.startswith("torch.nn.modules.") or kind is torch.nn.Module:
        return isinstance(part, MULTIPLIES)
    return kind.forward is not torch.nn.Module.forward
