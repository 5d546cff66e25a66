"""How a product becomes an operator of torch, ``torch.ops.hbfp``: what a traced program holds, with its gradients.

:mod:`golden.nn.library` says which products there are.
"""

from collections.abc import Callable
from typing import Any

import torch

from . import again, ops
from .formats import Formats
from .once import once_differentiable, unviewed
from .placed import read
from .record import note

Shape = Callable[..., tuple[int, ...]]


def refuse_onnx() -> None:
    """Raise ``NotImplementedError`` with one line while torch exports to ONNX."""
    if torch.onnx.is_in_onnx_export():
        raise NotImplementedError("HBFP products have no form in ONNX; torch.export.export keeps every bit, with the "
                                  "products as operators torch.ops.hbfp")


def _below_autograd_too():
    """Let autograd record within an operator, where torch has it off."""
    keys, excluded = torch._C.DispatchKey, torch._C._dispatch_tls_local_exclude_set()
    for key in (keys.AutogradCPU, keys.AutogradCUDA, keys.AutogradFunctionality, keys.ADInplaceOrView,
                keys.AutogradOther):
        excluded = excluded.remove(key)
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded)


def _rows(y, text):
    """A matrix as products leave it in memory."""
    return y.contiguous()


def _last(y, text):
    """Images (N, C, ...) as convolutions leave and take them: channels last in memory, but for torch's own."""
    return y.contiguous() if read(text)[0].mode == "values" else y.movedim(1, -1).contiguous().movedim(-1, 1)


def register(name: str, options: str, product: Callable[..., torch.Tensor], shape: Shape,
              macs: Callable[..., int], laid: Callable[..., torch.Tensor] = _rows) -> Callable[..., Any]:
    """Define ``hbfp::name(Tensor a, Tensor b, options)`` and that of its gradients; tensors are the first options.

    ``product`` takes the same arguments, and autograd; ``shape`` gives the result's, and ``macs`` its multiply-
    accumulates from result, a and b. The gradients' operator converts the operands again, for nothing of them is kept
    in a traced program. ``laid`` is how the result lies in memory, and the gradient of a.
    """
    kind, _, version = name.partition(".")
    back = name.replace(kind, f"{kind}_backward")
    torch.library.define(f"hbfp::{name}", f"(Tensor a, Tensor b, {options}) -> Tensor")
    torch.library.define(f"hbfp::{back}",
                         f"(Tensor g, Tensor a, Tensor b, {options}, bool[] needs) -> (Tensor, Tensor)")
    operator, gradients = (getattr(getattr(torch.ops.hbfp, each), version or "default")
                           for each in (kind, f"{kind}_backward"))

    @torch.library.impl(f"hbfp::{name}", "CompositeExplicitAutograd")
    def forward(a, b, *rest):
        with torch.no_grad():
            y = unviewed(laid(product(a, b, *rest), rest[-1]))
        note(kind, Formats.read(rest[-1]), macs(y, a, b))
        return y

    @torch.library.impl(f"hbfp::{back}", "CompositeExplicitAutograd")
    def both(g, a, b, *rest):
        *rest, needs = rest
        with _below_autograd_too(), torch.enable_grad():
            pair = [t.detach().requires_grad_(need) for t, need in zip((a, b), needs, strict=True)]
            with again.unread():
                y = product(*pair, *rest)
            found = iter(torch.autograd.grad(y, [t for t in pair if t.requires_grad], g))
            return tuple(lay(next(found), rest[-1]) if need else g.new_empty(0)
                         for lay, need in zip((laid, _rows), needs, strict=True))

    @torch.library.register_fake(f"hbfp::{name}")
    def fake(a, b, *rest):
        refuse_onnx()                                  # where the caller is traced, too, and cannot say so
        return laid(a.new_empty(shape(a, b, *rest)), rest[-1])

    @torch.library.register_fake(f"hbfp::{back}")
    def fakes(g, a, b, *rest):
        *rest, needs = rest
        return tuple(lay(g.new_empty(t.shape), rest[-1]) if need else g.new_empty(0)
                     for lay, t, need in zip((laid, _rows), (a, b), needs, strict=True))

    def setup(ctx, inputs, output):
        tensors = [each for each in inputs if isinstance(each, torch.Tensor)]          # they come first
        ctx.save_for_backward(*tensors)
        ctx.rest = inputs[len(tensors):]

    @once_differentiable
    def backward(ctx, g):
        needs = ctx.needs_input_grad[:2]
        given = *ctx.saved_tensors, *ctx.rest
        found = gradients(g, *given, list(needs))
        return *(part if need else None for part, need in zip(found, needs, strict=True)), *(None for _ in given[2:])
    torch.library.register_autograd(f"hbfp::{name}", backward, setup_context=setup)
    return operator


def register_images(name: str, options: str, product: Callable[..., torch.Tensor], shape: Shape,
                    macs: Callable[..., int]) -> tuple[Any, Any]:
    """A convolution twice: as programs have it, and as version ``last`` of :func:`_last`, for torch.compile.

    What runs at once keeps that order from product to product. A program has images as their shape says, and would
    begin and end each product with a copy.
    """
    return (register(name, options, product, shape, macs),
            register(f"{name}.last", options, product, shape, macs, _last))


def version(pair: tuple[Any, Any]) -> Any:
    """The version of a convolution for what traces now."""
    return pair[torch.compiler.is_dynamo_compiling() and not torch.compiler.is_exporting()]


def register_bias() -> Any:
    """Define ``hbfp::add_bias``, and ``add_bias_backward``, which gives the gradient of the bias alone.

    That of what the bias is added to is the gradient itself, and an operator must not give what it was given: compilers
    take a result for memory of its own, and write over it.
    """
    torch.library.define("hbfp::add_bias", "(Tensor a, Tensor b) -> Tensor")
    torch.library.define("hbfp::add_bias_backward", "(Tensor g, Tensor b) -> Tensor")

    @torch.library.impl("hbfp::add_bias", "CompositeExplicitAutograd")
    def forward(a, b):
        return a + b

    @torch.library.impl("hbfp::add_bias_backward", "CompositeExplicitAutograd")
    def sums(g, b):
        return ops.row_sums(g.reshape(g.shape[:-1].numel(), g.shape[-1]))

    torch.library.register_fake("hbfp::add_bias", lambda a, b: a.new_empty(a.shape))
    torch.library.register_fake("hbfp::add_bias_backward", lambda g, b: b.new_empty(b.shape))

    @once_differentiable
    def backward(ctx, g):
        return g, torch.ops.hbfp.add_bias_backward(g, *ctx.saved_tensors) if ctx.needs_input_grad[1] else None
    torch.library.register_autograd("hbfp::add_bias", backward,
                                    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[1]))
    return torch.ops.hbfp.add_bias
