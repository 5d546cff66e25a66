"""A variable has another value in a block, and has its own again behind, after an error, too."""

from contextvars import ContextVar

import pytest

from golden.within import within


def test_the_value_ends_with_the_block():
    variable = ContextVar("variable", default=1)
    with within(variable, 2):
        with pytest.raises(KeyError), within(variable, 3):
            assert variable.get() == 3
            raise KeyError
        assert variable.get() == 2
    assert variable.get() == 1
