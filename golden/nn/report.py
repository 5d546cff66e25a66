"""What a model multiplies, and in which format."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from ..formats.names import words
from .formats import Formats
from .inspect import names_running, watching
from .memory import foreign
from .record import listening


@dataclass
class Entry:
    """One operation of one layer.

    Attributes
    ----------
    layer : str
        Name of the innermost module that was running; "" is the model.
    kind : str
        Its class.
    operation : str
        ``linear``, ``matmul``, ``conv2d`` and so on; of what is FP32, torch's name.
    format : str
        Such as ``hbfp8 (1, 32)``, or ``x / w / g`` of three, or ``fp32``.
    calls, flops : int
        How often, and floating-point operations of all calls: two for a multiply-accumulate, forward only. Of what has
        no formula in torch (distances, recurrent layers in FP32) they are estimated.
    reason : str
        Why it is FP32.
    """
    layer: str
    kind: str
    operation: str
    format: str
    calls: int = 0
    flops: int = 0
    reason: str = ""


@dataclass
class Report:
    """What :func:`report` gives; as text it is a table.

    Attributes
    ----------
    entries : list of Entry
        In the order of the first call.
    """
    entries: list[Entry]

    @property
    def left(self) -> list[Entry]:
        """The entries that are FP32."""
        return [entry for entry in self.entries if entry.format == "fp32"]

    @property
    def shares(self) -> dict[str, float]:
        """Format -> its share of all floating-point operations; the shares add up to 1."""
        done: dict[str, int] = {}
        for entry in self.entries:
            done[entry.format] = done.get(entry.format, 0) + entry.flops
        total = sum(done.values()) or 1
        return {name: flops / total for name, flops in sorted(done.items())}

    def json(self) -> str:
        """All of it as JSON: ``entries`` with the names above, and ``shares``."""
        return json.dumps({"entries": [asdict(entry) for entry in self.entries], "shares": self.shares}, indent=2)

    def __str__(self) -> str:
        """The table."""
        head = ("layer", "operation", "format", "calls", "FLOPs", "why FP32")
        rows = [head, *((f"{e.layer or '(model)'} ({e.kind})", e.operation, e.format, str(e.calls), f"{e.flops:,}",
                         e.reason) for e in self.entries)]
        wide = [max(len(row[i]) for row in rows) for i in range(len(head))]
        lines = ["  ".join(text.rjust(w) if i in (3, 4) else text.ljust(w)
                           for i, (text, w) in enumerate(zip(row, wide, strict=True))).rstrip() for row in rows]
        shares = ", ".join(f"{name} {100 * share:.2f} %" for name, share in self.shares.items())
        return "\n".join([*lines, f"FLOPs: {shares or 'none'}"])


def report(module: torch.nn.Module, *inputs: Any, named: Mapping[str, Any] | None = None) -> Report:
    """Run a model once and list every matrix product of its forward pass.

    Parameters
    ----------
    module : torch.nn.Module
        The model, converted or not, or a job of several, whose layers have a row for each format. It runs in evaluation
        mode, without gradients, and stays as it is.
    inputs, named
        What its ``forward`` takes: in order, and a mapping of what it takes by name.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, not {type(module).__name__}")
    parts = dict(module.named_modules())
    found: dict[tuple[str, str, str], Entry] = {}
    reasons: dict[str, str] = {}

    with names_running(module) as running, evaluating(module):
        def add(operation, name, flops, reason=""):
            layer = running()
            entry = found.setdefault((layer, operation, name),
                                     Entry(layer, type(parts[layer]).__name__, operation, name, reason=reason))
            entry.calls, entry.flops = entry.calls + 1, entry.flops + flops

        def hear(operation: str, formats: Formats | None, macs: int, reason: str) -> None:
            if formats is None:
                reasons[running()] = reason
            else:
                add(operation, _text(formats), 2 * macs)

        def watch(operation, func, args, kwargs, out):
            add(operation, "fp32", _flops(operation, func, args, kwargs, out), _reason(parts, running(), reasons))
        if hasattr(module, "hbfp_models"):
            with torch.no_grad():
                module(*inputs, **named or {})         # a job's parts find out by trial how they have to run
        with watching(watch), listening(hear):
            module(*inputs, **named or {})
    return Report(list(found.values()))


def _flops(operation, func, args, kwargs, out):
    """Operations of one of torch's products, by torch's formula if it has one."""
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    count = flop_registry.get(getattr(func, "overloadpacket", func))
    if count and not any(map(foreign, tensors)):
        return count(*args, **kwargs, out_val=out)
    if operation in ("mv", "addmv", "dot", "vdot"):
        return 2 * tensors[-2].numel()                   # what is multiplied by a vector
    tensors = [t for t in tensors if t.dim() > 1]
    rows = tensors[0].numel() // max(1, tensors[0].size(-1))
    return 2 * rows * sum(t.numel() for t in tensors[1:])        # each row times every element of the matrices


def _text(formats):
    """The formats of x, w and g, once if they are equal."""
    texts = [words(fmt) for fmt in formats.roles]
    text = texts[0] if len(set(texts)) == 1 else " / ".join(texts)
    return text if formats.mode in ("hbfp", "values") else f"{text} {formats.mode}"


def _reason(parts, layer, reasons):
    """Why a product of a layer is FP32."""
    if layer in reasons:
        return reasons[layer]
    names = [layer]
    while names[-1]:
        names.append(names[-1].rpartition(".")[0])
    for name in names:
        if hasattr(parts[name], "_hbfp_formats"):
            return "excluded" if parts[name]._hbfp_formats is None else "no function of torch that has a form in HBFP"
    return "not converted"


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode, and every part's own mode again afterwards; an exported program has the one that it has."""
    modes = [(part, part.training) for whole in (module, *getattr(module, "hbfp_models", ()))
             for part in whole.modules()]
    try:
        for part, _ in modes:                            # not by eval(), which an exported module refuses
            part.training = False
        yield
    finally:
        for part, mode in modes:
            part.training = mode
