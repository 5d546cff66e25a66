"""Products of many pairs of matrices, such as the heads of attention, in one call where the kernels serve."""

from functools import lru_cache
from typing import Any, Protocol

import torch

from ..fast import aligned, kernels, lanes, stack
from ..matmul import check_aligned
from ..noise import Stream
from . import again, converted
from .formats import Formats
from .memory import array
from .placed import Draw, by_role, stacked
from .portable import on_host
from .products import Operand, product
from .record import watcher

#: The three products of ``y = a b``, as roles of their operands in :class:`~golden.nn.Formats`.
ROLES = {"y": ("x", "w"), "ga": ("g", "w"), "gb": ("x", "g"), "gb turned": ("g", "x")}


def quick(formats: Formats) -> bool:
    """Whether the kernels for many pairs serve a format; if not, every product goes the general way."""
    return (not formats.stochastic and formats.mode == "hbfp" and formats.order == "block"
            and kernels.adds(formats.accumulate, (formats.x, formats.w, formats.g)) and kernels.library() is not None)


def draws(formats: Formats, stream: Any) -> bool:
    """Whether the kernels for many pairs serve a format that draws from ``stream``."""
    noisy = [fmt for fmt in formats.roles if fmt.rounding == "stochastic"]
    return (formats.stochastic and formats.order == "block" and kernels.adds(formats.accumulate, formats.roles)
            and isinstance(stream, Stream)
            and not any(fmt.square or not lanes.fits(stream, fmt.terms) for fmt in noisy))


def whole(formats: Formats) -> bool:
    """Whether the kernels for many pairs serve sums of a format in one accumulator."""
    return (not formats.stochastic and (formats.mode, formats.order, formats.accumulate) == ("hbfp", "block", "aligned")
            and not any(fmt.square for fmt in (formats.x, formats.w, formats.g)) and kernels.library() is not None)


class Pairs(Protocol):
    """What multiplies the pairs of matrices of a :class:`Matmul`, and knows the formats of each."""

    def __call__(self, a: torch.Tensor, b: torch.Tensor, which: str) -> tuple[torch.Tensor, list[int]]:
        """Products of (S, M, K) and (S, K, N) in the roles of :data:`ROLES`, and the pairs that are left to others."""

    def formats(self, pair: int, pairs: int) -> Formats:
        """The formats of one pair of ``pairs``."""

    def operand(self, source: torch.Tensor, role: str, pair: int, pairs: int) -> Operand:
        """A matrix of one pair, to be converted the general way."""


