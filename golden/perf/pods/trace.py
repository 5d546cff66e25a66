"""From a PyTorch model to its products: it runs once on shapes alone (device ``meta``), and every operator is seen.

Every tensor carries which products it was made from and by which rows (:mod:`golden.perf.pods.graph`). Operators that
this file does not know make a tensor depend on all rows of what they read, which is safe; operators that multiply
matrices in a way that it does not know are refused.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hbfp.golden.ops.matrices import multiplies
from hbfp.golden.ops.operation import Form, Rows, Unsupported, Windows
from hbfp.golden.ops.table import operation_of

from .graph import Gemm, Graph, Reach, Sources, together

#: Operators whose result has the rows of what they read, beside those that torch tags as pointwise.
SAME = {"clone", "detach", "alias", "_to_copy", "contiguous", "native_dropout", "copy_",
        "hbfp_add_bias"}
SHAPES = {"ones_like", "zeros_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty",
          "new_empty_strided"}    # read a shape alone
VIEWS = {"view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "expand"}


class UntileableError(ValueError):
    """A model that is no list of products; the message is one line."""


@dataclass
class _Origin:
    """What a tensor was made from. ``form``: its rows are an ``image``'s, or all dimensions but the last: ``rows``.

    ``parts`` are its channels in order: how many have the same sources, and those. One part of 0 channels: unknown.
    """
    parts: Sequence[tuple[int, Sources]] = ()
    form: str | None = None

    @property
    def sources(self) -> Sources:
        """Those of all parts."""
        return together([sources for _, sources in self.parts])

    def whole(self) -> "_Origin":
        """The same if every row depends on all rows."""
        return _Origin([(0, dict.fromkeys(self.sources))] if self.parts else [])

    def window(self, stride: int, low: int, high: int) -> "_Origin":
        """That of a window over the image."""
        return _Origin([(count, {number: reach and reach.after(stride, low, high) for number, reach in each.items()})
                        for count, each in self.parts], self.form)


def _union(origins: list[_Origin]) -> _Origin:
    """That of a tensor whose every element is made from the same element of several."""
    origins = [each for each in origins if each.sources]
    if len({each.form for each in origins}) > 1:
        origins = [each.whole() for each in origins]
    if not origins:
        return _Origin()
    form = origins[0].form
    ends = [np.cumsum([count for count, _ in each.parts]) for each in origins]
    if len({int(each[-1]) for each in ends}) > 1:
        return _Origin([(0, together([each.sources for each in origins]))], form)
    parts, last = [], 0
    for end in sorted({int(end) for each in ends for end in each}):
        parts.append((end - last, together([each.parts[int(np.searchsorted(place, last, "right" if end else "left"))][1]
                                             for each, place in zip(origins, ends, strict=True)])))
        last = end
    return _Origin(parts, form)


class _Tracer(TorchDispatchMode):
    """Collects products while a model runs."""

    def __init__(self) -> None:
        super().__init__()
        self.gemms: list[Gemm] = []
        self.origins: dict[int, _Origin] = {}       # of a tensor, by its id
        self.written: dict[int, _Origin] = {}       # of a storage that was written to in place
        self.made: dict[tuple, _Origin] = {}        # of a tensor that autograd kept: by its storage and shape
        self.kept: list[Any] = []                   # ids stay unique while what they name is there

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if func.namespace == "hbfp":
            name = f"hbfp_{name}"
        inputs = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        outputs = [each for each in tree_leaves(result) if isinstance(each, torch.Tensor)]
        if name in PRODUCTS:
            origin = PRODUCTS[name](self, args, outputs[0])
        elif multiplies(func):
            raise UntileableError(f"operator {name} is none that can be cut into tiles")
        else:
            origin = self._other(func, name, args, kwargs, inputs, outputs)
        if name.endswith("_") and not name.startswith("_"):
            self.written[_storage(args[0])] = _union([self.of(args[0]), origin])
        for each in outputs:
            self.origins[id(each)] = self.made[_storage(each), each.shape] = origin
            self.kept.append(each)
        return result

    def of(self, tensor: torch.Tensor) -> _Origin:
        """What a tensor was made from."""
        known = self.origins.get(id(tensor)) or self.made.get((_storage(tensor), tensor.shape))
        own = [known] if known else []
        base = self.written.get(_storage(tensor))
        return _union(own + ([base] if base is not None else []))

    def _other(self, func, name, args, kwargs, inputs, outputs):
        origins = [self.of(each) for each in inputs]
        if not outputs or name in SHAPES:
            return _Origin()
        shape = outputs[0].shape
        if name in SAME or torch.Tag.pointwise in func.tags:
            return _union([each if tensor.shape == shape else each.whole()
                           for each, tensor in zip(origins, inputs, strict=True)])
        if (form := _form(func, args, kwargs or {})) is not None and (known := self._formed(form, origins)):
            return known
        if name == "cat":
            across = 1 if origins[0].form == "image" else len(shape) - 1
            if (args[1] if len(args) > 1 else 0) % len(shape) == across:
                forms = {each.form for each in origins if each.sources}
                if len(forms) == 1 and len(origins) == len(inputs):
                    return _Origin([part for each, tensor in zip(origins, inputs, strict=True)
                                    for part in _counted(each, tensor.shape[across])], forms.pop())
        if origins and (joined := _joined_heads(origins[0], name, args, inputs[0].shape, shape)):
            return joined
        if origins and origins[0].form == "rows" and len(shape):
            kept = inputs[0].shape[-1] == shape[-1] and inputs[0].numel() == outputs[0].numel()
            if name in VIEWS and kept:
                return _union([origins[0], *(each.whole() for each in origins[1:])])
        return _union(origins).whole()

    @staticmethod
    def _formed(form, origins):
        """What the result of an operation of the table was made from; None if that is not known to be less than all."""
        own, *others = origins
        match form:
            case Rows() if not form.sums:
                return own
            case Rows() if own.form == "rows" and form.merged == 1 and all(each.keep for each in form.results) \
                    and form.dim % form.operands[0].dim() == form.operands[0].dim() - 1:
                return _union([own, *(each.whole() for each in others)])
            case Windows() if own.form == "image" and not form.over:
                reach = (form.size[0] - 1) * form.dilation[0] - form.padding[0]
                return own.window(form.stride[0], -form.padding[0], reach)
        return None

    def add(self, kind, groups, m, k, n, x, w, form, rows, stacked=False, channels=0):
        """Note a product of operands with the origins ``x`` and ``w``; the origin of its result."""
        x, number = x if x.form == form else x.whole(), len(self.gemms)
        other = w.whole().sources
        parts = tuple((count, {**each, **other}) for count, each in x.parts)
        self.gemms.append(Gemm(f"{number}:{kind}", groups, m, k, n, *rows, stacked, together([x.sources, other]),
                               parts if len(parts) > 1 else (), channels))
        return _Origin([(groups * n, {number: Reach()})] if not stacked else [(n, {number: Reach()})], form)


def _form(func, args, kwargs) -> Form | None:
    """The form of an operation, None if the table has none for it."""
    operation = operation_of(func)
    try:
        return operation.form(*args, **kwargs) if operation and operation.form else None
    except Unsupported:
        return None


def _joined_heads(origin, name, args, before, shape):
    """Heads that become one row, in two steps: ``(1, heads, rows, n)`` is transposed, then seen as ``(1, rows, n)``."""
    if origin.form == "rows" and name == "transpose" and len(before) == 4 and before[0] == 1 and sorted(
            each % 4 for each in args[1:3]) == [1, 2]:
        return _Origin([(0, {number: reach and replace(reach, heads=True)
                             for number, reach in origin.sources.items()})], "heads")
    if origin.form == "heads" and name in VIEWS and shape[-1] == before[2:].numel() and shape.numel() == before.numel():
        return _Origin(origin.parts, "rows")
    return None


def _counted(origin, channels):
    """The parts of a tensor with so many channels."""
    if not origin.parts:
        return [(channels, {})]
    return origin.parts if sum(count for count, _ in origin.parts) == channels else [(channels, origin.sources)]


def _storage(tensor):
    return tensor.untyped_storage()._cdata


def _first(args, place):
    """The first number of a pair of an operator's arguments, or None."""
    value = args[place] if len(args) > place else None
    return (value[0] if value else None) if isinstance(value, (list, tuple)) else value


