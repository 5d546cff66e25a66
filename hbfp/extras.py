"""Libraries that only some commands need, and the extra of the package that brings each."""

from importlib.util import find_spec

#: Part -> the extra that its commands need.
PARTS = {"golden": "study", "gen": "hardware", "cosim": "hardware", "synth": "hardware", "flow": "hardware"}
#: Library -> the extra that brings it, for those that not every command of a part needs.
EXTRAS = {"torch": "train", "torchvision": "networks", "triton": "gpu", "optuna": "tune", "distributed": "dask",
          "yaml": "soc", "litex": "soc", "tensorboard": "experiments", "transformers": "experiments",
          "datasets": "experiments"}
#: Every library that may be missing.
LIBRARIES = {"rich", "matplotlib", "joblib", "sklearn", "amaranth", "cocotb", "cocotb_tools", *EXTRAS}


def missing(error: BaseException, command: str) -> str | None:
    """What is missing and what to install, in one line, or None if ``error`` says something else.

    Parameters
    ----------
    error : BaseException
        What a command ended with.
    command : str
        Its name, with the part that it belongs to among its words.
    """
    library = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or library not in LIBRARIES:
        return None
    extra = EXTRAS.get(library) or next(PARTS[word] for word in command.split() if word in PARTS)
    return _line(library, extra)


def lacking(library: str) -> str | None:
    """What is missing and what to install, in one line, or None if ``library``, one of :data:`EXTRAS`, is there."""
    return None if find_spec(library) else _line(library, EXTRAS[library])


def _line(library, extra):
    return f"{library} is missing; install it with: pip install 'hbfp[{extra}]'"


def need(*libraries: str) -> None:
    """Raise ModuleNotFoundError for the first library that is missing, before any work begins."""
    for library in libraries:
        if find_spec(library) is None:
            raise ModuleNotFoundError(f"No module named {library!r}", name=library)
