"""Liberty's groups as a tree, and the functions of its cells.

A file is a tree of groups, ``name (arguments) { attribute : value; attribute (values); group ... }``.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_TOKEN = re.compile(r'/\*.*?\*/|\\\n|\s+|("(?:[^"\\]|\\.)*"|[^\s(){}:;,"]+|[(){}:;,])', re.DOTALL)


@dataclass
class Group:
    """A group: its name and arguments, attributes by name, groups inside in their order."""
    name: str
    arguments: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    groups: list["Group"] = field(default_factory=list)

    def all(self, *names: str) -> list["Group"]:
        """Groups inside of these names."""
        return [each for each in self.groups if each.name in names]

    def value(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        return self.attributes.get(name, default)


def parse(text: str) -> Group:
    """The outermost group of a Liberty text.

    Raises
    ------
    ValueError
        If there is no group, or one is not closed.
    """
    tokens = (token.strip('"') for token in _TOKEN.findall(text) if token)
    top = Group("", [])
    _body(tokens, top)
    if not top.groups:
        raise ValueError("no group")
    return top.groups[0]


def _body(tokens, group):
    """Read statements until the group closes."""
    for name in tokens:
        if name == "}":
            return
        if name in (";", ","):
            continue
        mark = next(tokens, "")
        if mark == ":":
            words = list(itertools.takewhile(lambda token: token not in (";", "}"), tokens))
            group.attributes[name] = " ".join(words)
        elif mark == "(":
            arguments = [token for token in itertools.takewhile(lambda token: token != ")", tokens) if token != ","]
            follows = next(tokens, "")
            if follows == "{":
                inner = Group(name, arguments)
                group.groups.append(inner)
                _body(tokens, inner)
            else:
                group.attributes[name] = arguments
                if follows == "}":
                    return
    if group.name:
        raise ValueError(f"{group.name} is not closed")


def evaluate(function: str, values: Mapping[str, Any]) -> Any:
    """A function or condition of Liberty on arrays of truth values, by name.

    Raises
    ------
    KeyError
        If it names a pin that has no value.
    """
    tokens: Iterator[str] = iter([*re.findall(r"[A-Za-z_]\w*(?:\[\d+\])?|[01]|[()!'&*|+^]", function), ""])
    current = next(tokens)

    def take():
        nonlocal current
        token, current = current, next(tokens, "")
        return token

    def factor():
        token = take()
        if token == "!":
            return ~factor()
        if token == "(":
            value = total()
            take()
        else:
            value = np.array(token == "1") if token in "01" else values[token]
        while current == "'":
            take()
            value = ~value
        return value

    def exclusive():
        value = factor()
        while current == "^":
            take()
            value = value ^ factor()
        return value

    def product():
        value = exclusive()
        while current in ("&", "*") or current and (current in "!(01" or current[0].isalpha() or current[0] == "_"):
            if current in "&*":
                take()
            value = value & exclusive()
        return value

    def total():
        value = product()
        while current and current in "|+":
            take()
            value = value | product()
        return value
    return total()
