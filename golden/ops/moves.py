"""Operations that move numbers and compute none: their results are torch's own."""

from .operation import Operation, Shape, calls

OPERATIONS = tuple(Operation(name, calls(*names), Shape.MOVE, gradient=name.endswith("_backward")) for name, *names in (
    ("cat", "cat"), ("stack", "stack"), ("repeat", "repeat"), ("pad", "constant_pad_nd", "pad"),
    ("embedding", "embedding"), ("masked_fill", "masked_fill"), ("slice_backward", "slice_backward"),
    ("select_backward", "select_backward"), *(
    (name, name) for name in (
        "flip", "roll", "rot90", "index", "index_select", "index_put", "gather", "tril", "triu", "diag_embed", "fill", "copy",
        "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "im2col", "repeat_interleave", "slice_scatter",
        "select_scatter", "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d",
        "upsample_nearest1d", "upsample_nearest2d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d"))))
