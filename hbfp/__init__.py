"""What all parts share and none of them owns; the parts are packages below."""

from importlib import import_module

from .checkout import find_parts, version

#: What users expect at the top -> the module that has it; __init__.pyi has types.
ABOVE = {"HBFPConfig": "golden.nn", "quantize_": "golden.nn", "Device": "runtime.device"}

find_parts()


def __getattr__(name):
    """``__version__`` and what :data:`ABOVE` names, loaded when somebody asks for it: PyTorch takes a moment."""
    if name == "__version__":
        return version()
    if name in ABOVE:
        return getattr(import_module(f"{__name__}.{ABOVE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
