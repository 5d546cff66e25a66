"""Figures on pages: what stands between two marks in a page is made from the data.

In a sentence, ``<!-- figure: area.cores.hbfp8.core:.1f -->443.2<!-- /figure -->``: an address, or numbers and
addresses with ``+ - * /`` and parentheses, and how to print it. A table stands behind its own lines, in which braces
hold the same::

    <!-- table:
    | | core | FP32 / core |
    |---|---|---|
    each area.cores(hbfp4, hbfp8): | {title} | {core:.1f} | **{area.floats.fp32.core / core:.2f}** |
    | lean FP32 | {area.floats.fp32.core:.1f} | |
    -->
    ...
    <!-- /table -->

``each`` is a line for every row of an address, or for those that are named; its names are looked up in the row first.
A name with spaces stands in brackets, and so does what chooses rows of a list, by all that is said of them:
``rows['unit=fp32.add; kind=flush'].area``; ``sum(rows.cycles)`` adds them up. A way to print is Python's, but that
``%`` stands behind a space, and that ``n`` (or ``.1n``) has a space between groups of three digits, from five digits
on; without one, a number that is not whole has five digits. ``:.2f>2`` prints what is then above 2 in bold. What is
null in the data is nothing on the page.
"""

import ast
import operator
import re
from functools import reduce
from pathlib import Path

from hbfp import figures, files

_FIGURE = re.compile(r"(<!-- figure: (.+?) -->).*?(<!-- /figure -->)")
_TABLE = re.compile(r"(<!-- table:\n(.*?)\n-->\n).*?(<!-- /table -->)", re.DOTALL)
_MARK = re.compile(r"<!-- /?(?:figure|table)\b")
_OPENING = re.compile(r"(?:[\s>]|[-*+]\s|\d+[.)]\s)*")
_EACH = re.compile(r"each ([\w.]+)(?:\(([\w, ]+)\))?: (.*)")
_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


class PageError(ValueError):
    """A mark on a page that says nothing, with the page's name and line."""


def picked(found, key):
    """What is at ``key`` of a row or a list.

    Of a list of rows, ``name=value; name=value`` chooses those of which that is true, the row itself if it is one; a
    name gives the list of what each row has there. A dictionary without that key is a list of rows.

    Raises
    ------
    LookupError
        If there is none.
    """
    if isinstance(found, dict) and key not in found and "=" in str(key):
        found = list(found.values())
    if isinstance(found, list) and "=" in str(key):
        asked = [pair.split("=", 1) for pair in key.split("; ")]
        rows = [each for each in found if all(str(each.get(name)) == text for name, text in asked)]
        if not rows:
            raise LookupError(f"no row has {key}")
        return rows[0] if len(rows) == 1 else rows
    if isinstance(found, list) and isinstance(key, str):
        return [picked(each, key) for each in found]
    try:
        return found[key]
    except (KeyError, IndexError, TypeError):
        inside = f"; there are {', '.join(map(str, found))}" if isinstance(found, dict) else ""
        raise LookupError(f"no {key!r}{inside}") from None


def value(text, row=None):
    """What an expression of addresses comes to; None if one of them is null.

    Parameters
    ----------
    text : str
    row : dict, optional
        Names that are looked up before the files.

    Raises
    ------
    ValueError, LookupError
        If it is no such expression, or there is no such figure.
    """
    def of(node):
        match node:
            case ast.Constant(value=int() | float()):
                return node.value
            case ast.BinOp() if type(node.op) in _OPERATIONS:
                left, right = of(node.left), of(node.right)
                return None if left is None or right is None else _OPERATIONS[type(node.op)](left, right)
            case ast.Call(func=ast.Name(id="sum"), args=[inner], keywords=[]):
                return sum(of(inner))
            case ast.Subscript(slice=ast.Constant(value=key)):
                return picked(of(node.value), key)
            case ast.Attribute() if any(isinstance(inner, ast.Subscript) for inner in ast.walk(node)):
                return picked(of(node.value), node.attr)
            case ast.Name() | ast.Attribute():
                first, *keys = ast.unparse(node).split(".")
                if row is None or first not in row:
                    return figures.figure(".".join((first, *keys)))
                return reduce(picked, keys, row[first])
        raise ValueError(f"{text.strip()}: must be addresses of figures, numbers, + - * / and parentheses")

    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        raise ValueError(f"{text.strip()}: is no expression") from None
    return of(tree.body)


