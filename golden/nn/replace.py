"""Any model to HBFP in one call."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Unpack

import torch

from hbfp.checks import check_choice, check_kind, check_range

from . import scope
from .chosen import MULTIPLIES, TWINS, Chosen, Only, whole
from .formats import FormatLike, Formats
from .layers import HBFPLayer, check_types
from .options import FormatOptions, Model, check_options
from .placed import NOISES, Places
from .report import report
from .select import Choice, excluded, formats_by_name, inside
from .side import Side
from .state import HBFPState


def convert(module: Model, fmt: FormatLike = "hbfp8", exclude: Choice | Iterable[Choice] = (), *,
            only: Only | None = None, layers: Mapping[Any, FormatLike] | None = None, seed: int | None = None,
            strict: bool = False, example: Any = None, side: Side | None = None, noise: str = "lanes",
            **options: Unpack[FormatOptions]) -> Model:
    """Make every matrix product of a model HBFP, in place; all of them, or none if a layer cannot be converted.

    Layers of :data:`TWINS` are replaced by their HBFP twins. Every other module that multiplies keeps its class by name
    and runs its own ``forward`` with torch's products in HBFP: ``@``, ``torch.matmul``, ``addmm``, ``einsum``,
    ``torch.nn.functional.linear``, ``scaled_dot_product_attention``, convolutions, recurrent layers and so on. What is
    HBFP already changes to the new format and keeps its weights and its noise. :func:`golden.nn.report` lists all
    products.

    Parameters
    ----------
    module : torch.nn.Module
        The model. Parameters are shared with the layers replaced: optimisers made before stay valid.
    fmt : str, HBFPFormat or Formats
        Format, as of :class:`~golden.nn.HBFPLinear`, or a name such as ``"hbfp8"``.
    exclude : sequence of str, type or function
        What to leave as it is: qualified names with wildcards (``"head.*"``), classes, or functions of name and module
        that say so. A container stands for all that is in it.
    only : function, optional
        Of name and module. Every module that would be converted is asked alone, and where this says no it stays as it
        is; what is in it is asked itself, the parts of a layer that is converted whole apart.
    layers : mapping, optional
        Formats of some layers: from a choice as in ``exclude`` to what stands for a format. The last that matches
        counts.
    seed : int, optional
        Layer i (in order of ``named_modules``; twins come first, then the other modules) gets ``seed + i`` for its
        noise. Without it new layers get 1 + i, and the noise of layers that are HBFP already runs on.
    strict : bool
        Whether a product that has no HBFP form is an error when it runs, rather than left in FP32.
    example : tuple or Tensor, optional
        Positional arguments of the model, or a dict of named ones. The converted model runs on it once, in evaluation
        mode; with ``strict``, a product that is left in FP32 and not excluded is an error.
    side : Side, optional
        The accelerator whose arithmetic everything beside products has, such as :data:`golden.nn.DESIGN_SIDE`, forward
        and backward; :mod:`golden.ops` says which operations. Without it they are torch's.
    noise : str
        What ``stochastic`` draws by: ``lanes``, the generators of each layer's converter, or ``position``, the place of
        an element in its tensor, as an accelerator does. That is for linear layers and products of matrices, with seed
        ``seed`` or 1, and :func:`~golden.nn.begin_step` says which step is next. Then dropout (``nn.Dropout``,
        ``torch.nn.functional.dropout``, of attention and between recurrent layers) draws by position, too, in any
        rounding; without it, of torch's generator.
    options
        Further arguments of :meth:`~golden.nn.Formats.of`: ``w``, ``g``, ``order``, ``accumulate``,
        ``guard``, ``growth``, ``mode``.

    Returns
    -------
    torch.nn.Module
        ``module``, or its twin if it was such a layer itself.

    Raises
    ------
    TypeError
        If ``module`` is no module, ``side`` no :class:`~golden.nn.Side`, ``exclude`` holds anything but names,
        classes and functions, or an argument has a name that there is not.
    ValueError
        If ``exclude`` or ``layers`` matches nothing, ``only`` leaves nothing, or ``exclude`` matches only a part of a
        layer that is replaced whole; if a layer cannot be converted; if ``strict`` and ``example`` find a product in
        FP32. The model is as it was.
    """
    check_options(convert, options)
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, not {type(module).__name__}")
    check_choice("Noise", noise, NOISES)
    if side is not None and not isinstance(side, Side):
        raise TypeError(f"side must be a Side, not {type(side).__name__}")
    formats = Formats.of(fmt, **options)
    out = excluded(module, exclude, whole)
    by_name = formats_by_name(module, formats, layers or {})
    chosen = Chosen.of(module, out, only)
    first = 1 if seed is None else seed
    check_range("Seed", first, 0, 2 ** 32 - len(chosen.layers) - len(chosen.others))
    _check(chosen.others)
    twins = _twins(chosen.layers, by_name, first)
    with _all_or_nothing(module):
        _replace(module, chosen.layers, twins, by_name, seed)
        for number, (name, part) in enumerate(chosen.others, len(twins)):
            with _named(name, part):
                if isinstance(part, scope.Scope):
                    part.hbfp_strict = strict
                    part.hbfp_reformat(by_name(name), seed=None if seed is None else seed + number)
                else:
                    scope.enter(part, by_name(name), name=name, seed=first + number, strict=strict)
        _keep(module, out, chosen.left)
        for name, part in module.named_modules():
            if not inside(name, out):
                _no_shortcut(part)
        result = twins.get(module, module)
        _set_side(result, side)
        _set_places(result, Places(first) if noise == "position" else None)
        if example is not None:
            _try(result, example, strict, out, chosen.left)
    return result


def _set_side(module, side):
    """Give the outermost module the side arithmetic, or take it away."""
    if side is not None and not isinstance(module, HBFPState):
        scope.enter(module, None, name="", seed=1, strict=False)
    if isinstance(module, HBFPState):
        module.hbfp_side = side


def _set_places(module, places):
    """Let all that computes in HBFP draw by position, or of lanes; the outermost module also catches dropouts."""
    if places is not None and not isinstance(module, HBFPState):
        scope.enter(module, None, name="", seed=1, strict=False)
    for part in module.modules():
        if isinstance(part, HBFPState):
            part.hbfp_place(places)


def _check(others):
    """Refuse modules whose products nobody can reach."""
    for name, part in others:
        with _named(name, part):
            if isinstance(part, torch.jit.ScriptModule):
                raise ValueError("TorchScript hides its products; convert the model that it was made of")
            if "forward" in vars(part):
                raise ValueError("forward was replaced on the object; convert first, then replace it")
            if any(isinstance(p, torch.nn.parameter.UninitializedParameter) for p in part.parameters(recurse=False)):
                raise ValueError("it has no shape yet; run the model once before")
            if hasattr(part, "noise_state") and not isinstance(part, scope.Scope):
                raise ValueError("it has an attribute 'noise_state' of its own; rename that")
            if isinstance(part, MULTIPLIES):
                check_types(part)


@contextmanager
def _named(name: str, layer: torch.nn.Module) -> Iterator[None]:
    """Errors within say which layer, and what would work."""
    try:
        yield
    except (TypeError, ValueError) as error:
        what = f"Layer {name!r}" if name else "The module"
        way = f"exclude={[name]!r} leaves it in FP32" if name else "it has to stay in FP32"
        raise ValueError(f"{what} ({type(layer).__name__}) cannot be converted: {error}; {way}") from error


def _twins(chosen, by_name, seed):
    """Layer -> its twin, itself if it is HBFP; a layer used twice stays one layer. Nothing of the model changes."""
    twins = {}
    for name, layer in chosen:
        if isinstance(layer, HBFPLayer):
            twins[layer] = layer
        elif layer not in twins:
            with _named(name, layer):
                twins[layer] = TWINS[type(layer)].of(layer, by_name(name), seed=seed + len(twins))
    return twins


def _replace(module, chosen, twins, by_name, seed):
    """Put the twins in their places; twins of before get the new formats."""
    names = {}
    for name, layer in chosen:
        names.setdefault(layer, name)
        if twins[layer] is not layer and name:
            parent, _, leaf = name.rpartition(".")
            setattr(module.get_submodule(parent), leaf, twins[layer])
    for number, (layer, twin) in enumerate(twins.items()):
        if twin is layer:
            layer.reformat(by_name(names[layer]), seed=None if seed is None else seed + number)


def _keep(module, out, left):
    """Let excluded modules within a scope multiply in FP32, and what ``left`` names, as far as they are no HBFP."""
    done: list[str] = []
    scopes = [name for name, part in module.named_modules() if isinstance(part, scope.Scope)]
    if not scopes:
        return
    for name, part in module.named_modules():
        if isinstance(part, (HBFPLayer, scope.Scope)) or type(part).forward is torch.nn.Module.forward:
            continue
        if inside(name, out) and not inside(name, done):
            done.append(name)
        elif name not in left or not inside(name, scopes):
            continue
        scope.enter(part, None, name=name, seed=1, strict=False)


def _no_shortcut(layer):
    """Keep torch's inference shortcut from computing a whole encoder layer in FP32, past its parts."""
    if isinstance(layer, torch.nn.TransformerEncoderLayer):
        layer.activation_relu_or_gelu = 0
    if isinstance(layer, torch.nn.TransformerEncoder):
        layer.use_nested_tensor = False


