"""What cannot become a program."""


class LoweringError(ValueError):
    """A layer cannot be lowered; one line with its name, why, and what would work."""


#: Why an operation that is in no table here cannot be lowered.
NO_OPERATION = ("the accelerator has no such operation; a model without it, or exclude it and run that part on the "
                "host, would do")
