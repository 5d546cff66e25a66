"""One thread: the tests' tensors are small, and results do not depend on it."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
