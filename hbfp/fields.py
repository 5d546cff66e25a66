"""Declared fields: what a parameter is, said once, for checks, command lines, files, names and tables.

A description is a frozen dataclass. Each of its fields is made by :func:`whole`, :func:`choice`, :func:`several`,
:func:`pair` or :func:`flag`, or is another description, by :func:`nested`; :mod:`hbfp.describe` reads what is said
here.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from . import values
from .checks import check_choice, check_range
from .declared import KEY, Field


@dataclass(frozen=True, kw_only=True)
class Whole(Field):
    """A whole number from ``low`` to ``high``."""
    low: int
    high: int

    @property
    def valid(self) -> str:
        """What is valid, in words."""
        return f"{self.low} to {self.high}"

    def check(self, value: int) -> int:
        """The value, or ValueError."""
        check_range(self.title, value, self.low, self.high, self.unit)
        return value

    def read(self, name: str, value: str | int) -> int:
        """The value from text or a file's data, or OptionError."""
        return values.whole(name, value, self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class Choice(Field):
    """One of several words."""
    choices: tuple[str, ...]

    METAVAR = "NAME"

    @property
    def valid(self) -> str:
        """What is valid, in words."""
        return ", ".join(self.choices)

    @property
    def help(self) -> str:
        """The text of ``--help``."""
        return f"{self.text}: {self.valid}"

    def check(self, value: str) -> str:
        """The value, or ValueError."""
        check_choice(self.title, value, self.choices)
        return value

    def read(self, name: str, value: str) -> str:
        """The value from text or a file's data, or OptionError."""
        return values.choice(name, value, self.choices)


@dataclass(frozen=True, kw_only=True)
class Several(Field):
    """Some of several words, each once, in their order here; or none."""
    choices: tuple[str, ...]

    METAVAR = "LIST"

    @property
    def valid(self) -> str:
        """What is valid, in words."""
        return f"none, or of {', '.join(self.choices)}"

    @property
    def help(self) -> str:
        """The text of ``--help``."""
        return f"{self.text}: {self.valid}"

    def check(self, value: Sequence[str]) -> tuple[str, ...]:
        """The value as a tuple, or ValueError."""
        if not isinstance(value, (tuple, list)):
            raise ValueError(f"{self.title} must be a list, not {values.given(value)}")
        for word in value:
            check_choice(f"Each of {self.title.lower()}", word, self.choices)
        if len(set(value)) < len(value):
            raise ValueError(f"{self.title} must differ, not {', '.join(value)}")
        return tuple(word for word in self.choices if word in value)

    def read(self, name: str, value: str | Sequence[str]) -> tuple[str, ...]:
        """The value from text, words with commas between, or a file's data, or OptionError."""
        words = [] if value == "none" else value.split(",") if isinstance(value, str) else value
        try:
            return self.check(words)
        except ValueError:
            raise values.refuse(name, value, f"must be {self.valid}, each once") from None

    def spelled(self, value: Sequence[str]) -> str:
        """The value as the command line takes it."""
        return ",".join(value) or "none"

    def named(self, value: Sequence[str]) -> str:
        """The value as a name has it."""
        return "_".join(value) or "none"


@dataclass(frozen=True, kw_only=True)
class Pair(Field):
    """Two whole numbers from ``low`` to ``high``; ``shape`` is what they must be to each other, in words."""
    low: int
    high: int
    shape: str = ""

    METAVAR = "A,B"

    @property
    def valid(self) -> str:
        """What is valid, in words."""
        return f"each {self.low} to {self.high}"

    def check(self, value: Sequence[int]) -> tuple[int, int]:
        """The value as a tuple, or ValueError."""
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise ValueError(f"{self.title} must be a pair{self.shape}, not {values.given(value)}")
        for side in value:
            check_range(f"{self.title} side", side, self.low, self.high, self.unit)
        return tuple(value)

    def read(self, name: str, value: str | Sequence[int]) -> tuple[int, int]:
        """The value from text or a file's data, or OptionError."""
        return values.pair(name, value, self.low, self.high)

    def spelled(self, value: Sequence[int]) -> str:
        """The value as the command line takes it."""
        return ",".join(map(str, value))

    def named(self, value: Sequence[int]) -> str:
        """The value as a name has it."""
        return "x".join(map(str, value))


@dataclass(frozen=True, kw_only=True)
class Flag(Field):
    """Yes or no; the command line can only say yes."""
    valid = "true or false"

    @property
    def help(self) -> str:
        """The text of ``--help``."""
        return self.text

    def default(self, value: bool) -> str:
        """The default in words."""
        return "off"

    def argument(self, default: bool) -> dict[str, Any]:
        """Keywords of ``add_argument``."""
        return {"action": "store_true", "default": None, "help": self.text}

    def check(self, value: bool) -> bool:
        """The value, or ValueError."""
        if not isinstance(value, bool):
            raise ValueError(f"{self.title} must be True or False, not {values.given(value)}")
        return value

    def read(self, name: str, value: bool) -> bool:
        """The value from a file's data, or OptionError."""
        if not isinstance(value, bool):
            raise values.refuse(name, value, "must be true or false")
        return value

    def words(self, name: str, value: bool) -> list[str]:
        """The command line's words for the value."""
        return [values.flag(name)] if value else []

    def named(self, value: bool) -> str:
        """Its tag alone is in a name."""
        return ""


# --- Declaring ----------------------------------------------------------------------------------


def declare(kind: Field, default: Any) -> Any:
    """A dataclass field of that :class:`Field`; a default of None is worked out by the description."""
    return dataclasses.field(default=default, metadata={KEY: kind, "rare": kind.rare})


def whole(default: int | None, low: int, high: int, **about: Any) -> Any:
    """Declare a :class:`Whole`; ``about`` are the parameters of :class:`Field`."""
    return declare(Whole(low=low, high=high, **about), default)


def choice(default: str, choices: Iterable[str], **about: Any) -> Any:
    """Declare a :class:`Choice`."""
    return declare(Choice(choices=tuple(choices), **about), default)


def several(choices: Iterable[str], **about: Any) -> Any:
    """Declare a :class:`Several`, all by default."""
    choices = tuple(choices)
    return declare(Several(choices=choices, **about), choices)


def pair(default: tuple[int, int] | None, low: int, high: int, **about: Any) -> Any:
    """Declare a :class:`Pair`."""
    return declare(Pair(low=low, high=high, **about), default)


def flag(**about: Any) -> Any:
    """Declare a :class:`Flag`, off by default."""
    return declare(Flag(**about), False)


def nested(kind: type) -> Any:
    """Declare another description inside."""
    return dataclasses.field(default_factory=kind, metadata={KEY: kind})
