"""Any model to HBFP in one call."""

import warnings
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

import torch

from hbfp.fields import check_range

from .formats import FormatLike, Formats
from .layers import HBFPLSTM, HBFPConv2d, HBFPLayer, HBFPLinear, HBFPMultiheadAttention

#: Which layer replaces which; exact types, so that a subclass with its own forward stays as it is.
TWINS = {torch.nn.Linear: HBFPLinear, torch.nn.Conv2d: HBFPConv2d, torch.nn.LSTM: HBFPLSTM,
         torch.nn.MultiheadAttention: HBFPMultiheadAttention}
#: Layers that may have a matrix of parameters, but no matrix product.
NO_PRODUCT = (torch.nn.Embedding, torch.nn.EmbeddingBag, torch.nn.LayerNorm, torch.nn.RMSNorm, torch.nn.PReLU)


def convert(module: torch.nn.Module, fmt: FormatLike = None, exclude: str | type | Iterable[str | type] = (), *,
            seed: int | None = None, **options: Any) -> torch.nn.Module:
    """Replace every layer of :data:`TWINS` by its HBFP twin, in place; all of them, or none if one cannot be.

    Products that the model computes by itself (``torch.matmul``, ``torch.nn.functional.linear``, ``@``) stay FP32, as
    do those of other layers; of the latter a warning speaks, and :func:`~golden.nn.fp32_products` lists both. A layer
    that is HBFP already changes to the new format and keeps its weights and its noise.

    Parameters
    ----------
    module : torch.nn.Module
        The model. Parameters are shared with the layers replaced: optimisers made before stay valid.
    fmt : HBFPFormat or Formats
        Format, as of :class:`~golden.nn.HBFPLinear`.
    exclude : sequence of str or type
        What to leave as it is: qualified names with wildcards (``"head.*"``) or classes. A container stands for all
        that is in it.
    seed : int, optional
        Layer i (in order of ``named_modules``) gets ``seed + i`` for its noise. Without it new layers get 1 + i, and
        the noise of layers that are HBFP already runs on.
    options
        Further arguments of :meth:`~golden.nn.Formats.of`: ``w``, ``g``, ``order``, ``accumulate``.

    Returns
    -------
    torch.nn.Module
        ``module``, or its twin if it was such a layer itself.

    Raises
    ------
    TypeError
        If ``module`` is no module, or ``exclude`` holds anything but names and classes.
    ValueError
        If ``exclude`` matches nothing, or only a part of a layer that is replaced whole; if a layer cannot be
        converted. The model is as it was.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, not {type(module).__name__}")
    formats = Formats.of(fmt, **options)
    excluded = _excluded(module, exclude)
    chosen = _chosen(module, excluded)
    first = 1 if seed is None else seed
    check_range("Seed", first, 0, 2 ** 32 - len(chosen))
    twins = _twins(chosen, formats, first)
    for name, layer in chosen:
        twin = twins[layer]
        if twin is not layer and name:
            parent, _, leaf = name.rpartition(".")
            setattr(module.get_submodule(parent), leaf, twin)
    for number, (layer, twin) in enumerate(twins.items()):
        if twin is layer:
            layer.reformat(formats, seed=None if seed is None else seed + number)
    for name, part in module.named_modules():
        if not _inside(name, excluded):
            _no_shortcut(part)
    _warn(module, chosen, excluded)
    return twins.get(module, module)


def _excluded(module, exclude):
    """Names of all modules that ``exclude`` matches."""
    every, found = list(module.named_modules(remove_duplicate=False)), []
    for item in (exclude,) if isinstance(exclude, (str, type)) else exclude:
        if isinstance(item, str):
            names = [name for name, _ in every if fnmatchcase(name, item)]
        elif isinstance(item, type):
            names = [name for name, part in every if isinstance(part, item)]
        else:
            raise TypeError(f"Exclude must hold names and classes, not {item!r}")
        if not names:
            shown = repr(item) if isinstance(item, str) else item.__name__
            raise ValueError(f"Exclude must match a layer of the model, not {shown}")
        found += names
        if isinstance(item, str):
            _check_whole(every, names)
    return found


def _check_whole(every, names):
    """Refuse to exclude only a part of a layer that is replaced whole."""
    for whole, layer in every:
        if type(layer) not in TWINS and not isinstance(layer, HBFPLayer) or _inside(whole, names):
            continue
        for name in names:
            if _inside(name, [whole]):
                raise ValueError(f"Exclude must not match {name!r}, a part of {whole!r}, which is converted whole")


def _inside(name, containers):
    """Whether a module is one of ``containers`` or in one."""
    return any(not top or name == top or name.startswith(f"{top}.") for top in containers)


def _chosen(module, excluded):
    """Name and layer, in order, of all that converts; the parts of such a layer go with it."""
    chosen, done = [], list(excluded)
    for name, layer in module.named_modules(remove_duplicate=False):
        if (type(layer) in TWINS or isinstance(layer, HBFPLayer)) and not _inside(name, done):
            chosen.append((name, layer))
            done.append(name)
    return chosen


def _twins(chosen, formats, seed):
    """Layer -> its twin, itself if it is HBFP; a layer used twice stays one layer. Nothing of the model changes."""
    twins = {}
    for name, layer in chosen:
        if isinstance(layer, HBFPLayer):
            twins[layer] = layer
        elif layer not in twins:
            try:
                twins[layer] = TWINS[type(layer)].of(layer, formats, seed=seed + len(twins))
            except (TypeError, ValueError) as error:
                what = f"Layer {name!r}" if name else "The module"
                way = f"exclude={[name]!r} leaves it in FP32" if name else "it has to stay in FP32"
                raise ValueError(f"{what} ({type(layer).__name__}) cannot be converted: {error}; {way}") from error
    return twins


def _no_shortcut(layer):
    """Keep torch's inference shortcut from computing a whole encoder layer in FP32, past its parts."""
    if isinstance(layer, torch.nn.TransformerEncoderLayer):
        layer.activation_relu_or_gelu = 0
    if isinstance(layer, torch.nn.TransformerEncoder):
        layer.use_nested_tensor = False


def _warn(module, chosen, excluded):
    """Name the layers with a matrix of parameters that nobody excluded and that stay FP32."""
    done = [*(name for name, _ in chosen), *excluded]
    left = [f"{name or 'the module'!r} ({type(layer).__name__})" for name, layer in module.named_modules()
            if not _inside(name, done) and not isinstance(layer, NO_PRODUCT)
            and any(parameter.dim() > 1 for parameter in layer.parameters(recurse=False))]
    if left:
        warnings.warn(f"Left in FP32: {', '.join(left)}", stacklevel=3)


def hbfp_layers(module: torch.nn.Module) -> list[tuple[str, HBFPLayer]]:
    """Name and layer of every HBFP layer that computes, in the order of ``named_modules``."""
    return [(name, layer) for name, layer in module.named_modules() if isinstance(layer, HBFPLayer)]
