"""One thread: the tests' tensors are small, and results do not depend on it."""

import sys

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
