"""How far HBFP is from FP32: signal to quantisation noise, and pruning with quantisation."""

from collections.abc import Sequence

import numpy as np

from hbfp.figures import figure
from hbfp.format import HBFPFormat

from ..bfp import decode, encode
from ..fast import kernels
from ..sparsity import prune

#: Block lengths, and published QSNR in dB on N(0, 1) at each of them: ``qsnr.published`` of the figures.
QSNR_BLOCKS = (16, 64, 225, 576)
QSNR_REFERENCE = {width: tuple(figure(f"qsnr.published.hbfp{width}").values()) for width in (4, 6, 8)}
DISTRIBUTIONS = ("normal", "uniform", "laplace")


def encoded(x: np.ndarray, fmt: HBFPFormat, *, axis: int = -1) -> np.ndarray:
    """``x`` after conversion, as FP32; matrices take the compiled kernels where there are any."""
    if x.ndim == 2 and fmt.rounding != "stochastic" and kernels.library():
        return kernels.encoded(np.ascontiguousarray(x), fmt, axis=axis)[0]
    return decode(encode(x, fmt, axis=axis))


def qsnr(x: np.ndarray, y: np.ndarray) -> float:
    """Signal to quantisation noise of ``y`` for ``x`` in dB: 10 log10(sum x^2 / sum (x - y)^2)."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    return 10 * np.log10((x ** 2).sum() / ((x - y) ** 2).sum())


def samples(distribution: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """float32 numbers of unit variance from one of :data:`DISTRIBUTIONS`; ValueError if it is none of them."""
    rng = np.random.default_rng(seed)
    match distribution:
        case "normal":
            x = rng.standard_normal(shape)
        case "uniform":
            x = rng.uniform(-3 ** 0.5, 3 ** 0.5, shape)
        case "laplace":
            x = rng.laplace(0, 0.5 ** 0.5, shape)
        case _:
            raise ValueError(f"Distribution must be one of {', '.join(DISTRIBUTIONS)}, not {distribution!r}")
    return x.astype(np.float32)


def qsnr_table(mantissas: Sequence[int] = (4, 6, 8), blocks: Sequence[int] = QSNR_BLOCKS, distribution: str = "normal",
               elements: int = 4_000_000, seed: int = 0) -> dict[int, list[float]]:
    """QSNR in dB for each width and block length, ``(1, B)`` blocks.

    Returns
    -------
    dict
        ``{width: [dB, ...]}`` in the order of ``blocks``.
    """
    table = {}
    for width in mantissas:
        row = []
        for block in blocks:
            x = samples(distribution, (elements // block, block), seed)
            row.append(float(qsnr(x, encoded(x, HBFPFormat(mantissa=width, block=(1, block))))))
        table[width] = row
    return table


def both_orders(w: np.ndarray, n: int, m: int, fmt: HBFPFormat, axis: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Squared errors of pruning and quantising ``w`` in both orders.

    Returns
    -------
    tuple of ndarray
        Squared error of each element of sparsify-then-quantise, and of quantise-then-sparsify.
    """
    def off(y):
        return (y.astype(np.float64) - w) ** 2
    return (off(encoded(prune(w, n, m, axis), fmt, axis=axis)), off(prune(encoded(w, fmt, axis=axis), n, m, axis)))
