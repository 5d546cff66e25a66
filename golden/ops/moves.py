"""Operations that move numbers and compute none: their results are torch's own."""

from .operation import Operation, Shape, calls

#: Of each operation its name in messages, and torch's names where they differ from that.
_NAMES: dict[str, tuple[str, ...]] = {
    "pad": ("constant_pad_nd", "pad"), **dict.fromkeys((
        "cat", "stack", "repeat", "embedding", "masked_fill", "slice_backward", "select_backward", "flip", "roll",
        "rot90", "index", "index_select", "index_put", "gather", "tril", "triu", "diag_embed", "fill", "copy",
        "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "im2col", "repeat_interleave", "slice_scatter",
        "select_scatter", "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d",
        "upsample_nearest1d", "upsample_nearest2d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d"), ())}
OPERATIONS = tuple(Operation(name.strip("_"), calls(*(names or (name,))), Shape.MOVE,
                             gradient=name.endswith("_backward"))
                   for name, names in _NAMES.items())
