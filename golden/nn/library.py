"""The products as operators of torch, ``torch.ops.hbfp``: what a traced program holds in place of a layer's inside.

``torch.compile`` and ``torch.export`` trace with tensors that have no values. There, and on the device ``meta``, a
product is one of these operators, which gives shapes, and bits once it runs; a lowering to hardware finds them by
name. Elsewhere the same functions run directly. ``formats`` is text in an operator: see :class:`golden.nn.Formats`.
"""

from collections.abc import Callable

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ..noise import Stream
from . import again, conv, emulator, ops, values, volume
from .formats import Formats
from .operators import register, register_bias, register_images, version
from .placed import Placed, check_gradients, read
from .products import check_float32
from .state import NO_NOISE

F = torch.nn.functional


def traced(tensor: torch.Tensor, formats: Formats, stream: Stream | Placed | None, matrices: bool = False) -> bool:
    """Whether a product has to be an operator; ValueError if it has to, and would draw noise of lanes.

    Noise by position is said by the operators of ``matrices``, and drawn by no other: NotImplementedError.
    """
    tracing = torch.compiler.is_compiling()
    if not tracing and not tensor.is_meta and not isinstance(tensor, FakeTensor):
        return False
    if formats.stochastic and isinstance(stream, Placed):
        return matrices or stream.state
    if formats.stochastic and stream is not None:
        raise ValueError(NO_NOISE)
    return True


def _text(formats, stream):
    """What a traced product says of its formats, and of the numbers that it draws."""
    return stream.product().text(formats) if isinstance(stream, Placed) else formats.text


def _spread(size, padding, dilation, kernel, stride):
    """Sides of a convolution's output, in pixels."""
    return [(s + 2 * p - d * (k - 1) - 1) // step + 1
            for s, p, d, k, step in zip(size, padding, dilation, kernel, stride, strict=True)]


def _conv_shape(x, w, stride, padding, dilation, groups, formats):
    return x.shape[0], w.shape[0], *_spread(x.shape[2:], padding, dilation, w.shape[2:], stride)


def _transposed_shape(x, w, stride, padding, output_padding, groups, dilation, formats):
    sides = [(s - 1) * step - 2 * p + d * (k - 1) + 1 + o for s, step, p, d, k, o in
             zip(x.shape[2:], stride, padding, dilation, w.shape[2:], output_padding, strict=True)]
    return x.shape[0], w.shape[1] * groups, *sides


def _matrix_macs(y, a, b):
    return y.numel() * a.shape[-1]


def _convolution_macs(y, x, w):
    return y.numel() * w[0].numel()


def _direct_linear(x, w, formats, stream=None, bias=None):
    """A linear product that is not traced."""
    if formats.mode != "values":
        return ops.linear(x, w, formats, stream, bias)
    ops.check_linear(x, w)
    y = values.product(values.LINEAR, x.reshape(x.shape[:-1].numel(), x.shape[-1]), w, formats)
    return (y if bias is None else ops.AddBias.apply(y, bias)).reshape(*x.shape[:-1], len(w))


def _direct_matmul(a, b, formats, stream=None):
    """Stacked products that are not traced."""
    if formats.mode != "values":
        return ops.matmul(a, b, formats, stream)
    ops.check_matmul(a, b)
    return values.product(values.MATMUL, a, b, formats)


def _direct(run, transposed=False):
    """A convolution that is not traced."""
    def product(x, w, formats, *, stream=None, **options):
        if formats.mode != "values":
            return run(x, w, formats, stream=stream, **options)
        check_float32(input=x, weight=w)
        return values.product(values.convolution(x, w, transposed, **options), x, w, formats)
    return product


_direct_conv2d, _direct_conv3d = _direct(conv.conv2d), _direct(volume.conv3d)
_direct_transposed = _direct(volume.conv_transpose3d, True)


def _convolution(run):
    def product(x, w, stride, padding, dilation, groups, text):
        formats, stream = read(text)
        return run(x, w, formats, stride=tuple(stride), padding=tuple(padding), dilation=tuple(dilation), groups=groups,
                   stream=stream)
    return product


_CONV = "int[] stride, int[] padding, int[] dilation, int groups, str formats"
_LINEAR = register("linear", "str formats", lambda x, w, formats: _direct_linear(x, w, *read(formats)),
                    lambda x, w, formats: (*x.shape[:-1], w.shape[0]), _matrix_macs)
_MATMUL = register("matmul", "str formats", lambda a, b, formats: _direct_matmul(a, b, *read(formats)),
                    lambda a, b, formats: (*a.shape[:-1], b.shape[-1]), _matrix_macs)


_CONV2D = register_images("conv2d", _CONV, _convolution(_direct_conv2d), _conv_shape, _convolution_macs)
_CONV3D = register_images("conv3d", _CONV, _convolution(_direct_conv3d), _conv_shape, _convolution_macs)
_TRANSPOSED = register_images(
    "conv_transpose3d", "int[] stride, int[] padding, int[] output_padding, int groups, int[] dilation, str formats",
    lambda x, w, stride, padding, output_padding, groups, dilation, formats: _direct_transposed(
        x, w, Formats.read(formats), stride=tuple(stride), padding=tuple(padding),
        output_padding=tuple(output_padding), groups=groups, dilation=tuple(dilation)),
    _transposed_shape, lambda y, x, w: x.numel() * w[0].numel())


_BIAS = register_bias()


