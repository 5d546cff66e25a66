"""Operations on rows: softmax, norms, means of rows."""

from functools import partial
from math import prod

import torch

from ..vector import programs
from ..vector.side import batch_norm_factors
from . import norms, powers
from .operation import Elements, Operation, Rows, Shape, Unsupported, calls, dims_of
from .results import ALONE, Result

#: Rows, and of each its mean and 1 / sqrt(variance + eps).
_WITH_STATISTICS = (*ALONE, Result(single=True), Result(single=True))


def _softmax(x, dim, *rest):
    return Rows(programs.softmax(), (x,), dim)


def _log_softmax(x, dim, *rest):
    return Rows(programs.log_softmax(), (x,), dim)


def _layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    n = prod(shape)
    plain = weight is None and bias is None
    numbers = () if plain else (torch.ones(n) if weight is None else weight, torch.zeros(n) if bias is None else bias)
    program = programs.layer_norm_plain(n, eps) if plain else programs.layer_norm(n, eps, 1, 2)
    return Rows(program + programs.statistics(), (x,), merged=len(shape), numbers=numbers, results=_WITH_STATISTICS)


def _batch_norm(x, weight, bias, *rest):
    *statistics, training, momentum, eps = rest
    if training or not statistics or statistics[0] is None:
        raise Unsupported("it takes its statistics from the batch, which are sums and products")
    return _batch_norm_learned(x, weight, bias, *statistics, momentum, eps)


def _batch_norm_learned(x, weight, bias, mean, variance, momentum, eps):
    numbers = (torch.ones_like(mean) if weight is None else weight, torch.zeros_like(mean) if bias is None else bias,
               mean, variance)
    return Rows(programs.scale_shift(1, 2), (x,), 1, numbers=numbers, fixed=partial(batch_norm_factors, eps=eps))


def _rms_norm(x, shape, weight=None, eps=None):
    if len(shape) != 1:                                    # torch's parts have a mean over these, which has no program
        raise Unsupported(f"it normalises over {len(shape)} dimensions, by a mean and products")
    n, eps = shape[0], torch.finfo(torch.float32).eps if eps is None else eps
    if weight is None:
        return Rows(programs.rms_norm_plain(n, eps), (x,))
    return Rows(programs.rms_norm(n, eps, 1), (x,), numbers=(weight,))


def _rms_norm_parts(x, shape, weight=None, eps=None):
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    root = torch.rsqrt(x.square().mean(tuple(range(-len(shape), 0)), keepdim=True) + eps)
    y = x * root
    return y if weight is None else y * weight, root


def _rms_norm_kept(x, shape, weight=None, eps=None):
    over = tuple(range(-len(shape), 0))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    return ((x.detach().square().mean(over, keepdim=True) + eps).rsqrt(),)


def _group_norm(x, weight, bias, n, channels, pixels, groups, eps):
    rows, length = x.reshape(n, groups, -1), channels // groups * pixels
    y, mean, root = torch.ops.aten.native_layer_norm(rows, [length], None, None, eps)
    y, lead = y.reshape(x.shape), (-1, *(1 for _ in x.shape[2:]))
    y = y if weight is None else y * weight.reshape(lead)
    y = y if bias is None else y + bias.reshape(lead)
    return y, mean.reshape(n, groups), root.reshape(n, groups)


def _sum(x, dim=None, keepdim=False, dtype=None):
    over = dims_of(x, dim)
    last = x.dim() - 1
    if dtype not in (None, torch.float32):
        raise Unsupported(f"it gives {dtype}; numbers of float32 would do".replace("torch.", ""))
    if not over:
        return Elements(programs.activation(), (x,))
    if last in over and (x.dim() < 3 or 1 in over or over == (last,)):     # the order is that of docs/numerics.md
        return Rows(programs.row_sum(), (x,), results=(Result(True, over[:-1], keepdim),))
    return Rows(programs.activation(), (x,), 1 if last in over else -1, results=(Result(False, over, keepdim),))


def _variance(x, dim=None, unbiased=True, keepdim=False, *, correction=None):
    correction = int(unbiased) if correction is None else correction
    if not isinstance(dim, (list, tuple)) or [d % x.dim() for d in dim] != [x.dim() - 1] or correction:
        raise Unsupported(f"it is over dimensions {dim} with correction {correction}, by sums and products")
    return Rows(programs.row_variance(x.shape[-1]), (x,), results=(Result(True, keep=keepdim),))


def _nothing_kept(x, *rest):
    return x.new_empty(0), x.new_empty(0)


OPERATIONS = (
    Operation("softmax", calls("_softmax"), Shape.ROW, _softmax),
    Operation("log_softmax", calls("_log_softmax"), Shape.ROW, _log_softmax),
    Operation("layer_norm", calls("native_layer_norm"), Shape.ROW, _layer_norm),
    Operation("rms_norm", calls("_fused_rms_norm"), Shape.ROW, _rms_norm, _rms_norm_parts, _rms_norm_kept),
    Operation("group_norm", calls("native_group_norm"), Shape.PARTS, parts=_group_norm),
    Operation("sum", calls("sum"), Shape.ROW, _sum),
    Operation("var", calls("var"), Shape.ROW, _variance, powers.variance),
    Operation("batch_norm", calls("native_batch_norm", "_native_batch_norm_legit"), Shape.ROW, _batch_norm,
              parts=norms.training, kept=_nothing_kept),
    Operation("batch_norm", calls("_native_batch_norm_legit_no_training"), Shape.ROW, _batch_norm_learned,
              kept=_nothing_kept))
