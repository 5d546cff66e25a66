"""Models as graphs of torch's operations, by torch.export: what programs and the products of pods are made from."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .errors import LoweringError


def exported(model: torch.nn.Module, inputs: tuple[Any, ...], pure: bool = False) -> torch.export.ExportedProgram:
    """A model's graph.

    Parameters
    ----------
    model : torch.nn.Module
        On any device, ``meta`` too.
    inputs : tuple
        What its ``forward`` takes, there.
    pure : bool
        Whether no operation may change an operand.

    Raises
    ------
    LoweringError
        If torch cannot trace it.
    """
    try:
        with torch.no_grad(), _quiet():
            program = torch.export.export(model, inputs, strict=False)
            if pure and any(_in_place(node) for node in program.graph.nodes):
                program = program.run_decompositions({})
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise LoweringError(f"The model cannot be lowered: torch.export does not trace it ({reason}); a forward whose "
                            "path does not depend on values would do") from error
    return program


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from logging pages about an error that it raises, too, and from warnings about its own layers."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _in_place(node):
    """Whether a node changes an operand."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
