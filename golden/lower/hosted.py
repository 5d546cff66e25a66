"""Parts of a model that run on the host, in plain torch: in a graph each call is an operator, ``torch.ops.hbfp.host``.

The host runs a part as it is, whatever is in it; so the operator's shapes are those that the part gave when it ran.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from hbfp.golden.nn.chosen import whole
from hbfp.golden.nn.select import excluded, inside

from .errors import LoweringError

#: Stands for a tensor among what is not one.
_TENSOR = object()
_CALLS: WeakValueDictionary[int, "Call"] = WeakValueDictionary()
_numbers = count()
torch.library.define("hbfp::host", "(int call, Tensor[] given) -> Tensor[]")


class Call:
    """A way of calling a part: with what that is no tensor, and in which structure.

    Attributes
    ----------
    given : dict
        Shapes and types of the tensors given -> those that came of it, with what of the result is no tensor.
    """

    def __init__(self, part: torch.nn.Module, structure: Any, fixed: Sequence[Any]) -> None:
        self.part, self.structure, self.fixed = part, structure, fixed
        self.given: dict[Any, Any] = {}
        self.number = next(_numbers)
        _CALLS[self.number] = self

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """What the part gives for tensors, in plain torch; they stay as they are."""
        own = iter([each.clone() for each in tensors])
        args, options = tree_unflatten([next(own) if each is _TENSOR else each for each in self.fixed], self.structure)
        with torch.no_grad():
            leaves, structure = tree_flatten(self.part(*args, **options))
        made = [each.clone(memory_format=torch.contiguous_format) for each in leaves if isinstance(each, torch.Tensor)]
        rest = [_TENSOR if isinstance(each, torch.Tensor) else each for each in leaves]
        self.given[_key(tensors)] = [(each.shape, each.dtype) for each in made], structure, rest
        return made

    def shapes(self, tensors: Sequence[torch.Tensor]) -> Any:
        """What it gave for tensors of these shapes: shapes and types, structure, and what is no tensor."""
        return self.given[_key(tensors)]


#: What a call is in a graph; the results are taken out of it by ``getitem``.
HOST = torch.ops.hbfp.host.default


def _key(tensors):
    return tuple((tuple(each.shape), each.dtype) for each in tensors)


@torch.library.impl("hbfp::host", "CompositeExplicitAutograd")
def _run(call, given):
    return _CALLS[call].run(given)


@torch.library.register_fake("hbfp::host")
def _fake(call, given):
    return [torch.empty(shape, dtype=dtype, device=given[0].device if given else None)
            for shape, dtype in _CALLS[call].shapes(given)[0]]


class OnHost(torch.nn.Module):
    """In the place of a part of a model, which it does not have as a submodule, so that nothing converts or traces it.

    Parameters
    ----------
    part : torch.nn.Module
    """

    def __init__(self, part: torch.nn.Module) -> None:
        super().__init__()
        self.__dict__ |= {"part": part, "calls": list[Call]()}

    def __deepcopy__(self, memo: Any) -> "OnHost":
        """Another with the same calls of the same part."""
        made = OnHost(self.__dict__["part"])
        made.__dict__["calls"] = self.__dict__["calls"]
        return made

    def forward(self, *args: Any, **options: Any) -> Any:
        """What the part gives."""
        leaves, structure = tree_flatten((args, options))
        fixed = [_TENSOR if isinstance(each, torch.Tensor) else each for each in leaves]
        given = [each for each in leaves if isinstance(each, torch.Tensor)]
        calls = self.__dict__["calls"]
        call = next((each for each in calls if (each.structure, each.fixed) == (structure, fixed)), None)
        if call is None:
            call = Call(self.__dict__["part"], structure, fixed)
            calls.append(call)
        made = iter(torch.ops.hbfp.host(call.number, given))
        _, structure, rest = call.shapes(given)
        return tree_unflatten([next(made) if each is _TENSOR else each for each in rest], structure)


def on_host(model: torch.nn.Module, exclude: Iterable[str]) -> torch.nn.Module:
    """A copy of a model, in evaluation, of which the parts that ``exclude`` names run on the host.

    Parameters
    ----------
    model : torch.nn.Module
    exclude : sequence of str
        Qualified names, with wildcards.

    Raises
    ------
    ValueError
        If a name means no part of the model, or all of it; one line.
    """
    made = deepcopy(model).eval()
    names = excluded(made, list(exclude), whole)
    if "" in names:
        raise ValueError("Exclude must match parts of the model, not all of it")
    outer = [name for name in names if not inside(name, [other for other in names if other != name])]
    parts: dict[torch.nn.Module, OnHost] = {}
    for name in dict.fromkeys(outer):
        holder, _, leaf = name.rpartition(".")
        part = made.get_submodule(name)
        setattr(made.get_submodule(holder), leaf, parts.setdefault(part, OnHost(part)))
    return made


def call_of(node: torch.fx.Node) -> Call:
    """The call that a node of a graph, an operator :data:`HOST`, is."""
    number: Any = node.args[0]
    return _CALLS[number]


def check_called(model: torch.nn.Module) -> None:
    """Raise LoweringError if a part on the host has not been called: then the model reads what is in it."""
    for name, part in model.named_modules():
        if isinstance(part, OnHost) and not part.__dict__["calls"]:
            raise LoweringError(f"Exclude must name layers that the model calls, not {name!r}; the one that it is in "
                                "would do")
