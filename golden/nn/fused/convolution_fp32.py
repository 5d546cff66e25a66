"""The same FP32 convolution of several models in one call of torch, where that is proven to have the bits of each.

Forward, few numbers under the kernel are gathered as patches, of which all models' products are one call; with more,
all models are groups of one convolution, and so are the gradients.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..once import once_differentiable
from .layers import FusedConvolution
from .loop import Operation, gradients
from .proof import proven, same_bits

_ATEN = torch.ops.aten
#: Most numbers under the kernel that are gathered, least channels of a group, and most numbers of images, in or out,
#: and of weights: calls are a small part of larger ones.
_GATHERED, _CHANNELS, _IMAGES, _WEIGHTS = 32, 8, 1 << 20, 1 << 18
#: Random operands that a proof compares results of.
_DRAWS = 6


class QuickConvolution(FusedConvolution):
    """:class:`FusedConvolution`, in two dimensions in fewer calls."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(models * N, ...) -> (models * N, ...)."""
        w: Any = self.weights
        first, bias = self.layers[0], self.biases
        if (not isinstance(first, nn.Conv2d) or not all(map(self.serves, self.layers)) or first.groups > 1
                or x.dim() != 4 or x.shape[1] != first.in_channels or x.dtype != torch.float32 or not x.is_contiguous()
                or not 0 < x.numel() * max(1, first.out_channels // x.shape[1]) <= _IMAGES or w.numel() > _WEIGHTS
                or torch.is_autocast_enabled("cpu")):
            return super().forward(x)
        options = first.stride, first.padding, first.dilation
        if w[0, 0].numel() <= _GATHERED:
            way = _gathered if _adds_zeros(w, bias) else None
        else:
            way = _grouped if x.shape[1] >= _CHANNELS else None
        key = "convolution", x.shape, w.shape, options, bias is None
        if way is None or not proven((*key, way), lambda random: _forward_proof(way, x, w, bias, options, random)):
            return super().forward(x)
        return _Convolution.apply(x, w, bias, way, options, key, [self.operation(layer) for layer in self.layers])


class _Convolution(torch.autograd.Function):
    """Of x (models * N, C, H, W), w (models, O, C, kh, kw) and bias (models, O) or None."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, way: Any, options: Any, key: Any,
                operations: Sequence[Operation]) -> torch.Tensor:
        """(models * N, O, OH, OW)."""
        ctx.save_for_backward(x, w)
        ctx.options, ctx.key, ctx.operations = options, key, operations
        return way(x, w, bias, options)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x``, ``w`` and ``bias``."""
        x, w = ctx.saved_tensors
        wanted, options = list(ctx.needs_input_grad[:3]), ctx.options
        if x.shape[1] >= _CHANNELS and g.is_contiguous() and proven(
                ("gradients", *ctx.key, *wanted), lambda random: _backward_proof(x, w, g, options, wanted, random)):
            found: Sequence[torch.Tensor | None] = _grouped_gradients(x, w, g, options, wanted)
        else:
            found = gradients(x, w, g, wanted, ctx.operations, [None] * len(w))
        return *found, None, None, None, None


def _adds_zeros(w, bias):
    """Whether zeros beside an image, which torch leaves out and patches have, can be multiplied and added."""
    return w.isfinite().all() and (bias is None or not (bias.signbit() & (bias == 0)).any())


def _gathered(x, w, bias, options):
    """Patches of each model times its weights."""
    (stride, padding, dilation), (models, out, channels, *kernel) = options, w.shape
    own = x.view(models, -1, *x.shape[1:])
    if any(padding):
        own = nn.functional.pad(own, (padding[1], padding[1], padding[0], padding[0]))
    high, wide = ((side - d * (k - 1) - 1) // s + 1
                  for side, k, s, d in zip(own.shape[3:], kernel, stride, dilation, strict=True))
    m, n, c, h, v = own.stride()
    patches = own.as_strided((models, channels, *kernel, own.shape[1], high, wide),
                             (m, c, h * dilation[0], v * dilation[1], n, h * stride[0], v * stride[1]))
    patches = patches.reshape(models, w[0, 0].numel(), -1)
    matrix = w.reshape(models, out, -1)
    y = torch.bmm(matrix, patches) if bias is None else torch.baddbmm(bias[:, :, None], matrix, patches)
    return y.view(models, out, -1, high, wide).transpose(1, 2).reshape(len(x), out, high, wide)


def _grouped(x, w, bias, options):
    """A group of one convolution for each model."""
    models = len(w)
    y = torch.convolution(_side_by_side(x, models), w.flatten(0, 1), None if bias is None else bias.reshape(-1),
                          *options, False, (0, 0), models)
    return _behind(y, models)


def _grouped_gradients(x, w, g, options, wanted):
    models, out = w.shape[:2]
    gx, gw, gb = _ATEN.convolution_backward(
        _side_by_side(g, models), _side_by_side(x, models), w.flatten(0, 1), [models * out] if wanted[2] else None,
        *options, False, (0, 0), models, wanted)
    return (_behind(gx, models) if wanted[0] else None, gw.view(w.shape) if wanted[1] else None,
            gb.view(models, out) if wanted[2] else None)


def _side_by_side(x, models):
    """Images of models behind each other as channels beside each other."""
    return x.view(models, -1, *x.shape[1:]).transpose(0, 1).flatten(1, 2)


def _behind(x, models):
    """Back from :func:`_side_by_side`."""
    return x.view(len(x), models, -1, *x.shape[2:]).transpose(0, 1).flatten(0, 1)


# --- Proofs ---------------------------------------------------------------------------------------


def _draws(x, w, bias, way, generator):
    """Random operands; of the last ones images have zeros, and weights have what is not finite, if the way takes it."""
    for draw in range(_DRAWS):
        one, other = (torch.randn(like.shape, generator=generator) for like in (x, w))
        add = None if bias is None else torch.randn(bias.shape, generator=generator)
        if draw == _DRAWS - 1:
            one *= torch.rand(x.shape, generator=generator) < 0.5
            if way is not _gathered:
                other.view(-1)[::97] = torch.inf
                other.view(-1)[5::101] = torch.nan
        yield one, other, add


def _forward_proof(way, x, w, bias, options, generator) -> bool:
    for one, other, add in _draws(x, w, bias, way, generator):
        own = [torch.convolution(*each, *options, False, (0, 0), 1)
               for each in zip(one.chunk(len(w)), other, [None] * len(w) if add is None else add, strict=True)]
        if not _same(way(one, other, add, options), torch.cat(own)):
            return False
    return True


def _backward_proof(x, w, g, options, wanted, generator) -> bool:
    for one, other, _ in _draws(x, w, None, _grouped, generator):
        top = torch.randn(g.shape, generator=generator)
        own = [_ATEN.convolution_backward(*each, w.shape[1:2], *options, False, (0, 0), 1, wanted) for each in
               zip(top.chunk(len(w)), one.chunk(len(w)), other, strict=True)]
        ours = _grouped_gradients(one, other, top, options, wanted)
        for mine, join, theirs in zip(ours, (torch.cat, torch.stack, torch.stack), zip(*own, strict=True), strict=True):
            if mine is not None and not _same(mine, join(theirs)):
                return False
    return True


def _same(ours, theirs):
    """Whether all is equal in bits, but for those of NaN, and in the order in memory."""
    return ours.stride() == theirs.stride() and same_bits(*(torch.where(y.isnan(), torch.nan, y)
                                                            for y in (ours, theirs)))
