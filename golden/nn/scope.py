"""Products of a module's own code in HBFP: whatever its ``forward`` multiplies with torch's functions.

A scope is a module whose class was replaced by a subclass of the same name that runs ``forward`` under a torch function
mode. The mode looks each function up in :mod:`golden.nn.handlers`. Of nested scopes the innermost counts: it says the
formats and draws the noise, or keeps its products in FP32.
"""

import functools
import threading
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..ops.matrices import counts, name_of
from . import handlers
from .formats import FormatLike, Formats
from .inspect import Mode
from .products import in_hbfp
from .record import note
from .state import HBFPState, untraced_noise

#: Why a product that no handler has met is refused.
NOT_OURS = "it has no form in HBFP; write it with torch.matmul or a convolution"

#: The same of one that torch.compile takes past all handlers.
UNSEEN = "torch.compile does not show it; write it with torch.matmul, or do not compile"


class Escaped(TypeError, AssertionError):
    """The error of a product that torch.compile has captured; it passes on those of this second kind as they are."""


class OwnProduct(BaseException):
    """A scope of a job whose models have to multiply alone has met a product; no ``except`` of its code is meant."""


class _Here(threading.local):
    """Where this thread is: the innermost scope and what holds in it, whether the mode is on the stack, and on, and
    whether the guard is."""

    def __init__(self):
        self.scope, self.formats, self.stream = None, None, None
        self.entered, self.off, self.guarded = False, False, False


_HERE = _Here()


class _Mode(TorchFunctionMode):
    """Sends products to their handlers."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        # In force when a handler runs, too: torch has the mode off until the function is done.
        before, _HERE.off = _HERE.off, True
        try:
            if _HERE.formats is not None and func in handlers.HANDLERS and not _inside():
                if _HERE.scope.hbfp_apart:
                    raise OwnProduct
                try:
                    return handlers.run(func, args, kwargs, _HERE.formats, _HERE.stream)
                except handlers.Refused as reason:
                    _left(func, reason)
            elif not before and not torch.compiler.is_dynamo_compiling():
                _guard(func, (args, kwargs))
            return func(*args, **kwargs)
        finally:
            _HERE.off = before


class _Guard(Mode):
    """Lets no product pass that is not HBFP: whatever torch runs below all functions, and higher-order operators."""

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """What torch compiles meanwhile (branches of ``torch.cond``) is looked at when it runs."""
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        nested = isinstance(func, torch._ops.HigherOrderOperator) or torch.is_inference_mode_enabled()
        out = self.parts(func, args, kwargs) if nested else NotImplemented
        if out is NotImplemented:
            _guard(func, (args, kwargs))
            out = func(*args, **kwargs)
        return out


def _guard(func, args):
    """Refuse a product outside HBFP in a scope that is strict."""
    scope = _HERE.scope
    if _HERE.formats is not None and scope.hbfp_strict and not _inside() and counts(func, args):
        _left(func, NOT_OURS)


def _inside():
    """Whether the caller is part of a product in HBFP."""
    return not torch.compiler.is_dynamo_compiling() and in_hbfp()


def _left(func, reason):
    """Say that a product stays as it is, or refuse."""
    if _HERE.scope.hbfp_strict:
        _refuse(_HERE.scope, func, reason)
    note(name_of(func), None, 0, str(reason))


def _refuse(scope, func, reason, kind=TypeError):
    where = f"Module {scope.hbfp_name!r}" if scope.hbfp_name else "The module"
    raise kind(f"{where} ({type(scope).__name__}) cannot compute {name_of(func)} in HBFP: {reason}; "
               f"exclude={[scope.hbfp_name]!r} leaves its products in FP32") from None


def _captured():
    """What torch.compile has captured so far: the graph, and its parts by name."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    output = InstructionTranslator.current_tx().output
    return output.graph, output.nn_modules


@torch.compiler.assume_constant_result
def _begin_captured() -> None:
    """A scope begins, in what torch.compile traces."""
    graph, _ = _captured()
    graph.__dict__.setdefault("hbfp_begun", []).append(len(graph.nodes))


@torch.compiler.assume_constant_result
def _end_captured(scope: "Scope") -> None:
    """It ends: refuse products among what was captured meanwhile, of which inner scopes have answered for theirs."""
    graph, parts = _captured()
    begun = graph.__dict__.get("hbfp_begun", [])
    for node in _with_branches(list(graph.nodes)[begun.pop() if begun else 0:], parts):
        if node.meta.get("hbfp_seen"):
            continue
        node.meta["hbfp_seen"] = True
        if scope._hbfp_formats is None or node.op != "call_function":
            continue
        given = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: each.meta.get("example_value"))
        unseen = node.target in _unseen()
        if (scope.hbfp_strict or unseen) and counts(node.target, given):
            _refuse(scope, node.target, UNSEEN if unseen else NOT_OURS, Escaped)


