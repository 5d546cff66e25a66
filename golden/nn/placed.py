"""Noise by position in a model: which tensor of which product in which step draws with which key.

The rule is in docs/numerics.md, section 6. Nothing runs on from one product to the next but the count of a layer's
products within a step, which :func:`begin_step` sets back to 0.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from hbfp.checks import check_kind
from hbfp.format import HBFPFormat

from ..position import ROLES, check_bits, drawn, step_key, tensor_key
from .formats import Formats
from .memory import array

#: What a layer draws its noise by.
NOISES = ("lanes", "position")
#: What draws by position, where anything else would.
ONLY = ("Noise by position is that of linear layers, of products of matrices, and of g alone in convolutions of one "
        "and two dimensions; rounding 'rne' would do here")


@dataclass(frozen=True)
class Draw:
    """How the elements of a matrix draw their numbers.

    Attributes
    ----------
    key : int
        Of the tensor, without the step's part.
    step : int
        The step's part of the key.
    turned : bool
        Whether the matrix is the tensor's transpose.
    first : int
        Row of the tensor that is its first.
    """
    key: int
    step: int = 0
    turned: bool = False
    first: int = 0

    def draw(self, shape: tuple[int, ...], fmt: HBFPFormat, *, axis: int = -1) -> np.ndarray:
        """The noise of a matrix, as :meth:`golden.noise.Stream.draw` gives it; the axis is of no account."""
        key = self.key ^ self.step
        return drawn(key, shape[::-1], fmt, first=self.first).T if self.turned else drawn(key, shape, fmt,
                                                                                           first=self.first)


@dataclass(frozen=True)
class Product:
    """The tensors of one product: role -> how it draws."""
    draws: tuple[tuple[str, Draw], ...]

    def product(self) -> "Product":
        """Itself: the next product of what has but one."""
        return self

    def role(self, role: str) -> Draw | None:
        """How the tensor in a role draws; None where that is not known."""
        return dict(self.draws).get(role)

    def text(self, formats: Formats) -> str:
        """The text of formats with what they draw; :func:`read` is the way back."""
        return json.dumps(json.loads(formats.text) | {"draws": [
            [role, each.key, each.step, each.turned, each.first] for role, each in self.draws]})


@lru_cache(256)
def read(text: str) -> tuple[Formats, Product | None]:
    """Formats whose text this is, and what they draw if it says so."""
    draws = json.loads(text).get("draws")
    return Formats.read(text), None if draws is None else Product(tuple((role, Draw(*each)) for role, *each in draws))


def at_step(text: str, step: int) -> str:
    """The text of formats, with the numbers of another step's key where it says what they draw."""
    formats, product = read(text)
    if product is None:
        return text
    return Product(tuple((role, replace(each, step=step)) for role, each in product.draws)).text(formats)


@dataclass
class Places:
    """What all layers of a model share: seed and number of the step, and how many products each layer has begun in it.

    Layers are known by their seeds. Dropouts are counted through the model.
    """
    seed: int = 1
    step: int = 0
    dropouts: int = 0
    begun: dict[int, int] = field(default_factory=dict)


class Placed:
    """The noise of a layer's products in one forward pass.

    Parameters
    ----------
    places : Places
    seed : int
        The layer's.
    number : int, optional
        Of its first product, where a pass is made again; else the one after the last.
    """

    def __init__(self, places: Places, seed: int, number: int | None = None) -> None:
        self.places, self.seed, self.number = places, seed, number

    def product(self) -> Product:
        """The next product."""
        if self.number is None:
            number = self.places.begun[self.seed] = self.places.begun.get(self.seed, -1) + 1
        else:
            number, self.number = self.number, self.number + 1
        step = step_key(self.places.seed, self.places.step)
        return Product(tuple((role, Draw(tensor_key(self.seed, number, role), step)) for role in ROLES))

    @property
    def state(self) -> Any:
        """What no numbers by position have; NotImplementedError, one line."""
        raise NotImplementedError(ONLY)

    @property
    def draw(self) -> Any:
        """As :attr:`state`."""
        return self.state


class Given:
    """Numbers of pixels (N, H, W, C), to be drawn as they are."""

    def __init__(self, numbers: torch.Tensor) -> None:
        self.numbers = numbers

    def draw(self, shape: tuple[int, ...], fmt: HBFPFormat, *, axis: int = -1) -> np.ndarray:
        """As :meth:`Draw.draw`."""
        return array(self.numbers.reshape(shape))


def by_groups(draw: Any, groups: int) -> list[Any]:
    """How the channels of each of so many groups draw; a stream stays as it is."""
    return [Given(each) for each in draw.numbers.chunk(groups, -1)] if isinstance(draw, Given) else [draw] * groups


def laid(draw: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """How images draw that something is done to, such as spreading; a stream stays as it is."""
    return Given(change(draw.numbers)) if isinstance(draw, Given) else draw


def part(draw: Any, first: int) -> Any:
    """How a part of a tensor, from a row on, draws; a stream stays as it is."""
    return replace(draw, first=draw.first + first) if isinstance(draw, Draw) else draw


def stacked(draw: Any, number: int, shape: Sequence[int]) -> Any:
    """How one of stacked matrices (..., M, N) draws, the transposes of those of the tensor if it is turned."""
    turned = isinstance(draw, Draw) and draw.turned
    return part(draw, number * shape[-1 if turned else -2])


def by_role(stream: Any) -> tuple[Any, ...]:
    """Where the roles x, w and g of the next product draw from: a stream, or what each has of its own."""
    if not isinstance(stream, (Placed, Product)):
        return stream, stream, stream
    product = stream.product()
    return tuple(product.role(role) for role in ROLES)


def check_gradients(formats: Formats, stream: Any) -> None:
    """NotImplementedError if a convolution would draw by position for anything but the gradient of its output."""
    if isinstance(stream, Placed) and "stochastic" in (formats.x.rounding, formats.w.rounding):
        raise NotImplementedError(ONLY)


def check_formats(formats: Formats) -> None:
    """ValueError if formats take more random bits than numbers by position have."""
    for fmt in (formats.x, formats.w, formats.g):
        if fmt.rounding == "stochastic":
            check_bits(fmt)


def begin_step(module: torch.nn.Module, number: int) -> None:
    """Say which step of training comes next, to a model that :func:`golden.nn.convert` gave ``noise="position"``.

    Its products and dropouts draw the numbers of that step, whatever it has computed before: a step that is done again
    has the same.

    Parameters
    ----------
    module : torch.nn.Module
        The whole model.
    number : int
        0 to 2^32 - 1.

    Raises
    ------
    ValueError
        If no layer draws by position, or the number is out of range.
    """
    check_kind("module", module, torch.nn.Module)
    step_key(0, number)                                    # checks the range
    found = {id(each): each for part in module.modules() if (each := getattr(part, "hbfp_places", None)) is not None}
    if not found:
        raise ValueError("Steps are for models with noise by position; golden.nn.convert(..., noise='position') "
                         "gives it")
    for each in found.values():
        each.step, each.dropouts = number, 0
        each.begun.clear()
