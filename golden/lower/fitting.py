"""What is drawn at random for an accelerator: anew where it meets a limit, a failure where it is refused otherwise."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

#: Limits of an accelerator -> what lines of refusals say that name them; anything else that is refused is a failure.
LIMITS = {
    "V, X or W": r"words of memory [VXW]\b|rows of memory W\b|--[xwv]-words",
    "row words": r"--row-words", "vector rows": r"--vector-rows", "functions": r"--functions",
    "passes": r"passes of the core", "depth": r"--depth", "growth": r"2\^growth", "program words": r"--p-words",
    "stochastic": r"rounded stochastically|Noise by position is that of linear layers",
    "wide": r"one width for both would do"}
#: How often something is drawn anew, before a number has none.
DRAWS = 40


@dataclass
class Drawn:
    """What a number stands for.

    Attributes
    ----------
    text : str
        What was drawn, one line.
    anew : dict
        Limit -> how often it was met before.
    failure : str
        What was refused and should not be, one line; empty if nothing was.
    """
    text: str = ""
    anew: dict[str, int] = field(default_factory=dict)
    failure: str = ""

    @property
    def fits(self) -> bool:
        """Whether something was drawn that meets no limit and is not refused."""
        raise NotImplementedError

    def until_it_fits(self, make: Callable[[int], None], refusal: type[ValueError], draws: int) -> None:
        """Call ``make`` with 0, 1 and so on, ``draws`` times at most, until it meets no limit.

        Lines of a ValueError may name one; whatever else is raised is a failure, for what is drawn can be lowered.
        """
        for number in range(draws):
            try:
                make(number)
            except Exception as error:
                line = " ".join(str(error).split())
                limit = next((name for name, says in LIMITS.items() if re.search(says, line)), None)
                if limit is not None and isinstance(error, ValueError):
                    self.anew[limit] = self.anew.get(limit, 0) + 1
                    continue
                self.failure = str(error) if isinstance(error, refusal) else f"{type(error).__name__}: {line}"
            break
