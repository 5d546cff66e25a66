"""What cannot become a program."""


class LoweringError(ValueError):
    """A layer cannot be lowered; one line with its name, why, and what would work."""


def layer(name: str) -> str:
    """What messages call a layer of this qualified name, which is empty for the model itself."""
    return f"Layer {name!r}" if name else "The model"


#: Why an operation that is in no table here cannot be lowered.
NO_OPERATION = ("the accelerator has no such operation; a model without it, or exclude it and run that part on the "
                "host, would do")


def broken(error: Exception) -> str:
    """Why nothing came of a node, where not the model but the lowering is at fault."""
    text = str(error).strip().partition("\n")[0]
    return (f"the lowering itself fails ({type(error).__name__}{': ' if text else ''}{text}), which is no fault of the "
            "model; --traceback shows where")
