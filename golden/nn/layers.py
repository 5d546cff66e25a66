"""Layers of ``torch.nn`` whose matrix products, forward and backward, are HBFP.

Each is a subclass of its ``torch.nn`` twin with the same parameters and ``state_dict``; parameters keep their type,
float32, bfloat16 or float16. ``stochastic`` adds one buffer, ``noise_state``: the state of the layer's converter lanes.
"""

import functools
from typing import Any, Self, TypeAlias, Unpack

import torch
from torch.nn.functional import pad
from torch.nn.utils.rnn import PackedSequence

from hbfp.format import HBFPFormat

from ..formats.names import words
from ..noise import Stream
from . import functional, nested, recurrent
from .convolution import convolution
from .formats import FormatLike, Formats
from .memory import check_dense
from .options import FormatOptions, check_options
from .products import check_float32
from .state import HBFPState, untraced_noise

#: Where parameters lie, and sizes of two dimensions, as torch takes them.
Device: TypeAlias = torch.device | str | int | None
Sides: TypeAlias = int | tuple[int, int]


def check_types(module: torch.nn.Module) -> None:
    """Raise ``TypeError`` with one line if a parameter has numbers that FP32 has not."""
    for name, parameter in module.named_parameters():
        if parameter.dtype not in functional.NARROW:
            check_float32(**{name: parameter})


def _layer(forward):
    """Decorator of ``forward``: what draws noise is not traced, and no torch function mode looks into a layer."""
    @functools.wraps(forward)
    def alone(self, *args, **kwargs):
        if torch.compiler.is_compiling():
            return forward(self, *args, **kwargs)
        with torch._C.DisableTorchFunction():
            return forward(self, *args, **kwargs)
    return untraced_noise(alone)


def _refuse_formats(**arguments):
    """``TypeError`` if a format stands where torch has another argument, which might take it in silence."""
    for name, value in arguments.items():
        if isinstance(value, (HBFPFormat, Formats)):
            raise TypeError(f"{name} must not be of type {type(value).__name__}; write fmt=... for the format")


class HBFPLayer(HBFPState):
    """What all layers share: ``formats``, which may change between steps, and the noise."""
    #: What :func:`golden.nn.freeze` keeps.
    frozen: Any = None

    def _setup(self, fmt, seed, **options):
        check_options(type(self), options)
        check_types(self)
        self.hbfp_setup(Formats.of(fmt, **options), seed)

    @property
    def formats(self) -> Formats:
        """The layer's :class:`~golden.nn.Formats`."""
        return self.hbfp_formats

    @formats.setter
    def formats(self, formats: FormatLike) -> None:
        self.hbfp_set_formats(formats)

    @property
    def seed(self) -> int:
        """Seed of the noise."""
        return self.hbfp_seed

    @property
    def stream(self) -> Stream | None:
        """The noise of ``stochastic``, else None."""
        return self.hbfp_stream

    def reformat(self, formats: FormatLike, *, seed: int | None = None) -> None:
        """Change the format. A new ``seed`` restarts the noise; without one it runs on, if its lanes are as before."""
        self.hbfp_reformat(formats, seed=seed)

    @classmethod
    def of(cls, layer: torch.nn.Module, fmt: FormatLike = "hbfp8", *, seed: int = 1,
           **options: Unpack[FormatOptions]) -> Self:
        """The HBFP twin of a ``torch.nn`` layer; it shares the layer's parameters."""
        twin = cls.__new__(cls)
        twin.__dict__.update(layer.__dict__)
        for name in ("_parameters", "_buffers", "_modules"):   # own dictionaries, shared values
            twin.__dict__[name] = dict(layer.__dict__[name])
        twin._setup(fmt, seed, **options)
        return twin

    def _linear(self, key, x, w, bias, formats, stream):
        """A product with one of several weights of the layer, of which a frozen one may keep the conversion."""
        if self.frozen is not None and not torch.compiler.is_compiling():
            y = self.frozen.part(self, key, w, bias, x, formats, stream)
            if y is not None:
                return y
        return functional.linear(x, w, bias, formats, stream=stream)

    def used_weight(self) -> torch.Tensor:
        """What products take as the weight: ``weight`` itself, or what the mask of :mod:`golden.nn.sparse` leaves."""
        return self.weight

    def extra_repr(self) -> str:
        """The text of torch's own layer, and the mantissa widths."""
        f, text = self.formats, super().extra_repr()
        text += ", " if text else ""
        if f.mode == "values":
            return f"{text}x={words(f.x)}, w={words(f.w)}, g={words(f.g)}"
        return f"{text}x=hbfp{f.x.mantissa}, w=hbfp{f.w.mantissa}, g=hbfp{f.g.mantissa}, " \
               f"block={f.x.block}, order={f.order!r}"


