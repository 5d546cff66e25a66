"""Operations that autograd calls: the gradient of an operation's operand, of that of its result.

Their programs take first what the forward pass has kept.
"""

from ..vector import programs
from .operation import Elements, Operation, Program, Rows, Shape, Unsupported, calls


def _kept(name: str, program: Program) -> Operation:
    """A gradient of each element, of the gradient and what was kept."""
    def form(gradient, kept, approximate="none"):
        if approximate != "none":
            raise Unsupported(f"approximate={approximate!r} has another formula; approximate='none' would do")
        return Elements(program, (kept, gradient))
    return Operation(name, calls(name), Shape.ELEMENT, form, gradient=True)


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
    Operation("log_softmax_backward", calls("_log_softmax_backward_data"), Shape.ROW, _log_softmax, gradient=True),
    Operation("softmax_backward", calls("_softmax_backward_data"), Shape.ROW, _softmax, gradient=True))
