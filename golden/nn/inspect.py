"""Which matrix products of a model are not HBFP."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .products import in_hbfp

#: Operations of torch that multiply matrices, by name without the namespace.
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "convolution", "mkldnn_rnn_layer",
            "_cudnn_rnn", "miopen_rnn", "_trilinear", "_cdist_forward", "_grouped_mm")


def fp32_products(module: torch.nn.Module, *inputs: Any, **options: Any) -> list[tuple[str, str]]:
    """Run a model once and list the matrix products that it computes outside HBFP.

    What :func:`~golden.nn.convert` cannot see is here, too: products in the model's own code.

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
    path: list[str] = []
    found: dict[tuple[str, str], None] = {}
    handles = []
    for name, part in module.named_modules():
        handles.append(part.register_forward_pre_hook(lambda *_, name=name: path.append(name)))
        handles.append(part.register_forward_hook(lambda *_: path.pop() and None, always_call=True))
    try:
        with torch.no_grad(), _Watch(lambda operation: found.setdefault((path[-1] if path else "", operation))):
            module(*inputs, **options)
    finally:
        for handle in handles:
            handle.remove()
    return list(found)


class _Watch(TorchDispatchMode):
    """Reports every product that runs outside HBFP."""

    def __init__(self, report):
        super().__init__()
        self.report = report

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if (name in PRODUCTS or "dot_product" in name) and not in_hbfp():
            self.report(name)
        return func(*args, **(kwargs or {}))
