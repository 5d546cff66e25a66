"""Fully connected layers and ReLUs behind each other, of all models: one node of autograd, and one call each way."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ...fast import chain, kernels
from ..memory import plain
from ..once import once_differentiable
from . import linear
from .links import Links, Place, operands
from .norms import QuickBatchNorm
from .products import Products

#: float32 numbers between the places of tensors: 64 bytes, where torch begins its own.
_GRAIN = 16
#: Plans that a chain keeps, for sizes and formats that come again.
_PLANS = 8
_KINDS = linear.FusedLinear, linear.FusedFP32Linear


class FusedSequential(nn.Sequential):
    """``torch.nn.Sequential`` of a job; its layers that can make a :class:`Chain` do."""

    def forward(self, x: Any) -> Any:
        """What a model takes and gives."""
        parts = self.__dict__.get("parts")
        if parts is None:
            parts = self.__dict__["parts"] = _parts(self)
        for part in parts:
            x = part(x)
        return x


class Rectified:
    """Batch normalisation with the ReLU behind it."""

    def __init__(self, norm: QuickBatchNorm, relu: nn.Module) -> None:
        self.norm, self.relu = norm, relu

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Shape of ``x``."""
        if _watched(self.norm) or _watched(self.relu):
            return self.relu(self.norm(x))
        return self.norm.forward(x, rectified=True)


def _watched(layer):
    return layer._forward_hooks or layer._forward_pre_hooks


def _parts(layers):
    """The layers, of which runs are chains: linear ones of one kind, ReLUs between them, no parameter twice. A ReLU
    behind batch normalisation is part of it."""
    found: list[Any] = []
    run: list[Any] = []
    for layer in [*layers, None]:
        if run and (type(run[-1]) is not nn.ReLU if type(layer) is nn.ReLU else _fits(layer, run)):
            run.append(layer)
            continue
        behind = [run.pop()] if run and type(run[-1]) is nn.ReLU else []
        found += [*([Chain(run)] if len(run) > 1 else run), *behind]
        if type(layer) is nn.ReLU and found and type(found[-1]) is QuickBatchNorm:
            found[-1] = Rectified(found[-1], layer)
            continue
        run = [layer] if type(layer) in _KINDS else []
        found += [layer] if not run and layer is not None else []
    return found


def _fits(layer, run):
    """Whether a linear layer can follow others: autograd adds gradients of shared parameters in the order of nodes."""
    return type(layer) is type(run[0]) and not any(
        layer.weights is other.weights or layer.biases is not None and layer.biases is other.biases
        for other in run if type(other) is type(layer))


class Chain:
    """What runs fully connected layers, and ReLUs between them, at once where that has the bits of each alone.

    Parameters
    ----------
    layers : sequence of Module
        The layers, in a job.
    """

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        self.layers = layers
        self.linear: list[Any] = [layer for layer in layers if type(layer) in _KINDS]
        self.rectified = [type(layer) is nn.ReLU for layer, before in zip([*layers[1:], None], layers, strict=True)
                          if type(before) in _KINDS]
        self.weights = [layer.weights for layer in self.linear]
        self.biases = [layer.biases for layer in self.linear]
        self._inputs, self._largest = self.weights[0].shape[2], max(weight[0].numel() for weight in self.weights)
        self._plans: dict[Any, Plan] = {}

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """(models * N, I) -> (models * N, O)."""
        plan = self._plan(x)
        if plan is not None:
            return _Run.apply(x, plan, *self.weights, *self.biases)
        for layer in self.layers:
            x = layer(x)
        return x

    def _plan(self, x):
        """For such inputs in the formats of a call made now; None if the layers run one by one."""
        first = self.linear[0]
        if (x.dim() != 2 or x.dtype != torch.float32 or x.device.type != "cpu" or not x.is_contiguous()
                or x.shape[1] != self._inputs or not x.numel() or x.data_ptr() % (4 * _GRAIN)
                or kernels.library() is None or torch.is_autocast_enabled("cpu")
                or any(map(_watched, self.layers))):
            return None
        products: list[Products] = []
        if type(first) is linear.FusedLinear:
            products = [layer.products.refresh() for layer in self.linear]
            if not all(each.all_quick and each.serve(x) for each in products):
                return None
        rows = len(x) // len(self.weights[0])
        if rows * self._largest > linear.MOST:
            return None
        key = rows, torch.get_num_threads(), *(each.taken for each in products)
        if key not in self._plans:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[key] = Plan(self, rows, products)
        plan = self._plans[key]
        for each, macs in zip(products, plan.macs, strict=True):
            each.note("linear", macs)
        return plan


