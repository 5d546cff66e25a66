"""Cases of a sweep of which some run by default and the others in the long regression."""

import pytest


def sweep(step, cases):
    """Of ``cases``, every ``step``-th from the first on by default; the others are marked as slow.

    A case of several parameters is a tuple.
    """
    return [case if number % step == 0 else pytest.param(*(case if isinstance(case, tuple) else (case,)),
                                                         marks=pytest.mark.slow)
            for number, case in enumerate(cases)]
