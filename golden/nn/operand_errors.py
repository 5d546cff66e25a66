"""How far the operands of a model's products are from FP32, layer by layer."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from hbfp.format import HBFPFormat

from ..bfp import decode, encode
from ..formats import coded as numbers
from ..formats.coded import Coded
from ..formats.names import words
from ..number.blocks import Blocks, cut, inner_axes, public, spread
from .formats import Formats
from .inspect import names_running
from .memory import array
from .products import Encoded
from .record import watched
from .report import evaluating
from .values import Seen

#: Functions of ours that autograd records -> roles of the operands of the weights' gradient, in their order.
_WEIGHTS = {"LinearBackward": "gx", "MatmulBackward": "xg", "Conv2dBackward": "xg", "Conv3dBackward": "xg",
            "ConvTranspose3dBackward": "gx", "TransposedBackward": "gx", "ProductBackward": "gx"}


def decibels(signal: float, noise: float) -> float | None:
    """10 log10(signal / noise); None where nothing was lost."""
    return 10 * float(np.log10(signal / noise)) if noise else None


@dataclass
class OperandError:
    """One operand of one product of one layer, over all calls.

    Attributes
    ----------
    layer, operation, format : str
        As of :class:`golden.nn.report.Entry`; the format is the operand's own.
    product : str
        ``y``, or ``gx`` or ``gw``: the gradient of x or of w.
    role : str
        ``x``, ``w`` or ``g``.
    elements, nonzero : int
        How many numbers were converted, and how many of those in valid blocks were not 0 in FP32. Of a convolution
        they are those of its patches, in mode ``values`` those of its images.
    saturated : int
        How many magnitudes were beyond the largest mantissa.
    flushed : int
        How many numbers were not 0 in FP32 and are 0 after conversion.
    signal, noise : float
        Sums of x^2 and (x - q)^2.
    exponents : dict of int to int
        Shared exponent -> blocks. Blocks of zeros alone, and invalid ones, are left out. Of a scale that is no power of
        two it is that of the power below it; of numbers without scales there are none.
    invalid : int
        Blocks with an Inf or a NaN, whose elements count nowhere but in ``elements``.
    """
    layer: str
    operation: str
    format: str
    product: str
    role: str
    elements: int = 0
    nonzero: int = 0
    saturated: int = 0
    flushed: int = 0
    signal: float = 0.0
    noise: float = 0.0
    exponents: dict[int, int] = field(default_factory=dict)
    invalid: int = 0

    @property
    def qsnr(self) -> float | None:
        """10 log10(signal / noise) in dB; None where nothing was lost."""
        return decibels(self.signal, self.noise)

    @property
    def saturated_share(self) -> float:
        """The saturated elements as a share of the valid ones that are not 0 in FP32."""
        return self.saturated / max(1, self.nonzero)

    @property
    def flushed_share(self) -> float:
        """The flushed elements as a share of the valid ones that are not 0 in FP32."""
        return self.flushed / max(1, self.nonzero)

    def add(self, x: np.ndarray, became: Blocks | Coded) -> None:
        """Count the tensor ``x`` and what it became."""
        judged = _blocks(x, became) if isinstance(became, Blocks) else _coded(x, became)
        exact = np.where(judged.valid, x, np.float32(0)).astype(np.float64)
        after = np.where(judged.valid, judged.after, np.float32(0)).astype(np.float64)
        self.elements += x.size
        self.nonzero += int(np.count_nonzero(exact))
        self.saturated += int(np.count_nonzero(judged.valid & judged.largest & (np.abs(exact) > np.abs(after))))
        self.flushed += int(np.count_nonzero((exact != 0) & (after == 0)))
        self.signal += float((exact ** 2).sum())
        self.noise += float(((exact - after) ** 2).sum())
        self.invalid += judged.invalid
        found = Counter(self.exponents) + Counter(judged.exponents.tolist())
        self.exponents = dict(sorted(found.items()))


class _Judged(NamedTuple):
    """A tensor beside what it became: which elements are valid, their values, which of these are the largest there are,
    exponents of blocks that hold more than zeros, and how many blocks are invalid."""
    valid: np.ndarray
    after: np.ndarray
    largest: np.ndarray
    exponents: np.ndarray
    invalid: int


def _blocks(x, blocks):
    fmt, axis = blocks.fmt, blocks.axis
    valid = ~spread(blocks.invalid, x.shape, fmt, axis)
    exact = np.where(valid, x, np.float32(0))
    used = public((cut(exact, fmt, axis) != 0).any(inner_axes(fmt), keepdims=True), fmt, axis)
    return _Judged(valid, decode(blocks), np.abs(blocks.mantissa) == fmt.limit, blocks.exponent[used],
                   int(blocks.invalid.sum()))


def _coded(x, coded):
    """Of numbers without scales there are no exponents."""
    element, scales = coded.number.element, coded.scales * coded.whole
    used = (coded.tops > 0) & np.isfinite(coded.tops) & (scales > 0)
    exponents = np.frexp(scales[used])[1] - 1 if coded.number.scope != "none" else np.zeros(0, int)
    return _Judged(~np.isnan(coded.elements), numbers.decode(coded), np.abs(coded.elements) == element.largest,
                   exponents, int(np.count_nonzero(~np.isfinite(coded.tops))))


@dataclass
class Errors:
    """What :func:`errors` gives; as text it is a table.

    Attributes
    ----------
    operands : list of OperandError
        In the order of the first call.
    """
    operands: list[OperandError]

    def json(self) -> str:
        """All of it as JSON: ``operands`` with the names above, ``qsnr`` (null: exact) and both shares."""
        return json.dumps({"operands": [asdict(each) | {"qsnr": each.qsnr, "saturated_share": each.saturated_share,
                                                        "flushed_share": each.flushed_share}
                                        for each in self.operands]}, indent=2)

    def __str__(self) -> str:
        """The table; exponents are the least, that of most blocks, and the greatest."""
        head = ("layer", "operation", "product", "operand", "format", "elements", "QSNR dB", "saturated %", "flushed %",
                "exponents", "invalid")
        rows = [head, *(_row(each) for each in self.operands)]
        wide = [max(len(row[i]) for row in rows) for i in range(len(head))]
        return "\n".join("  ".join(text.ljust(w) if i < 5 else text.rjust(w)
                                   for i, (text, w) in enumerate(zip(row, wide, strict=True))) for row in rows)


def _row(each):
    found = each.exponents
    exponents = f"{min(found)}, {max(found, key=lambda e: found[e])}, {max(found)}" if found else "none"
    return (each.layer or "(model)", each.operation, each.product, each.role, each.format, f"{each.elements:,}",
            "exact" if each.qsnr is None else f"{each.qsnr:.2f}", f"{100 * each.saturated_share:.3f}",
            f"{100 * each.flushed_share:.3f}", exponents, str(each.invalid))


def errors(module: torch.nn.Module, *inputs: Any, loss: Callable[[Any], torch.Tensor] | None = None,
           named: Mapping[str, Any] | None = None) -> Errors:
    """Run a converted model once and compare every operand of its HBFP products with FP32.

    Parameters
    ----------
    module : torch.nn.Module
        The model, on the CPU. It runs in evaluation mode and stays as it is, its gradients too.
    inputs, named
        What its ``forward`` takes: in order, and a mapping of what it takes by name.
    loss : callable, optional
        From the model's output to a number. With it the products of both gradients are judged, too.

    Raises
    ------
    TypeError
        If ``module`` is no module.
    ValueError
        If nothing of it is HBFP, or operands cannot be seen: in mode ``emulator``, on another device, in a graph of
        ``torch.compile``, in a fused job; if there is a loss and no parameter to be trained, or a checkpoint with
        ``use_reentrant=True``.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, not {type(module).__name__}")
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if loss is not None and not trained:
        raise ValueError("A loss needs a parameter with requires_grad, and the model has none")
    with names_running(module, None) as running, evaluating(module), watched(seen := _Seen(running)):
        with torch.set_grad_enabled(loss is not None):
            y = module(*inputs, **named or {})
        if loss is not None:
            with torch.enable_grad():
                number = loss(y)
                if _reentrant(number.grad_fn):
                    raise ValueError("Gradients cannot be seen behind torch.utils.checkpoint with use_reentrant=True; "
                                     "use_reentrant=False works")
                seen.again = True
                torch.autograd.grad(number, trained, allow_unused=True)
    if seen.pending:
        raise ValueError("Operands cannot be seen in a graph of torch.compile or in a fused job: give the model itself")
    if not seen.found:
        raise ValueError("No product of the model is HBFP: convert it first; of a fused job give one of its models")
    return Errors(list(seen.found.values()))