class Alike:
    """Pairs that have one format and one noise stream.

    Parameters
    ----------
    formats : Formats
        The format.
    stream : golden.noise.Stream, optional
        Where ``stochastic`` draws from.
    grads : bool
        Whether gradients may be asked for.
    """

    def __init__(self, formats: Formats, stream: Stream | None, grads: bool = False) -> None:
        self._formats, self._grads = formats, grads
        self._stacks: dict[tuple[str, bool], converted.Stack] = {}
        self._streams = dict(zip(("x", "w", "g"), by_role(stream), strict=True))

    @property
    def run(self) -> again.Run | None:
        """As of :func:`golden.nn.again.rule`."""
        return again.rule(self._formats, lambda a, b: Matmul.apply(a, b, Alike(self._formats, None, True)))

    def __call__(self, a: torch.Tensor, b: torch.Tensor, which: str) -> tuple[torch.Tensor, list[int]]:
        """As of :class:`Pairs`: all pairs, or none."""
        if which == "y" and again.is_unread() and on_host(a):
            together = self.drawn(a) or watcher() is None and (whole(self._formats) or quick(self._formats))
            return a.new_empty(len(a), a.shape[1], b.shape[2]), [] if together else list(range(len(a)))
        if self.drawn(a):
            return self.products((a, b, which))[0], []
        if converted.takes(a, self._formats) and converted.draws(self._formats, self._streams.values(), a.device):
            return self._on_gpu(a, b, which), []
        if on_host(a) and whole(self._formats) and watcher() is None:
            formats = self._formats
            left_fmt, right_fmt = (getattr(formats, role) for role in ROLES[which])
            check_aligned(left_fmt, right_fmt, -(-a.shape[2] // left_fmt.terms), formats.guard, formats.growth)
            y, left = aligned.stack(array(_dense(a)), array(_dense(b)), left_fmt, right_fmt, formats.guard)
            return torch.from_numpy(y), left
        if not on_host(a) or not quick(self._formats) or watcher() is not None:
            return torch.empty(len(a), a.shape[1], b.shape[2], device=a.device), list(range(len(a)))
        left, right = (array(_dense(x)) for x in (a, b))
        return torch.from_numpy(stack.product(left, right, _repeated(self._formats, which, len(a)))), []

    def drawn(self, a: torch.Tensor) -> bool:
        """Whether pairs draw noise within the kernels: the products of a pair then follow each other."""
        return on_host(a) and watcher() is None and draws(self._formats, self._streams["x"])

    def products(self, *wanted: tuple[torch.Tensor, torch.Tensor, str]) -> list[torch.Tensor]:
        """Products with noise, of what a call takes, pair by pair."""
        given = [(*(array(_dense(x)) for x in (a, b)), *(getattr(self._formats, role) for role in ROLES[which]))
                 for a, b, which in wanted]
        found = stack.drawn(given, self._formats.accumulate, self._streams["x"])
        return [torch.from_numpy(y) for y in found]

    def _on_gpu(self, a, b, which):
        formats, stacks = self._formats, self._stacks
        if which == "y":
            self._convert(("x", a, False), ("w", b, True))
        if which == "ga":                              # in the order in which a pair draws
            self._convert(("g", a, False), ("w", b.mT, False), ("x", None, True), ("g", a, True))
        first, second = ROLES[which]
        left, right = (first, which == "gb"), (second, which != "ga")
        return converted.product(stacks[left].lines(left[1]), stacks[right].lines(right[1]), formats)

    def _convert(self, *wanted):
        """Have stacks of roles ready to be converted along the rows (``down``) or along the columns."""
        planned = {}
        for role, source, down in wanted:
            fmt, stream = getattr(self._formats, role), self._streams[role]
            shared = fmt.rounding != "stochastic" or fmt.square or isinstance(stream, Draw)
            if (role, down) in self._stacks or shared and (role, not down) in planned:
                continue
            source = self._stacks[role, not down].source if source is None else source
            planned[role, down] = source, fmt, stream, shared
        noises = converted.drawn_pairs(len(wanted[0][1]), [
            (source.shape[1:], fmt, stream, 0 if down else -1)
            for (_, down), (source, fmt, stream, _) in planned.items()], wanted[0][1].device)
        for ((role, down), (source, fmt, _, shared)), noise in zip(planned.items(), noises, strict=True):
            stack = converted.Stack(source, fmt, noise, both=shared and (self._grads or role == "g"))
            self._stacks[role, down] = stack
            if shared:
                self._stacks[role, not down] = stack

    def formats(self, pair: int, pairs: int) -> Formats:
        """As of :class:`Pairs`."""
        return self._formats

    def operand(self, source: torch.Tensor, role: str, pair: int, pairs: int) -> Operand:
        """As of :class:`Pairs`."""
        return Operand(source, getattr(self._formats, role), stacked(self._streams[role], pair, source.shape))


@lru_cache(256)
def _repeated(formats, which, count):
    """The formats of a product for each of ``count`` pairs."""
    first, second = ROLES[which]
    return stack.Formats([getattr(formats, first)] * count, [getattr(formats, second)] * count,
                         [formats.accumulate] * count)


def _dense(x):
    """``x`` with rows or columns that lie without gaps."""
    return x if 1 in x.stride()[1:] else x.contiguous()


class Matmul(torch.autograd.Function):
    """``y = a b`` of stacked matrices; ``ga = g b^T``; ``gb = a^T g``, each in HBFP."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor, products: Pairs) -> torch.Tensor:
        """``a`` (S, M, K), ``b`` (S, K, N) -> (S, M, N)."""
        ctx.save_for_backward(a, b)
        ctx.run = products.run if isinstance(products, Alike) else None
        ctx.products, ctx.operands, pairs = products, {}, len(a)
        y, left = products(a.detach(), b.detach(), "y")
        for i in left:
            x, w = products.operand(a[i], "x", i, pairs), products.operand(b[i], "w", i, pairs)
            ctx.operands[i] = x, w
            if not again.is_unread():
                y[i] = product(x.along(-1), w.along(0), products.formats(i, pairs))
        return y

    @staticmethod
    @again.differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of ``a`` and ``b``."""
        a, b = ctx.saved_tensors
        products, g, pairs = ctx.products, g.contiguous(), len(a)
        if isinstance(products, Alike) and products.drawn(a):
            return *products.products((g, b.detach().mT, "ga"), (a.detach().mT, g, "gb")), None
        ga, left_a = products(g, b.detach().transpose(1, 2), "ga")
        gb, left_b = products(a.detach().transpose(1, 2), g, "gb")
        for i in sorted({*left_a, *left_b}):
            formats = products.formats(i, pairs)
            x, w = ctx.operands.get(i) or (products.operand(a[i], "x", i, pairs), products.operand(b[i], "w", i, pairs))
            top = products.operand(g[i], "g", i, pairs)
            if i in left_a:
                ga[i] = product(top.along(-1), w.along(-1), formats, turn_b=True)
            if i in left_b:
                gb[i] = product(x.along(0), top.along(0), formats, turn_a=True)
        return ga, gb, None
