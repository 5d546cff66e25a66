"""Which matrix products of a model are not HBFP."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .products import in_hbfp

#: Operations of torch that multiply matrices, by name without the namespace.
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "convolution", "mkldnn_rnn_layer",
            "_cudnn_rnn", "miopen_rnn", "_trilinear", "_cdist_forward", "_euclidean_dist", "_grouped_mm",
            "linalg_matrix_exp", "_native_multi_head_attention", "_transformer_encoder_layer_fwd")


def fp32_products(module: torch.nn.Module, *inputs: Any, **options: Any) -> list[tuple[str, str]]:
    """Run a model once and list the matrix products that it computes outside HBFP.

    Parameters
    ----------
    module : torch.nn.Module
        The model; it stays as it is, its noise and statistics too, if it is in evaluation mode.
    inputs, options
        What its ``forward`` takes.

    Returns
    -------
    list of (str, str)
        Name of the innermost module that was running ("" is the model) and torch's operation, in order, each pair
        once.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, not {type(module).__name__}")
    found: dict[tuple[str, str], None] = {}
    with names_running(module) as running:
        def watch(operation, *_):
            found.setdefault((running(), operation))
        with torch.no_grad(), Watch(watch):
            module(*inputs, **options)
    return list(found)


@contextmanager
def names_running(module: torch.nn.Module, outside: Any = "") -> Iterator[Callable[[], Any]]:
    """Gives a function that says the name of the innermost module that is running, or ``outside``."""
    path: list[str] = []
    handles = []

    def leave(*_):                                     # what a hook returns would be the module's output
        path.pop()
    for name, part in module.named_modules():
        handles.append(part.register_forward_pre_hook(lambda *_, name=name: path.append(name)))
        handles.append(part.register_forward_hook(leave, always_call=True))
    try:
        yield lambda: path[-1] if path else outside
    finally:
        for handle in handles:
            handle.remove()


class Watch(TorchDispatchMode):
    """Reports every product of real numbers that runs outside HBFP: name, torch's operator, arguments and result."""

    def __init__(self, report: Callable[..., Any]) -> None:
        super().__init__()
        self.report = report

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        out = func(*args, **(kwargs or {}))
        if (name in PRODUCTS or "dot_product" in name) and not in_hbfp() and _real(out):
            self.report(name, func, args, kwargs or {}, out)
        return out


def _real(out):
    """Whether a result has real or complex numbers: products of integers are another matter."""
    first = out[0] if isinstance(out, (tuple, list)) else out
    return first.is_floating_point() or first.is_complex()
