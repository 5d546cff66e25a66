"""Which modules of a model are meant: by name with wildcards, by class, or by a function."""

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch

from .formats import FormatLike, Formats

#: One choice: a name, a class, or a function of name and module.
Choice = str | type | Callable[[str, torch.nn.Module], bool]


def inside(name: str, containers: Iterable[str]) -> bool:
    """Whether a module is one of ``containers`` or in one."""
    return any(not top or name == top or name.startswith(f"{top}.") for top in containers)


def choices(given: Choice | Iterable[Choice]) -> Iterable[Choice]:
    """One choice or several, as several."""
    if isinstance(given, (str, type)) or callable(given):
        return [given]
    try:
        return list(given)
    except TypeError:
        raise TypeError("Choices must be names, classes, functions or a list of these, not "
                        f"{type(given).__name__}") from None


def matches(module: torch.nn.Module, choice: Any, argument: str) -> list[str]:
    """Names of all modules that one choice means.

    Raises
    ------
    TypeError
        If ``choice`` is no name, class or function.
    ValueError
        If ``choice`` means no module.
    """
    every = list(module.named_modules(remove_duplicate=False))
    if isinstance(choice, str):
        names, shown = [name for name, _ in every if fnmatchcase(name, choice)], repr(choice)
    elif isinstance(choice, type):
        names, shown = [name for name, part in every if isinstance(part, choice)], choice.__name__
    elif callable(choice):
        names, shown = [name for name, part in every if choice(name, part)], getattr(choice, "__name__", repr(choice))
    else:
        raise TypeError(f"{argument} must hold names, classes and functions, not {choice!r}")
    if not names:
        raise ValueError(f"{argument} must match a layer of the model, not {shown}")
    return names


def excluded(module: torch.nn.Module, exclude: Choice | Iterable[Choice], whole: Callable[[Any], bool]) -> list[str]:
    """Names of all modules that ``exclude`` means; ``whole`` says of a module whether its parts go with it."""
    found: list[str] = []
    for choice in choices(exclude):
        names = matches(module, choice, "Exclude")
        found += names
        if isinstance(choice, str):
            _check_whole(module, names, whole)
    return found


def _check_whole(module, names, whole):
    """Refuse to exclude only a part of a layer that is converted whole."""
    for top, layer in module.named_modules(remove_duplicate=False):
        if not whole(layer) or inside(top, names):
            continue
        for name in names:
            if inside(name, [top]):
                raise ValueError(f"Exclude must not match {name!r}, a part of {top!r}, which is converted whole")


def formats_by_name(module: torch.nn.Module, formats: Formats,
                    layers: Mapping[Any, FormatLike]) -> Callable[[str], Formats]:
    """A function from a module's name to its formats.

    They are those of the last choice in ``layers`` that means it or what it is in, else ``formats``.
    """
    rules = [(matches(module, choice, "Layers"), Formats.of(fmt)) for choice, fmt in layers.items()]

    def of(name):
        return next((fmt for names, fmt in reversed(rules) if inside(name, names)), formats)
    return of
