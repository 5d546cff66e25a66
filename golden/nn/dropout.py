"""Dropout by position: within a model that draws so, torch's dropout drops the elements that docs/numerics.md says."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from ..position import dropout_key, step_key

#: Torch's functions -> the names of their arguments behind the tensor, with what they are if not given.
_FUNCTIONS: dict[Any, dict[str, Any]] = {F.dropout: {"p": 0.5, "training": True, "inplace": False},
                                         torch.dropout: {"p": 0.5, "train": True},
                                         torch.dropout_: {"p": 0.5, "train": True}}


class _Here(threading.local):
    """The module whose dropouts are by position in this thread, the outermost that has such."""

    def __init__(self):
        self.module = None


_HERE = _Here()


class _Drops(TorchFunctionMode):
    """Puts ``hbfp::dropout`` in place of torch's."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func not in _FUNCTIONS:
            return func(*args, **kwargs)
        names = _FUNCTIONS[func]
        given = names | dict(zip(("input", *names), args, strict=False)) | kwargs
        x, p = given["input"], given["p"]
        if not given.get("training", given.get("train")) or not 0 < p <= 1 or not x.is_floating_point():
            return func(*args, **kwargs)
        y = dropped(x, p)
        return x.copy_(y) if given.get("inplace") or func is torch.dropout_ else y


def dropped(x: torch.Tensor, p: float) -> torch.Tensor:
    """Dropout in training, for the inside of layers, which no function mode sees."""
    if _HERE.module is None or p == 0:
        return torch.dropout(x, p, p > 0)
    places, seed = _HERE.module.hbfp_places, _HERE.module.hbfp_places.seed
    number = _HERE.module.hbfp_earlier(places.dropouts)
    if number is None:
        number = places.dropouts
        places.dropouts += 1
    return torch.ops.hbfp.dropout(x, p, dropout_key(seed, number), step_key(seed, places.step))


@contextmanager
def drops_by_position(module: Any) -> Iterator[None]:
    """Within, dropouts are those of a module that draws by position, unless a module around it has begun."""
    before = _HERE.module
    if before is not None and before.hbfp_places is module.hbfp_places:
        yield
        return
    _HERE.module = module
    try:
        with _Drops():
            yield
    finally:
        _HERE.module = before
