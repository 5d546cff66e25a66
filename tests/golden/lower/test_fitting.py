"""What is drawn anew, and what is a failure."""

import pytest

from golden.lower.errors import LoweringError
from golden.lower.fitting import Drawn


@pytest.mark.parametrize("error, anew, failure", [
    (LoweringError("it needs 30 words of memory V"), {"V, X or W": 3}, ""),
    (ValueError("Blocks along K must be at most 2^growth = 4, not 5"), {"growth": 3}, ""),
    (LoweringError("is not known"), {}, "is not known"), (ValueError("is not\nknown"), {}, "ValueError: is not known"),
    (KeyError("2^growth"), {}, "KeyError: '2^growth'")])
def test_limits_are_drawn_anew(error, anew, failure):
    """As long as a draw may be; whatever else is raised is a failure at once."""
    drawn, numbers = Drawn(), []

    def make(number):
        numbers.append(number)
        raise error
    drawn.until_it_fits(make, LoweringError, 3)
    assert (drawn.anew, drawn.failure) == (anew, failure) and len(numbers) == (3 if anew else 1)
