"""Layers of ``torch.nn`` whose matrix products, forward and backward, are HBFP.

Each is a subclass of its ``torch.nn`` twin with the same parameters and ``state_dict``; parameters
stay FP32. ``stochastic`` adds one buffer, ``noise_state``: the state of the layer's converter lanes.

Under ``torch.compile`` these layers run as they are (the graph breaks around them); what lies between
them is compiled.
"""

from typing import Any, Self

import numpy as np
import torch

from hbfp.format import HBFPFormat

from ..noise import Stream, lane_starts, mix
from . import functional
from .formats import FormatLike, Formats
from .products import check_float32


class _BufferStream(Stream):
    """A stream whose state lives in a module's buffer, so that it is saved, copied and moved with it."""

    def __init__(self, buffer):
        self.buffer = buffer
        self.state = buffer.cpu().numpy().view(np.uint32)      # shares memory on the CPU

    def words(self, beats):
        words = super().words(beats)
        if self.buffer.device.type != "cpu":
            self.buffer.copy_(torch.from_numpy(self.state.view(np.int32)))
        return words


def _refuse_formats(**arguments):
    """``TypeError`` if a format stands where torch has another argument, which might take it in silence."""
    for name, value in arguments.items():
        if isinstance(value, (HBFPFormat, Formats)):
            raise TypeError(f"{name} must not be of type {type(value).__name__}; write fmt=... for the format")


class HBFPLayer(torch.nn.Module):
    """What all layers share: ``formats``, which may change between steps, and the noise."""
    noise_state: torch.Tensor | None

    def _setup(self, fmt, seed, **options):
        check_float32(**dict(self.named_parameters()))
        mix(seed)                                              # checks the range
        self.seed = seed
        self.register_buffer("noise_state", None)
        self.formats = Formats.of(fmt, **options)

    @property
    def formats(self) -> Formats:
        """The layer's :class:`~golden.nn.Formats`."""
        return self._formats

    @formats.setter
    def formats(self, formats: FormatLike) -> None:
        self._set_formats(formats)

    def _set_formats(self, formats):
        self._formats = Formats.of(formats)
        if self._formats.stochastic:
            if self.noise_state is None or len(self.noise_state) != self._formats.lanes:
                state = lane_starts(self.seed, self._formats.lanes).view(np.int32)
                where = next(self.parameters()).device
                self.noise_state = torch.from_numpy(state.copy()).to(where)
        else:
            self.noise_state = None

    def reformat(self, formats: FormatLike, *, seed: int | None = None) -> None:
        """Change the format. A new ``seed`` restarts the noise; without one it runs on, if its lanes are as before."""
        if seed is not None:
            mix(seed)
            self.seed, self.noise_state = seed, None
        self.formats = formats

    @property
    def stream(self) -> Stream | None:
        """The noise of ``stochastic``, else None."""
        return None if self.noise_state is None else _BufferStream(self.noise_state)

    @classmethod
    def of(cls, layer: torch.nn.Module, fmt: FormatLike = None, *, seed: int = 1, **options: Any) -> Self:
        """The HBFP twin of a ``torch.nn`` layer; it shares the layer's parameters."""
        twin = cls.__new__(cls)
        twin.__dict__.update(layer.__dict__)
        for name in ("_parameters", "_buffers", "_modules"):   # own dictionaries, shared values
            twin.__dict__[name] = dict(layer.__dict__[name])
        twin._setup(fmt, seed, **options)
        return twin

    def extra_repr(self) -> str:
        """The twin's text and the mantissa widths."""
        f, text = self.formats, super().extra_repr()
        text += ", " if text else ""
        return f"{text}x=hbfp{f.x.mantissa}, w=hbfp{f.w.mantissa}, g=hbfp{f.g.mantissa}, " \
               f"block={f.x.block}, order={f.order!r}"


