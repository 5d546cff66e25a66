"""Changes of Python modules, one at a time, in a process that has loaded them: functions get the code of another text.
"""

import ast
import functools
import gc
import random
import re
import types
from pathlib import Path

from hbfp import files

from . import text
from .judge import forget
from .netlist import Mutant
from .reasons import reason

_CACHED = type(functools.lru_cache(int))


def _codes(code):
    """Code objects of functions in one of a module, in the order of its text."""
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _codes(each)


class Modules:
    """What the modules of a folder could be, as a :class:`~tests.mutate.netlist.Netlist` is for hardware.

    Parameters
    ----------
    folder : str
        Of the checkout, with those in it.
    without : str
        Names of modules, and of folders in it, that are left out.

    Attributes
    ----------
    modules : list of str
        Their files, in the checkout.
    """

    def __init__(self, folder: str, *without: str) -> None:
        without = {"__init__", *without}
        self.modules = sorted(str(path.relative_to(files.ROOT)) for path in (files.ROOT / folder).rglob("*.py")
                              if not {path.stem, path.parent.name} & without)

    def drawn(self, kinds: tuple[str, ...], count: int, seed: int) -> list[Mutant]:
        """Changes drawn by a seed, evenly over all places; see :mod:`tests.mutate.text`."""
        places = [(module, place, mutant) for module in self.modules for place, mutant in enumerate(
            text.mutants((files.ROOT / module).read_text()))]
        chosen = random.Random(seed).sample(places, min(count, len(places)))
        return [Mutant(f"{module}:{mutant.line} ({place}): {mutant.before} -> {mutant.after}", module,
                       f"{module}:{mutant.line}") for module, place, mutant in chosen]

    def digest(self, module: str) -> str:
        """A name for a module's text, and for what counts as a change."""
        return files.digest([files.ROOT / module, Path(text.__file__)])

    def equal(self, mutant: Mutant, kinds: tuple[str, ...]) -> bool:
        """Whether it is the same code, as where a constant is not used, or a reason is given (:mod:`.reasons`)."""
        before, after = self._texts(mutant)
        return self._code(mutant, before) == self._code(mutant, after) or bool(reason(mutant.module, before, after))

    @staticmethod
    def place(mutant: Mutant) -> tuple[str, range]:
        """The file of a change, and the lines of which a test that sees it reaches one: those of its statement that
        stand before it, and its own.
        """
        path = files.ROOT / mutant.module
        changed = text.mutants(path.read_text())[Modules._number(mutant)]
        begin = max(each.lineno for each in ast.walk(ast.parse(path.read_text()))
                    if isinstance(each, ast.stmt) and each.lineno <= changed.line <= each.end_lineno)
        return str(path), range(begin, changed.line + changed.before.count("\n") + 1)

    @staticmethod
    def act(mutant: Mutant) -> None:
        """Let a change act in this process, from now on; what functions have kept is forgotten."""
        before, after = (Modules._code(mutant, each) for each in Modules._texts(mutant))
        changed = dict(zip(_codes(before), _codes(after), strict=False))
        frozen = gc.get_freeze_count()    # what tests/conftest.py freezes is not listed
        gc.unfreeze()
        for each in gc.get_objects():
            kind = type(each)    # isinstance() asks objects for their class, of which some warn
            if kind is types.FunctionType and each.__code__ in changed:
                each.__code__ = changed[each.__code__]
            elif issubclass(kind, _CACHED) and (each.__module__ or "").startswith(("golden", "hbfp")):
                each.cache_clear()
        forget()
        if frozen:
            gc.freeze()

    @staticmethod
    def _number(mutant):
        """Which of a module's changes it is."""
        return int(re.search(r" \((\d+)\): ", mutant.words)[1])

    @staticmethod
    def _texts(mutant):
        """A module without a change, and with it."""
        whole = (files.ROOT / mutant.module).read_text()
        return whole, text.mutants(whole)[Modules._number(mutant)].text

    @staticmethod
    def _code(mutant, whole):
        """The code of a module's text."""
        return compile(whole, str(files.ROOT / mutant.module), "exec", dont_inherit=True)
