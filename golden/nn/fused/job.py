"""Models of one architecture joined into one module."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from ..layers import HBFPConv2d, HBFPLayer, HBFPLinear, HBFPMultiheadAttention
from ..scope import Scope
from .attention import FusedAttention
from .attention_fp32 import FusedFP32Attention
from .chain import FusedSequential
from .convolution import StackedConv2d
from .convolution_fp32 import QuickConvolution
from .dropout import FusedDropout, NoDropout, SeededDropout
from .each import Each, EachRecurrent
from .layers import LOOPED
from .linear import FusedFP32Linear, FusedLinear
from .norms import QuickBatchNorm
from .own import Together
from .parameters import Parameters
from .pointwise import EXACT, ROUNDED, Pointwise
from .pooling import FusedMaxPool

#: Layers whose models run in one call.
FUSED = {HBFPLinear: FusedLinear, nn.Linear: FusedFP32Linear, nn.Dropout: NoDropout, SeededDropout: FusedDropout,
         HBFPMultiheadAttention: FusedAttention, nn.MultiheadAttention: FusedFP32Attention, **LOOPED,
         **dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d), QuickBatchNorm),
         HBFPConv2d: StackedConv2d, nn.Conv2d: QuickConvolution}


#: Layers of torch that multiply, put into a model after it was converted.
PLAIN = (nn.Linear, nn.MultiheadAttention, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d,
         nn.ConvTranspose3d)


class Job(nn.Module):
    """What :func:`fuse` gives: called with the models' batches behind each other, (models * N, ...).

    Attributes
    ----------
    models : list of Module
        The models, whose parameters are the job's; save and evaluate them alone at any time.
    count : int
        Their number.
    held : Parameters
        Where their parameters lie.
    """

    def __init__(self, models: Sequence[nn.Module], net: nn.Module, held: Parameters) -> None:
        super().__init__()
        self.models, self.count, self.net, self.held = list(models), len(models), net, held

    def forward(self, inputs: Any, *others: Any, shared: bool = False, **options: Any) -> Any:
        """What a model takes and gives, the first dimension (models * N); ``shared`` gives one batch to every model."""
        run = self._untraced if torch.compiler.is_dynamo_compiling() else self._run
        return run(inputs, *others, shared=shared, **options)

    def _run(self, inputs, *others, shared, **options):
        if isinstance(inputs, torch.Tensor) and inputs.is_nested:
            raise TypeError("A job takes padded tensors, not nested ones")
        if shared:
            inputs = inputs.repeat(self.count, *[1] * (inputs.dim() - 1))
        if len(inputs) % self.count:
            raise ValueError(f"Batch must be a multiple of the {self.count} models, not {len(inputs)}")
        return self.net(inputs, *others, **options)

    _untraced = torch.compiler.disable(_run)

    @property
    def hbfp_models(self) -> list[nn.Module]:
        """The models, which are no parts of the job in torch's sense, for what looks at all modules."""
        return self.models

    def train(self, mode: bool = True) -> nn.Module:
        """Training or evaluation mode, also of the models alone."""
        for model in self.models:
            model.train(mode)
        return super().train(mode)


def fuse(models: Iterable[nn.Module]) -> Job:
    """Join models of one architecture into one job.

    Parameters
    ----------
    models : sequence of Module
        Of one architecture, whose forward treats samples alone. Formats, seeds and modes may differ.
        Optimisers may have been made before or are made after. Do not move the models to another
        device or convert them again while the job lives.

    Returns
    -------
    Job

    Raises
    ------
    ValueError
        If there is no model, or two differ in architecture, or a part cannot run in a job: which, and why.
    """
    models = list(models)
    if not models:
        raise ValueError("Models must be at least one, not []")
    if len({id(model) for model in models}) < len(models):
        raise ValueError("Models must be different objects")
    _check(models)
    held = Parameters(models)
    return Job(models, _Merge(held)(models, ""), held)


# --- What a job refuses ---------------------------------------------------------------------------

#: Attributes of layers that each model may have otherwise, because they are read from the model's own layer.
OWN = {"training", "seed", "p", "eps", "momentum", "hbfp_seed", "hbfp_strict", "frozen"}


def _check(models):
    """Refuse models that differ, or that hold what cannot run in a job."""
    names = [[name for name, _ in model.named_modules()] for model in models]
    parameters = [[(name, tuple(p.shape), p.requires_grad) for name, p in model.named_parameters()] for model in models]
    for own, model in zip(parameters[1:], models[1:], strict=True):
        if own != parameters[0] and type(model) is type(models[0]):
            odd = next((a[0] for a, b in zip(own, parameters[0], strict=False) if a != b), "")
            where = odd.rpartition(".")[0] or "the top"
            raise ValueError(f"Models must have one architecture; they differ at {where!r}")
    for name in names[0]:
        try:
            parts = [model.get_submodule(name) for model in models]
        except AttributeError:
            parts = []
        if len({type(part) for part in parts}) != 1:
            raise ValueError(f"Models must have one architecture; they differ at {name or 'the top'!r}")
        for part in parts:
            _check_part(part, name)


