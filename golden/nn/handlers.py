"""What torch's functions become in HBFP: one table from function to handler.

A handler takes formats, stream, and the function's own arguments. What it cannot do it refuses with :class:`Refused`;
the function then runs as it is.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from ..noise import Stream
from . import contract, convolution, functional, library, nested, recurrent
from .formats import Formats
from .memory import foreign
from .ops import AddBias

Handler = Callable[..., Any]
#: Why a product that HBFP does not define stays as it is.
NO_PRODUCT = "there is no such product in HBFP; write it with torch.matmul or a convolution"


class Refused(Exception):
    """Raised with the reason why a product stays as it is."""


def _scaled(tensor, factor):
    return tensor if factor == 1 else tensor * factor


def _add(input, y, beta=1, alpha=1):
    """``beta * input + alpha * y``; a bias has the gradient of a layer's."""
    y = _scaled(y, alpha)
    if beta == 0:
        return y
    if input.shape == y.shape[-1:] and beta == 1 and y.dim() == 2 and input.dtype == y.dtype == torch.float32:
        return AddBias.apply(y, input)
    return y + _scaled(input, beta)


def _linear(formats, stream, input, weight, bias=None):
    if weight.dim() == 1:
        y = contract.matmul(input, weight, formats, stream)
        return y if bias is None else y + bias
    return functional.linear(input, weight, bias, formats, stream=stream)


def _matmul(formats, stream, input=None, other=None, *, mat2=None, vec=None, vec2=None, tensor=None):
    other = next(t for t in (other, mat2, vec, vec2, tensor) if t is not None)
    return contract.matmul(input, other, formats, stream)


def _rmatmul(formats, stream, input, other):
    return contract.matmul(other, input, formats, stream)


def _addmm(formats, stream, input, *matrices, beta=1, alpha=1, **named):
    """addmm, baddbmm, addmv, of matrices by position or by the names that they have there, in order."""
    return _add(input, contract.matmul(*matrices, *named.values(), formats, stream), beta, alpha)


def _addbmm(formats, stream, input, batch1, batch2, *, beta=1, alpha=1):
    return _add(input, contract.matmul(batch1, batch2, formats, stream).sum(0), beta, alpha)


def _inner(formats, stream, input, other):
    if not input.dim() or not other.dim():
        return input * other
    axes = (input.dim() - 1,), (other.dim() - 1,)
    return contract.tensordot(input, other, axes, formats, stream)


def _tensordot(formats, stream, a, b, dims=2):
    return contract.tensordot(a, b, dims, formats, stream)


def _chain(formats, stream, *matrices):
    matrices = matrices[0] if isinstance(matrices[0], (tuple, list)) else matrices
    y = matrices[0]
    for other in matrices[1:]:
        y = contract.matmul(y, other, formats, stream)
    return y


def _einsum(formats, stream, equation, *operands):
    if not isinstance(equation, str):                  # tensor, labels, tensor, labels, ... and perhaps the result's
        every = (equation, *operands)
        pairs = len(every) // 2
        if any(not isinstance(label, int) for labels in every[1::2] for label in labels):
            raise Refused("einsum with '...' among numbered labels; write the equation as text")
        terms = [list(labels) for labels in every[1:2 * pairs:2]]
        flat = [label for term in terms for label in term]
        output = every[-1] if len(every) % 2 else [label for label in sorted(set(flat)) if flat.count(label) == 1]
        return contract.contract(every[:2 * pairs:2], terms, list(output), formats, stream)
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    return contract.einsum(equation, operands, formats, stream)


def _bilinear(formats, stream, input1, input2, weight, bias=None):
    outputs, left, right = weight.shape
    first = functional.linear(input1, weight.transpose(1, 2).reshape(outputs * right, left), None, formats,
                              stream=stream)
    rows = first.reshape(-1, outputs, right)
    y = functional.matmul(rows, input2.reshape(-1, right, 1), formats, stream=stream)
    y = y.reshape(*input1.shape[:-1], outputs)
    return y if bias is None else y + bias


def _attention(formats, stream, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
               enable_gqa=False):
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    if nested.jagged(query):
        return functional.nested_attention(query, key, value, dropout_p, formats, is_causal=is_causal, scale=scale,
                                           stream=stream)
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (t.expand(*lead, *t.shape[-2:]) for t in (query, key, value))
    return functional.attention(query, key, value, attn_mask, dropout_p, formats, is_causal=is_causal, scale=scale,
                                stream=stream)


def _additive(mask, like):
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, device=like.device).masked_fill(mask, float("-inf"))


