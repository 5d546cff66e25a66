"""The updates of :mod:`golden.nn.fused.updates` in machine code: one pass over all numbers, gradients where they lie.

Used where it is :func:`~golden.nn.fused.proof.proven` to have torch's bits.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...fast import kernels
from ...fast.alike import Adam, Parameter, Sgd
from ..memory import plain
from .proof import proven, same_bits
from .updates import UPDATES, Group


class Compiled:
    """One step of all models' optimisers of one kind.

    Parameters
    ----------
    kind : type
        Of the optimisers; :meth:`serves` says whether there is machine code for it.
    columns : sequence of slice
        Of each parameter, in the rows of values and states.
    """

    def __init__(self, kind: type, columns: Sequence[slice]) -> None:
        self.kind = kind
        self.parameters = (Parameter * len(columns))(*(Parameter(0, each.start, each.stop - each.start)
                                                        for each in columns))

    @staticmethod
    def serves(kind: type) -> bool:
        """Whether the machine code has torch's bits."""
        return (kind in _STEPS and kernels.library() is not None
                and proven(("optimiser", kind), lambda generator: _proof(kind, generator)))

    def __call__(self, values: torch.Tensor, grads: Sequence[torch.Tensor], state: dict[str, torch.Tensor],
                 groups: Sequence[Group], step: int) -> None:
        """Update ``values`` (models, numbers) from the gradients of each parameter, contiguous (models, n)."""
        grads = [plain(gradient) for gradient in grads]           # kept until the numbers are read
        for parameter, gradient in zip(self.parameters, grads, strict=True):
            parameter.gradient = gradient.data_ptr()
        _STEPS[self.kind](self.parameters, values, state, groups, step)


def _sgd(parameters, values, state, groups, step):
    c = (Sgd * len(groups))(*(Sgd(each["weight_decay"], each["momentum"], 1 - each["dampening"], -float(each["lr"]),
                                    each["nesterov"], step == 1) for each in groups))
    buffer = state["momentum_buffer"].data_ptr() if "momentum_buffer" in state else 0
    kernels.loaded().hbfp_alike_sgd(ctypes.addressof(parameters), len(parameters), *values.shape, ctypes.addressof(c),
                                    values.data_ptr(), buffer)


def _adam(parameters, values, state, groups, step, apart=False):
    c = (Adam * len(groups))()
    for own, each in zip(c, groups, strict=True):
        (beta, square), rate, decay = each["betas"], float(each["lr"]), each["weight_decay"]
        own.decay, own.shrink = (0, 1 - rate * decay) if apart else (decay, 1)
        own.share, own.square, own.square_share = 1 - beta, square, 1 - square
        own.correction, own.eps, own.rate = (1 - square ** step) ** 0.5, each["eps"], -(rate / (1 - beta ** step))
    mean, squares = state["exp_avg"], state["exp_avg_sq"]
    kernels.loaded().hbfp_alike_moments(ctypes.addressof(parameters), len(parameters), *values.shape,
                                        ctypes.addressof(c), values.data_ptr(), mean.data_ptr(), squares.data_ptr())
    roots = squares.sqrt()
    kernels.loaded().hbfp_alike_adam(*values.shape, ctypes.addressof(c), mean.data_ptr(), roots.data_ptr(),
                                     values.data_ptr())


def _adamw(*arguments):
    _adam(*arguments, apart=True)


_STEPS: dict[type, Callable[..., None]] = {torch.optim.SGD: _sgd, torch.optim.Adam: _adam, torch.optim.AdamW: _adamw}


def _proof(kind, generator):
    """Some steps of models with many coefficients, compared with torch's operations."""
    update, names, _ = UPDATES[kind]
    sizes = [37, 256, 1]
    columns = [slice(0, 37), slice(48, 304), slice(304, 305)]
    groups: list[dict[str, Any]] = [
        {"lr": 0.1 / (i + 1), "momentum": momentum, "dampening": 0.1 * i, "weight_decay": decay,
         "betas": (share, 0.9 + 0.03 * i), "eps": 1e-8}
        for i, (momentum, share, decay) in enumerate(((0.9, 0.9, 0), (0.5, 0.3, 1e-2), (0.99, 0.5, 1e-4)))]
    for nesterov in (False, True):
        for group in groups:
            group |= {"nesterov": nesterov, "dampening": 0 if nesterov else group["dampening"]}
        ours = torch.randn(len(groups), 320, generator=generator)
        theirs = ours.clone()
        states = [{name: torch.zeros_like(ours) for name in names} for _ in range(2)]
        one = Compiled(kind, columns)
        for step in range(1, 4):
            grads = [torch.randn(len(groups), n, generator=generator) for n in sizes]
            whole = torch.zeros_like(ours)
            for place, own in zip(columns, grads, strict=True):
                whole[:, place] = own
            one(ours, grads, states[0], groups, step)
            update(theirs, whole, states[1], groups, step)
            pairs = [(ours, theirs), *zip(states[0].values(), states[1].values(), strict=True)]
            if not all(same_bits(a[:, place], b[:, place]) for a, b in pairs for place in columns):
                return False
    return True
