"""The number that an element draws by its place in its tensor, for stochastic rounding and for dropout.

The rule is in docs/numerics.md, section 6.

Nothing here runs on from one tensor to the next: key and place say everything, so that tiles, bands, parts of a batch
and the order of conversions change no number.
"""

import math

import numpy as np

from hbfp.checks import check_range
from hbfp.format import HBFPFormat

from .noise import mix
from .number.arrays import check_shape
from .spec.noise import GROUP, LANE_STEP, NUMBER, ROUNDS, SHARED, STRIDE, TAPS, TURNS

#: Roles of a product's tensors, in the order of their keys.
ROLES = ("x", "w", "g")
_MASK = 0xFFFFFFFF


def step_key(seed: int, step: int) -> int:
    """The part of all keys that a step of training decides, which a host gives the device before the step.

    Parameters
    ----------
    seed : int
        Of the training, 0 to 2^32 - 1.
    step : int
        Number of the step, from 0 on.
    """
    check_range("Step", step, 0, _MASK)
    return mix(mix(seed) + step & _MASK)


def tensor_key(seed: int, product: int, role: str) -> int:
    """The part of a key that says which tensor it is; the key is this XOR :func:`step_key`.

    Parameters
    ----------
    seed : int
        Of the layer, 0 to 2^32 - 1.
    product : int
        How many products the layer has begun before in this step.
    role : str
        One of :data:`ROLES`.
    """
    return _key(seed, product, ROLES.index(role))


def dropout_key(seed: int, number: int) -> int:
    """The part of a key that says which dropout of a model it is, as :func:`tensor_key` of a product's tensors.

    Parameters
    ----------
    seed : int
        Of the model, 0 to 2^32 - 1.
    number : int
        How many dropouts the model has begun before in this step.
    """
    return _key(seed, number, len(ROLES))


def _key(seed, number, role):
    return mix((mix(seed) + (number << 2 | role) & _MASK) ^ LANE_STEP)


def pitch(columns: int) -> int:
    """Places from one row of a tensor to the next: its columns, filled up to whole groups."""
    return -(-columns // GROUP) * GROUP


def numbers(key: int, words: np.ndarray, lanes: int = GROUP) -> np.ndarray:
    """The numbers of all places of some words.

    Parameters
    ----------
    key : int
        0 to 2^32 - 1.
    words : ndarray of int
        Any shape. Word w has the places w lanes to w lanes + lanes - 1, modulo 2^32.
    lanes : int
        A power of two up to :data:`~golden.spec.noise.GROUP`.

    Returns
    -------
    ndarray of uint8
        The shape of ``words``, with the lanes as one dimension more.
    """
    return _numbers(key, words, lanes)[0]


def _numbers(key, words, lanes):
    """The numbers of all places of words, and that which the places of each word's group share, with one side of 1."""
    parts = GROUP // lanes
    words = np.asarray(words, np.int64) & (1 << 32) // lanes - 1
    state, part = _state(key, (words // parts).astype(np.uint32)), words % parts
    found, shared = np.zeros((*words.shape, GROUP), np.uint8), np.zeros((*words.shape, 1), np.uint8)
    for taps in TAPS:
        total = np.bitwise_xor.reduce([state >> np.uint64(tap) | state << np.uint64(64 - tap) for tap in taps])
        bits = np.unpackbits(total.astype("<u8")[..., None].view(np.uint8), axis=-1, bitorder="little")
        found, shared = found << 1 | bits[..., ::STRIDE], shared << 1 | bits[..., SHARED:SHARED + 1]
    if parts == 1:
        return found, shared
    return np.take_along_axis(found.reshape(*words.shape, parts, lanes), part[..., None, None], -2)[..., 0, :], shared


def _state(key, group):
    """The state of 64 bits of each group of places, uint32."""
    x, y = np.full_like(group, key), group
    a, b, c = ((lambda word, by=by: word << np.uint32(by) | word >> np.uint32(32 - by)) for by in TURNS)
    for _ in range(ROUNDS):
        x, y = y ^ (a(x) & b(x)) ^ c(x) ^ np.uint32(LANE_STEP), x
    return x.astype(np.uint64) << np.uint64(32) | y


def threshold(p: float) -> int:
    """What the numbers of dropout are compared with, of the share of elements that are dropped: of 16 bits, or 2^16."""
    return round(p * (1 << 2 * NUMBER))


def dropped(key: int, words: np.ndarray, below: int, lanes: int = GROUP) -> np.ndarray:
    """Which elements of some words dropout drops.

    Parameters
    ----------
    key, words, lanes
        As of :func:`numbers`.
    below : int
        As :func:`threshold` gives it.

    Returns
    -------
    ndarray of bool
        The shape of ``words``, with the lanes as one dimension more.
    """
    own, shared = _numbers(key, words, lanes)
    return (own.astype(np.int32) << NUMBER | shared) < below


def dropout(key: int, shape: tuple[int, ...], p: float) -> np.ndarray:
    """What dropout multiplies the elements of a tensor by.

    Parameters
    ----------
    key : int
        0 to 2^32 - 1.
    shape : tuple of int
        (..., rows, columns). Rows are counted through all dimensions before the last.
    p : float
        The share of elements that are dropped, 0 to 1.

    Returns
    -------
    ndarray of float32
        +0, or 1 / (1 - p), rounded once, of ``shape``.
    """
    check_shape("Shape", shape)
    gone = _cut(dropped(key, _words(shape or (1,)), threshold(p)), shape)
    return np.where(gone, np.float32(0), factor(p))


def _words(shape, first=0):
    """The words of a tensor's rows from number ``first`` on: (rows, words)."""
    rows, groups = math.prod(shape[:-1]), pitch(shape[-1]) // GROUP
    return np.arange(first * groups, (first + rows) * groups).reshape(rows, groups)


def _cut(found, shape):
    """What words of whole groups have, (rows, words, lanes), of the elements of a tensor."""
    columns = shape[-1] if shape else 1
    return found.reshape(len(found), math.prod(found.shape[1:]))[:, :columns].reshape(shape)


def factor(p: float) -> np.float32:
    """What dropout multiplies the elements by that it keeps; 0 where it keeps none."""
    return np.float32(1 / (1 - p) if p < 1 else 0)


def drawn(key: int, shape: tuple[int, ...], fmt: HBFPFormat, *, first: int = 0) -> np.ndarray:
    """The noise of a tensor, for :func:`golden.bfp.encode`.

    Parameters
    ----------
    key : int
        0 to 2^32 - 1.
    shape : tuple of int
        (..., rows, columns). Rows are counted through all dimensions before the last.
    fmt : HBFPFormat
        Its ``noise_bits`` are the top bits of a number.
    first : int
        Number of the first row, where these rows are a part of more.

    Returns
    -------
    ndarray of int32
        ``0 .. 2^noise_bits - 1``, of ``shape``.

    Raises
    ------
    ValueError
        If the format takes more bits than a number has.
    """
    check_shape("Shape", shape)
    check_bits(fmt)
    if not shape:
        raise ValueError("Shape must have at least one side, not none")
    return _cut(numbers(key, _words(shape, first)), shape).astype(np.int32) >> NUMBER - fmt.noise_bits


def check_bits(fmt: HBFPFormat) -> None:
    """ValueError if a format takes more random bits than a number by position has."""
    if fmt.noise_bits > NUMBER:
        raise ValueError(f"Noise width must be at most {NUMBER} bits for numbers by position, not {fmt.noise_bits}")
