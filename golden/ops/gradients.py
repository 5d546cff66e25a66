"""Operations that autograd calls: from the gradient of an operation's result to that of its operand.

Their programs take first what the forward pass has kept, and then the gradient.
"""

import torch

from ..vector import programs
from .activations import APART
from .operation import Elements, Operation, Program, Rows, Shape, Unsupported, calls


def _kept(name: str, program: Program) -> Operation:
    """A gradient of each element, of the gradient and what was kept."""
    def form(gradient, kept, approximate="none"):
        if approximate != "none":
            raise Unsupported(f"approximate={approximate!r} has another formula; approximate='none' would do")
        return Elements(program, (kept, gradient))
    return Operation(name, calls(name), Shape.ELEMENT, form, APART.get(name), gradient=True)


def _leaky(gradient, kept, slope, is_result):
    if is_result:
        raise Unsupported("it is of the result, in place; another result than its operand would do")
    return Elements(programs.leaky_relu_gradient(slope), (kept, gradient))


def _clamp(gradient, kept, low, high):
    return Elements(programs.clamp_gradient(low, high), (kept, gradient))


def _elu(gradient, alpha, scale, slope, is_result, kept):
    if is_result:
        raise Unsupported("it is of the result, in place; another result than its operand would do")
    return Elements(programs.elu_gradient(alpha, scale, slope), (kept, gradient))


def _relu(gradient, kept, threshold):
    if threshold != 0:
        raise Unsupported(f"its threshold is {threshold}; 0 would do")
    return Elements(programs.relu_gradient(), (kept, gradient))


def _embedding(gradient, indices, rows, padding, by_frequency):
    """Rows of the table add up what their places get, from +0 on, in the order of the places."""
    if by_frequency:
        raise Unsupported("scale_grad_by_freq=True divides by counts; False would do")
    if type(indices) is not torch.Tensor or indices.is_meta:
        raise Unsupported("its indices are not known")
    places, gradient = indices.reshape(-1), gradient.reshape(-1, gradient.shape[-1])
    total = gradient.new_zeros(rows, gradient.shape[-1])
    left = (places != padding).nonzero().reshape(-1)
    while len(left):                                       # of each row the first of the places that are left
        taken, which = torch.unique(places[left], return_inverse=True)
        first = torch.full_like(taken, len(left)).scatter_reduce(0, which, torch.arange(len(left)), "amin")
        total[taken] = total[taken] + gradient[left[first]]
        rest = torch.ones(len(left), dtype=torch.bool)
        rest[first] = False
        left = left[rest]
    return total


def _log_softmax(gradient, kept, dim, *rest):
    return Rows(programs.log_softmax_gradient(), (kept, gradient), dim)


def _softmax(gradient, kept, dim, *rest):
    return Rows(programs.softmax_gradient(), (kept, gradient), dim)


OPERATIONS = (
    Operation("threshold_backward", calls("threshold_backward"), Shape.ELEMENT, _relu, gradient=True),
    _kept("gelu_backward", programs.gelu_gradient()), _kept("sigmoid_backward", programs.sigmoid_gradient()),
    _kept("tanh_backward", programs.tanh_gradient()), _kept("silu_backward", programs.silu_gradient()),
    _kept("hardswish_backward", programs.hard_swish_gradient()),
    *(Operation(name, calls(name), Shape.ELEMENT, form, gradient=True) for name, form in (
        ("leaky_relu_backward", _leaky), ("hardtanh_backward", _clamp), ("elu_backward", _elu))),
    Operation("embedding_backward", calls("embedding_dense_backward"), Shape.PARTS, parts=_embedding, gradient=True),
    Operation("log_softmax_backward", calls("_log_softmax_backward_data"), Shape.ROW, _log_softmax, gradient=True),
    Operation("softmax_backward", calls("_softmax_backward_data"), Shape.ROW, _softmax, gradient=True))
