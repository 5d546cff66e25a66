"""Models as graphs of torch's operations: what programs and the products of pods are made from.

``torch.export`` traces them. Where it refuses Python that ``torch.fx`` takes, such as a path that depends on a buffer's
value, it traces what the latter has made of the model.
"""

import inspect
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import Any

import torch
from torch import fx

from hbfp.golden.nn.state import HBFPState
from hbfp.golden.ops.table import decompositions

from .errors import LoweringError, layer
from .volumes import VOLUMES

#: How often a graph is taken apart at most.
_TIMES = 4


def exported(model: torch.nn.Module, inputs: tuple[Any, ...], pure: bool = False) -> torch.export.ExportedProgram:
    """A model's graph.

    Parameters
    ----------
    model : torch.nn.Module
        On any device, ``meta`` too.
    inputs : tuple
        What its ``forward`` takes, on the same device.
    pure : bool
        Whether to decompose it into operations of core ATen that the table has, of which none changes an operand.

    Raises
    ------
    LoweringError
        If torch cannot trace it; with the name of the layer in which that is, if it is in one.
    """
    with torch.no_grad(), quiet(), _running(model) as path:
        try:
            return _traced(model, inputs, pure)
        except Exception as error:
            where = path[-1] if path else ""
            try:
                return _traced(_symbolic(model), inputs, pure)
            except Exception:
                reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
                would = f", and so would --exclude {where}, which runs that layer on the host" if where else ""
                raise LoweringError(f"{layer(where)} cannot be lowered: neither torch.export nor torch.fx traces it "
                                    f"({reason}); a forward whose path does not depend on values would do{would}"
                                    ) from error


@contextmanager
def _running(model: torch.nn.Module) -> Iterator[list[str]]:
    """Within, the names of the parts that run, the innermost last; an error leaves those that it came out of."""
    path: list[str] = []

    def leave(*_: Any) -> None:
        path.pop()
    handles = [hook for name, part in model.named_modules() if not isinstance(part, torch.jit.ScriptModule)
               for hook in (part.register_forward_pre_hook(lambda *_, name=name: path.append(name)),
                            part.register_forward_hook(leave))]
    try:
        yield path
    finally:
        for handle in handles:
            handle.remove()


def _traced(model, inputs, pure):
    """A model's graph by torch.export."""
    program = torch.export.export(model, inputs, strict=False)
    for turn in range(_TIMES if pure else 0):              # what an operation is made of may be made of others
        parts = decompositions(program.graph, turn > 0)
        volumes = turn == 0 and any(node.target in VOLUMES for node in program.graph.nodes)
        if parts is None and not volumes and not any(_in_place(node) for node in program.graph.nodes):
            break
        program = program.run_decompositions((parts or {}) | VOLUMES)
    return program


class _Tracer(fx.Tracer):
    """As torch.fx traces, but for layers of :mod:`golden.nn`, which stay whole as those of torch do.

    Where what a wrapper wraps has ``*args``, ``**kwargs`` or keywords alone, torch.fx rewrites the wrapper's code as if
    it had these. Its variables then have other values or, for ``forward(self, *args)``, none: from Python 3.12 on,
    to read one of those ends the process.
    """

    def create_args_for_root(self, root_fn: Any, is_module: bool, concrete_args: Any = None) -> Any:
        inner = inspect.unwrap(root_fn)
        several = inner.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        if inner is not root_fn and (several or inner.__code__.co_kwonlyargcount):
            raise fx.proxy.TraceError(f"{inner.__qualname__} does not take its arguments by position alone")
        return super().create_args_for_root(root_fn, is_module, concrete_args)

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        return super().is_leaf_module(m, module_qualified_name) or isinstance(m, HBFPState)


def _symbolic(model):
    """What torch.fx makes of a model."""
    return fx.GraphModule(model, _Tracer().trace(model))


@contextmanager
def quiet() -> Iterator[None]:
    """Keep torch from pages about an error that it raises, too, and from warnings about its own layers."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _in_place(node):
    """Whether a node changes an operand."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
