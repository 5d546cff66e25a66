"""What all parts share and none of them owns; the parts are packages below."""

from importlib import import_module

from .checkout import find_parts, version

#: What :mod:`hbfp.golden.nn` has under a name that users of other libraries expect at the top; __init__.pyi has types.
ABOVE = ("HBFPConfig", "quantize_")

find_parts()


def __getattr__(name):
    """``__version__`` and what :data:`ABOVE` names, loaded when somebody asks for it: with PyTorch, not before."""
    if name == "__version__":
        return version()
    if name in ABOVE:
        return getattr(import_module(f"{__name__}.golden.nn"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