class HBFPLinear(HBFPLayer, torch.nn.Linear):
    """``torch.nn.Linear`` in HBFP.

    Parameters
    ----------
    in_features, out_features, bias, device
        As of ``torch.nn.Linear``.
    fmt : HBFPFormat or Formats
        Format of all three tensor roles, or one each.
    seed : int
        Seed of the ``stochastic`` lanes.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, fmt: FormatLike = None, *, seed: int = 1,
                 device: Any = None, **options: Any) -> None:
        _refuse_formats(bias=bias)
        super().__init__(in_features, out_features, bias, device=device)
        self._setup(fmt, seed, **options)

    @torch.compiler.disable
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """(..., in_features) -> (..., out_features)."""
        return functional.linear(input, self.weight, self.bias, self.formats, stream=self.stream)


class HBFPConv2d(HBFPLayer, torch.nn.Conv2d):
    """``torch.nn.Conv2d`` in HBFP, zeros around; see :mod:`golden.nn.conv`.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, device
        As of ``torch.nn.Conv2d``; padding as numbers.
    fmt, seed
        As of :class:`HBFPLinear`.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True, fmt: FormatLike = None, *, seed: int = 1,
                 device: Any = None, **options: Any) -> None:
        _refuse_formats(stride=stride, padding=padding, dilation=dilation, groups=groups, bias=bias)
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
                         device=device)
        self._setup(fmt, seed, **options)

    def _setup(self, fmt, seed, **options):
        if self.padding_mode != "zeros" or isinstance(self.padding, str):
            raise ValueError(f"Padding must be numbers of zeros, not {self.padding!r} of {self.padding_mode!r}")
        super()._setup(fmt, seed, **options)

    @torch.compiler.disable
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """(N, C, H, W) -> (N, O, OH, OW)."""
        return functional.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups,
                                 self.formats, stream=self.stream)


