"""Weights converted once, for inference: the same bits, without a conversion at every call."""

from typing import Any

import numpy as np
import torch

from hbfp.checks import check_kind

from ..fast import kernels, products
from ..noise import Stream
from . import again, conv, layers, library, unfold
from .formats import Formats
from .frozen_images import Images
from .memory import array, foreign
from .options import Model
from .portable import on_host
from .products import Encoded, Operand
from .record import note, watcher


def freeze(module: Model) -> Model:
    """Let every HBFP layer of a model keep its converted weights, for inference.

    A call that needs no gradients then converts its input alone. Where it finds that the weights have changed (an
    optimiser's step, ``load_state_dict``, another tensor, another format) it converts them anew; only what is written
    past autograd, through ``weight.data`` or NumPy, is not seen, and needs ``freeze`` again. Calls that need gradients
    convert as always. So do convolutions with groups, with padding other than numbers of zeros or of an input without
    batch, and numbers of bfloat16 and float16; products of a module's own code stay as they are.

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
    check_kind("module", module, torch.nn.Module)
    chosen = [(name, layer) for name, layer in module.named_modules()
              if isinstance(layer, layers.HBFPLayer)]
    for name, layer in chosen:
        _check(name, layer)
    for _, layer in chosen:
        layer.frozen = Frozen()
    return module


def thaw(module: Model) -> Model:
    """Undo :func:`freeze`: the converted weights are given up."""
    check_kind("module", module, torch.nn.Module)
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
    elif (device := next(layer.parameters()).device).type != "cpu":
        problem = f"must be on the CPU, not on {device}"
    if problem:
        raise ValueError(f"Layer {name!r} cannot be frozen: it {problem}")


class Frozen:
    """What a frozen layer keeps of each of its weights: the converted values, and what they were made of."""

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[Any, list[torch.Tensor], Any]] = {}
        self._images: Images | None = None

    def _serves(self, layer, x, formats, stream):
        """Whether a call may use kept weights: it needs no gradient, and weights can be kept for such calls."""
        if not isinstance(x, torch.Tensor) or foreign(x) or torch.jit.is_tracing():
            return False                                 # the general way says why
        own = [p for p in layer._parameters.values() if p is not None]       # quicker than parameters()
        parameters = [*layer.parameters()] if layer._modules else own
        if torch.is_grad_enabled() and (x.requires_grad or any(p.requires_grad for p in parameters)):
            return False
        if torch.onnx.is_in_onnx_export():
            return False
        if again.transformed(x, *parameters) or library.traced(x, formats, stream) or watcher():
            return False
        return (kernels.library() is not None and formats.w.rounding != "stochastic" and formats.mode == "hbfp"
                and formats.order == "block" and formats.accumulate == "fp32"
                and all(on_host(t) and t.dtype == torch.float32 for t in (x, *parameters)))

    def _refresh(self, key, sources, fmt, convert):
        made_of = fmt, [(t._version, t.data_ptr(), t.stride(), t.is_neg()) for t in sources]
        known = self._kept.get(key)
        if known is None or known[0] != made_of:
            # With the sources kept their addresses stay taken.
            known = self._kept[key] = made_of, [t.detach() for t in sources], convert()
        return known[2]

    def linear(self, layer: torch.nn.Linear, x: torch.Tensor, formats: Formats,
               stream: Stream | None) -> torch.Tensor | None:
        """(..., I) -> (..., O), or None where kept weights do not serve or FP32 does not hold the sums of a block."""
        sources = [layer.weight, *layer.buffers(recurse=False)]      # a mask is a buffer
        return self._product(layer, "weight", sources, layer.used_weight, layer.bias, x, formats, stream)

    def part(self, layer: torch.nn.Module, key: Any, weight: torch.Tensor, bias: torch.Tensor | None, x: torch.Tensor,
             formats: Formats, stream: Stream | None) -> torch.Tensor | None:
        """As :meth:`linear` does, for one of several weights (O, I) of a layer; ``key`` says which."""
        return self._product(layer, key, [weight], lambda: weight, bias, x, formats, stream)

    def _product(self, layer, key, sources, weight, bias, x, formats, stream):
        out, width = sources[0].shape
        if not self._serves(layer, x, formats, stream) or x.shape[-1:] != (width,):
            return None
        fmt, w_fmt = formats.x, formats.w
        packed, span = self._refresh(key, sources, w_fmt, lambda: _packed(weight().detach(), w_fmt))
        state = None if stream is None else stream.state.copy()
        a = Encoded(Operand(x.detach().reshape(-1, width), fmt, stream), -1)
        if a.span is None or not products.exact(fmt, w_fmt, a.span, span):
            if stream is not None:
                stream.state[:] = state                              # as if nothing had been drawn
            return None
        y = torch.from_numpy(products.packed_product(a.values, packed, fmt.terms, out))
        if bias is not None:
            y += bias.detach()
        note("linear", formats, x.numel() * out)
        return y.reshape(*x.shape[:-1], out)

    def conv2d(self, layer: torch.nn.Conv2d, x: torch.Tensor, formats: Formats,
               stream: Stream | None) -> torch.Tensor | None:
        """(N, C, H, W) -> (N, O, OH, OW), or None where kept weights do not serve."""
        padding = layer.padding
        if (layer.groups > 1 or layer.padding_mode != "zeros" or isinstance(padding, str)
                or not self._serves(layer, x, formats, stream) or x.dim() != 4):
            return None
        sources = [layer.weight, *layer.buffers(recurse=False)]
        weight, kept = self._refresh("weight", sources, formats.w, lambda: _matrix(layer.used_weight(), formats.w))
        y = self._once(layer, x, weight, kept, formats)
        if y is None:
            y = conv.frozen_conv2d(x, weight, kept, layer.stride, padding, layer.dilation, formats, stream)
        note("conv2d", formats, y.numel() * layer.weight[0].numel())
        return y if layer.bias is None else y + layer.bias.detach()[:, None, None]

    def _once(self, layer, x, weight, kept, formats):
        """The product of images that are like the last ones; None where their elements are not converted once."""
        if formats.stochastic or x.is_neg() or x._is_zerotensor() or not x.numel():
            return None
        options = weight.shape, layer.stride, layer.padding, layer.dilation
        images = self._images
        if images is None or images.formats is not formats or images.known != Images.of(x, *options):
            conv.check_images(x, weight, layer.padding, layer.dilation, 1)
            images = self._images = Images(x, *options, formats)
        return images.product(x, kept) if images.serves else None


def _packed(w, fmt):
    values, span = kernels.encoded(np.ascontiguousarray(array(w)), fmt)
    return products.packed(values.T), span


def _matrix(w, fmt):
    w = w.detach()
    return w, kernels.encoded(array(unfold.weight_matrix(w)), fmt, axis=0)
