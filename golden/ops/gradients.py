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
    _kept("tanh_backward", programs.tanh_gradient()),
    Operation("log_softmax_backward", calls("_log_softmax_backward_data"), Shape.ROW, _log_softmax, gradient=True),
    Operation("softmax_backward", calls("_softmax_backward_data"), Shape.ROW, _softmax, gradient=True))