class HBFPLinear(HBFPLayer, torch.nn.Linear):
    """``torch.nn.Linear`` in HBFP.

    Parameters
    ----------
    in_features, out_features, bias, device
        As of ``torch.nn.Linear``.
    fmt : HBFPFormat or Formats
        One format for inputs, weights and gradients, or one for each.
    seed : int
        Seed of the ``stochastic`` lanes.
    options
        As of :meth:`Formats.of <golden.nn.Formats.of>`.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, fmt: FormatLike = "hbfp8", *,
                 seed: int = 1, device: Device = None, **options: Unpack[FormatOptions]) -> None:
        _refuse_formats(bias=bias)
        super().__init__(in_features, out_features, bias, device=device)
        self._setup(fmt, seed, **options)

    @_layer
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """(..., in_features) -> (..., out_features)."""
        with self.hbfp_call() as (formats, stream):
            if self.frozen is not None and not torch.compiler.is_compiling():
                y = self.frozen.linear(self, input, formats, stream)
                if y is not None:
                    return y
            return functional.linear(input, self.used_weight(), self.bias, formats, stream=stream)


class HBFPConv2d(HBFPLayer, torch.nn.Conv2d):
    """``torch.nn.Conv2d`` in HBFP; see :mod:`golden.nn.conv`.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, device
        As of ``torch.nn.Conv2d``.
    fmt, seed, options
        As of :class:`HBFPLinear`.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sides, stride: Sides = 1,
                 padding: Sides | str = 0, dilation: Sides = 1, groups: int = 1, bias: bool = True,
                 fmt: FormatLike = "hbfp8", *, seed: int = 1, padding_mode: str = "zeros", device: Device = None,
                 **options: Unpack[FormatOptions]) -> None:
        _refuse_formats(stride=stride, padding=padding, dilation=dilation, groups=groups, bias=bias)
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
                         padding_mode=padding_mode, device=device)
        self._setup(fmt, seed, **options)

    @_layer
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """(N, C, H, W) -> (N, O, OH, OW); without N, too."""
        with self.hbfp_call() as (formats, stream):
            if self.frozen is not None and not torch.compiler.is_compiling():
                y = self.frozen.conv2d(self, input, formats, stream)
                if y is not None:
                    return y
            padding = self.padding
            if self.padding_mode != "zeros":
                input, padding = pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
            return convolution(2, input, self.used_weight(), self.bias, self.stride, padding, self.dilation,
                               self.groups, formats, stream=stream)