def _with_branches(nodes, parts):
    """Nodes, and those of graphs that they call (``torch.cond``); ``parts`` has these by name."""
    for node in nodes:
        yield node
        inner = parts.get(node.target) if node.op == "get_attr" else None
        if isinstance(inner, torch.fx.GraphModule):
            yield from _with_branches(inner.graph.nodes, inner._modules)


@functools.cache
def _unseen():
    """Functions with a form in HBFP that torch.compile shows to no mode, and that would stay in FP32 there alone."""
    shown = {func for several in torch.overrides.get_overridable_functions().values() for func in several}
    return {func for func in handlers.HANDLERS if func not in shown}


class Scope(HBFPState):
    """Mixed into the class of a module whose own products are HBFP, or FP32 if its formats are None."""
    hbfp_name: str
    hbfp_strict: bool
    #: Whether a product in its own code is an :class:`OwnProduct`.
    hbfp_apart = False

    def hbfp_set_formats(self, formats: FormatLike) -> None:
        """Change the formats; None keeps the products in FP32."""
        if formats is None:
            self._hbfp_formats, self._hbfp_nearest, self.noise_state = None, None, None
        else:
            super().hbfp_set_formats(formats)

    @untraced_noise
    def hbfp_forward(self, forward: Any, args: Any, kwargs: Any) -> Any:
        """``forward(*args, **kwargs)`` within this scope."""
        before = _HERE.scope, _HERE.formats, _HERE.stream
        with self.hbfp_call() as (formats, stream):
            _HERE.scope, _HERE.formats, _HERE.stream = self, formats, stream
            try:
                if _HERE.entered and not _HERE.off or formats is None:
                    return self._hbfp_guarded(forward, args, kwargs)
                outer = _HERE.entered, _HERE.off
                _HERE.entered, _HERE.off = True, False
                try:
                    with _Mode():
                        return self._hbfp_guarded(forward, args, kwargs)
                finally:
                    _HERE.entered, _HERE.off = outer
            finally:
                _HERE.scope, _HERE.formats, _HERE.stream = before

    def _hbfp_guarded(self, forward, args, kwargs):
        """``forward(*args, **kwargs)``, of which no product passes that is not HBFP if the scope is strict."""
        if torch.compiler.is_dynamo_compiling():
            _begin_captured()
            y = forward(*args, **kwargs)
            _end_captured(self)
            return y
        if _HERE.guarded or _HERE.formats is None or not self.hbfp_strict:
            return forward(*args, **kwargs)
        _HERE.guarded = True
        try:
            with _Guard():
                return forward(*args, **kwargs)
        finally:
            _HERE.guarded = False

    def __reduce_ex__(self, protocol: Any) -> Any:
        """The class has no name of its own to be found by: it is made again."""
        _, _, state, *_ = super().__reduce_ex__(protocol)
        return _empty, (plain(type(self)),), state


class OwnProducts:
    """A module whose own code multiplies in HBFP, as :func:`golden.nn.hbfp_layers` gives it.

    Attributes
    ----------
    module : torch.nn.Module
        The module.
    """

    def __init__(self, module: Scope) -> None:
        self.module = module

    @property
    def formats(self) -> Formats:
        """Its formats, which may change between steps."""
        return self.module.hbfp_formats

    @formats.setter
    def formats(self, formats: FormatLike) -> None:
        self.module.hbfp_set_formats(Formats.of(formats))


def plain(kind: Any) -> Any:
    """The class that a scope's class was made of; others as they are."""
    return kind.__bases__[1] if Scope in kind.__bases__ else kind


@functools.cache
def scoped(kind: Any) -> Any:
    """The subclass of a module's class that is a scope."""
    def forward(self, *args, **kwargs):
        return self.hbfp_forward(functools.partial(kind.forward, self), args, kwargs)
    forward = functools.wraps(kind.forward)(forward)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind)(kind.__name__, (Scope, kind), {"forward": forward, **names})


def _empty(kind):
    """A module of a scope's class, not yet filled."""
    made = scoped(kind)
    return made.__new__(made)


def enter(module: torch.nn.Module, formats: FormatLike, *, name: str, seed: int, strict: bool) -> None:
    """Make ``module`` a scope, in place. ``name`` is for messages; without ``strict`` what is no HBFP runs as it is."""
    kind: Any = type(module)
    module.__class__ = scoped(kind)
    module.hbfp_name, module.hbfp_strict = name, strict
    module.hbfp_setup(formats, seed)
