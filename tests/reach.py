"""What a file of ours reaches: what it imports or names as a module, and what that does."""

import ast
import itertools
import pathlib
import re
from functools import cache

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ("hbfp", "golden", "rtl", "gen", "runtime", "cosim", "synth", "flow")


def files_of(name):
    """The file of a module with dots; of a package, what is run when it is imported and as a program.

    Packages are found below ``hbfp``, too, where an installation has them. A name that ends in a dot is the start of
    one that is completed when the code runs: any module of that folder.
    """
    package, _, rest = name.partition(".")
    name = rest if package == "hbfp" and rest.split(".")[0] in PACKAGES else name
    path = ROOT / name.replace(".", "/")
    if name.endswith("."):
        return set(path.glob("*.py"))
    return {file for file in (path.with_suffix(".py"), path / "__init__.py", path / "__main__.py") if file.is_file()}


def mentions(path):
    """Modules, with dots, that a file imports or names in a string; what is no module is among them."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            yield from (module, *(f"{module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def used(path):
    """Files of ours that a file imports or names."""
    names = {name for name in mentions(path) if re.fullmatch(rf"({'|'.join(PACKAGES)}|tests)(\.\w+)*\.?", name)}
    return set().union(*map(files_of, names))


def reached(path):
    """File of ours that a file imports or names, or one that they do, and so on -> steps from the one to the other."""
    steps, new = {}, {path}
    for step in itertools.count():
        steps.update(dict.fromkeys(new, step))
        new = set().union(*(used(file) for file in new)) - set(steps)
        if not new:
            return {_name(file, ROOT): count for file, count in steps.items()}


@cache
def _name(file, root):
    return str(file.relative_to(root))


def naming(name):
    """Python files of ours in whose text the name of another file stands, such as a kernel, or one in which it does."""
    texts = {path: path.read_text() for folder in (*PACKAGES, "tests") for path in (ROOT / folder).rglob("*")
             if path.suffix in (".py", ".cpp", ".c", ".h")}
    found, new = set(), {name}
    while new:
        more = {path for path, text in texts.items() if any(word in text for word in new)} - found
        found |= more
        new = {path.name for path in more if path.suffix != ".py"}
    return {str(path.relative_to(ROOT)) for path in found if path.suffix == ".py"}
