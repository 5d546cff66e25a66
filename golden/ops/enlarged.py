"""Images and sequences that are enlarged, or made smaller, by weights of neighbours: linear and bilinear.

Along each dimension, the last first, a number is x0 * RN(1 - t) + x1 * RN(t) of its neighbours x0 and x1, three
operations; places and t are torch's.
"""

from typing import Any

import torch

from .operation import Operation, Shape, Unsupported, calls

aten = torch.ops.aten


def _linear(x, dim, side, corners, scale):
    """Along one dimension to a side."""
    own = x.shape[dim]
    if own == side:
        return x
    places = torch.arange(side, dtype=torch.float64)
    if corners:
        places = places * ((own - 1) / (side - 1) if side > 1 else 0.0)
    else:
        places = ((places + 0.5) * (1 / scale if scale else own / side) - 0.5).clamp(min=0)
    first = places.floor().long().clamp(max=own - 1)
    second, weight = (first + 1).clamp(max=own - 1), (places - first).clamp(0, 1)
    shape = [-1 if d == dim % x.dim() else 1 for d in range(x.dim())]
    near, far = ((each.to(torch.float32)).reshape(shape) for each in (1 - weight, weight))
    return x.index_select(dim, first) * near + x.index_select(dim, second) * far


def _enlarged(dims):
    def parts(x, size, corners, *scales):
        scales = scales[0] if scales and isinstance(scales[0], (list, tuple)) else scales
        if size is None:
            size = [int(side * scale) for side, scale in zip(x.shape[-dims:], scales, strict=True)]
        if x.is_meta:
            raise Unsupported("its places are not known")
        for d in range(1, dims + 1):
            x = _linear(x, -d, size[-d], corners, scales[-d] if len(scales) == dims else None)
        return x
    return parts


OPERATIONS: tuple[Any, ...] = (
    Operation("upsample_linear", calls("upsample_linear1d"), Shape.PARTS, parts=_enlarged(1)),
    Operation("upsample_bilinear", calls("upsample_bilinear2d"), Shape.PARTS, parts=_enlarged(2)))
