"""What cannot become a program."""


class LoweringError(ValueError):
    """A layer cannot be lowered; one line with its name, why, and what would work."""


def layer(name: str) -> str:
    """What messages call a layer of this qualified name, which is empty for the model itself."""
    return f"Layer {name!r}" if name else "The model"


#: Why an operation that is in no table here cannot be lowered.
NO_OPERATION = "the accelerator has no such operation; a model without it would do"


def instead(name: str, why: str) -> str:
    """Why a layer cannot be lowered, and how a host would run it, if that is what it takes."""
    if why != NO_OPERATION and not why.startswith("it gives complex"):
        return why
    return f"{why}, and so would --exclude {name}, which runs that layer on the host" if name else (
        f"{why}, and so would a layer of its own for it, which --exclude runs on the host")


def broken(error: Exception) -> str:
    """Why nothing came of a node, where not the model but the lowering is at fault."""
    text = str(error).strip().partition("\n")[0]
    return (f"the lowering itself fails ({type(error).__name__}{': ' if text else ''}{text}), which is no fault of the "
            "model; --traceback shows where")
