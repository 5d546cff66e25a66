"""Several models of one architecture trained as one job, bit for bit as if each were trained alone.

    job = fuse(models)                       # formats, seeds, schedules, optimisers stay each model's own
    loss = cross_entropy(job(inputs), targets, job.count)
    loss.backward()
    step()                                   # step = Step(job, optimisers), or each optimiser's own

The models' batches travel behind each other in one batch dimension. Linear layers run all models in
one call; operations that treat each element or row alone run once over everything; every other layer
(convolution, normalisation, attention, embedding, dropout and what is not known) runs model by model
on its part, which is the same computation by construction. The models keep their parameters, so any
``torch.optim`` optimiser and scheduler serves, and a loss is the sum of the models' own losses:
no gradient needs scaling.
"""

import copy

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from ...fast import kernels
from ..layers import HBFPLinear
from ..ops import row_sums
from ..products import Operand, check_float32, product

#: Modules without state that treat each sample alone, in operations that round nothing: safe on all models at once.
ELEMENTWISE = (nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.LeakyReLU, nn.Threshold, nn.Identity, nn.Flatten, nn.Unflatten,
               nn.MaxPool1d, nn.MaxPool2d)


class SeededDropout(nn.Module):
    """Dropout with a generator of its own, so that a model draws the same numbers alone and in a job.

    Parameters
    ----------
    p : float
        Share of elements set to 0 while training.
    seed : int
        Seed of the generator.
    """

    def __init__(self, p=0.5, seed=0):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p must be 0 to below 1, not {p!r}")
        self.p, self.seed = p, seed
        self.register_buffer("state", torch.Generator().manual_seed(seed).get_state())

    def forward(self, x):
        """Shape of ``x``."""
        if not self.training or not self.p:
            return x
        generator = torch.Generator()
        generator.set_state(self.state)
        keep = torch.rand(x.shape, generator=generator) >= self.p
        self.state.copy_(generator.get_state())
        return x * (keep.to(x.device) / (1 - self.p))


class _StackedLinear(torch.autograd.Function):
    """``y = x w^T + b`` of every model: x (models, N, I), w (models, O, I), b (models, O), and the gradients."""

    @staticmethod
    def forward(ctx, x, layer, *parameters):
        w = layer.stacked
        ctx.save_for_backward(x, *parameters)
        ctx.layer = layer
        y, ctx.operands = layer.products(x, w.transpose(1, 2), "y", None)
        return y if layer.biases is None else y + layer.biases[:, None]

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, *parameters = ctx.saved_tensors
        layer, gx, gw, gb = ctx.layer, None, (None,) * ctx.layer.count, ()
        g = g.contiguous()
        tops = [None] * layer.count
        if ctx.needs_input_grad[0]:
            gx, tops = layer.products(g, layer.stacked, "gx", ctx.operands, tops)
        if any(ctx.needs_input_grad[2:]):
            gw, _ = layer.products(g.transpose(1, 2), x, "gw", ctx.operands, tops)
            gw = gw.unbind(0)
            gb = () if layer.biases is None else row_sums(g, layer.count).unbind(0)
        elif layer.biases is not None:
            gb = (None,) * layer.count
        return gx, None, *gw, *gb