def _matmul(tracer, a, b):
    (m, k), n = a.shape, b.shape[1]
    return tracer.add("mm", 1, m, k, n, tracer.of(a), tracer.of(b), "rows", (1, m, 1))


def _mm(tracer, args, output):
    return _matmul(tracer, args[0], args[1])


def _addmm(tracer, args, output):
    return _union([_matmul(tracer, args[1], args[2]), tracer.of(args[0]).whole()])


def _batched(tracer, a, b):
    groups, m, k = a.shape
    return tracer.add("bmm", groups, m, k, b.shape[2], tracer.of(a), tracer.of(b), "rows", (groups, m, 1), True)


def _bmm(tracer, args, output):
    return _batched(tracer, args[0], args[1])


def _baddbmm(tracer, args, output):
    return _union([_batched(tracer, args[1], args[2]), tracer.of(args[0]).whole()])


def _convolution(tracer, args, output):
    x, w, _, stride, padding, dilation, transposed, _, groups = args[:9]
    if transposed:
        raise UntileableError("a transposed convolution is none that can be cut into tiles")
    images, channels, height, *rest = output.shape
    width = torch.Size(rest).numel()
    reach = tracer.of(x)
    if reach.form == "image" and not set(w.shape[2:]) == set(stride) == {1}:
        reach = reach.window(stride[0], -padding[0], (w.shape[2] - 1) * dilation[0] - padding[0])
    return tracer.add("conv", groups, images * height * width, w[0].numel(), channels // groups, reach,
                      tracer.of(w), "image", (images, height, width), channels=w.shape[1])


