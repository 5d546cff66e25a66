"""Models from a user's Python file, whose ``model()`` and ``inputs()`` give one model or a job of several."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..command.source import called, functions

#: A model and a tuple, or of a job a list of models and a list of tuples.
Source = tuple[Any, Any]


def read(text: str) -> Source:
    """The model, or the job, of the file whose path is ``text``, and its inputs.

    ``model()`` gives a module, or a job: a list or tuple of modules, or what :func:`golden.nn.fused.fuse` gives, whose
    models are taken. ``inputs()`` gives a tuple, which the models of a job share, or a list of a tuple for each.

    Returns
    -------
    (Module, tuple) or (list of Module, list of tuple)
        Models are in evaluation mode.

    Raises
    ------
    ValueError
        If the file does not run, or does not give them; one line.
    """
    made = functions(text, ("model", "inputs"))
    model, inputs = called(text, made["model"]), called(text, made["inputs"])
    models = getattr(model, "hbfp_models", model)
    if isinstance(models, (list, tuple)):
        return _several(models, inputs, text)
    if not isinstance(model, nn.Module):
        raise ValueError(f"model() of {text} must give a torch.nn.Module, not {type(model).__name__}")
    if not isinstance(inputs, tuple):
        raise ValueError(f"inputs() of {text} must give a tuple of tensors, not {type(inputs).__name__}")
    return model.eval(), inputs


def requests(text: str, inputs: Sequence[Any]) -> Sequence[Any]:
    """What clients ask of a network that serves: what ``requests()`` of a file gives, tensors like those of
    ``inputs()`` with any number of samples; those of ``inputs`` if it has none, or is a name. ValueError, one line, if
    it is another kind.
    """
    made = functions(text, (), ("requests",)) if text.endswith(".py") else {}
    if not made:
        return inputs
    given = called(text, made["requests"])
    kinds = [[(each.dtype, each.shape[1:]) if isinstance(each, torch.Tensor) and each.dim() else None for each in some]
             if isinstance(some, tuple) else None for some in (given, inputs)]
    if kinds[0] != kinds[1] or len({len(each) for each in given}) != 1 or not len(given[0]):
        raise ValueError(f"requests() of {text} must give a tuple of tensors like those of inputs(), one sample or "
                         "more")
    return given


def job(models: Sequence[Any], text: str) -> Sequence[nn.Module]:
    """The models that ``model()`` of a file gives as a job; ValueError, one line, if there are none, or others."""
    if not models:
        raise ValueError(f"model() of {text} must give at least one model, not {models!r}")
    odd = [type(each).__name__ for each in models if not isinstance(each, nn.Module)]
    if odd:
        raise ValueError(f"model() of {text} must give torch.nn.Modules alone, not {odd[0]}")
    return models


def _several(models, inputs, text):
    """The models of a job, and the inputs of each."""
    models = job(models, text)
    each = [inputs] * len(models) if isinstance(inputs, tuple) else inputs
    if not isinstance(each, list) or not all(isinstance(one, tuple) for one in each):
        raise ValueError(f"inputs() of {text} must give a tuple of tensors for all models, or a list of a tuple for "
                         f"each, not {type(inputs).__name__}")
    if len(each) != len(models):
        raise ValueError(f"inputs() of {text} must give a tuple for each of the {len(models)} models, not {len(each)}")
    return [model.eval() for model in models], each
