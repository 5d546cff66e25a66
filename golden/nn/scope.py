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

from . import handlers
from .formats import FormatLike, Formats
from .products import in_hbfp
from .record import note
from .state import HBFPState, untraced_noise


class OwnProduct(BaseException):
    """A scope of a job whose models have to multiply alone has met a product; no ``except`` of its code is meant."""


class _Here(threading.local):
    """Where this thread is: the innermost scope and what holds in it, and whether the mode is on the stack, and on."""

    def __init__(self):
        self.scope, self.formats, self.stream = None, None, None
        self.entered, self.off = False, False


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
            return func(*args, **kwargs)
        finally:
            _HERE.off = before


def _inside():
    """Whether the caller is part of a product in HBFP."""
    return not torch.compiler.is_dynamo_compiling() and in_hbfp()


def _left(func, reason):
    """Say that a product stays as it is, or refuse."""
    scope = _HERE.scope
    if scope.hbfp_strict:
        where = f"Module {scope.hbfp_name!r}" if scope.hbfp_name else "The module"
        raise TypeError(f"{where} ({type(scope).__name__}) cannot compute {func.__name__} in HBFP: {reason}; "
                        f"exclude={[scope.hbfp_name]!r} leaves its products in FP32") from None
    note(func.__name__, None, 0, str(reason))


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
                    return forward(*args, **kwargs)
                outer = _HERE.entered, _HERE.off
                _HERE.entered, _HERE.off = True, False
                try:
                    with _Mode():
                        return forward(*args, **kwargs)
                finally:
                    _HERE.entered, _HERE.off = outer
            finally:
                _HERE.scope, _HERE.formats, _HERE.stream = before

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
