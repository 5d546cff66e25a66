"""Convolutions of torch's signatures, of one to three dimensions, batched or not, brought to the kernels."""

from typing import Any

import torch
from torch.nn.functional import pad

from ..noise import Stream
from . import library
from .formats import FormatLike, Formats
from .functional import single
from .record import note


def convolution(dims: int, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
                stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, formats: FormatLike = "hbfp8", *,
                stream: Stream | None = None) -> torch.Tensor:
    """``torch.nn.functional.conv1d``, ``conv2d`` and ``conv3d``; padding is zeros, ``same`` or ``valid``, too.

    Raises
    ------
    TypeError
        If an operand is no dense tensor.
    ValueError
        If an option is none of torch's.
    """
    formats = Formats.of(formats)
    (input, weight, bias), dtype = single(input, weight, bias=bias)
    if input.dim() == dims + 1:
        y = convolution(dims, input[None], weight, bias, stride, padding, dilation, groups, formats, stream=stream)
        return y[0].to(dtype)
    stride, dilation = sides(stride, dims, "stride"), sides(dilation, dims, "dilation")
    kernel = tuple(weight.shape[2:])
    if isinstance(padding, str):
        input, padding = _named(input, padding, kernel, stride, dilation), (0,) * dims
    options = {"stride": stride, "padding": sides(padding, dims, "padding"), "dilation": dilation}
    if dims == 1:
        options = {name: (fill, *value) for (name, value), fill in zip(options.items(), (1, 0, 1), strict=True)}
        y = library.conv2d(input.unsqueeze(2), weight.unsqueeze(2), formats, stream, groups=groups, **options)
        y = y.squeeze(2)
    else:
        run = library.conv2d if dims == 2 else library.conv3d
        y = run(input, weight, formats, stream, groups=groups, **options)
    note(f"conv{dims}d", formats, y.numel() * weight[0].numel(), y=y)
    return _biased(y, bias).to(dtype)


def transposed(dims: int, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
               stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
               formats: FormatLike = "hbfp8", *, stream: Stream | None = None) -> torch.Tensor:
    """``torch.nn.functional.conv_transpose1d``, ``2d`` and ``3d``; raises as :func:`convolution`."""
    formats = Formats.of(formats)
    (input, weight, bias), dtype = single(input, weight, bias=bias)
    if input.dim() == dims + 1:
        y = transposed(dims, input[None], weight, bias, stride, padding, output_padding, groups, dilation, formats,
                       stream=stream)
        return y[0].to(dtype)
    given = {"stride": (stride, 1), "padding": (padding, 0), "output_padding": (output_padding, 0),
             "dilation": (dilation, 1)}
    options = {name: (fill,) * (3 - dims) + sides(value, dims, name) for name, (value, fill) in given.items()}
    for _ in range(3 - dims):
        input, weight = input.unsqueeze(2), weight.unsqueeze(2)
    y = library.conv_transpose3d(input, weight, formats, stream, groups=groups, **options)
    note(f"conv_transpose{dims}d", formats, input.numel() * weight[0].numel(), y=y)
    return _biased(y.reshape(*y.shape[:2], *y.shape[5 - dims:]), bias).to(dtype)


def sides(value: Any, dims: int, name: str) -> tuple[int, ...]:
    """An option of torch as one int for each dimension; ValueError if it has another number of them."""
    if isinstance(value, int):
        return (value,) * dims
    if isinstance(value, (tuple, list)) and len(value) in (1, dims):
        return tuple(value) * (dims if len(value) == 1 else 1)
    raise ValueError(f"{name} must be an int or {dims} of them, not {value!r}")


def _named(input, padding, kernel, stride, dilation):
    """The input with zeros around it as the name asks."""
    if padding == "valid":
        return input
    if padding != "same":
        raise ValueError(f"Padding must be numbers, 'same' or 'valid', not {padding!r}")
    if any(step != 1 for step in stride):
        raise ValueError(f"Padding 'same' needs stride 1, not {stride}")
    totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    return pad(input, [side for total in reversed(totals) for side in (total // 2, total - total // 2)])


def _biased(y, bias):
    return y if bias is None else y + bias.view(-1, *[1] * (y.dim() - 2))
