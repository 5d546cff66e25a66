"""What cannot become a program."""


class LoweringError(ValueError):
    """A layer cannot be lowered; one line with its name, why, and what would work."""
