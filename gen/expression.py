"""Expressions of Verilog: read, measured and written anew.

Verilog gives an operator the width of its surroundings where these are wider (an addition, ``&``, a choice), and in
other places its own (inside braces, below a reduction, in a condition). :func:`places` says which of the two holds
where a name stands, and so what may take the name's place.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

_TOKEN = re.compile(r"\s*(?:\\(\S+)\s|(\d+'s?[bodh][0-9a-fA-FxzXZ?_]+)|(\$?[A-Za-z_][\w$]*)|(\d+)"
                    r"|(<<<|>>>|<<|>>|<=|>=|==|!=|&&|\|\||~\||~&|~\^|\+:|[-+*/%&|^~!<>?:(){}\[\],]))")
#: Binary operators -> how closely they bind.
BINDS = {"||": 1, "&&": 2, "|": 3, "^": 4, "~^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
         "<<": 8, ">>": 8, "<<<": 8, ">>>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}
#: Those whose result is a bit, whatever stands around them, and those that measure by their left operand.
COMPARES, SHIFTS, LOGIC = ("==", "!=", "<", "<=", ">", ">="), ("<<", ">>", "<<<", ">>>"), ("&&", "||")
#: Unary operators whose result is a bit.
REDUCES = ("|", "&", "^", "~|", "~&", "~^", "!")
#: Operators that need no brackets to the left of themselves.
_CHAINS = ("&", "|", "^", "+", "-")


@dataclass(frozen=True)
class Expression:
    """One operator, name or number.

    Attributes
    ----------
    kind : str
        ``name``, ``part`` (constant bits of a name), ``index`` (bits or a word that others choose), ``number``,
        ``{}`` (bits together), ``call`` (``$signed``), ``?:``, ``unary``, ``binary``.
    word : str
        The name, the number, the operator, or what is called.
    args : tuple of Expression
        Operands.
    high, low : int
        Bits of a part, and of a part of a word; -1: all of it. Of an index with ``+:`` ``low`` is how many bits.
    """
    kind: str
    word: str = ""
    args: tuple = ()
    high: int = -1
    low: int = -1

    def names(self) -> "Iterator[Expression]":
        """Names, parts and indices in it, in the order in which a reader of the text meets the operands."""
        if self.kind in ("name", "part", "index"):
            yield self
        for each in self.args:
            yield from each.names()

    @property
    def operators(self) -> int:
        """How many operators it has: what becomes a cell of a netlist."""
        return (self.kind in ("unary", "binary", "?:", "index")) + sum(each.operators for each in self.args)


def together(parts: Iterable[Expression]) -> Expression:
    """Bits together, the highest first."""
    split = (part.args if part.kind == "{}" else (part,) for part in parts)
    return Expression("{}", "{}", tuple(each for some in split for each in some))


class _Reader:
    """Reads one text, operand by operand."""

    def __init__(self, text):
        self.tokens, place, text = [], 0, text + " "
        while text[place:].strip():
            found = _TOKEN.match(text, place)
            if not found:
                raise ValueError(f"No expression of Verilog: {text!r}")
            self.tokens.append((found.lastindex, found[found.lastindex]))
            place = found.end()
        self.tokens.append((0, ""))
        self.place = 0

    def take(self, word=None):
        kind, text = self.tokens[self.place]
        if word is not None and (kind, text) != (5, word):
            raise ValueError(f"No {word!r} before {text!r}")
        self.place += 1
        return text

    def next_is(self, *words):
        kind, text = self.tokens[self.place]
        return kind == 5 and text in words

    def choice(self):
        condition = self.binary(1)
        if not self.next_is("?"):
            return condition
        self.take("?")
        first = self.choice()
        self.take(":")
        return Expression("?:", "?:", (condition, first, self.choice()))

    def binary(self, least):
        left = self.unary()
        while self.next_is(*BINDS) and BINDS[self.tokens[self.place][1]] >= least:
            word = self.take()
            left = Expression("binary", word, (left, self.binary(BINDS[word] + 1)))
        return left

    def unary(self):
        if self.next_is("~", "!", "-", "+", *REDUCES):
            return Expression("unary", self.take(), (self.unary(),))
        return self.operand()

    def operand(self):
        kind, text = self.tokens[self.place]
        if kind == 5 and text == "(":
            self.take()
            inside = self.choice()
            self.take(")")
            return inside
        if kind == 5 and text == "{":
            return self.together()
        self.take()
        if kind in (2, 4):
            return Expression("number", text)
        if text.startswith("$") and kind == 3:
            self.take("(")
            inside = self.choice()
            self.take(")")
            return Expression("call", text, (inside,))
        if kind not in (1, 3):
            raise ValueError(f"No operand: {text!r}")
        return self.bits(text)

    def together(self):
        self.take("{")
        parts = [self.choice()]
        if self.next_is("{"):    # a number of copies
            inside = self.together()
            self.take("}")
            return Expression("{}", "{}", inside.args * int(parts[0].word))
        while self.next_is(","):
            self.take()
            parts.append(self.choice())
        self.take("}")
        return together(parts)

    def bits(self, name):
        """A name, and which bits or word of it."""
        if not self.next_is("["):
            return Expression("name", name)
        self.take()
        first = self.choice()
        constant = first.kind == "number" and first.word.isdigit()
        if self.next_is("+:"):
            self.take()
            found = Expression("index", name, (first,), -1, int(self.take()))
        elif constant:
            high = low = int(first.word)
            if self.next_is(":"):
                self.take()
                low = int(self.take())
            found = Expression("part", name, (), high, low)
        else:
            found = Expression("index", name, (first,))
        self.take("]")
        if found.kind == "index" and self.next_is("["):    # bits of a word
            self.take()
            high = low = int(self.take())
            if self.next_is(":"):
                self.take()
                low = int(self.take())
            self.take("]")
            found = Expression("index", name, found.args, high, low)
        return found


def read(text: str) -> Expression:
    """The expression of a text.

    Raises
    ------
    ValueError
        If it is none, or one of a form that Yosys does not write.
    """
    reader = _Reader(text)
    found = reader.choice()
    if reader.tokens[reader.place][0]:
        raise ValueError(f"More than an expression: {text!r}")
    return found


def written(name: str) -> str:
    """A name as Verilog has it: with an escape where it is no plain word, as Yosys does it."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"\\{name} "