def printed(text, row=None):
    """``EXPRESSION:WAY`` as it stands on a page."""
    expression, _, way = text.partition(":")
    way, _, limit = way.partition(">")
    found = value(expression, row)
    if found is None or isinstance(found, str):
        return found or ""
    if limit:
        shown = format(found, way)
        return f"**{shown}**" if float(shown) > float(limit) else shown
    if way.endswith("n"):
        shown = format(found, f",{way[:-1] or '.0'}f")
        return shown.replace(",", " " if abs(found) >= 9999.5 else "")
    if isinstance(found, float):
        way = way or (".0f" if abs(found) >= 1e5 else ".5g")
        way = re.sub(r"^([+ -]?)(?=[.,\d]*[f%]$)", r"\1z", way)    # no minus before what is rounded to zero
    return format(found, way).replace("%", " %")


def _line(text, row=None):
    """A line of a table, with what braces hold."""
    return re.sub(r"\{(.+?)\}", lambda match: printed(match[1], row), text)


def table(text):
    """The lines of a table."""
    lines = []
    for line in text.splitlines():
        each = _EACH.fullmatch(line)
        if not each:
            lines.append(_line(line))
            continue
        address, chosen, shape = each.groups()
        rows = figures.figure(address)
        keys = re.split(r",\s*", chosen) if chosen else rows
        lines += [_line(shape, figures.figure(f"{address}.{key}")) for key in keys]
    return "".join(line + "\n" for line in lines)


def rendered(text, name="page"):
    """A page with all figures as the data have them.

    Raises
    ------
    PageError
        If a mark has no partner, stands first on its line, where the line is no Markdown, or cannot be computed.
    """
    def line(match):
        return text.count("\n", 0, match.start()) + 1

    def render(match, of):
        try:
            return f"{match[1]}{of(match[2])}{match[3]}"
        except (ValueError, LookupError, TypeError, ZeroDivisionError) as error:
            raise PageError(f"{name}:{line(match)}: {error}") from None

    marked = [match for pattern in (_FIGURE, _TABLE) for match in pattern.finditer(text)]
    inside = [span for match in marked for span in (match.span(1), match.span(3))]
    for mark in _MARK.finditer(text):
        if not any(start <= mark.start() < end for start, end in inside):
            raise PageError(f"{name}:{line(mark)}: a mark without its partner")
    for match in _FIGURE.finditer(text):
        if _OPENING.fullmatch(text, text.rfind("\n", 0, match.start()) + 1, match.start()):
            raise PageError(f"{name}:{line(match)}: a figure must not be the first of its line")
    changed = _TABLE.sub(lambda match: render(match, lambda lines: table(lines)), text)
    return _FIGURE.sub(lambda match: render(match, printed), changed)


def pages(root=files.ROOT):
    """Pages that may have figures: the README and those of the site."""
    return [Path(root) / "README.md", *sorted((Path(root) / "docs").rglob("*.md"))]


def render(write, root=files.ROOT):
    """Pages that do not stand as rendered; with ``write``, which are then written anew."""
    texts = {path: path.read_text() for path in pages(root)}
    new = {path: rendered(text, str(path.relative_to(root))) for path, text in texts.items()}
    changed = [path for path, text in texts.items() if new[path] != text]
    for path in changed if write else ():
        files.write(path, new[path])
    return changed
