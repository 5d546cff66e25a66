"""What follows from declared fields: checks, values by name, the command line's words, names and tables.

Names of fields must differ across nested descriptions, since command lines and files have them flat.
"""

import argparse
import dataclasses
from collections.abc import Container, Mapping
from functools import cache
from typing import Any, ClassVar, Protocol, Self, TypeVar

from . import values
from .checks import check_kind
from .declared import KEY, Field


class Declared(Protocol):
    """A dataclass, whose fields :mod:`hbfp.fields` declares."""
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


#: A description of one kind.
D = TypeVar("D", bound=Declared)


class Description:
    """What every description can say of itself: plain data, and words of the command line."""
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for manifests: every parameter, nested as in the dataclass."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The description that :meth:`as_dict` made ``data`` of, also if ``data`` has been through JSON."""
        return from_dict(cls, data)

    def words(self) -> list[str]:
        """The command line's words that give this description."""
        return words(self)


def _own(kind: type[Declared]) -> list[tuple[str, Any, Any]]:
    """(name, Field or description, default) of a description's own fields, those that are declared."""
    return [(each.name, each.metadata[KEY], each.default) for each in dataclasses.fields(kind)
            if KEY in each.metadata]


def declared(kind: type[Declared]) -> dict[str, tuple[Field, Any]]:
    """Name -> (Field, default) of a description and of those nested in it.

    Raises
    ------
    TypeError
        If two have the same name.
    """
    found: dict[str, tuple[Field, Any]] = {}
    for name, about, default in _own(kind):
        inner = {name: (about, default)} if isinstance(about, Field) else declared(about)
        if twice := found.keys() & inner.keys():
            raise TypeError(f"{kind.__name__} has more than one field {', '.join(sorted(twice))}")
        found |= inner
    return found


@cache
def unserved(kind: type[Declared], use: str) -> dict[str, tuple[Field, Any]]:
    """Name -> (Field, default) of those of :func:`declared` that do not serve a use of :data:`hbfp.declared.USES`."""
    return {name: (about, default) for name, (about, default) in declared(kind).items() if use not in about.serves}


def check(description: Declared) -> None:
    """Check every declared field by itself; sequences become tuples. Defaults of None are left.

    Raises
    ------
    ValueError
        Of the first that is out of range; one line.
    """
    for name, about, default in _own(type(description)):
        value = getattr(description, name)
        if not isinstance(about, Field):
            check_kind(name.capitalize(), value, about)
        elif not (value is None and default is None):
            object.__setattr__(description, name, about.check(value))


def flat(description: Declared) -> dict[str, Any]:
    """Name -> value of all declared fields, those nested too."""
    found: dict[str, Any] = {}
    for name, about, _ in _own(type(description)):
        value = getattr(description, name)
        found |= {name: value} if isinstance(about, Field) else flat(value)
    return found


def build(kind: type[D], given: Mapping[str, Any]) -> D:
    """A description from values by name; names that are not there have their defaults."""
    parts = {}
    for name, about, _ in _own(kind):
        if not isinstance(about, Field):
            parts[name] = build(about, given)
        elif name in given:
            parts[name] = given[name]
    return kind(**parts)


def from_dict(kind: type[D], data: Mapping[str, Any]) -> D:
    """A description from what ``dataclasses.asdict`` made of one, and JSON of that.

    Raises
    ------
    ValueError
        If it lacks a field, or has another one; none is filled in.
    """
    inner = {name: about for name, about, _ in _own(kind) if not isinstance(about, Field)}
    if not isinstance(data, dict):
        raise ValueError(f"{kind.__name__} must be an object with its fields, not {values.shown(data)}")
    names = [each.name for each in dataclasses.fields(kind) if each.init]
    if lacking := [name for name in names if name not in data]:
        raise ValueError(f"{kind.__name__} must have all of its fields, not lack {', '.join(lacking)}")
    if others := [str(name) for name in data if name not in names]:
        raise ValueError(f"{kind.__name__} must have no fields but its own, not {values.shown(', '.join(others))}")
    return kind(**{name: from_dict(inner[name], value) if name in inner else value for name, value in data.items()})


def add_arguments(group: argparse._ActionsContainer, kind: type[Declared],
                  shown: Container[str] | None = None, without: Container[str] = ()) -> None:
    """Add an option for every field, but those ``without``, to an ``argparse`` parser or group; values stay text.

    Help has those that are named in ``shown``, all by default.
    """
    for name, (about, default) in declared(kind).items():
        if name in without:
            continue
        hidden = {} if shown is None or name in shown else {"help": argparse.SUPPRESS}
        group.add_argument(values.flag(name), **about.argument(default) | hidden)


def words(description: Declared) -> list[str]:
    """The command line's words that give this description, whatever the defaults are."""
    kinds = declared(type(description))
    return [word for name, value in flat(description).items() for word in kinds[name][0].words(name, value)]


def name_parts(description: Declared) -> list[str]:
    """The parts of a description's name: what has an effect, and is always named or differs from its default.

    A nested description with a name of its own comes first, by that name; the fields of others stand among the rest.
    """
    return [text for _, text in sorted(_placed(description, description), key=lambda part: part[0])]


def _placed(description, owner):
    """(place, text) of every part; ``owner`` knows which fields have an effect."""
    for name, about, default in _own(type(description)):
        value = getattr(description, name)
        if not isinstance(about, Field):
            yield from [(-1, value.name)] if hasattr(about, "name") else _placed(value, owner)
        elif about.tag is not None and (about.always or value != default):
            if about.where is None or getattr(owner, about.where):
                yield about.place, about.tag + about.named(value)


def table(kind: type[Declared]) -> list[tuple[str, str, str]]:
    """Rows of a table for people: option, what it is and what is valid, default."""
    return [(values.flag(name), about.help, about.default(default))
            for name, (about, default) in declared(kind).items()]
