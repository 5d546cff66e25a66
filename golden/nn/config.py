"""A conversion as data, and the call by which those who come from torchao know it."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, fields
from importlib import import_module
from typing import Any, Self

import torch

from hbfp.checks import check_kind
from hbfp.values import given

from ..formats.names import Operand
from .chosen import twin_of
from .formats import GUARD, FormatLike, Formats, data_of, format_of
from .layers import HBFPLayer
from .replace import convert
from .select import Choice, choices
from .side import Side

#: The name of the method among those of transformers: ``quant_method`` of ``config.json``.
METHOD = "hbfp"
#: Roles with formats of their own.
_ROLES = ("w", "g")


@dataclass(frozen=True)
class HBFPConfig:
    """What :func:`golden.nn.convert` is told, to be kept, passed on and written to a file.

    Parameters
    ----------
    format : str, HBFPFormat or Formats
        ``fmt`` of :func:`~golden.nn.convert`.
    exclude, layers, seed, strict, side, noise, w, g, order, accumulate, guard, growth, mode
        As of :func:`~golden.nn.convert`.

    Raises
    ------
    TypeError
        If a format is none.
    ValueError
        If the formats do not go together.
    """
    format: FormatLike = "hbfp8"
    _: KW_ONLY
    exclude: Choice | Iterable[Choice] = ()
    layers: Mapping[Any, FormatLike] | None = None
    seed: int | None = None
    strict: bool = False
    side: Side | None = None
    noise: str = "lanes"
    w: Operand | str | None = None
    g: Operand | str | None = None
    order: str = "block"
    accumulate: str = "fp32"
    guard: int = GUARD
    growth: int | None = None
    mode: str = "hbfp"

    def __post_init__(self):
        object.__setattr__(self, "exclude", tuple(choices(self.exclude)))
        if self.layers is not None:
            check_kind("Layers", self.layers, Mapping)
        told = self.arguments()
        Formats.of(**{name: told[name] for name in told.keys() & _FORMATS})
        for fmt in (self.layers or {}).values():
            Formats.of(fmt)
        if "transformers" in sys.modules:                  # it may read a model's own file before it asks
            self._register()

    @staticmethod
    def _register():
        """Let transformers know the method."""
        import_module(f"{__package__}.huggingface")

    def _told(self):
        """The fields that differ from their defaults."""
        every = ((each, getattr(self, each.name)) for each in fields(self))
        return {each.name: value for each, value in every    # an array of numbers is not compared
                if type(value) is not type(each.default) or value != each.default}

    def arguments(self) -> dict[str, Any]:
        """The named arguments of :func:`golden.nn.convert`, those aside that are as without them."""
        told = {name: value for name, value in self._told().items() if name != "format"}
        return {"fmt": self.format, **told}

    @property
    def quant_method(self) -> str:
        """The method's name among those of transformers, which asks for it, and then finds the method registered."""
        self._register()
        return METHOD

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it; ValueError if it holds classes or functions, which a file cannot name."""
        told = self._told()
        exclude = list(choices(self.exclude))
        for name, each in (("exclude", exclude), ("layers", list(self.layers or ()))):
            if odd := [choice for choice in each if not isinstance(choice, str)]:
                raise ValueError(f"{name} must be names alone to be written to a file, not {given(odd[0])}")
        told |= {"exclude": exclude} if exclude else {}
        told |= {role: _plain(told[role]) for role in told.keys() & {"format", *_ROLES}}
        if self.layers is not None:
            told["layers"] = {choice: _plain(fmt) for choice, fmt in self.layers.items()}
        if self.side is not None:
            told["side"] = asdict(self.side)
        return {"quant_method": METHOD, "format": "hbfp8"} | told

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The configuration of which :meth:`to_dict` gave this."""
        told = {name: value for name, value in data.items() if name != "quant_method"}
        told |= {role: _read(told[role]) for role in told.keys() & {"format", *_ROLES}}
        if told.get("layers") is not None:
            told["layers"] = {choice: _read(fmt) for choice, fmt in told["layers"].items()}
        if told.get("side") is not None:
            told["side"] = Side(**told["side"])
        return cls(**told)


#: The arguments of :func:`golden.nn.convert` that :meth:`Formats.of <golden.nn.Formats.of>` takes.
_FORMATS = {"fmt", *_ROLES, "order", "accumulate", "guard", "growth", "mode"}


def _plain(fmt):
    """A format as JSON has it."""
    return json.loads(fmt.text) if isinstance(fmt, Formats) else fmt if isinstance(fmt, str) else data_of(fmt)


def _read(data):
    """The format of which :func:`_plain` gave this."""
    if not isinstance(data, Mapping):
        return data
    return Formats.read(json.dumps(data)) if "x" in data else format_of(dict(data))


def quantize_(model: torch.nn.Module, config: HBFPConfig | FormatLike = "hbfp8",
              filter_fn: Callable[[torch.nn.Module, str], bool] | None = None) -> None:
    """Convert a model in place, as ``torchao.quantization.quantize_`` does; :func:`golden.nn.convert` does the work.

    Parameters
    ----------
    model : torch.nn.Module
        The model.
    config : HBFPConfig, str, HBFPFormat or Formats
        What to do; a format alone stands for the configuration of it.
    filter_fn : function, optional
        Of a module and its qualified name; ``only`` of :func:`golden.nn.convert`. Without it every product is
        converted, not those of linear layers alone.

    Raises
    ------
    TypeError
        If ``model`` is no module, or ``config`` is neither configuration nor format.
    ValueError
        If the model itself is a layer that a twin replaces, which cannot be done in place; and as of
        :func:`golden.nn.convert`.
    """
    check_kind("model", model, torch.nn.Module)
    if twin_of(model) and not isinstance(model, HBFPLayer):
        raise ValueError(f"A {type(model).__name__} by itself is not converted in place: "
                         "write model = hbfp.golden.nn.convert(model, ...)")
    told = config if isinstance(config, HBFPConfig) else HBFPConfig(config)
    convert(model, **told.arguments(), only=None if filter_fn is None else lambda name, part: filter_fn(part, name))