def _hbfp_linear(tracer, args, output):
    x, w = args[:2]
    m = x.numel() // x.shape[-1]
    return tracer.add("mm", 1, m, *reversed(w.shape), tracer.of(x), tracer.of(w), "rows", (1, m, 1))


def _hbfp_matmul(tracer, args, output):
    a, b = args[:2]
    if output.dim() == 2:
        return _matmul(tracer, a, b)
    groups, (m, n) = output.shape[:-2].numel(), output.shape[-2:]
    return tracer.add("bmm", groups, m, a.shape[-1], n, tracer.of(a), tracer.of(b), "rows", (groups, m, 1), True)


def _hbfp_conv2d(tracer, args, output):
    x, w, stride, padding, dilation, groups = args[:6]
    return _convolution(tracer, (x, w, None, stride, padding, dilation, False, None, groups), output)


#: Operator -> function of tracer, arguments and result that notes its product and gives the result's origin. Those that
#: begin with ``hbfp_`` are of models that ``golden.nn.convert`` has converted.
PRODUCTS: dict[str, Callable[[_Tracer, Any, Any], _Origin]] = {
    "mm": _mm, "addmm": _addmm, "bmm": _bmm, "baddbmm": _baddbmm, "convolution": _convolution,
    "hbfp_linear": _hbfp_linear, "hbfp_matmul": _hbfp_matmul, "hbfp_conv2d": _hbfp_conv2d}


def trace(name: str, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], train: bool = False) -> Graph:
    """The products of one pass of a model.

    Parameters
    ----------
    name : str
    model : torch.nn.Module
        In any float format, on any device; it is moved to ``meta`` and put into evaluation mode.
    inputs : tuple of Tensor
    train : bool
        Whether the gradients of all parameters, of a sum of squares of the outputs, are part of it, too.

    Returns
    -------
    Graph

    Raises
    ------
    UntileableError
        If the model has no product of matrices, or one that is not known.
    """
    model, given = on_meta(model, inputs)
    return record(name, model, given, train)


def on_meta(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]
            ) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A model in evaluation mode, and its inputs, where there are shapes alone; the model is moved."""
    return model.to("meta").eval(), tuple(each.to("meta") for each in inputs)


def record(name: str, model: Callable[..., Any], inputs: tuple[torch.Tensor, ...], train: bool = False) -> Graph:
    """As :func:`trace`, of anything that can be called with inputs on ``meta``."""
    with torch.set_grad_enabled(train), _Tracer() as tracer:
        output = model(*inputs)
        if train:
            sum(each.square().sum() for each in _floats(output)).backward()
    if not tracer.gemms:
        raise UntileableError("has no product of matrices")
    return Graph(name, tuple(tracer.gemms))


def _floats(output: Any) -> Iterator[torch.Tensor]:
    return (each for each in tree_leaves(output) if isinstance(each, torch.Tensor) and each.requires_grad)
