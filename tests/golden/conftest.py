"""One thread: the tests' tensors are small, and results do not depend on it."""

import sys
from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture
def transformers():
    """The library, if it is there; torchvision, which it imports, before it, as its own wheel may ask for more."""
    found = pytest.importorskip("transformers")
    if find_spec("torchvision"):
        from golden.vision import torchvision
        torchvision()
    found.logging.set_verbosity_error()
    found.utils.logging.disable_progress_bar()
    return found
