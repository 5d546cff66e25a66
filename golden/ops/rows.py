"""Operations on rows: softmax, norms, means of rows."""

from functools import partial
from math import prod

import torch

from ..vector import programs
from ..vector.side import batch_norm_factors
from .operation import Operation, Rows, Shape, Unsupported, calls


def _softmax(x, dim, *rest):
    return Rows(programs.softmax(), (x,), dim)


def _layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    n = prod(shape)
    if weight is None and bias is None:
        return Rows(programs.layer_norm_plain(n, eps), (x,), merged=len(shape))
    numbers = (torch.ones(n) if weight is None else weight, torch.zeros(n) if bias is None else bias)
    return Rows(programs.layer_norm(n, eps, 1, 2), (x,), merged=len(shape), numbers=numbers)


def _layer_norm_kept(x, shape, weight, bias, eps):
    rows = x.detach().reshape(-1, prod(shape))
    lead = (*x.shape[:x.dim() - len(shape)], *(1 for _ in shape))
    return rows.mean(-1).reshape(lead), (rows.var(-1, correction=0) + eps).rsqrt().reshape(lead)


def _batch_norm(x, weight, bias, *rest):
    *statistics, training, momentum, eps = rest
    if training or not statistics or statistics[0] is None:
        raise Unsupported("it takes its statistics from the batch; track_running_stats=True would do")
    return _batch_norm_learned(x, weight, bias, *statistics, momentum, eps)


def _batch_norm_learned(x, weight, bias, mean, variance, momentum, eps):
    numbers = (torch.ones_like(mean) if weight is None else weight, torch.zeros_like(mean) if bias is None else bias,
               mean, variance)
    return Rows(programs.scale_shift(1, 2), (x,), 1, numbers=numbers, fixed=partial(batch_norm_factors, eps=eps))


def _rms_norm(x, shape, weight=None, eps=None):
    if len(shape) != 1:                                    # torch's parts have a mean over these, which has no program
        raise Unsupported(f"it normalises over {len(shape)} dimensions; over the last alone would do")
    n, eps = shape[0], torch.finfo(torch.float32).eps if eps is None else eps
    if weight is None:
        return Rows(programs.rms_norm_plain(n, eps), (x,))
    return Rows(programs.rms_norm(n, eps, 1), (x,), numbers=(weight,))


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


def _along(name, program):
    """An operation that makes one number of each row."""
    def form(x, dim=None, keepdim=False, dtype=None):
        dims = [dim] if isinstance(dim, int) else list(range(x.dim())) if not dim else dim
        if [d % x.dim() for d in dims] != [x.dim() - 1] or dtype not in (None, torch.float32):
            raise Unsupported(f"it is over dimensions {list(dims)} of {x.dim()}; over the last alone, in float32, "
                              "would do")
        return Rows(program(x.shape[-1]), (x,), single=True, keep=keepdim)
    return Operation(name, calls(name), Shape.ROW, form)


def _variance(x, dim=None, unbiased=True, keepdim=False, *, correction=None):
    correction = int(unbiased) if correction is None else correction
    if not isinstance(dim, (list, tuple)) or [d % x.dim() for d in dim] != [x.dim() - 1] or correction:
        raise Unsupported(f"it is over dimensions {dim} with correction {correction}; over the last alone, with "
                          "correction 0, would do")
    return Rows(programs.row_variance(x.shape[-1]), (x,), single=True, keep=keepdim)


def _nothing_kept(x, *rest):
    return x.new_empty(0), x.new_empty(0)


OPERATIONS = (
    Operation("softmax", calls("_softmax"), Shape.ROW, _softmax),
    Operation("layer_norm", calls("native_layer_norm"), Shape.ROW, _layer_norm, kept=_layer_norm_kept),
    Operation("rms_norm", calls("_fused_rms_norm"), Shape.ROW, _rms_norm, kept=_rms_norm_kept),
    Operation("group_norm", calls("native_group_norm"), Shape.PARTS, parts=_group_norm),
    _along("sum", lambda n: programs.row_sum()), _along("amax", lambda n: programs.row_maximum()),
    Operation("var", calls("var"), Shape.ROW, _variance),
    Operation("batch_norm", calls("native_batch_norm", "_native_batch_norm_legit"), Shape.ROW, _batch_norm,
              kept=_nothing_kept),
    Operation("batch_norm", calls("_native_batch_norm_legit_no_training"), Shape.ROW, _batch_norm_learned,
              kept=_nothing_kept))