class FusedLinear(nn.Module):
    """The same linear layer of several models, in one call.

    Parameters
    ----------
    layers : sequence of HBFPLinear
        Of equal shape; each with its own formats and noise. Their weights move into one tensor.
    """

    def __init__(self, layers):
        super().__init__()
        self.layers, self.count = list(layers), len(layers)
        self.stacked = torch.stack([layer.weight.detach() for layer in layers])
        self.biases = None if layers[0].bias is None else torch.stack([layer.bias.detach() for layer in layers])
        for i, layer in enumerate(layers):
            layer.weight.data = self.stacked[i]
            if self.biases is not None:
                layer.bias.data = self.biases[i]
        self.parameters_of_models = [layer.weight for layer in layers]
        if self.biases is not None:
            self.parameters_of_models += [layer.bias for layer in layers]
        self._formats = None

    def _refresh(self):
        """Formats as the kernel reads them, made again when a schedule has changed one."""
        formats = [layer.formats for layer in self.layers]
        if formats == self._formats:
            return
        self._formats = formats
        roles = {"y": ("x", "w"), "gx": ("g", "w"), "gw": ("g", "x")}
        self.kernel = {name: kernels.StackFormats(*([getattr(f, role) for f in formats] for role in pair))
                       for name, pair in roles.items()}
        # 2: models that only the general way computes.
        self.skip = np.array([2 * (f.stochastic or f.order != "block" or f.accumulate != "fp32"
                                   or kernels.library() is None) for f in formats], np.int32)

    def products(self, a, b, which, operands, tops=None):
        """One of the three products for all models; the general way where the quick one does not serve."""
        a, b = a.detach(), b.detach()
        y, done = kernels.stack_product(a.numpy(), b.numpy(), self.kernel[which], self.skip)
        y = torch.from_numpy(y)
        made = list(tops or [None] * self.count) if which != "y" else [None] * self.count
        for i in np.flatnonzero(done != 1):
            layer, formats = self.layers[i], self.layers[i].formats
            if which == "y":
                made[i] = Operand(a[i], formats.x, layer.stream), Operand(b[i].T, formats.w, layer.stream)
                y[i] = product(made[i][0].along(-1), made[i][1].along(-1), formats, turn_b=True)
                continue
            x, w = operands[i] or (None, None)
            if which == "gx":
                made[i] = Operand(a[i], formats.g, layer.stream)
                w = w or Operand(b[i], formats.w, layer.stream)
                y[i] = product(made[i].along(-1), w.along(0), formats)
            else:
                top = made[i] or Operand(a[i].T, formats.g, layer.stream)
                x = x or Operand(b[i], formats.x, layer.stream)
                y[i] = product(top.along(0), x.along(0), formats, turn_a=True)
        return y, made

    @torch.compiler.disable
    def forward(self, x):
        """(models * N, ..., I) -> (models * N, ..., O)."""
        check_float32(input=x)
        self._refresh()
        rows = x.reshape(self.count, -1, x.shape[-1])
        y = _StackedLinear.apply(rows.contiguous(), self, *self.parameters_of_models)
        return y.reshape(*x.shape[:-1], y.shape[-1])


