"""What a task is: data, model, recipe, metric, formats and published figures, as a TOML file has them."""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from types import GenericAlias
from typing import Any

from hbfp.values import OptionError, read_file, refuse, shown

from .formats import Format

#: Where the tasks that have a name lie.
FOLDER = Path(__file__).with_name("tasks")
#: Metric -> its unit, and what it is of the test data.
METRICS = {"error": ("%", "not recognised"), "accuracy": ("%", "recognised"), "perplexity": ("", "perplexity")}
KINDS, SCHEDULES = ("sgd", "adamw"), ("constant", "cosine", "linear", "steps")


class TaskError(ValueError):
    """A task is not described as it has to be; one line."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How weights are changed.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    rate, momentum, nesterov, decay
        Of the optimiser; ``decay`` is of weights.
    clip : float
        Norm that gradients are clipped to; 0: they are not.
    schedule : str
        One of :data:`SCHEDULES`; ``cosine`` and ``linear`` fall to 0, ``steps`` multiplies by ``factor`` at each of
        ``milestones``, shares of the training.
    warmup : float
        Share of the training in which the rate rises from 0.
    """
    kind: str = "sgd"
    rate: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    decay: float = 0.0
    clip: float = 0.0
    schedule: str = "constant"
    milestones: tuple[float, ...] = ()
    factor: float = 0.1
    warmup: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Task:
    """One experiment.

    Parameters
    ----------
    name, title : str
        Short, and for people.
    data, model : dict
        ``kind``, one of :data:`golden.study.published.data.LOADERS` and of
        :data:`golden.study.published.models.MODELS`, and options of that.
    metric : str
        One of :data:`METRICS`, of the test data.
    formats : tuple of str
        Those of the published table.
    recipe : Recipe, optional
        None: nothing is trained.
    epochs, batch : int
        Length of a training and samples of a step.
    together : bool
        Whether several seeds may train as one job of :mod:`golden.nn.fused`.
    published : dict
        Format -> published figure.
    source : str
        Who published them.
    """
    name: str
    title: str
    data: dict[str, Any]
    model: dict[str, Any]
    metric: str
    formats: tuple[str, ...]
    recipe: Recipe | None = None
    epochs: int = 1
    batch: int = 32
    together: bool = False
    published: dict[str, Any] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self):
        _one_of("metric", self.metric, METRICS)
        for name in ("epochs", "batch"):
            if getattr(self, name) < 1:
                raise TaskError(f"{name} must be 1 or more, not {getattr(self, name)}")
        for name in (*self.formats, *self.published):
            try:
                Format.of(name)
            except ValueError as error:
                raise TaskError(f"format {shown(name)}: {error}") from None
        for name, value in self.published.items():
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                raise TaskError(f"published.{name} must be a number, not {shown(value)}")
        if self.recipe:
            _one_of("recipe.kind", self.recipe.kind, KINDS)
            _one_of("recipe.schedule", self.recipe.schedule, SCHEDULES)


def names() -> list[str]:
    """The tasks that have a name."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read(name: str) -> Task:
    """The task of a name or of a TOML file; OptionError if there is none, or it is not valid."""
    if name not in names() and not name.endswith(".toml"):
        raise refuse("task", name, f"must be one of {', '.join(names())}, or a TOML file like these")
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    try:
        table = tomllib.loads(read_file("task", path).decode())
        if isinstance(table.get("recipe"), dict):
            table["recipe"] = fill(Recipe, table["recipe"], "recipe.")
        return fill(Task, {"name": path.stem} | table, "")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise refuse("task", name, f"is no TOML ({shown(error)})") from None
    except TaskError as error:
        raise refuse("task", name, str(error)) from None


def fill(kind: Callable[..., Any], table: Mapping[str, Any], where: str) -> Any:
    """Call a dataclass with the keys of a table, each checked against its type; TaskError names the key."""
    types = {each.name: each.type for each in fields(kind)}    # type: ignore[arg-type]
    needed = {each.name for each in fields(kind)               # type: ignore[arg-type]
              if each.default is MISSING and each.default_factory is MISSING}
    return kind(**checked(types, needed, table, where))


def options(call: Callable[..., Any], table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The keys of a table but ``kind``, as keyword arguments of a function, each checked against its type."""
    parameters = [each for each in inspect.signature(call).parameters.values() if each.kind is each.KEYWORD_ONLY]
    return checked({each.name: each.annotation for each in parameters},
                   {each.name for each in parameters if each.default is each.empty},
                   {name: value for name, value in table.items() if name != "kind"}, where)


def checked(types: Mapping[str, Any], needed: set[str], table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A table whose keys and values are as they have to be."""
    for name in table:
        if name not in types:
            raise TaskError(f"unknown key {shown(where + name)}; valid are {', '.join(types) or 'none'}")
    for name in types:
        if name in needed and name not in table:
            raise TaskError(f"lacks the key {where}{name}")
    return {name: _value(types[name], value, where + name) for name, value in table.items()}


def _value(kind, value, where):
    """A value of a type; whole numbers serve as numbers, lists as tuples."""
    if isinstance(kind, GenericAlias) and kind.__origin__ is tuple:
        if not isinstance(value, list):
            raise TaskError(f"{where} must be a list, not {shown(value)}")
        return tuple(_value(kind.__args__[0], each, where) for each in value)
    plain = kind.__origin__ if isinstance(kind, GenericAlias) else kind
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false", dict: "a table"}
    if plain is float and type(value) is int:
        value = float(value)
    if plain in words and type(value) is not plain:
        raise TaskError(f"{where} must be {words[plain]}, not {shown(value)}")
    return value


def _one_of(name, value, choices):
    if value not in choices:
        raise TaskError(f"{name} must be one of {', '.join(choices)}, not {shown(value)}")


def kind_of(part: str, table: Mapping[str, Any], choices: Mapping[str, Any]) -> Any:
    """The entry of ``choices`` that the key ``kind`` of a table names; OptionError if there is none."""
    if table.get("kind") not in choices:
        raise OptionError(f"{part}.kind must be one of {', '.join(choices)}, not {shown(table.get('kind'))}")
    return choices[table["kind"]]
