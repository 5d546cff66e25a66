"""Scales of layers' inputs that are fixed before a model is used: docs/formats.md."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch

from hbfp.checks import check_choice, check_kind

from ..formats.names import of_tensors
from .formats import Formats
from .inspect import names_running
from .record import watched
from .replace import hbfp_layers
from .report import evaluating
from .rounded import rounded
from .values import Seen

#: How far a scale reaches: up to the largest magnitude that was met, or as far as gives the least squared error.
REACHES = ("largest", "error")
#: Shares of the largest magnitude among which ``error`` chooses, a sixth of a power of two apart.
SHARES = tuple(2.0 ** (-step / 6) for step in range(36))


def calibrate(module: torch.nn.Module, batches: Iterable[Any], *, reach: str = "largest") -> dict[str, float]:
    """Fix the scale that the inputs of each layer have, by those that it meets in some batches.

    It is for numbers that have a scale for all of a tensor (``int8``, ``int8-channel``, ``fp8``, ``nvfp4``): a machine
    that knows it beforehand need not see all of a tensor before it converts the first element. What is beyond a fixed
    scale's reach saturates. Weights keep the scales of their own, and products without a weight of a layer's those of
    what they meet. A second call begins anew.

    Parameters
    ----------
    module : torch.nn.Module
        A converted model. It runs in evaluation mode, without gradients, twice where ``reach`` is ``error``.
    batches : iterable
        What its ``forward`` takes: tensors, or tuples of several arguments.
    reach : str
        One of :data:`REACHES`.

    Returns
    -------
    dict of str to float
        Layer -> the magnitude up to which its scale reaches, in the order of :func:`golden.nn.hbfp_layers`.

    Raises
    ------
    TypeError
        If ``module`` is no module.
    ValueError
        If ``reach`` is unknown, there are no batches, or no layer that ran in them has inputs with a scale for a
        tensor.
    """
    check_kind("module", module, torch.nn.Module)
    check_choice("Reach", reach, REACHES)
    given = [batch if isinstance(batch, (tuple, list)) else (batch,) for batch in batches]
    if not given:
        raise ValueError("Scales need a batch at least to be calibrated on")
    layers = {name: layer for name, layer in hbfp_layers(module) if of_tensors(layer.formats.x)}
    for layer in layers.values():
        _fix(layer, None)
    found = _watch(module, layers, given, _Largest())
    if not found:
        raise ValueError("No layer that ran has inputs with one scale for a tensor: int8, int8-channel, fp8 and nvfp4 "
                         "have one")
    if reach == "error":
        found = _watch(module, layers, given, _Least(found))
    for name, top in found.items():
        _fix(layers[name], top)
    return {name: found[name] for name in layers if name in found}


def _fix(layer, top):
    layer.formats = replace(layer.formats, x=layer.formats.x.up_to(top))


def _watch(module, layers, batches, judge):
    """What ``judge`` finds of the inputs that each layer's own weight meets."""
    weights = {name: layer.weight for name, layer in layers.items() if hasattr(layer, "weight")}
    with names_running(module, None) as running, evaluating(module), torch.no_grad(), \
            torch.compiler.set_stance("force_eager"), watched(_Inputs(running, weights, judge)):
        for batch in batches:
            module(*batch)
    return judge.found()


class _Inputs:
    """A :class:`golden.nn.record.Watcher` of what multiplies the weights of layers."""

    def __init__(self, running, weights, judge):
        self.running, self.weights, self.judge = running, weights, judge

    def product(self, a: Any, b: Any, turned: bool) -> None:
        """See :class:`golden.nn.record.Watcher`."""
        name = self.running()
        weight = self.weights.get(name)
        if weight is not None and isinstance(b, Seen) and b.source.data_ptr() == weight.data_ptr():
            self.judge.see(name, a)

    def result(self, operation: str, formats: Formats, y: torch.Tensor) -> None:
        """See :class:`golden.nn.record.Watcher`."""


class _Largest:
    """The largest finite magnitude of each layer's inputs."""

    def __init__(self):
        self.tops: dict[str, float] = {}

    def see(self, name, operand):
        finite = torch.where(operand.source.isfinite(), operand.source.abs(), 0)
        self.tops[name] = max(self.tops.get(name, 0.0), float(finite.amax()) if finite.numel() else 0.0)

    def found(self):
        return self.tops


class _Least:
    """The reach, a share of the largest magnitude, that loses the least of each layer's inputs."""

    def __init__(self, tops):
        self.tops = tops
        self.lost = {name: torch.zeros(len(SHARES), dtype=torch.float64) for name in tops}

    def see(self, name, operand):
        x = torch.where(operand.source.isfinite(), operand.source, 0)
        for number, share in enumerate(SHARES):
            y = rounded(x, operand.fmt.up_to(self.tops[name] * share), operand.axis)
            self.lost[name][number] += (y - x).double().square().sum()

    def found(self):
        return {name: self.tops[name] * SHARES[int(lost.argmin())] for name, lost in self.lost.items()}
