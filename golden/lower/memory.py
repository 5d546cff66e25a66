"""Tensors in DRAM while a program is made: where they lie, as strided views.

Addresses, strides and pitches are in elements of four bytes, unless a line says bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hbfp.program import Region
from hbfp.system import Accelerator

from .errors import LoweringError

#: Most elements of four bytes that DRAM can have.
_ELEMENTS = 1 << 30
#: Elements of a page, at whose end bursts end.
PAGE = 4096 // 4


@dataclass
class Home:
    """A piece of DRAM, in elements of four bytes.

    Attributes
    ----------
    address : int
        Its first element.
    rows, length, pitch : int
        So many rows of ``length`` elements, ``pitch`` from one to the next. What lies between is zeros.
    """
    address: int
    rows: int
    length: int
    pitch: int


@dataclass
class Value:
    """A tensor in DRAM, in the piece ``home``; ``where``, of torch, has its shape and strides and no values."""
    where: torch.Tensor
    home: Home

    def view(self, function: Any, *args: Any, **options: Any) -> "Value":
        """The view that a function of torch, which must not copy, makes of it."""
        return Value(function(self.where, *args, **options), self.home)

    def seen(self, function: Callable[[torch.Tensor], torch.Tensor]) -> "Value | None":
        """The view that a function of torch makes of it; None where it copies."""
        where = function(self.where)
        return Value(where, self.home) if shares(where, self.where) else None

    def at(self, places: Mapping[int, int]) -> "Value":
        """The part at the given places, dimension -> index; these dimensions stay, with size 1."""
        where = self.where
        for dim, place in places.items():
            where = where.narrow(dim, place, 1)
        return Value(where, self.home)

    def further(self, elements: int) -> "Value":
        """The same so many elements further on in DRAM."""
        home = Home(self.home.address + elements, self.home.rows, self.home.length, self.home.pitch)
        return Value(located(self.where.shape, self.where.stride(), self.address + elements), home)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.where.shape)

    def dims(self) -> list[tuple[int, int]]:
        """Size and stride of each dimension."""
        return list(zip(self.where.shape, self.where.stride(), strict=True))

    @property
    def address(self) -> int:
        """Address of its first element."""
        return self.where.storage_offset()

    def whole_words(self, inner: int, lanes: int) -> bool:
        """Whether rows along dimension ``inner`` are whole words of ``lanes`` numbers, filled up with zeros."""
        dims = self.dims()
        size, stride = dims[inner]
        offset = self.address - self.home.address
        aligned = self.home.address % lanes == 0 and offset % lanes == 0 and all(
            other % lanes == 0 for n, (count, other) in enumerate(dims) if n != inner % len(dims) and count > 1)
        filled = size % lanes == 0 or size == self.home.length and offset % self.home.pitch == 0
        return aligned and filled and (stride == 1 or size == 1)


    def words(self, inner: int, first: int, count: int, lanes: int) -> "Value":
        """Words ``first`` to ``first + count - 1`` of its rows along ``inner``, as far as it has them."""
        part = self.where.narrow(inner, first * lanes, min(self.shape[inner] - first * lanes, count * lanes))
        home = self.home
        if self.whole_words(inner, lanes):                 # zeros behind its last number are its own
            home = Home(part.storage_offset(), home.rows, part.shape[inner], home.pitch)
        return Value(part, home)


class Dram:
    """DRAM given out from address 0 on, and what it holds before the program runs.

    Parameters
    ----------
    accelerator : Accelerator
    filled : bool
        Whether tensors have numbers; else it holds no more than programs of the vector unit.

    Attributes
    ----------
    end : int
        The first element that is not given out. LoweringError where addresses end.
    regions : list of Region
        What lies there before the program runs, by address in bytes.
    pieces : list of Home
        Pieces that tensors have, in order; not those with numbers before the program runs, which stay.
    """

    def __init__(self, accelerator: Accelerator, filled: bool = True) -> None:
        self.accelerator, self.lanes, self.filled = accelerator, accelerator.lanes, filled
        self.end = 0
        self.regions: list[Region] = []
        self.pieces: list[Home] = []
        self._free: list[tuple[int, int]] = []             # address and elements

    def take(self, data: bytes) -> int:
        """Put bytes into DRAM before the program runs, and give their address in bytes, a multiple of the beat."""
        address = self._more(-(-len(data) // 4))
        self.regions.append(Region(4 * address, data))
        return 4 * address

    def page(self) -> int:
        """Go on at the next multiple of 4 KiB, and give its address in bytes."""
        self.end = -(-self.end // PAGE) * PAGE
        return 4 * self.end

    def home(self, rows: int, length: int, pitch: int | None = None, again: bool = False) -> Home:
        """Space for rows of ``length`` numbers, which begin ``pitch`` apart; by default each fills whole words.

        With ``again`` it may be space that was given back, if there is nothing between rows: that would have to be
        zeros.
        """
        pitch = -(-length // self.lanes) * self.lanes if pitch is None else pitch
        address = self._again(rows * pitch) if again and length == pitch else None
        made = Home(self._more(rows * pitch) if address is None else address, rows, length, pitch)
        self.pieces.append(made)
        return made

    def free(self, home: Home) -> None:
        """Let a piece be given out again, unless there is something between its rows: that has to stay zeros."""
        self.pieces = [each for each in self.pieces if each is not home]
        if home.length != home.pitch:
            return
        size = -(-home.rows * home.pitch // self.lanes) * self.lanes
        merged: list[tuple[int, int]] = []
        for at, count in sorted([*self._free, (home.address, size)]):
            if merged and sum(merged[-1]) == at:
                merged[-1] = merged[-1][0], merged[-1][1] + count
            else:
                merged.append((at, count))
        self._free = merged

    def _again(self, elements):
        """The address of the smallest free piece that holds so many elements; None if there is none."""
        needed = -(-elements // self.lanes) * self.lanes
        fits = [(count, at) for at, count in self._free if count >= needed]
        if not fits:
            return None
        count, at = min(fits)
        self._free = [each for each in self._free if each[0] != at]
        if count > needed:
            self._free.append((at + needed, count - needed))
        return at

    def stays(self, home: Home) -> None:
        """A piece has numbers before the program runs, in its rows or around them, and is never given out again."""
        self.pieces = [each for each in self.pieces if each is not home]

    def empty(self, shape: Sequence[int], order: Sequence[int] | None = None, again: bool = False) -> Value:
        """Space for a tensor whose dimensions lie in ``order``, outermost first; rows run along the last of them.

        ``again`` as of :meth:`home`.
        """
        order = list(range(len(shape))) if order is None else list(order)
        length = shape[order[-1]] if order else 1
        rows = int(np.prod([shape[d] for d in order[:-1]], dtype=np.int64))
        home = self.home(rows, length, again=again)
        strides, step = [1] * len(shape), home.pitch
        for d in reversed(order[:-1]):
            strides[d], step = step, step * shape[d]
        return Value(located(shape, strides, home.address), home)

    def constant(self, values: np.ndarray, order: Sequence[int] | None = None) -> Value:
        """A tensor that is there before the program runs."""
        values = np.asarray(values, np.float32)
        value = self.empty(values.shape, order)
        self.stays(value.home)
        if not self.filled:
            return value
        data = np.zeros((value.home.rows, value.home.pitch), np.float32)
        laid = values.transpose(order) if order is not None else values
        data[:, :value.home.length] = laid.reshape(value.home.rows, value.home.length)
        self.regions.append(Region(4 * value.home.address, data.tobytes()))
        return value

    def zeros(self, home: Home, number: float = 0.0) -> None:
        """Fill a piece with zeros before the program runs, or its rows with another number."""
        self.stays(home)
        if not self.filled:
            return
        data = np.zeros((home.rows, home.pitch), np.float32)
        data[:, :home.length] = number
        self.regions.append(Region(4 * home.address, data.tobytes()))

    def given(self, home: Home, values: np.ndarray) -> None:
        """Fill a piece, whose rows must have no gaps, with numbers before the program runs."""
        self.regions.append(Region(4 * home.address, np.ascontiguousarray(values, np.float32).tobytes()))

    def _more(self, elements):
        address = self.end
        self.end += -(-elements // self.lanes) * self.lanes
        if self.end > _ELEMENTS:
            raise LoweringError("it needs space beside what others have, and addresses reach 4 GiB of DRAM; a smaller "
                                "batch or model would do")
        return address


def shares(part: torch.Tensor, where: torch.Tensor) -> bool:
    """Whether a tensor without values is a view of another one, and no copy."""
    return part.untyped_storage()._cdata == where.untyped_storage()._cdata


def located(shape: Sequence[int], strides: Sequence[int], address: int) -> torch.Tensor:
    """A tensor without values that says where its elements would lie."""
    return torch.empty(_ELEMENTS, device="meta").as_strided(list(shape), list(strides), address)