def by_groups(x: torch.Tensor, w: torch.Tensor, offs: torch.Tensor,
              product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Products (total, N) of parts of x (total, K), of which each ends at its place in ``offs``, with w (E, K, N).

    ``product`` takes a part and the matrix of its number, turned to (N, K). Rows behind the last part give zeros.
    """
    ends = offs.tolist()
    parts = [product(x[start:end], matrix.mT) for start, end, matrix in zip([0, *ends], ends, w, strict=False)]
    return torch.cat((*parts, x.new_zeros(len(x) - ends[-1], w.shape[-1])))


_GROUPED = register(
    "grouped", "Tensor offs, str formats",
    lambda x, w, offs, formats: by_groups(x, w, offs, lambda part, matrix: linear(part, matrix, None,
                                                                                  Formats.read(formats), None)),
    lambda x, w, offs, formats: (len(x), w.shape[-1]), _matrix_macs)


def grouped(x: torch.Tensor, w: torch.Tensor, offs: torch.Tensor, formats: Formats) -> torch.Tensor:
    """:func:`by_groups` with products in HBFP, traced."""
    return _GROUPED(x, w, offs, formats.text)


def _emulated(formats, *tensors):
    """Whether a product is the emulator's, which no transform of ``torch.func`` has a rule for."""
    if formats.mode == "emulator" and again.transformed(*tensors):
        raise NotImplementedError(again.NO_RULE)
    return formats.mode == "emulator"


def linear(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, formats: Formats,
           stream: Stream | None) -> torch.Tensor:
    """:func:`golden.nn.ops.linear`, traced or not."""
    if _emulated(formats, x, w, bias):
        y = emulator.product(F.linear, x, w, formats)
        return y if bias is None else y + bias
    if again.transformed(x, w, bias):
        y = again.applied(lambda a, b: _direct_linear(a, b, formats), x, w, formats)
        rows = y.reshape(y.shape[:-1].numel(), y.shape[-1])
        return y if bias is None else ops.AddBias.apply(rows, bias).view(y.shape)
    if not traced(x, formats, stream, True):
        return _direct_linear(x, w, formats, stream, bias)
    y = _LINEAR(x, w, _text(formats, stream))
    return y if bias is None else _BIAS(y, bias)


def matmul(a: torch.Tensor, b: torch.Tensor, formats: Formats, stream: Stream | None) -> torch.Tensor:
    """:func:`golden.nn.ops.matmul`, traced or not."""
    if _emulated(formats, a, b):
        return emulator.product(torch.matmul, a, b, formats)
    if again.transformed(a, b):
        return again.applied(lambda x, y: _direct_matmul(x, y, formats), a, b, formats)
    if not traced(a, formats, stream, True):
        return _direct_matmul(a, b, formats, stream)
    return _MATMUL(a, b, _text(formats, stream))


def conv2d(x: torch.Tensor, w: torch.Tensor, formats: Formats, stream: Stream | None, *, stride: tuple[int, ...],
           padding: tuple[int, ...], dilation: tuple[int, ...], groups: int) -> torch.Tensor:
    """:func:`golden.nn.conv.conv2d`, traced or not."""
    if _emulated(formats, x, w):
        return emulator.product(lambda a, b: F.conv2d(a, b, None, stride, padding, dilation, groups), x, w, formats)
    check_gradients(formats, stream)
    if traced(x, formats, stream, True):
        return version(_CONV2D)(x, w, stride, padding, dilation, groups, _text(formats, stream))
    return again.applied(lambda a, b: _direct_conv2d(a, b, formats, stride=stride, padding=padding, dilation=dilation,
                                                     groups=groups, stream=stream), x, w, formats)


def conv3d(x: torch.Tensor, w: torch.Tensor, formats: Formats, stream: Stream | None, *, stride: tuple[int, ...],
           padding: tuple[int, ...], dilation: tuple[int, ...], groups: int) -> torch.Tensor:
    """:func:`golden.nn.volume.conv3d`, traced or not."""
    if _emulated(formats, x, w):
        return emulator.product(lambda a, b: F.conv3d(a, b, None, stride, padding, dilation, groups), x, w, formats)
    if traced(x, formats, stream):
        return version(_CONV3D)(x, w, stride, padding, dilation, groups, formats.text)
    return again.applied(lambda a, b: _direct_conv3d(a, b, formats, stride=stride, padding=padding, dilation=dilation,
                                                     groups=groups, stream=stream), x, w, formats)


def conv_transpose3d(x: torch.Tensor, w: torch.Tensor, formats: Formats, stream: Stream | None, *,
                     stride: tuple[int, ...], padding: tuple[int, ...], output_padding: tuple[int, ...], groups: int,
                     dilation: tuple[int, ...]) -> torch.Tensor:
    """:func:`golden.nn.volume.conv_transpose3d`, traced or not."""
    if _emulated(formats, x, w):
        return emulator.product(lambda a, b: F.conv_transpose3d(a, b, None, stride, padding, output_padding, groups,
                                                                dilation), x, w, formats)
    if traced(x, formats, stream):
        return version(_TRANSPOSED)(x, w, stride, padding, output_padding, groups, dilation, formats.text)
    return again.applied(lambda a, b: _direct_transposed(
        a, b, formats, stride=stride, padding=padding, output_padding=output_padding, groups=groups, dilation=dilation,
        stream=stream), x, w, formats)