class HBFPLSTM(HBFPLayer, torch.nn.LSTM):
    """``torch.nn.LSTM`` in HBFP: both products of a step; gates and state are FP32. No projections.

    Parameters
    ----------
    args, options
        As of ``torch.nn.LSTM``, by name after the first two.
    fmt, seed
        As of :class:`HBFPLinear`.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, fmt: FormatLike = None, *, seed: int = 1,
                 **options: Any) -> None:
        _refuse_formats(num_layers=num_layers)
        super().__init__(input_size, hidden_size, num_layers, **options)
        self._setup(fmt, seed)

    def _setup(self, fmt, seed, **options):
        if self.proj_size:
            raise ValueError(f"proj_size must be 0, not {self.proj_size!r}")
        super()._setup(fmt, seed, **options)

    @torch.compiler.disable
    def forward(self, input: torch.Tensor, hx: tuple[torch.Tensor, torch.Tensor] | None = None
                ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """(L, N, I), or (N, L, I) with ``batch_first``, or (L, I); returns output, (h, c)."""
        single = input.dim() == 2
        x = input.unsqueeze(1) if single else input.transpose(0, 1) if self.batch_first else input
        sides = 2 if self.bidirectional else 1
        if hx is None:
            hx = (torch.zeros(self.num_layers * sides, x.shape[1], self.hidden_size, device=x.device),) * 2
        elif single:
            hx = tuple(part.unsqueeze(1) for part in hx)
        last: tuple[list[torch.Tensor], list[torch.Tensor]] = [], []
        for layer in range(self.num_layers):
            outputs = []
            for side in range(sides):
                index = layer * sides + side
                y, h, c = self._run(x, hx[0][index], hx[1][index], f"l{layer}{'_reverse' * side}", bool(side))
                outputs.append(y)
                last[0].append(h)
                last[1].append(c)
            x = torch.cat(outputs, -1) if sides == 2 else outputs[0]
            if self.dropout and layer < self.num_layers - 1:
                x = torch.dropout(x, self.dropout, self.training)
        h, c = (torch.stack(part) for part in last)
        if single:
            return x.squeeze(1), (h.squeeze(1), c.squeeze(1))
        return x.transpose(0, 1) if self.batch_first else x, (h, c)

    def _run(self, x, h, c, name, backwards):
        """One layer in one direction over (L, N, I)."""
        w_x, w_h = (getattr(self, f"weight_{kind}_{name}") for kind in ("ih", "hh"))
        b_x, b_h = (getattr(self, f"bias_{kind}_{name}") if self.bias else None for kind in ("ih", "hh"))
        stream, outputs = self.stream, []
        inputs = functional.linear(x, w_x, b_x, self.formats, stream=stream)
        for step in reversed(range(len(x))) if backwards else range(len(x)):
            gates = inputs[step] + functional.linear(h, w_h, b_h, self.formats, stream=stream)
            i, f, g, o = gates.chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            outputs.append(h)
        return torch.stack(outputs[::-1] if backwards else outputs), h, c


class HBFPMultiheadAttention(HBFPLayer, torch.nn.MultiheadAttention):
    """``torch.nn.MultiheadAttention`` in HBFP: projections, scores and the weighted sum.

    Parameters
    ----------
    embed_dim, num_heads, options
        As of ``torch.nn.MultiheadAttention``; no ``bias_kv``, ``zero_attn``, ``kdim`` or ``vdim``.
    fmt, seed
        As of :class:`HBFPLinear`.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 batch_first: bool = False, fmt: FormatLike = None, *, seed: int = 1, device: Any = None) -> None:
        _refuse_formats(dropout=dropout, bias=bias, batch_first=batch_first)
        super().__init__(embed_dim, num_heads, dropout, bias, batch_first=batch_first, device=device)
        self._setup(fmt, seed)

    def _setup(self, fmt, seed, **options):
        if not self._qkv_same_embed_dim or self.bias_k is not None or self.add_zero_attn:
            raise ValueError("Attention with kdim, vdim, bias_kv or zero_attn is not supported")
        super()._setup(fmt, seed, **options)
        if not isinstance(self.out_proj, HBFPLinear):
            self.out_proj = HBFPLinear.of(self.out_proj, self.formats, seed=seed)

    @property
    def formats(self) -> Formats:
        """The layer's :class:`~golden.nn.Formats`; setting it sets the output projection's too."""
        return self._formats

    @formats.setter
    def formats(self, formats: FormatLike) -> None:
        self._set_formats(formats)
        if isinstance(self.out_proj, HBFPLinear):
            self.out_proj.formats = self._formats

    @torch.compiler.disable
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                key_padding_mask: torch.Tensor | None = None, need_weights: bool = True,
                attn_mask: torch.Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
        """As of the twin: returns the output and, with ``need_weights``, the attention weights."""
        if query.dim() == 2:
            raise ValueError("query must have 3 dimensions, not 2")
        if not self.batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        stream, heads = self.stream, self.num_heads
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        rows = self.in_proj_weight.chunk(3)
        q, k, v = (functional.linear(*three, self.formats, stream=stream)
                   .unflatten(-1, (heads, -1)).transpose(1, 2)              # (N, heads, L, d)
                   for three in zip((query, key, value), rows, biases, strict=True))
        mask = self._mask(query, key, key_padding_mask, attn_mask, is_causal)
        y, weights = functional.scaled_dot_product_attention(
            q, k, v, mask, self.dropout if self.training else 0.0, self.formats, stream=stream)
        y = self.out_proj(y.transpose(1, 2).flatten(2))
        if not self.batch_first:
            y = y.transpose(0, 1)
        return y, (weights.mean(1) if average_attn_weights else weights) if need_weights else None

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
            mask = mask[None, None] if mask.dim() == 2 else mask.unflatten(0, (-1, self.num_heads))
        if key_padding_mask is not None:
            padding = additive(key_padding_mask)[:, None, None]
            mask = padding if mask is None else mask + padding
        return mask