def _multi_head(formats, stream, query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias,
                bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True,
                key_padding_mask=None, need_weights=True, attn_mask=None, use_separate_proj_weight=False,
                q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
                average_attn_weights=True, is_causal=False):
    """torch.nn.functional.multi_head_attention_forward: (L, N, E), or (L, E)."""
    if static_k is not None or static_v is not None:
        raise Refused("multi_head_attention_forward with static_k or static_v; project in the model's own code")
    single = query.dim() == 2
    if single:
        query, key, value = (t.unsqueeze(1) for t in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    rows = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight.chunk(3)
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    q, k, v = (functional.linear(*three, formats, stream=stream)
               for three in zip((query, key, value), rows, biases, strict=True))
    attn_mask, padding = _additive(attn_mask, q), _additive(key_padding_mask, q)
    if is_causal and attn_mask is None:
        attn_mask = _additive(torch.ones(len(q), len(k), dtype=torch.bool, device=q.device).triu(1), q)
    extra = 0
    if bias_k is not None:
        k, v, extra = torch.cat((k, bias_k.expand(1, *k.shape[1:]))), torch.cat((v, bias_v.expand(1, *v.shape[1:]))), 1
    q, k, v = (t.unflatten(-1, (num_heads, -1)).permute(1, 2, 0, 3) for t in (q, k, v))        # (N, heads, L, d)
    if add_zero_attn:
        k, v, extra = F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1)), extra + 1
    mask = None
    if attn_mask is not None:
        mask = F.pad(attn_mask, (0, extra))
        mask = mask[None, None] if mask.dim() == 2 else mask.unflatten(0, (-1, num_heads))
    if padding is not None:
        padding = F.pad(padding, (0, extra))[:, None, None]
        mask = padding if mask is None else mask + padding
    y, weights = functional.scaled_dot_product_attention(q, k, v, mask, dropout_p if training else 0.0, formats,
                                                         stream=stream)
    y = functional.linear(y.permute(2, 0, 1, 3).flatten(2), out_proj_weight, out_proj_bias, formats, stream=stream)
    weights = weights.mean(1) if average_attn_weights else weights
    if single:
        y, weights = y.squeeze(1), weights.squeeze(0)
    return y, weights if need_weights else None


def _recurrent(kind, formats, stream, input, second, *others):
    """torch.lstm, torch.gru, torch.rnn_tanh and torch.rnn_relu, of plain and of packed sequences."""
    lstm = kind == "lstm"
    packed = isinstance(second, torch.Tensor) and (lstm or not isinstance(others[0], (tuple, list)))
    if packed:
        hx, weights, bias, layers, dropout, train, both = others
        rows, sizes, batch_first = input, second.tolist(), False
    else:
        hx = second
        weights, bias, layers, dropout, train, both, batch_first = others
        input = input.transpose(0, 1) if batch_first else input
        rows, sizes = input.flatten(0, 1), [input.shape[1]] * len(input)
    state = tuple(hx) if lstm else (hx,)
    each = len(weights) // (layers * (2 if both else 1))
    rows, state = recurrent.run(kind, rows, sizes, state, weights, formats, stream, bias=bias, layers=layers,
                                dropout=dropout if train else 0.0, bidirectional=both,
                                projected=each > 2 + 2 * bias)
    if not packed:
        rows = rows.unflatten(0, input.shape[:2])
        rows = rows.transpose(0, 1) if batch_first else rows
    return rows, *state


