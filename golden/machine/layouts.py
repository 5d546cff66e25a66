"""Tensors as bytes of DRAM, and back: words, runs and records."""

import numpy as np

from hbfp.program import Tensor
from hbfp.system import Accelerator

from .. import bfp
from ..core.digits import split
from . import elements

#: Bits of an element in DRAM -> its type there, but for 4 bits, of which two are a byte.
_KINDS = {8: np.int8, 16: np.int16, 32: np.int32}
#: Of an exponent in a record, below its flag, whatever the design's exponents have.
EXPONENT_BITS = 15


def pack(accelerator: Accelerator, tensor: Tensor, values: np.ndarray) -> bytes:
    """The bytes of a tensor.

    Parameters
    ----------
    accelerator : Accelerator
    tensor : Tensor
        Shape and layout.
    values : ndarray of float32
        Of ``tensor.shape``. Weights of ``records`` are (K, N), and are encoded here.

    Raises
    ------
    ValueError
        If ``values`` has another shape, or the tensor's rows lie apart, as those of a part of another tensor do.
    """
    values = np.asarray(values, np.float32, order="C")
    if values.shape != tensor.shape:
        raise ValueError(f"Tensor must have the shape {tensor.shape}, not {values.shape}")
    if tensor.layout == "records":
        return pack_records(accelerator, values)
    size = tensor.row_bytes(accelerator) // 4
    if tensor.row and size != tensor.shape[-1]:
        raise ValueError("Tensor must have rows that follow each other")
    rows = values.reshape(-1, tensor.shape[-1] if tensor.shape else 1)
    return np.pad(rows, ((0, 0), (0, size - rows.shape[1]))).tobytes()


def unpack(accelerator: Accelerator, tensor: Tensor, data: bytes) -> np.ndarray:
    """The float32 array of a tensor of layout ``word`` or ``dense``; the inverse of :func:`pack`."""
    size, elements = tensor.row_bytes(accelerator) // 4, tensor.shape[-1] if tensor.shape else 1
    flat = np.frombuffer(data, np.float32)
    rows = np.pad(flat, (0, -flat.size % size)).reshape(-1, size)[:, :elements]
    return np.ascontiguousarray(rows).reshape(tensor.shape)


# --- Records of W -------------------------------------------------------------------------------


def pack_records(accelerator: Accelerator, weight: np.ndarray, *, pairs: bool = False, wide: bool = False) -> bytes:
    """Records of a matrix (K, N) of float32, in the order in which the core takes its tiles.

    Column tile by column tile; in each, the segments along K, filled up with zeros to whole tiles and whole blocks.
    With ``pairs`` a number has two columns, as where an operand is wide: column tiles are of the even lanes of a word
    of V, and of the odd ones, in turns. The even column has the mantissa, or of ``wide`` ones the low digit; the odd
    one has zero, or the high digit.
    """
    design = accelerator.core
    terms, columns = weight.shape
    tall = max(design.rows, design.format.terms)
    padded = np.pad(weight, ((0, -terms % tall), (0, -columns % accelerator.lanes)))
    return pack_blocks(accelerator, elements.encode(design, padded, accelerator.conversion(wide), axis=-2), pairs)


def pack_blocks(accelerator: Accelerator, weight: bfp.Blocks, pairs: bool = False) -> bytes:
    """:func:`pack_records` of blocks whose sides are whole tiles and whole blocks."""
    design, height = accelerator.core, accelerator.core.height
    mantissa, lanes = weight.mantissa, np.arange(weight.mantissa.shape[1])    # of each column the lane that it is of
    if pairs:
        lanes = lanes.reshape(-1, accelerator.lanes // 2, 2).transpose(0, 2, 1).ravel().repeat(2)
        high, low = (split(mantissa, design.format.mantissa, design.wide) if weight.fmt.mantissa == design.wide else
                     (np.zeros_like(mantissa), mantissa))
        mantissa = np.where(np.arange(lanes.size) % 2, high[:, lanes], low[:, lanes])
    terms, columns = mantissa.shape
    tiles = columns // accelerator.lanes

    def segments(per_block):
        """(column tiles, segments, columns) of exponents or flags."""
        lines = bfp.per_line(weight, per_block, 1).repeat(max(design.format.terms // height, 1), axis=0)
        lines = lines.take(lanes, axis=1).reshape(-1, tiles, accelerator.lanes)
        return lines.transpose(1, 0, 2).reshape(-1, accelerator.lanes)

    rows = mantissa.reshape(terms, tiles, -1).transpose(1, 0, 2).reshape(-1, height * accelerator.lanes)
    if not design.blocked:
        return _pack_mantissas(accelerator, rows).tobytes()
    flags = segments(weight.invalid).astype(np.int32) << EXPONENT_BITS
    scale = (segments(weight.exponent) & (1 << EXPONENT_BITS) - 1 | flags).astype(np.uint16)
    beat = np.zeros((len(rows), accelerator.beat), np.uint8)
    beat[:, :2 * accelerator.lanes] = scale.view(np.uint8)
    return np.concatenate([_pack_mantissas(accelerator, rows), beat], axis=1).tobytes()


def _pack_mantissas(accelerator, rows):
    """Bytes of mantissas, (records, bytes)."""
    if accelerator.stored == 4:
        return (rows[:, ::2] & 15 | (rows[:, 1::2] & 15) << 4).astype(np.uint8)
    return np.ascontiguousarray(rows.astype(_KINDS[accelerator.stored])).view(np.uint8)


def unpack_records(accelerator: Accelerator, words: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mantissas (records, height, columns), exponents and flags (records, columns) of records.

    ``words`` are (records, 4-byte words), uint32. Bits above those of the design's format are ignored, as in hardware.
    """
    design = accelerator.core
    data = np.ascontiguousarray(words).view(np.uint8)
    split = (accelerator.record_beats - int(design.blocked)) * accelerator.beat
    mantissas = data[:, :split]
    if accelerator.stored == 4:
        mantissas = np.stack([mantissas & 15, mantissas >> 4], axis=-1).astype(np.int32)
    else:
        mantissas = np.ascontiguousarray(mantissas).view(_KINDS[accelerator.stored]).astype(np.int32)
    spare = 32 - accelerator.mantissa
    mantissas = (mantissas << spare >> spare).reshape(-1, design.height, accelerator.lanes)
    if not design.blocked:
        none = np.zeros((len(mantissas), accelerator.lanes), np.int32)
        return mantissas, none, none != 0
    scale = np.ascontiguousarray(data[:, split:split + 2 * accelerator.lanes]).view(np.uint16).astype(np.int32)
    spare = 32 - min(design.format.exponent, EXPONENT_BITS)
    exponent = scale << spare >> spare
    return mantissas, exponent, scale >> EXPONENT_BITS == 1
