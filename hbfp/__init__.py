"""What all parts share and none of them owns; the parts are packages below."""

from .checkout import find_parts, version

find_parts()


def __getattr__(name):
    """``__version__``, read when somebody asks for it."""
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