class HBFPLSTM(HBFPLayer, torch.nn.LSTM):
    """``torch.nn.LSTM`` in HBFP: both products of a step; gates and state are FP32.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype
        As of ``torch.nn.LSTM``.
    fmt, seed, options
        As of :class:`HBFPLinear`.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, fmt: FormatLike = "hbfp8", *,
                 seed: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, proj_size: int = 0, device: Device = None,
                 dtype: torch.dtype | None = None, **options: Unpack[FormatOptions]) -> None:
        _refuse_formats(num_layers=num_layers)
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
                         device, dtype)
        self._setup(fmt, seed, **options)

    @untraced_noise
    @torch.compiler.disable                                    # torch.compile leaves torch.nn.LSTM out, too
    def forward(self, input: torch.Tensor | PackedSequence, hx: tuple[torch.Tensor, torch.Tensor] | None = None
                ) -> tuple[torch.Tensor | PackedSequence, tuple[torch.Tensor, torch.Tensor]]:
        """(L, N, I), or (N, L, I) with ``batch_first``, or (L, I), or packed; returns output, (h, c)."""
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        check_dense(input)
        single = input.dim() == 2
        x = input.unsqueeze(1) if single else input.transpose(0, 1) if self.batch_first else input
        if hx is not None and single:
            hx = (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        y, (h, c) = self._run(x.flatten(0, 1), [x.shape[1]] * len(x), hx)
        y = y.reshape(*x.shape[:2], -1)
        if single:
            return y.squeeze(1), (h.squeeze(1), c.squeeze(1))
        return y.transpose(0, 1) if self.batch_first else y, (h, c)

    def _packed(self, input, hx):
        """Of a packed sequence."""
        if hx is not None and input.sorted_indices is not None:
            hx = (hx[0].index_select(1, input.sorted_indices), hx[1].index_select(1, input.sorted_indices))
        y, state = self._run(input.data, input.batch_sizes.tolist(), hx)
        if input.unsorted_indices is not None:
            state = state[0].index_select(1, input.unsorted_indices), state[1].index_select(1, input.unsorted_indices)
        return PackedSequence(y, input.batch_sizes, input.sorted_indices, input.unsorted_indices), state

    def _run(self, rows, sizes, hx):
        """All layers and directions over rows (sum of sizes, I); the batch at the start is the first size."""
        self._update_flat_weights()                        # torch.func.functional_call gives others
        if hx is None:
            shape = self.num_layers * (2 if self.bidirectional else 1), sizes[0]
            hx = (torch.zeros(*shape, self.proj_size or self.hidden_size, device=rows.device, dtype=rows.dtype),
                  torch.zeros(*shape, self.hidden_size, device=rows.device, dtype=rows.dtype))
        with self.hbfp_call() as (formats, stream):
            return recurrent.run("lstm", rows, sizes, tuple(hx), self._flat_weights, formats, stream,
                                 linear=self._product, bias=self.bias,
                                 layers=self.num_layers, dropout=self.dropout if self.training else 0.0,
                                 bidirectional=self.bidirectional, projected=self.proj_size > 0)

    def _product(self, x, w, bias, formats, *, stream):
        number = next(i for i, own in enumerate(self._flat_weights) if own is w)
        return self._linear(number, x, w, bias, formats, stream)


class HBFPMultiheadAttention(HBFPLayer, torch.nn.MultiheadAttention):
    """``torch.nn.MultiheadAttention`` in HBFP: projections, scores and the weighted sum.

    Parameters
    ----------
    embed_dim, num_heads, dropout, bias, batch_first, device
        As of ``torch.nn.MultiheadAttention``; no ``bias_kv``, ``zero_attn``, ``kdim`` or ``vdim``.
    fmt, seed, options
        As of :class:`HBFPLinear`.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 batch_first: bool = False, fmt: FormatLike = "hbfp8", *, seed: int = 1, device: Device = None,
                 **options: Unpack[FormatOptions]) -> None:
        _refuse_formats(dropout=dropout, bias=bias, batch_first=batch_first)
        super().__init__(embed_dim, num_heads, dropout, bias, batch_first=batch_first, device=device)
        self._setup(fmt, seed, **options)

    @staticmethod
    def serves(layer: torch.nn.MultiheadAttention) -> bool:
        """Whether this class can replace a layer."""
        return layer._qkv_same_embed_dim and layer.bias_k is None and not layer.add_zero_attn

    def _setup(self, fmt, seed, **options):
        if not self.serves(self):
            raise ValueError("Attention with kdim, vdim, bias_kv or zero_attn is not supported")
        super()._setup(fmt, seed, **options)
        if not isinstance(self.out_proj, HBFPLinear):
            self.out_proj = HBFPLinear.of(self.out_proj, self.formats, seed=seed)

    def hbfp_set_formats(self, formats: FormatLike) -> None:
        """Change the formats, those of the output projection, too."""
        super().hbfp_set_formats(formats)
        if isinstance(self.out_proj, HBFPLinear):
            self.out_proj.formats = formats
    @_layer
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                key_padding_mask: torch.Tensor | None = None, need_weights: bool = True,
                attn_mask: torch.Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
        """As torch's own layer: returns the output and, with ``need_weights``, the attention weights."""
        if all(map(nested.jagged, (query, key, value))):
            if not self.batch_first or need_weights or (key_padding_mask, attn_mask) != (None, None):
                raise ValueError(nested.PLAIN)
            return self._nested(query, key, value, is_causal), None
        check_dense(query, key, value)
        if query.dim() == 2:
            raise ValueError("query must have 3 dimensions, not 2")
        if not self.batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        with self.hbfp_call() as (formats, stream):
            masked = key_padding_mask is not None or attn_mask is not None
            y, weights = self._attend(query, key, value, key_padding_mask, attn_mask, is_causal, formats, stream,
                                      need_weights or masked)
        y = self.out_proj(y.transpose(1, 2).flatten(2))
        if not self.batch_first:
            y = y.transpose(0, 1)
        return y, (weights.mean(1) if average_attn_weights else weights) if need_weights else None

    def _nested(self, query, key, value, is_causal):
        """Of nested tensors (N, \\*, E)."""
        with self.hbfp_call() as (formats, stream):
            q, k, v = (each.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for each in
                       self._projected(query, key, value, formats, stream))
            y = functional.nested_attention(q, k, v, self.dropout if self.training else 0.0, formats,
                                            is_causal=is_causal, stream=stream)
        return self.out_proj(y.transpose(1, 2).flatten(-2))

    def _projected(self, query, key, value, formats, stream):
        """The three by their parts of the projection."""
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return (self._linear(*four, formats, stream) for four in
                zip("qkv", (query, key, value), self.in_proj_weight.chunk(3), biases, strict=True))

    def _attend(self, query, key, value, key_padding_mask, attn_mask, is_causal, formats, stream, by_parts):
        """What comes before the output projection (N, heads, L, d), and the weights, if ``by_parts``."""
        q, k, v = (each.view(*each.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)     # (N, heads, L, d)
                   for each in self._projected(query, key, value, formats, stream))
        dropout = self.dropout if self.training else 0.0
        if not by_parts:
            return functional.attention(q, k, v, None, dropout, formats, is_causal=is_causal, stream=stream), None
        mask = self._mask(query, key, key_padding_mask, attn_mask, is_causal)
        return functional.scaled_dot_product_attention(q, k, v, mask, dropout, formats, stream=stream)

    def _mask(self, query, key, key_padding_mask, attn_mask, is_causal):
        """One additive mask (N or 1, heads or 1, L, S), or None."""
        def additive(mask):
            if mask.dtype != torch.bool:
                return mask
            return torch.zeros(mask.shape, device=mask.device).masked_fill(mask, float("-inf"))
        mask = None
        if attn_mask is None and is_causal:
            length = query.shape[1], key.shape[1]
            attn_mask = torch.ones(length, dtype=torch.bool, device=query.device).triu(1)
        if attn_mask is not None:
            mask = additive(attn_mask)
            mask = mask[None, None] if mask.dim() == 2 else mask.view(-1, self.num_heads, *mask.shape[1:])
        if key_padding_mask is not None:
            padding = additive(key_padding_mask)[:, None, None]
            mask = padding if mask is None else mask + padding
        return mask
