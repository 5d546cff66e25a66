"""Sums over rows have the host's order.

Covers: golden/gpu/sums_kernel.py, golden/gpu/copies.py.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="needs Triton: pip install 'hbfp[gpu]'")

from golden.fast import kernels  # noqa: E402
from golden.gpu.sums import row_sums  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in :RuntimeWarning")    # NumPy's, of the interpreter


@pytest.mark.parametrize("shape", [(9, 40), (1, 1), (0, 3), (3, 0), (70, 5), (600, 68)])
def test_row_sums(device, shape):
    rng = np.random.default_rng(1)
    x = np.ldexp(rng.standard_normal(shape), rng.integers(-20, 20, shape)).astype(np.float32)
    want = kernels.row_sums(x[None])[0]
    for own in (torch.from_numpy(x).to(device), torch.from_numpy(x.T.copy()).to(device).T):
        assert (row_sums(own).cpu().numpy().view(np.uint32) == want.view(np.uint32)).all()