class _Seen:
    """Sorts the operands of products by layer, operation, product and role."""

    def __init__(self, running):
        self.running, self.found = running, {}
        self.pending = []                              # operands of a forward product whose layer is not told yet
        self.made = {}                                 # recorded function -> layer and operation
        self.again = False                             # whether forward products are checkpoints', counted before

    def product(self, a: Encoded, b: Encoded, turned: bool) -> None:
        """See :class:`golden.nn.record.Watcher`."""
        node: Any = torch._C._current_autograd_node()  # the function whose backward runs
        if node in self.made and self.running() is None:
            layer, operation = self.made[node]
            product, roles = ("gw", _WEIGHTS[node.name()]) if turned else ("gx", "gw")
            for role, encoded in zip(roles, (a, b), strict=True):
                self._add(layer, operation, product, role, encoded)
        elif not self.again:
            self.pending += [("x", a), ("w", b)]

    def result(self, operation: str, formats: Formats, y: torch.Tensor) -> None:
        """See :class:`golden.nn.record.Watcher`."""
        layer = self.running()
        layer = "(loss)" if layer is None else layer
        known = formats.mode in ("hbfp", "values")
        if not known or y.device.type != "cpu":
            problem = f"device {y.device.type!r}" if known else f"mode {formats.mode!r}"
            raise ValueError(f"Operands of {f'layer {layer!r}' if layer else 'the model'} cannot be seen in {problem}; "
                             "errors() needs mode 'hbfp' or 'values' on the CPU")
        for role, encoded in self.pending:
            self._add(layer, operation, "y", role, encoded)
        self.pending = []
        for node in _functions(y.grad_fn):
            self.made.setdefault(node, (layer, operation))

    def _add(self, layer, operation, product, role, encoded):
        text = words(encoded.fmt)
        entry = self.found.setdefault((layer, operation, product, role, text),
                                      OperandError(layer, operation, text, product, role))
        if isinstance(encoded, Seen):
            source, axis = array(encoded.source), encoded.axis
            if isinstance(encoded.fmt, HBFPFormat):
                entry.add(source, encode(source, encoded.fmt, axis=axis if isinstance(axis, int) else axis[0]))
            else:
                entry.add(source, numbers.encode(source, encoded.fmt, axis=axis))
        else:
            entry.add(encoded.source, encoded.blocks(False))


def _reentrant(node):
    """Whether autograd would meet a checkpoint that hides its parameters."""
    nodes, met = [node], set()
    while nodes:
        node = nodes.pop()
        if node is not None and node not in met:
            if node.name() == "CheckpointFunctionBackward":
                return True
            met.add(node)
            nodes += [before for before, _ in node.next_functions]
    return False


def _functions(node):
    """Functions of ours that ``node`` ends in, without those behind them."""
    nodes, found = [node], []
    while nodes:
        node = nodes.pop()
        if node is None:
            continue
        if node.name() in _WEIGHTS:
            found.append(node)
        else:
            nodes += [before for before, _ in node.next_functions]
    return found
