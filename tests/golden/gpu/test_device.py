"""On a GPU, with large shapes: a thousand million elements of conversions and products have golden's bits.

The kernels of different formats are compiled at the same time, which takes longer than to run them.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden import gpu  # noqa: E402
from golden.bfp import encode  # noqa: E402
from golden.matmul import matmul  # noqa: E402
from hbfp.format import HBFPFormat  # noqa: E402

pytestmark = pytest.mark.gpu

BLOCKS = [(1, 16), (16, 16), (1, 32), (1, 1024), (32, 32), (1, 64), (24, 24), (1, 128), (1, 48), (64, 64), (1, 256),
          (1, 512), (1, 20)]
#: Each width with each rounding, twice, with other blocks.
CONVERSIONS = [(mantissa, rounding, BLOCKS[(7 * mantissa + 5 * j + 3 * again) % len(BLOCKS)], again)
               for mantissa in range(2, 17) for j, rounding in enumerate(("rne", "truncate", "stochastic"))
               for again in range(2)]
SUMS = ("fp32", "aligned", "fp24", "bf16")
PRODUCTS = [(mantissas, BLOCKS[(5 * i + 2 * j) % len(BLOCKS)], accumulate, scale)
            for i, mantissas in enumerate([(8, 8), (4, 4), (2, 9), (16, 6), (12, 12)])
            for j, accumulate in enumerate(SUMS) for scale in (None, -62, 48)[:3 - j % 3]]


@pytest.fixture
def card(device):
    """The GPU; without one its tests are skipped."""
    if device.type != "cuda":
        pytest.skip("needs a GPU")
    return device


def numbers(rows, columns, seed=0):
    """Rows of many magnitudes, with zeros, ties, subnormals, saturated blocks, infinities and NaN among them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns), np.float32)
    np.ldexp(x, rng.integers(-40, 40, (rows, 1)).astype(np.int32), out=x)
    flat = x.reshape(-1)
    for at, bits in ((37, 0), (41, 0x80000001), (53, 0x3FFFFFFF), (61, 0x3F810000), (4099, 0x7F7FFFFF),
                     (50021, 0x7F800000), (60013, 0xFFC00001)):
        flat[at::at] = np.array(bits, np.uint32).view(np.float32)
    x[rows // 2] = 1e-40
    return x


def convert(case, card, x, noise):
    """Elements of a case that were compared."""
    mantissa, rounding, block, again = case
    fmt = HBFPFormat(mantissa=mantissa, block=block, rounding=rounding, subnormals=("flush", "gradual")[mantissa % 2],
                     exponent=(10, 6)[again])
    axis = -1 if fmt.square else -1 - (mantissa + again) % 2
    dice = noise if rounding == "stochastic" else None
    got = gpu.encode(torch.from_numpy(x).to(card), fmt, axis,
                     None if dice is None else torch.from_numpy(dice).to(card))
    want = encode(x, fmt, dice, axis=axis)
    for name in ("mantissa", "exponent", "invalid"):
        assert (getattr(got, name).cpu().numpy() == getattr(want, name)).all(), (case, name)
    return x.size


def multiply(case, card, x, w):
    """Elements of a case that were compared."""
    (first, second), block, accumulate, scale = case
    left, right = (HBFPFormat(mantissa=m, block=block, subnormals=("flush", "gradual")[second % 2])
                   for m in (first, second))
    if scale is not None:                              # sums that leave the range of FP32
        x, w = (np.ldexp(t, scale + np.arange(len(t), dtype=np.int32)[:, None] % 7).astype(np.float32) for t in (x, w))
    options = {"growth": 10} if accumulate == "aligned" else {}
    got = gpu.matmul(torch.from_numpy(x).to(card), torch.from_numpy(w).to(card), left, right, accumulate, **options)
    want = matmul(x, w, left, accumulate, w_fmt=right, **options)
    assert (got.cpu().numpy().view(np.uint32) == want.view(np.uint32)).all(), case
    return want.size


def run(check, cases, card, *arrays):
    """Elements that were compared, of all cases."""
    threads = min(16, os.cpu_count() or 1) if card.type == "cuda" else 1
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda case: check(case, card, *arrays), cases))


def test_conversions(card):
    x = numbers(2051, 5003)
    noise = np.random.default_rng(1).integers(0, 256, x.shape, np.uint8)
    assert run(convert, CONVERSIONS, card, x, noise) > 9.2e8


def test_products(card):
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((1531, 333), np.float32), rng.standard_normal((333, 1537), np.float32)
    x[3, 5], x[100, :250], w[77, 9] = np.nan, 0, np.inf
    assert run(multiply, PRODUCTS, card, x, w) > 8e7
