"""Where a training runs."""

import os

import torch

from hbfp.values import choice, refuse


def device(name: str) -> str:
    """``name``, if torch has such a device; what it computes there then has the same bits again after a kill.

    Raises
    ------
    OptionError
        If it is none, or not here; one line.
    """
    choice("device", name, ("cpu", "cuda"))
    if name == "cuda" and not torch.cuda.is_available():
        raise refuse("device", name, "torch finds no GPU here; --device cpu works")
    if name == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
    return name
