"""Kernels run on a CUDA device where there is one, else in Triton's interpreter, which tests/conftest.py chooses."""

import pytest


@pytest.fixture(scope="session")
def device():
    """Where tensors lie."""
    pytest.importorskip("triton", reason="needs Triton: pip install 'hbfp[gpu]'")
    torch = pytest.importorskip("torch")
    from golden.gpu.runtime import problem
    found = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if (line := problem(found)) is not None:
        pytest.skip(line)
    return found