class Each(nn.Module):
    """A layer that runs model by model, each on its part of the batch."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules["layers"][0], name)

    def forward(self, *inputs, **options):
        """Positional tensors are cut along their first dimension; options go to every model."""
        count = len(self.layers)
        parts = [x.chunk(count) if torch.is_tensor(x) else (x,) * count for x in inputs]
        results = [layer(*(part[i] for part in parts), **options) for i, layer in enumerate(self.layers)]
        if torch.is_tensor(results[0]):
            return torch.cat(results)
        return tuple(None if part[0] is None else torch.cat(part) for part in zip(*results, strict=True))


class Job(nn.Module):
    """What :func:`fuse` gives: called with the models' batches behind each other, (models * N, ...).

    Attributes
    ----------
    models : list of Module
        The models, which own the parameters; save and evaluate them alone at any time.
    count : int
        Their number.
    """

    def __init__(self, models, net):
        super().__init__()
        self.models, self.count, self.net = list(models), len(models), net

    def forward(self, inputs, shared=False):
        """(models * N, ...) -> (models * N, ...); ``shared`` gives one batch (N, ...) to every model."""
        if shared:
            inputs = inputs.repeat(self.count, *[1] * (inputs.dim() - 1))
        if len(inputs) % self.count:
            raise ValueError(f"Batch must be a multiple of the {self.count} models, not {len(inputs)}")
        return self.net(inputs)

    def train(self, mode=True):
        """Training or evaluation mode, also of the models alone."""
        for model in self.models:
            model.train(mode)
        return super().train(mode)


def fuse(models):
    """Join models of one architecture into one job.

    Parameters
    ----------
    models : sequence of Module
        Of one architecture, whose forward treats samples alone. Formats, seeds and modes may differ.
        Optimisers may have been made before or are made after. Do not move the models to another
        device or convert them again while the job lives.

    Returns
    -------
    Job

    Raises
    ------
    ValueError
        If there is no model, or two differ in architecture, or a part cannot run in a job.
    """
    models = list(models)
    if not models:
        raise ValueError("Models must be at least one, not []")
    return Job(models, _merge(models, ""))


def _merge(parts, name):
    """One module for the same part of every model."""
    first = parts[0]
    shapes = [[tuple(p.shape) for p in part.parameters()] for part in parts]
    if any(type(part) is not type(first) for part in parts) or any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"Models must have one architecture; they differ at {name or 'the top'!r}")
    if isinstance(first, nn.Dropout) and first.p:
        raise ValueError(f"Dropout at {name!r} must be golden.nn.fused.SeededDropout to run in a job")
    if getattr(first, "batch_first", True) is not True:
        raise ValueError(f"Layer at {name!r} must have batch_first=True to run in a job")
    if type(first) is HBFPLinear and first.weight.device.type == "cpu":
        return FusedLinear(parts)
    if type(first) in ELEMENTWISE:
        return first
    children = dict(first.named_children())
    own = list(first.parameters(recurse=False)) + list(first.buffers(recurse=False))
    if not children or own:
        return Each(parts)
    merged = copy.copy(first)
    merged._modules = {leaf: _merge([getattr(part, leaf) for part in parts], f"{name}.{leaf}".lstrip("."))
                       for leaf in children}
    return merged


def cross_entropy(logits, targets, count):
    """Sum over the models of ``torch.nn.functional.cross_entropy``, whose gradients it has bit for bit.

    Parameters
    ----------
    logits : Tensor
        (count * N, classes).
    targets : Tensor
        (count * N,) class numbers.
    count : int
        Models.
    """
    chosen = logits.log_softmax(1).gather(1, targets[:, None])
    return -chosen.sum() / (len(logits) // count)


def mse_loss(outputs, targets, count):
    """Sum over the models of ``torch.nn.functional.mse_loss``; arguments as :func:`cross_entropy`."""
    parts = zip(outputs.chunk(count), targets.chunk(count), strict=True)
    return torch.stack([nn.functional.mse_loss(y, t) for y, t in parts]).sum()


class Step:
    """One step of every model's optimiser, in fewer and larger operations; the same bits.

    Serves any optimisers. Those that gain are ``torch.optim.SGD`` over a job of linear layers:
    momentum runs over all models at once, and learning rates, which schedulers may change at any
    time, and weight decay stay each model's own.

    Parameters
    ----------
    job : Job
        The job.
    optimisers : sequence of torch.optim.Optimizer
        One per model, in the models' order.
    """

    def __init__(self, job, optimisers):
        self.optimisers = list(optimisers)
        if len(self.optimisers) != job.count:
            raise ValueError(f"Optimisers must be {job.count}, one per model, not {len(self.optimisers)}")
        layers = [part for part in job.net.modules() if isinstance(part, FusedLinear)]
        self.stacks = [[getattr(layer, name) for layer in part.layers] for part in layers for name in ("weight", "bias")
                       if getattr(part.layers[0], name) is not None]
        self.buffers = None
        held = {id(p) for stack in self.stacks for p in stack}
        groups = [optimiser.param_groups for optimiser in self.optimisers]
        first = groups[0][0]
        self.joint = all(
            type(optimiser) is torch.optim.SGD and len(group) == 1 and not optimiser.state
            and {id(p) for p in group[0]["params"]} <= held
            and group[0]["momentum"] == first["momentum"] != 0 and group[0]["dampening"] == 0
            and not (group[0]["nesterov"] or group[0]["maximize"] or group[0]["differentiable"])
            and not optimiser._optimizer_step_pre_hooks and not optimiser._optimizer_step_post_hooks
            for optimiser, group in zip(self.optimisers, groups, strict=True)) and \
            sum(len(group[0]["params"]) for group in groups) == len(held)

    @torch.no_grad()
    def __call__(self):
        """Update every model's parameters from their gradients."""
        if not self.joint or any(p.grad is None for stack in self.stacks for p in stack):
            for optimiser in self.optimisers:
                optimiser.step()
            return
        options = [optimiser.param_groups[0] for optimiser in self.optimisers]
        grads = [_together([p.grad for p in stack]) for stack in self.stacks]
        for i, option in enumerate(options):
            if option["weight_decay"]:
                for grad, stack in zip(grads, self.stacks, strict=True):
                    grad[i] = grad[i].add(stack[i], alpha=option["weight_decay"])
        if self.buffers is None:
            self.buffers = [grad.clone() for grad in grads]
            self.models = [([stack[i] for stack in self.stacks], [buffer[i] for buffer in self.buffers])
                           for i in range(len(options))]
            for optimiser, (parameters, buffers) in zip(self.optimisers, self.models, strict=True):
                for p, buffer in zip(parameters, buffers, strict=True):
                    optimiser.state[p]["momentum_buffer"] = buffer
        else:
            torch._foreach_mul_(self.buffers, options[0]["momentum"])
            torch._foreach_add_(self.buffers, grads)
        for option, (parameters, buffers) in zip(options, self.models, strict=True):
            torch._foreach_add_(parameters, buffers, alpha=-option["lr"])

    def zero_grad(self):
        """Drop every model's gradients, as the optimisers' own ``zero_grad`` does."""
        if not self.joint:
            for optimiser in self.optimisers:
                optimiser.zero_grad()
            return
        for stack in self.stacks:
            for p in stack:
                p.grad = None


def _together(parts):
    """The tensor whose slices ``parts`` are, or a copy of them if they lie apart."""
    first, size = parts[0], parts[0].numel() * 4
    start = first.data_ptr()
    if all(part.is_contiguous() and part.data_ptr() == start + i * size for i, part in enumerate(parts)):
        return first.as_strided((len(parts), *first.shape), (first.numel(), *first.stride()))
    return torch.stack(parts)
