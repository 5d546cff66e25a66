"""Operations that move numbers and compute none: their results are torch's own."""

from .operation import Operation, Shape, calls

OPERATIONS = tuple(Operation(name, calls(*names), Shape.MOVE, gradient=name.endswith("_backward")) for name, *names in (
    ("cat", "cat"), ("stack", "stack"), ("repeat", "repeat"), ("pad", "constant_pad_nd", "pad"),
    ("embedding", "embedding"), ("masked_fill", "masked_fill"), ("slice_backward", "slice_backward"),
    ("select_backward", "select_backward")))
