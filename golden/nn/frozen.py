"""Weights converted once, for inference: the same bits, without a conversion at every call."""

from typing import Any

import numpy as np
import torch

from ..fast import kernels
from ..noise import Stream
from . import conv, layers, library
from .formats import Formats
from .portable import on_host
from .products import Encoded, Operand
from .record import note, watcher


def freeze(module: torch.nn.Module) -> torch.nn.Module:
    """Let every ``HBFPLinear`` and ``HBFPConv2d`` of a model keep its converted weights, for inference.

    A call that needs no gradients then converts its input alone. Where it finds that the weights have changed (an
    optimiser's step, ``load_state_dict``, another tensor, another format) it converts them anew; only what is written
    past autograd, through ``weight.data`` or NumPy, is not seen, and needs ``freeze`` again. Calls that need gradients
    convert as always. So do convolutions with groups, with padding other than numbers of zeros or of an input without
    batch, and numbers of bfloat16 and float16; other layers stay as they are.

    Parameters
    ----------
    module : torch.nn.Module
        The model, on the CPU.

    Returns
    -------
    torch.nn.Module
        ``module``.

    Raises
    ------
    ValueError
        If a layer's weights cannot be kept in the module's present mode, training or evaluation; no layer is then
        frozen.
    """
    chosen = [(name, layer) for name, layer in module.named_modules()
              if isinstance(layer, (layers.HBFPLinear, layers.HBFPConv2d))]
    for name, layer in chosen:
        _check(name, layer)
    for _, layer in chosen:
        layer.frozen = Frozen()
    return module


def thaw(module: torch.nn.Module) -> torch.nn.Module:
    """Undo :func:`freeze`: the converted weights are given up."""
    for layer in module.modules():
        if isinstance(layer, layers.HBFPLayer):
            layer.frozen = None
    return module


def _check(name, layer):
    formats, problem = layer.hbfp_now, None
    if formats.mode != "hbfp":
        problem = f"needs mode 'hbfp', not {formats.mode!r}"
    elif formats.w.rounding == "stochastic":
        problem = "rounds its weights stochastically, anew at every call; w needs rounding 'rne' or 'truncate', " \
                  "or eval()"
    elif formats.accumulate != "fp32" or formats.order != "block":
        problem = "needs order 'block' and accumulation 'fp32', not " \
                  f"{formats.order!r} and {formats.accumulate!r}"
    elif layer.weight.device.type != "cpu":
        problem = f"must be on the CPU, not on {layer.weight.device}"
    if problem:
        raise ValueError(f"Layer {name!r} cannot be frozen: it {problem}")


class Frozen:
    """What a frozen layer keeps: its weights' values, and what they were made of."""

    def __init__(self) -> None:
        self._made_of: Any = None

    def _serves(self, layer, x, formats, stream):
        """Whether a call may use kept weights: it needs no gradient, and weights can be kept for such calls."""
        if torch.is_grad_enabled() and (x.requires_grad or any(p.requires_grad for p in layer.parameters())):
            return False
        if torch._C._functorch.is_functorch_wrapped_tensor(x) or library.traced(x, formats, stream) or watcher():
            return False
        return (kernels.library() is not None and formats.w.rounding != "stochastic" and formats.mode == "hbfp"
                and formats.order == "block" and formats.accumulate == "fp32"
                and all(on_host(t) and t.dtype == torch.float32 for t in (x, *layer.parameters())))

    def _refresh(self, layer, fmt, convert):
        sources = [t.detach() for t in (layer.weight, *layer.buffers(recurse=False))]    # a mask is a buffer
        made_of = fmt, [(t._version, t.data_ptr(), t.stride()) for t in sources]
        if made_of != self._made_of:
            self._sources = sources                                  # their addresses stay taken
            self._weight = layer.used_weight().detach()
            self._kept = convert(self._weight)
            self._made_of = made_of
        return self._kept

    def linear(self, layer: torch.nn.Linear, x: torch.Tensor, formats: Formats,
               stream: Stream | None) -> torch.Tensor | None:
        """(..., I) -> (..., O), or None where kept weights do not serve or FP32 does not hold the sums of a block."""
        if x.shape[-1:] != (layer.in_features,) or not self._serves(layer, x, formats, stream):
            return None
        fmt, w_fmt = formats.x, formats.w
        packed, span = self._refresh(layer, w_fmt, lambda w: _packed(w, w_fmt))
        state = None if stream is None else stream.state.copy()
        a = Encoded(Operand(x.detach().reshape(-1, x.shape[-1]), fmt, stream), -1)
        if a.span is None or not kernels.exact(fmt, w_fmt, a.span, span):
            if stream is not None:
                stream.state[:] = state                              # as if nothing had been drawn
            return None
        y = torch.from_numpy(kernels.packed_product(a.values, packed, fmt.terms, layer.out_features))
        if layer.bias is not None:
            y += layer.bias.detach()
        note("linear", formats, x.numel() * layer.out_features)
        return y.reshape(*x.shape[:-1], layer.out_features)

    def conv2d(self, layer: torch.nn.Conv2d, x: torch.Tensor, formats: Formats,
               stream: Stream | None) -> torch.Tensor | None:
        """(N, C, H, W) -> (N, O, OH, OW), or None where kept weights do not serve."""
        padding = layer.padding
        if (layer.groups > 1 or layer.padding_mode != "zeros" or isinstance(padding, str) or x.dim() != 4
                or not self._serves(layer, x, formats, stream)):
            return None
        kept = self._refresh(layer, formats.w, lambda w: kernels.encoded(conv.weight_matrix(w).numpy(), formats.w,
                                                                         axis=0))
        y = conv.conv2d(x, self._weight, formats, stride=layer.stride, padding=padding,
                        dilation=layer.dilation, stream=stream, kept=kept)
        note("conv2d", formats, y.numel() * layer.weight[0].numel())
        return y if layer.bias is None else y + layer.bias.detach()[:, None, None]


def _packed(w, fmt):
    values, span = kernels.encoded(np.ascontiguousarray(w.numpy()), fmt)
    return kernels.packed(values.T), span