def _try(module, example, strict, out, alone):
    """Run the model once; with ``strict`` refuse what is left in FP32."""
    args, named = ((), example) if isinstance(example, dict) else \
        ((example,) if isinstance(example, torch.Tensor) else tuple(example), {})
    left = [entry for entry in report(module, *args, named=named).left
            if not inside(entry.layer, out) and entry.layer not in alone]
    if strict and left:
        shown = ", ".join(f"{entry.operation} in {entry.layer or 'the module'!r} ({entry.reason})" for entry in left)
        names = list(dict.fromkeys(entry.layer for entry in left))
        raise ValueError(f"Products left in FP32: {shown}; exclude={names!r} leaves them so on purpose")


@contextmanager
def _all_or_nothing(module: torch.nn.Module) -> Iterator[None]:
    """Put every part of the model back as it was if anything fails within."""
    tables = ("_parameters", "_buffers", "_modules")
    before = [(part, type(part), {name: dict(value) if name in tables else value for name, value in vars(part).items()})
              for part in module.modules()]
    try:
        yield
    except BaseException:
        for part, kind, state in before:
            part.__class__ = kind
            vars(part).clear()
            vars(part).update(state)
        raise


def hbfp_layers(module: torch.nn.Module, *, own: bool = False) -> list[tuple[str, HBFPLayer | scope.OwnProducts]]:
    """Name and layer of every HBFP layer with weights, in the order of ``named_modules``; each has ``formats``.

    Parameters
    ----------
    module : torch.nn.Module
        A converted model.
    own : bool
        Also modules without weights of their own that may multiply, such as attention in a model's own code.
    """
    check_kind("module", module, torch.nn.Module)
    found: list[tuple[str, HBFPLayer | scope.OwnProducts]] = []
    for name, part in module.named_modules():
        if isinstance(part, HBFPLayer):
            found.append((name, part))
        elif isinstance(part, scope.Scope) and part._hbfp_formats is not None and (own or _has_matrix(part)):
            found.append((name, scope.OwnProducts(part)))
    return found


def _has_matrix(part):
    return hasattr(part, "parametrizations") or any(p.dim() > 1 for p in part.parameters(recurse=False))
