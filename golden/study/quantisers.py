"""Formats that HBFP is compared with, as values: MXFP8 and MXFP6, and INT8.

MX is that of the OCP Microscaling Formats (MX) Specification, version 1.0: 32 elements share a power of two,
``2 ** (floor(log2(largest magnitude)) - emax)`` with the exponent within -127 to 127. Each element over it is rounded
to its float, nearest, ties to even, with subnormals; what is larger than the largest number becomes that. Infinity and
NaN, for which the specification leaves the choice, make the block NaN. INT8 is symmetric with one scale a tensor, the
largest magnitude / 127 in FP32; elements are rounded to the nearest, ties to even.
"""

from dataclasses import dataclass

import numpy as np

from ..number.blocks import as_float32

#: Elements that share a scale.
MX_BLOCK = 32


@dataclass(frozen=True)
class Element:
    """A float of few bits: bits of exponent and mantissa, and its largest number."""
    exponent: int
    mantissa: int
    largest: float

    @property
    def emax(self) -> int:
        """Exponent of the largest number."""
        return int(np.frexp(self.largest)[1]) - 1

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal number."""
        return 2 - 2 ** (self.exponent - 1)


#: The elements of MXFP8 and MXFP6.
ELEMENTS = {"mxfp8_e4m3": Element(4, 3, 448.0), "mxfp8_e5m2": Element(5, 2, 57344.0),
            "mxfp6_e2m3": Element(2, 3, 7.5), "mxfp6_e3m2": Element(3, 2, 28.0)}
#: All names of :func:`quantised`.
NAMES = (*ELEMENTS, "int8")


def quantised(x: np.ndarray, name: str, *, axis: int = -1) -> np.ndarray:
    """``x`` as a format holds it.

    Parameters
    ----------
    x : ndarray of float32
        Any shape of one dimension or more.
    name : str
        One of :data:`NAMES`.
    axis : int
        Along which the blocks of MX run, from the start; the last may be shorter.

    Returns
    -------
    ndarray of float32

    Raises
    ------
    TypeError
        If ``x`` is not float32.
    ValueError
        If the name is unknown.
    """
    x = as_float32(x, "x")
    if name == "int8":
        return _int8(x)
    if name not in ELEMENTS:
        raise ValueError(f"Format must be one of {', '.join(NAMES)}, not {name!r}")
    rows = np.moveaxis(x, axis, -1).astype(np.float64)                    # everything below is exact in float64
    length = rows.shape[-1]
    rows = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, -length % MX_BLOCK)])
    y = _block(rows.reshape(*rows.shape[:-1], rows.shape[-1] // MX_BLOCK, MX_BLOCK), ELEMENTS[name])
    return np.moveaxis(y.reshape(rows.shape)[..., :length], -1, axis).astype(np.float32)


def _block(x, element):
    """MX of the last dimension."""
    top = np.abs(x).max(-1, keepdims=True)
    finite = np.isfinite(top)
    x = np.where(finite, x, 0)
    shared = np.clip(_exponent(np.where(finite, top, 0)) - element.emax, -127, 127)
    scaled = np.ldexp(x, -shared)
    step = np.maximum(_exponent(scaled), element.emin) - element.mantissa
    y = np.clip(np.ldexp(np.rint(np.ldexp(scaled, -step)), step), -element.largest, element.largest)
    return np.where(finite, np.ldexp(y, shared), np.nan)


def _exponent(x):
    """floor(log2(abs(x))) as an int; of 0 one below all others."""
    return np.where(x == 0, -1000, np.frexp(x)[1] - 1)


def _int8(x):
    scale = np.abs(x).max(initial=np.float32(0)) / np.float32(127)
    if not scale:
        return np.zeros_like(x)
    return np.rint(x / scale) * scale