def _cell(kind, formats, stream, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    state = recurrent.step(kind, input, tuple(hx) if kind == "lstm" else (hx,), w_ih, w_hh, b_ih, b_hh, formats, stream)
    return state if kind == "lstm" else state[0]


def _table():
    """Function -> handler."""
    T = torch.Tensor
    table: dict[Any, Handler] = {
        F.linear: _linear, T.__rmatmul__: _rmatmul, torch.addbmm: _addbmm, T.addbmm: _addbmm, torch.inner: _inner,
        T.inner: _inner, torch.tensordot: _tensordot, torch.einsum: _einsum, torch.linalg.multi_dot: _chain,
        torch.chain_matmul: _chain, F.bilinear: _bilinear, F.scaled_dot_product_attention: _attention,
        F.multi_head_attention_forward: _multi_head, F.grouped_mm: _grouped,
        torch._grouped_mm: _grouped}
    table |= dict.fromkeys((torch.cdist, torch.matrix_power, torch.linalg.matrix_power, torch.matrix_exp,
                            torch.linalg.matrix_exp, torch.sparse.mm, torch.convolution),
                           _without(NO_PRODUCT))
    for name in ("matmul", "mm", "bmm", "mv", "dot", "vdot"):
        table |= {getattr(torch, name): _matmul, getattr(T, name): _matmul}
    table |= {T.__matmul__: _matmul, torch.linalg.matmul: _matmul, torch.linalg.vecdot: _vecdot}
    for name in ("addmm", "baddbmm", "addmv"):
        table |= {getattr(torch, name): _addmm, getattr(T, name): _addmm}
    for dims in (1, 2, 3):
        table[getattr(F, f"conv{dims}d")] = _with_formats(partial(convolution.convolution, dims))
        table[getattr(F, f"conv_transpose{dims}d")] = _with_formats(partial(convolution.transposed, dims))
    for kind in recurrent.CELLS:
        table |= {getattr(torch, kind): partial(_recurrent, kind), getattr(torch, f"{kind}_cell"): partial(_cell, kind)}
    for name, handler in {"addmm_": _addmm, "baddbmm_": _addmm, "addmv_": _addmm, "addbmm_": _addbmm}.items():
        table[getattr(T, name)] = _in_place(handler)
    return table


def _vecdot(formats, stream, x, y, *, dim=-1):
    return contract.matmul(x.movedim(dim, -1).unsqueeze(-2), y.movedim(dim, -1).unsqueeze(-1), formats,
                           stream)[..., 0, 0]


def _grouped(formats, stream, input, mat_b, offs=None, bias=None, out_dtype=None):
    """torch.nn.functional.grouped_mm: rows (total, K) cut at ``offs``, each part with its matrix of (E, K, N)."""
    if input.dim() != 2 or mat_b.dim() != 3 or offs is None or bias is not None:
        raise Refused("grouped_mm other than of rows with a stack of matrices; write it with torch.matmul")
    if library.traced(input, formats, stream):
        (input, mat_b, _), dtype = functional.single(input, mat_b)
        return library.grouped(input, mat_b, offs, formats).to(dtype)
    return library.by_groups(input, mat_b, offs, lambda part, matrix: functional.linear(part, matrix, None, formats,
                                                                                        stream=stream))


def _without(reason):
    """The handler of a function that HBFP does not define."""
    def handler(formats, stream, *args, **options):
        raise Refused(reason)
    return handler


def _with_formats(call):
    return lambda formats, stream, *args, **options: call(*args, formats=formats, stream=stream, **options)


def _in_place(handler):
    return lambda formats, stream, self, *args, **options: self.copy_(handler(formats, stream, self, *args, **options))


#: Function of torch -> handler.
HANDLERS = _table()


def check(args: Any) -> None:
    """Raise :class:`Refused` if there are tensors among the arguments (lists too) that HBFP products do not take."""
    for arg in args:
        if isinstance(arg, (tuple, list)):
            check(arg)
        elif isinstance(arg, torch.Tensor):
            other = foreign(arg)
            if other is not None:
                raise Refused(f"{other}; only dense ones are converted")
            if arg.is_floating_point() and arg.dtype not in (torch.float32, *functional.NARROW) or arg.is_complex():
                raise Refused(f"a tensor of {str(arg.dtype).removeprefix('torch.')}; float32, bfloat16 and float16 are "
                              "converted")


def _nested(func, args, options):
    """Whether nested tensors stand where a product takes them: as rows for a matrix, or as all that attention has."""
    attention = func is F.scaled_dot_product_attention
    taken, rest = args[:3 if attention else 1], (*args[3 if attention else 1:], *options.values())
    if not taken or not all(map(nested.jagged, taken)):
        return False
    check([each.values() for each in taken])
    check(rest)
    tensors = [each for each in rest if isinstance(each, torch.Tensor)]
    if attention:
        return len(taken) == 3 and not tensors and taken[0].dim() == 4 and not options.get("enable_gqa")
    return func is F.linear or HANDLERS[func] is _matmul and tensors[0].dim() == 2


def _any_floating(args):
    """Whether there is a tensor of real numbers: products of integers are no FP32 products."""
    return any(_any_floating(arg) if isinstance(arg, (tuple, list)) else
               isinstance(arg, torch.Tensor) and arg.is_floating_point() for arg in args)


def run(func: Any, args: tuple[Any, ...], options: dict[str, Any], formats: Formats, stream: Stream | None) -> Any:
    """``func(*args, **options)`` with its products in HBFP.

    Raises
    ------
    Refused
        If it cannot be; nothing was computed.
    """
    if not _nested(func, args, options):
        check(args)
        check(options.values())
    if not _any_floating((*args, *options.values())):
        return func(*args, **options)
    out = options.pop("out", None)
    y = HANDLERS[func](formats, stream, *args, **options)
    return y if out is None else out.resize_(y.shape).copy_(y)
