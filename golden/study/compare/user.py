"""What a user's file defines: a model, how it is trained, and how it is judged."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

from ...command.source import Wrong, called, functions
from .folder import functions as of_folder

#: Functions that train, of which a file has all or none.
TRAINS = ("loss", "batches", "optimiser")
#: Functions that a training may have beside them.
OTHERS = ("schedule", "clip")
#: Batches that fixed scales follow from.
CALIBRATED = 8
Batch = tuple[tuple[Any, ...], tuple[Any, ...]]


@dataclass
class User:
    """A file's functions.

    Attributes
    ----------
    text : str
        The file.
    made : dict
        Its functions by name: ``model``, and as far as it has them ``inputs``, :data:`TRAINS`, :data:`OTHERS`,
        ``calibration``, ``tests``, ``metric`` and ``better``.
    title : str
        What the metric is called.
    higher : bool
        Whether a higher one is better.
    device : str
        Where models and batches are; ``metric`` gives a model tensors of the CPU, and gets such.
    """
    text: str
    made: dict[str, Callable[..., Any]]
    title: str
    higher: bool
    device: str = "cpu"

    @classmethod
    def read(cls, text: str, data: str = "", calibration: str = "", device: str = "cpu") -> "User":
        """The file whose path is ``text``, or the folder, judged on ``data`` and calibrated on ``calibration``;
        ValueError, one line, if it lacks something."""
        if Path(text).is_dir():
            made = of_folder(Path(text), Path(data), Path(calibration) if calibration else None)
        else:
            made = functions(text, ("model",), ("inputs", *TRAINS, *OTHERS, "calibration", "tests", "metric", "better"))
        lacking = [name for name in TRAINS if name not in made]
        if lacking and len(lacking) < len(TRAINS):
            raise Wrong(f"Model {text} must define {', '.join(f'{name}()' for name in lacking)} to be trained")
        if lacking and not {"metric", "inputs"} & made.keys():
            raise Wrong(f"Model {text} must define metric() or inputs() to be judged, or all of "
                        f"{', '.join(f'{name}()' for name in TRAINS)} to be trained")
        better = called(text, made["better"]) if "better" in made else "higher"
        if better not in ("higher", "lower"):
            raise Wrong(f"better() of {text} must give 'higher' or 'lower', not {better!r}")
        own = "metric" in made
        title = made["metric"].__name__ if own else "loss" if not lacking else "error of the output"
        if own and made["metric"].__doc__:
            title = made["metric"].__doc__.strip().splitlines()[0].rstrip(".")
        return cls(text, made, title, own and better == "higher", device)

    @property
    def trains(self) -> bool:
        """Whether it says how the model is trained."""
        return "loss" in self.made

    def model(self, seed: int) -> nn.Module:
        """The model in FP32; weights are drawn from ``seed``, unless the file sets one itself."""
        torch.manual_seed(seed)
        net = called(self.text, self.made["model"])
        if not isinstance(net, nn.Module):
            raise Wrong(f"model() of {self.text} must give a torch.nn.Module, not {type(net).__name__}")
        return net.to(self.device)

    def optimiser(self, net: nn.Module) -> torch.optim.Optimizer:
        """The optimiser of a model's parameters."""
        found = called(self.text, self.made["optimiser"], net.parameters())
        if not isinstance(found, torch.optim.Optimizer):
            raise Wrong(f"optimiser() of {self.text} must give a torch.optim.Optimizer, not "
                        f"{type(found).__name__}")
        return found

    def schedule(self, optimiser: torch.optim.Optimizer) -> Any:
        """What changes an optimiser's rates after each step, or None."""
        return called(self.text, self.made["schedule"], optimiser) if "schedule" in self.made else None

    def clip(self) -> float | None:
        """The norm that gradients are clipped to, or None."""
        return float(called(self.text, self.made["clip"])) if "clip" in self.made else None

    def batches(self, name: str = "batches") -> Iterator[Batch]:
        """Inputs and targets of each batch, as tuples; ``name`` is ``batches`` or ``tests``."""
        for pair in called(self.text, self.made[name]):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise Wrong(f"{name}() of {self.text} must give pairs of inputs and targets, not "
                            f"{type(pair).__name__}")
            yield moved((_several(pair[0]), _several(pair[1])), self.device)

    def loss(self, y: Any, targets: tuple[Any, ...]) -> torch.Tensor:
        """The loss of an output."""
        return self.made["loss"](y, *targets)

    def sample(self) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
        """A batch to look at operands: with targets, if the file has them."""
        if self.trains:
            return next(self.batches())
        if "inputs" in self.made:
            return moved(_several(called(self.text, self.made["inputs"])), self.device), None
        return (), None

    @property
    def calibrates(self) -> bool:
        """Whether it has batches that fixed scales may follow from, which are none to be judged by."""
        return self.trains or "calibration" in self.made

    def calibration(self) -> list[tuple[Any, ...]]:
        """Inputs that fixed scales follow from: :data:`CALIBRATED` batches of ``calibration()``, else of
        ``batches()``."""
        found = (map(_several, called(self.text, self.made["calibration"])) if "calibration" in self.made
                 else (inputs for inputs, _ in self.batches()))
        return moved(list(islice(found, CALIBRATED)), self.device)

    @contextmanager
    def _reached(self, net):
        """Within, a model takes tensors of the CPU to its device, and brings back what it gives."""
        if self.device == "cpu":
            yield
            return
        hooks = (net.register_forward_pre_hook(lambda _, *given: moved(given, self.device), with_kwargs=True),
                 net.register_forward_hook(lambda _, given, y: moved(y, "cpu")))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    @torch.no_grad()
    def judge(self, net: nn.Module, reference: Callable[[], nn.Module]) -> float:
        """The metric of a model in evaluation mode; ``reference`` gives the same in FP32."""
        net.eval()
        if "metric" in self.made:
            with self._reached(net):
                return float(called(self.text, self.made["metric"], net))
        if self.trains:
            losses = [self.loss(net(*inputs), targets).item() for inputs, targets in
                      self.batches("tests" if "tests" in self.made else "batches")]
            if not losses:
                raise Wrong(f"batches() of {self.text} must give a batch at least")
            return sum(losses) / len(losses)
        inputs, _ = self.sample()
        exact = reference().eval()(*inputs)
        if not isinstance(exact, torch.Tensor):
            raise Wrong(f"Model {self.text} must give a tensor to be judged without metric(), not "
                        f"{type(exact).__name__}")
        return float((net(*inputs) - exact).norm() / exact.norm())


def moved(given: Any, device: str) -> Any:
    """All tensors in tuples, lists and dictionaries, on a device."""
    return _pytree.tree_map_only(torch.Tensor, lambda each: each.to(device), given)


def _several(given):
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)
