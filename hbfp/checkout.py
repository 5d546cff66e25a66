"""The parts of the project under their names below hbfp, in a checkout, where they lie beside this folder.

Installed, ``golden`` and the other parts are folders of this package, and nothing here is needed. In a checkout
``hbfp.golden`` is found in ``golden/``; and ``golden`` is a short name of it: ``import golden.bfp`` gives the module
``hbfp.golden.bfp`` itself, never a second one.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path

#: The parts of the project.
PARTS = ("golden", "rtl", "gen", "runtime", "cosim", "synth", "flow")
_INSIDE = Path(__file__).resolve().parent
_BESIDE = _INSIDE.parent


def folder(package: str) -> Path:
    """Folder of a package, such as ``hbfp.golden.spec``."""
    found = find_spec(package)
    assert found is not None and found.submodule_search_locations, package
    return Path(found.submodule_search_locations[0])


class _Alias:
    """Loads a module under its short name: it is the one that has the long name."""

    @staticmethod
    def create_module(spec):
        """As for any other module; it is replaced at once."""
        return None

    @staticmethod
    def exec_module(module):
        """Put the real module in its place."""
        sys.modules[module.__name__] = import_module(f"hbfp.{module.__name__}")
        _shorten(module.__name__)

    @staticmethod
    def get_code(name):
        """What ``python -m`` runs."""
        return find_spec(f"hbfp.{name}").loader.get_code(f"hbfp.{name}")


def _shorten(name):
    """Give what a package has loaded its short name at once.

    A module that is found later becomes an attribute of its package, and would take the place of a function of that
    name there, such as :func:`golden.nn.quantise`.
    """
    for long in [each for each in sys.modules if each.startswith(f"hbfp.{name}.")]:
        sys.modules.setdefault(long.removeprefix("hbfp."), sys.modules[long])


class _Finder:
    """Finds parts beside this folder, and their modules by short names."""
    short: set[str] = set()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """The specification of a module that is found here, else None."""
        first, _, rest = name.partition(".")
        if first == "hbfp" and rest in PARTS:
            place = _BESIDE / rest
            return spec_from_file_location(name, place / "__init__.py", submodule_search_locations=[str(place)])
        if first in cls.short and (real := find_spec(f"hbfp.{name}")):
            return ModuleSpec(name, _Alias, origin=real.origin)
        return None


def alias(part: str) -> None:
    """Make the name of a part stand for the package below hbfp; its modules follow."""
    _Finder.short.add(part)
    sys.modules[part] = import_module(f"hbfp.{part}")
    _shorten(part)


def version() -> str:
    """Version of the package, as pyproject.toml has it: from there in a checkout, from its metadata where installed."""
    project = _BESIDE / "pyproject.toml"
    if (_BESIDE / PARTS[0]).is_dir() and project.exists():
        import tomllib  # few ask

        return tomllib.loads(project.read_text())["project"]["version"]
    from importlib import metadata

    return metadata.version("hbfp")


def find_parts() -> None:
    """Let Python find the parts beside this folder, unless they are inside it."""
    if _Finder not in sys.meta_path and not (_INSIDE / PARTS[0]).is_dir():
        sys.meta_path.insert(0, _Finder)
