"""Data that reaches every corner that a design can reach, whatever the seed; :mod:`cosim.bench.corners` says which."""

from dataclasses import dataclass

import numpy as np

from hbfp.design import Design
from hbfp.format import HBFPFormat

_SIGN = np.uint32(0x80000000)
#: Blocks that round up by chance are sent so often: a random stream that never does is not to be expected.
_CHANCES = 32


@dataclass(frozen=True)
class Operands:
    """Operands and steps of one product: (M, K), (K, N), and (N,) where a step is taken."""
    x: np.ndarray
    w: np.ndarray
    scale: np.ndarray | None = None
    bias: np.ndarray | None = None
    relu: bool = False


def _bits(*values):
    """FP32 bit patterns of numbers."""
    return np.array(values, np.float32).view(np.uint32)


def directed_blocks(fmt: HBFPFormat, elements: int) -> np.ndarray:
    """Blocks for the converter: bit patterns (blocks, elements).

    Parameters
    ----------
    fmt : HBFPFormat
        The format.
    elements : int
        Elements of a block.
    """
    m, lowest = fmt.magnitude, max(-126, fmt.exponent_range[0])
    patterns = [
        [0], [_SIGN], [0x7F800000], [0xFF800000], [0x7FC00000], [0xFFFFFFFF], [0x7F800001],
        [0x00400000], [1, 0x807FFFFF], [*_bits(1.0), 0x007FFFFF],                # subnormals, alone and below others
        [0x7F7FFFFF], [0xFF7FFFFF, 0], _bits(2.0**127, -(2.0**100)),
        _bits(fmt.limit, -fmt.limit), _bits(fmt.limit / 2, 1.0),
        _bits(1.0, 2.0**-30, -(2.0**-60), 2.0**-126), _bits(2.0**-126), _bits(2.0**-125, -(2.0**-126)),
        # Steps of 1, because of the first element; then halves above even and odd mantissas.
        _bits(2.0**(m - 1), 0.5, -0.5), _bits(2.0**(m - 1), 1.5, -1.5), _bits(2.0**(m - 1), 0.25, 0.75),
        _bits(2.0**(m - 1) + 0.5, 0.5), _bits(2.0**(m - 1) + 1.5, 1.5), _bits(-(2.0**(m - 1)) - 1.5, 2.5),
        # The same where the exponent is clamped at its lowest.
        np.ldexp(np.array([0.5, -1.5], np.float32), lowest - m).view(np.uint32),
        np.ldexp(np.array([1.5, -0.5], np.float32), lowest - m).view(np.uint32),
    ]
    patterns += [[0x3F7FFFFF, 0xBF7FFFFF]] * _CHANCES    # just below a power of two
    return np.array([np.resize(np.asarray(pattern, np.uint32), elements) for pattern in patterns], np.uint32)


def block_modes(rng: np.random.Generator, design: Design, beats: int, wide: bool | None = None) -> np.ndarray:
    """The field ``wide`` of so many beats of blocks: drawn, and where it counts, with a block's last beat, ``wide``."""
    modes = rng.integers(0, 2, beats)
    if wide is not None:
        modes[design.encode_beats - 1::design.encode_beats] = wide
    return modes


def directed_products(design: Design, wide: tuple[bool, bool] = (False, False)) -> list[Operands]:
    """Products for a core: a list of :class:`Operands`, integers for arithmetic ``int``, else float32.

    ``wide``: whether mantissas of X and of W are; then there are half of the columns.
    """
    kind: type[np.number] = np.int64 if design.arithmetic == "int" else np.float32
    most = design.widest.limit if any(wide) else design.format.limit
    terms, cols = design.tile_rows, design.cols // (1 + any(wide))
    w = np.full((terms, cols), most, kind)
    x = np.zeros((4, terms), kind)    # largest sums, lowest sums, zeros, and sums that cancel in each segment
    x[0], x[1] = most, -most
    lay = design.lay()
    pairs = x[3].reshape(lay.segments, lay.height)[:, :lay.height // 2 * 2]
    pairs[:, ::2], pairs[:, 1::2] = most, -most
    products = [Operands(x, w), Operands(x[:1], w), Operands(np.ones((design.depth, 1), kind), w[:1])]
    if design.max_tiles > 1:
        products.append(Operands(np.full((2, terms + 1), most, kind), np.full((terms + 1, cols), most, kind)))
    if design.arithmetic == "int":
        return products
    ones, endless = np.ones(design.cols, kind), np.full(design.cols, np.inf, kind)
    nan_x, nan_w = x.copy(), w.copy()
    nan_x[0, 0] = nan_w[0, -1] = np.nan
    large, small = (np.array([[2.0**power]], np.float32) for power in (127, _smallest(design.format)))
    return products + [
        Operands(x, w, scale=-ones), Operands(x, w, bias=ones), Operands(x, w, relu=True),
        Operands(x, w, scale=ones, bias=-ones, relu=True), Operands(x, w, bias=endless), Operands(x, w, bias=-endless),
        Operands(nan_x, w), Operands(x, nan_w), Operands(large, large.repeat(cols, 1)),
        Operands(small, small.repeat(cols, 1))]


def _smallest(fmt):
    """Exponent of the smallest normal FP32 number that a block of one element does not lose."""
    return max(-126, fmt.exponent_range[0] - fmt.magnitude)