def _check_part(part, name):
    """Refuse a layer that cannot give in a job what it gives alone."""
    if getattr(part, "hbfp_side", None) is not None:
        raise ValueError("Models with side arithmetic run alone: convert them without side to run in a job")
    where = f"at {name!r}" if name else "at the top"
    if isinstance(part, nn.Dropout) and part.p:
        raise ValueError(f"Dropout {where} must be golden.nn.fused.SeededDropout to run in a job")
    if isinstance(part, (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)) and part.p:
        raise ValueError(f"{type(part).__name__} {where} draws from torch's one generator, in another order in a job; "
                         "golden.nn.fused.SeededDropout has its own")
    inner = getattr(part, "dropout", 0)
    if isinstance(part, (nn.MultiheadAttention, nn.RNNBase)) and inner:
        raise ValueError(f"Layer {where} must have dropout=0 to run in a job, not {inner!r}")
    if getattr(part, "batch_first", True) is not True:
        raise ValueError(f"Layer {where} must have batch_first=True to run in a job")


# --- Joining --------------------------------------------------------------------------------------


class _Merge:
    """Makes one module of the same part of every model; parameters that stand in several parts have one stack.

    ``within``: whether the part stands in a converted module, whose scope multiplies plain layers of torch in HBFP.
    """

    def __init__(self, held, within=False):
        self.held, self.within = held, within

    def __call__(self, parts, name):
        first, kind = parts[0], type(parts[0])
        if any(_hooked(part) for part in parts) or hasattr(first, "parametrizations"):
            return Each(parts, self.held)
        if kind in EXACT:
            if _difference(parts):
                return Each(parts, self.held)
            return FusedMaxPool(parts, self.held) if kind is nn.MaxPool2d else first
        if kind in ROUNDED:
            return Each(parts, self.held) if _difference(parts) else Pointwise(parts, self.held)
        if self.within and kind in PLAIN:
            return Each(parts, self.held)              # the joined layer's gradients would be FP32
        if kind in FUSED and all(self.held.holds(p) for p in first.parameters()):
            _refuse_difference(parts, name)
            return FUSED[kind](parts, self.held)
        if isinstance(first, nn.RNNBase):
            return EachRecurrent(parts, self.held)
        children = {leaf: part for leaf, part in first._modules.items() if part is not None}
        own = list(first.parameters(recurse=False)) + [
            buffer for leaf, buffer in first.named_buffers(recurse=False)
            if leaf != "noise_state" or not isinstance(first, Scope)]
        if not children or own or isinstance(first, (HBFPLayer, nn.MultiheadAttention)):
            return Each(parts, self.held)
        return self._container(parts, name, children)

    def _container(self, parts, name, children):
        """A copy of the first model's container around the joined parts."""
        first, where = parts[0], f"at {name!r}" if name else "at the top"
        _refuse_difference(parts, name)
        for key, value in vars(first).items():
            if key[0] != "_" and _holds_layers(value):
                raise ValueError(f"{type(first).__name__} {where} holds layers or tensors in {key!r}, outside its "
                                 "modules, where a job cannot join them; make it a ModuleList or ParameterList")
        merged = copy.copy(first)
        if isinstance(merged, nn.TransformerEncoderLayer):
            merged.activation_relu_or_gelu = 0         # no shortcut past the parts
        if isinstance(merged, nn.TransformerEncoder):
            merged.use_nested_tensor = False
        inner = self
        if isinstance(first, Scope):
            inner = _Merge(self.held, first._hbfp_formats is not None)
        merged._modules = dict(first._modules) | {
            leaf: inner([part._modules[leaf] for part in parts], f"{name}.{leaf}".lstrip(".")) for leaf in children}
        if type(merged) is nn.Sequential:
            merged.__class__ = FusedSequential
        if isinstance(merged, Scope):
            merged._buffers = dict(first._buffers)
            merged.noise_state = None                  # it draws nothing
            merged.hbfp_forward = Together(parts, merged, Each(parts, self.held))
        return merged


def _hooked(part):
    """Whether a layer has hooks, which run only where it is called itself."""
    return any(getattr(part, name) for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
                                                "_backward_pre_hooks"))


def _plain(part):
    """What a layer was made with, as far as plain values tell and a job asks for equal ones."""
    kinds = (bool, int, float, str, tuple, type(None))
    return {key: value for key, value in vars(part).items()
            if key[0] != "_" and key not in OWN and isinstance(value, kinds)}


def _difference(parts):
    """An attribute in which layers differ, or None."""
    first, *others = map(_plain, parts)
    return next((key for key in first if any(other.get(key) != first[key] for other in others)), None)


def _refuse_difference(parts, name):
    odd = _difference(parts)
    if odd:
        values = ", ".join(dict.fromkeys(repr(getattr(part, odd, None)) for part in parts))
        raise ValueError(f"Models must have one architecture; {odd} of {name or 'the top'!r} differs: {values}")


def signature(model: nn.Module) -> str:
    """Text that is equal for models of one architecture, which may be tried in one job."""
    parts = [(name, type(part).__qualname__, sorted(_plain(part).items(), key=str)) for name, part in
             model.named_modules()]
    return repr((parts, [(name, tuple(p.shape), p.requires_grad) for name, p in model.named_parameters()]))


def _holds_layers(value):
    """Whether a plain attribute is, or holds, a module or tensor."""
    if isinstance(value, dict):
        return any(map(_holds_layers, value.values()))
    if isinstance(value, (list, tuple, set)):
        return any(map(_holds_layers, value))
    owner = getattr(value, "__self__", None)
    return isinstance(value, (nn.Module, torch.Tensor)) or isinstance(owner, nn.Module)