class Plan:
    """What a :class:`Chain` does with inputs of one size.

    Parameters
    ----------
    chain : Chain
        The chain.
    rows : int
        Samples of a model.
    products : sequence of Products
        Of each layer in HBFP; none in FP32.
    """

    def __init__(self, chain: Chain, rows: int, products: Sequence[Products]) -> None:
        self.weights, self.rectified, self.products = chain.weights, chain.rectified, products
        weights, biases = chain.weights, chain.biases
        self.models, self.rows = len(weights[0]), rows
        self.macs = [self.models * rows * weight[0].numel() for weight in weights[:len(products)]]
        sizes = [-(-self.models * rows * weight.shape[1] // _GRAIN) * _GRAIN for weight in weights[:-1]]
        self.hidden = sum(sizes)
        #: Inputs of each layer, and the gradients of these.
        self.inputs = [Place("x", self._shape(0)), *(
            Place("hidden", self._shape(i + 1), sum(sizes[:i])) for i in range(len(sizes)))]
        self.slopes = [Place(name, place.shape, place.offset) for name, place in
                       zip(["gx", *["slopes"] * len(sizes)], self.inputs, strict=True)]
        #: Names of the gradients of all weights and biases.
        self.names = [f"gradient {i}" for i in range(2 * len(weights))]
        self._back: dict[Sequence[bool], Links] = {}
        self.forward = Links(self.models)
        tops = [*self.inputs[1:], Place("y", (self.models, rows, weights[-1].shape[1]))]
        for i, (x, w, bias, y) in enumerate(zip(self.inputs, weights, biases, tops, strict=True)):
            self._product(self.forward, i, "y", x, w.detach().mT, y, None if bias is None else bias.detach(),
                          rectified=int(self.rectified[i]))

    def _shape(self, i):
        return self.models, self.rows, self.weights[i].shape[2]

    def backward(self, wanted: Sequence[bool]) -> Links:
        """The gradients that are ``wanted`` of x, all weights and all biases."""
        if wanted not in self._back:
            self._back[wanted] = self._backward(wanted)
        return self._back[wanted]

    def _backward(self, wanted):
        links, (inputs, *wanted), count = Links(self.models), wanted, len(self.weights)
        tops = [*self.slopes[1:], Place("g", (self.models, self.rows, self.weights[-1].shape[1]))]
        for i in reversed(range(count)):
            w, x, g = self.weights[i].detach(), self.inputs[i], tops[i]
            if wanted[i]:
                self._product(links, i, "gb turned", g, x, Place(self.names[i], w.shape), turned=True)
            if wanted[count + i]:
                self._sums(links, g, Place(self.names[count + i], w.shape[:2]))
            if i or inputs:
                self._product(links, i, "ga", g, w, self.slopes[i], mask=x if i and self.rectified[i - 1] else None)
        return links

    def _product(self, links, i, which, a, b, y, bias=None, turned=False, **then):
        """One more product of layer ``i``; its operands are tensors or have a :class:`Place`."""
        sides = [_like(a).mT if turned else _like(a), _like(b), bias]
        way = 0 if self.products else linear.alike(*sides)
        if way is not None:
            formats = self.products[i].formats_of(which) if self.products else None
            links.add(formats, **operands(*sides) | dict(a=a, b=b, y=y, dots=way), **then)
            return

        at_once = linear.joined(*sides)

        def own(tensors):
            one, other = (side.of(tensors) if isinstance(side, Place) else side for side in (a, b))
            to, factors = y.of(tensors), (one.mT if turned else one, other, bias)
            if at_once:
                linear.together(*factors, out=to)
            else:
                to.copy_(linear.library(*factors))
            if then.get("rectified"):
                to.relu_()
            if then.get("mask") is not None:
                to.copy_(torch.ops.aten.threshold_backward(to, then["mask"].of(tensors), 0))
        links.call(own)

    def _sums(self, links, g, y):
        """One more sum over the rows of ``g``."""
        _, m, n = g.shape
        if self.products or linear.adds_alike(_like(g)):
            links.add(a=g, a_step=m * n, y=y, m=m, n=n, sums=chain.ASCENDING if self.products else chain.WIDE)
        else:
            links.call(lambda tensors: y.of(tensors).copy_(linear.row_sums(g.of(tensors))))


def _like(operand):
    """A tensor with the shape and strides of an operand."""
    return torch.empty(operand.shape, device="meta") if isinstance(operand, Place) else operand


class _Run(torch.autograd.Function):
    """A chain on x (models * N, I); behind the plan its weights and biases, for autograd."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, plan: Plan, *parameters: torch.Tensor | None) -> torch.Tensor:
        """(models * N, O)."""
        hidden, y = torch.empty(plan.hidden), torch.empty(len(x), plan.weights[-1].shape[1])
        plan.forward({"x": plain(x), "hidden": hidden, "y": y})
        ctx.save_for_backward(x, hidden)
        ctx.plan, ctx.shapes = plan, [None if p is None else p.shape for p in parameters]
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``x``, the weights and the biases."""
        x, hidden = ctx.saved_tensors
        plan, (inputs, _, *wanted) = ctx.plan, ctx.needs_input_grad
        gx = torch.empty(x.shape) if inputs else None
        found = [torch.empty(shape) if wants else None for shape, wants in zip(ctx.shapes, wanted, strict=True)]
        tensors = {"x": plain(x), "hidden": hidden, "g": plain(g).contiguous(), "slopes": torch.empty(plan.hidden),
                   "gx": gx, **dict(zip(plan.names, found, strict=True))}
        plan.backward((inputs, *wanted))({name: each for name, each in tensors.items() if each is not None})
        return gx, None, *found