def show(of: Expression) -> str:
    """Its text. Brackets stand where a reader would need to know which operator binds closer."""
    if of.kind == "name":
        return written(of.word)
    if of.kind == "part":
        return f"{written(of.word)}[{of.high}]" if of.high == of.low else f"{written(of.word)}[{of.high}:{of.low}]"
    if of.kind == "index":
        some = f" +: {of.low}]" if of.low >= 0 > of.high else "]" if of.high < 0 else f"][{of.high}:{of.low}]"
        return f"{written(of.word)}[{show(of.args[0])}{some}"
    if of.kind == "number":
        return of.word
    if of.kind == "{}":
        return _show_together(of.args)
    if of.kind == "call":
        return f"{of.word}({show(of.args[0])})"
    if of.kind == "unary":
        inside, = of.args    # ``&~a`` and ``^~a`` would be other operators
        return f"{of.word}({show(inside)})" if inside.kind == "unary" else f"{of.word}{_inside(inside)}"
    if of.kind == "?:":
        return " ".join([_inside(of.args[0]), "?", _inside(of.args[1]), ":", _inside(of.args[2])])
    left, right = of.args
    plain = left.kind == "binary" and left.word == of.word and of.word in _CHAINS
    return f"{show(left) if plain else _inside(left)} {of.word} {_inside(right)}"


def _inside(of):
    """As an operand."""
    bare = of.kind not in ("unary", "binary", "?:") or of.kind == "unary" and of.word == "~" and (
        of.args[0].kind not in ("unary", "binary", "?:"))
    return show(of) if bare else f"({show(of)})"


def _show_together(parts):
    """Bits together; equal neighbours as a number of copies."""
    groups = []
    for part in parts:
        if groups and groups[-1][0] == part:
            groups[-1][1] += 1
        else:
            groups.append([part, 1])
    texts = [show(part) if count == 1 else f"{{{count}{{{show(part)}}}}}" for part, count in groups]
    return texts[0] if len(groups) == 1 and groups[0][1] > 1 else f"{{{', '.join(texts)}}}"


def width(of: Expression, widths: Mapping[str, int]) -> int:
    """Bits that it has where its surroundings give it none; ``widths`` is as :meth:`gen.module.Module.measured`."""
    if of.kind == "name":
        return widths[of.word]
    if of.kind == "part":
        return of.high - of.low + 1
    if of.kind == "index":
        return of.high - of.low + 1 if of.high >= 0 else of.low if of.low >= 0 else widths.get(f"{of.word}[]", 1)
    if of.kind == "number":
        return int(of.word.split("'")[0]) if "'" in of.word else 32
    if of.kind == "{}":
        return sum(width(each, widths) for each in of.args)
    if of.kind == "call":
        return width(of.args[0], widths)
    if of.kind == "unary":
        return 1 if of.word in REDUCES else width(of.args[0], widths)
    if of.word in COMPARES or of.word in LOGIC:
        return 1
    if of.word in SHIFTS:
        return width(of.args[0], widths)
    return max(width(each, widths) for each in (of.args[1:] if of.kind == "?:" else of.args))


def signed(of: Expression) -> bool:
    """Whether it is signed: if all operands are that its surroundings reach."""
    if of.kind == "call":
        return of.word == "$signed"
    if of.kind == "number":
        return "'" not in of.word or "'s" in of.word
    if of.kind == "unary":
        return of.word not in REDUCES and signed(of.args[0])
    if of.kind == "?:":
        return all(map(signed, of.args[1:]))
    if of.kind == "binary":
        reached = of.args[:1] if of.word in SHIFTS else () if of.word in COMPARES + LOGIC else of.args
        return bool(reached) and all(map(signed, reached))
    return False


def replaced(of: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The same with what ``change`` gives in the place of each part of it, unless that is None."""
    found = change(of)
    if found is not None:
        return found
    args = tuple(replaced(each, change) for each in of.args)
    return of if args == of.args else Expression(of.kind, of.word, args, of.high, of.low)


def places(of: Expression, around: int | None, widths: Mapping[str, int]) -> Iterator[tuple[Expression, int | None]]:
    """Each name, part and index in it with the bits that its surroundings give it; None where they give none.

    Parameters
    ----------
    around : int or None
        Bits that the surroundings of the whole give: those of what it is assigned to.
    """
    if of.kind in ("name", "part", "index"):
        yield of, around
    wide = None if around is None else max(around, width(of, widths))
    if of.kind == "unary" and of.word not in REDUCES:
        given = [wide or width(of, widths)]
    elif of.kind == "?:":
        given = [None] + [wide or width(of, widths)] * 2
    elif of.kind == "binary" and of.word in COMPARES:
        given = [max(width(each, widths) for each in of.args)] * 2
    elif of.kind == "binary" and of.word in SHIFTS:
        given = [wide or width(of, widths), None]
    elif of.kind == "binary" and of.word not in LOGIC:
        given = [wide or width(of, widths)] * 2
    else:
        given = [None] * len(of.args)
    for each, bits in zip(of.args, given, strict=True):
        yield from places(each, bits, widths)
