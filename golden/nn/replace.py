"""Any model to HBFP in one call."""

from fnmatch import fnmatch

import torch

from .formats import Formats
from .layers import HBFPLSTM, HBFPConv2d, HBFPLayer, HBFPLinear, HBFPMultiheadAttention

#: Which layer replaces which; exact types, so that a subclass with its own forward stays as it is.
TWINS = {torch.nn.Linear: HBFPLinear, torch.nn.Conv2d: HBFPConv2d, torch.nn.LSTM: HBFPLSTM,
         torch.nn.MultiheadAttention: HBFPMultiheadAttention}


def convert(module, fmt=None, exclude=(), *, seed=1, **options):
    """Replace every layer with matrix products by its HBFP twin, in place.

    Parameters
    ----------
    module : torch.nn.Module
        The model. Parameters are shared with the layers replaced: optimisers made before stay valid.
    fmt : HBFPFormat or Formats
        Format, as of :class:`~golden.nn.HBFPLinear`.
    exclude : sequence of str or type
        Layers to leave: qualified names with wildcards (``"head.*"``) or classes.
    seed : int
        Layer i (in order of ``named_modules``) gets ``seed + i`` for its noise.
    options
        Further arguments of :meth:`~golden.nn.Formats.of`: ``w``, ``g``, ``order``, ``accumulate``.

    Returns
    -------
    torch.nn.Module
        ``module``, or its twin if it was such a layer itself.

    Raises
    ------
    TypeError
        If ``module`` is no module.
    ValueError
        If an exclude name matches no layer.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, not {type(module).__name__}")
    formats, names, classes = Formats.of(fmt, **options), [], []
    for item in (exclude,) if isinstance(exclude, (str, type)) else exclude:
        (classes if isinstance(item, type) else names).append(item)
    every = list(module.named_modules(remove_duplicate=False))
    for pattern in names:
        if not any(fnmatch(name, pattern) for name, _ in every):
            raise ValueError(f"Exclude must name a layer, not {pattern!r}")
    twins, inside = {}, []
    for name, layer in every:
        left = any(fnmatch(name, pattern) for pattern in names) or isinstance(layer, tuple(classes))
        if left or any(name.startswith(prefix) for prefix in inside):     # a part of a layer replaced whole
            continue
        _no_shortcut(layer)
        if type(layer) not in TWINS:
            continue
        inside.append(f"{name}." if name else "")
        if layer not in twins:                                            # a layer used twice stays one layer
            twins[layer] = TWINS[type(layer)].of(layer, formats, seed=seed + len(twins))
        if not name:
            return twins[layer]
        parent, _, leaf = name.rpartition(".")
        setattr(module.get_submodule(parent), leaf, twins[layer])
    return module


def _no_shortcut(layer):
    """Keep torch's inference shortcut from computing a whole encoder layer in FP32, past its parts."""
    if isinstance(layer, torch.nn.TransformerEncoderLayer):
        layer.activation_relu_or_gelu = 0
    if isinstance(layer, torch.nn.TransformerEncoder):
        layer.use_nested_tensor = False


def hbfp_layers(module):
    """Name and layer of every HBFP layer that computes, in the order of ``named_modules``."""
    return [(name, layer) for name, layer in module.named_modules() if isinstance(layer, HBFPLayer)]
