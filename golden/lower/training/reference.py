"""Training in PyTorch with the accelerator's arithmetic: what every number of a step has to be."""

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch

from hbfp.golden.nn import convert
from hbfp.golden.nn.side import sided
from hbfp.golden.vector.side import Side
from hbfp.system import Accelerator

from ..formats import formats
from .optimisers import known

Loss = Callable[..., torch.Tensor]
Make = Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]


class Reference:
    """A copy of a model in training, its loss and its optimiser, as PyTorch computes them bit for bit like the device.

    Parameters
    ----------
    model : torch.nn.Module
        In float32; it stays as it is.
    loss : callable
        Of the model's output and the targets.
    optimiser : callable
        Of parameters.
    accelerator : Accelerator
        Whose formats and side arithmetic it has.

    Attributes
    ----------
    model : torch.nn.Module
        The converted copy.
    optimiser : torch.optim.Optimizer
        Of its parameters.
    """

    def __init__(self, model: torch.nn.Module, loss: Loss, optimiser: Make, accelerator: Accelerator) -> None:
        self.model = convert(copy.deepcopy(model).train(), formats(accelerator))
        self.loss, self.optimiser = loss, optimiser(self.model.parameters())
        self.rule = known(self.optimiser)
        self.side = Side.of(accelerator)

    def step(self, inputs: tuple[Any, ...], targets: tuple[Any, ...]) -> torch.Tensor:
        """One step of training; its loss."""
        with sided(self.side):
            self.optimiser.zero_grad()
            loss = self.loss(self.model(*inputs), *targets)
            loss.backward()
            self.optimiser.step()
        return loss.detach()

    def options(self) -> dict[str, dict[str, Any]]:
        """Name of each parameter that is trained -> the options of its group."""
        names = {parameter: name for name, parameter in self.model.named_parameters()}
        return {names[parameter]: group for group in self.optimiser.param_groups for parameter in group["params"]
                if parameter.requires_grad}

    def state(self) -> dict[str, dict[str, torch.Tensor]]:
        """Name of each parameter that is trained -> what the optimiser keeps of it: name -> tensor."""
        parameters = dict(self.model.named_parameters())
        return {name: {each: self.optimiser.state[parameters[name]].get(each, torch.full_like(parameters[name], start))
                       for each, start in self.rule.start(options).items()}
                for name, options in self.options().items()}

    def expected(self, loss: torch.Tensor) -> dict[str, torch.Tensor]:
        """All tensors behind a step by the names that programs have for them."""
        parameters, found = dict(self.model.named_parameters()), {"loss": loss}
        for name, state in self.state().items():
            gradient = parameters[name].grad
            assert gradient is not None
            found |= {f"{name} gradient": gradient, f"{name} after": parameters[name].detach()}
            found |= {f"{name} {each} after": tensor for each, tensor in state.items()}
        return found
