"""WEIGHTS, MULTIPLY and DRAIN: three queues of the core, which must agree about its commands.

What an instruction reads is read when it is met; a command is computed when its rows, its weights and its DRAIN have
all come. Until then its instructions count as uncompleted.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from hbfp.isa.instructions import Instruction, Unit
from hbfp.isa.registers import Cause
from hbfp.system import Accelerator

from ..core import core as golden
from ..number.blocks import Blocks
from . import elements
from .errors import Fault, MachineError
from .loops import nest
from .memories import Memories, once
from .order import Order

#: Steps of the side unit, as fields of instructions.
_STEPS = ("scale", "bias")


@dataclass
class _Rows:
    """The rows of X of commands: mantissas (M, passes, R), and exponents and flags (M, passes, S)."""
    mantissa: np.ndarray
    exponent: np.ndarray
    invalid: np.ndarray


@dataclass
class _Commands:
    """``columns`` commands that have the same rows of X, one for each column tile."""
    rows: int
    tiles: int
    columns: int
    steps: tuple[int, ...]
    relu: bool
    parts: list[_Rows] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)    # of MULTIPLY instructions
    taken: list[tuple[np.ndarray, ...]] = field(default_factory=list)    # weights of the parts that are done

    def sum_of_passes(self):
        """How many passes have their rows."""
        return sum(part.mantissa.shape[1] for part in self.parts)


@dataclass
class _Tiles:
    """Tiles of W that a WEIGHTS sends, over and over; ``left`` of them are not yet taken."""
    mantissa: np.ndarray    # (tiles, R, C)
    exponent: np.ndarray    # (tiles, S, C)
    invalid: np.ndarray
    left: int
    number: int             # of the instruction

    def take(self, count):
        """The next ``count`` tiles; behind the last one the first comes again."""
        tiles = len(self.mantissa)
        which = np.arange(-self.left, -self.left + count) % tiles
        self.left -= count
        if count == tiles:    # the usual case needs no copy
            which = slice(None) if which[0] == 0 else which
        return self.mantissa[which], self.exponent[which], self.invalid[which]


@dataclass
class _Drain:
    """Where results go, as words of V (columns, rows), and the side unit's factors and biases, each (columns, C)."""
    target: np.ndarray
    vectors: tuple[np.ndarray | None, ...]
    number: int
    done: int = 0


class Core:
    """The core between its memories.

    Parameters
    ----------
    accelerator : Accelerator
    memories : Memories
    order : Order
        It is told which instructions are complete, and whose accesses are under way.
    """

    def __init__(self, accelerator: Accelerator, memories: Memories, order: Order) -> None:
        self.accelerator, self.memories, self.order = accelerator, memories, order
        self.design = accelerator.core
        self.format = replace(self.design.format, block=(1, self.design.format.terms))
        self.tiles: deque[_Tiles] = deque()
        self.commands: deque[_Commands] = deque()
        self.drains: deque[_Drain] = deque()
        self.open: _Commands | None = None    # begun, not ended

    # --- Instructions ---------------------------------------------------------------------------

    def weights(self, instruction: Instruction, number: int) -> None:
        """Execute a WEIGHTS: read tiles of W."""
        design, tiles = self.design, instruction["tiles"]
        rows = self.memories.w.reads(instruction["base"] + np.arange(tiles * design.rows))
        segments = rows[::design.height] // design.height
        exponent, invalid = (values[segments].reshape(tiles, design.segments, -1)
                             for values in (self.memories.w_exponent, self.memories.w_invalid))
        self.tiles.append(_Tiles(self.memories.w_data[rows].reshape(tiles, design.rows, -1), exponent, invalid,
                                 tiles * instruction["repeats"], number))
        self._progress()

    def multiply(self, instruction: Instruction, number: int) -> None:
        """Execute a MULTIPLY: read rows of X; the last instruction of a command hands it over.

        Raises
        ------
        Fault
            If the command has more rows or tiles than the core takes.
        MachineError
            If the instruction does not fit those before it.
        """
        rows = instruction["rows0"] * instruction["rows1"]
        if rows > self.design.depth:
            raise Fault(Cause.REFUSED, f"rows of a command must be 1 to {self.design.depth}, not {rows}")
        if instruction["tiles"] > self.design.max_tiles:
            raise Fault(Cause.REFUSED, f"tiles of a command must be 1 to {self.design.max_tiles}, not "
                        f"{instruction['tiles']}")
        steps, relu = tuple(instruction[name] for name in _STEPS), bool(instruction["relu"])
        if instruction["first"]:
            if self.open is not None:
                raise MachineError("MULTIPLY must not begin a command before the last one has ended")
            self.open = _Commands(rows, instruction["tiles"], instruction["columns"], steps, relu)
        if self.open is None:
            raise MachineError("MULTIPLY must begin a command: none is open")
        if (rows, steps, relu, instruction["tiles"]) != (self.open.rows, self.open.steps, self.open.relu,
                                                         self.open.tiles):
            raise MachineError("MULTIPLY must have the rows, tiles and steps of the command that is open")
        self.open.parts.append(self._rows(instruction))
        self.open.numbers.append(number)
        if instruction["last"]:
            if (passes := self.open.sum_of_passes()) != self.open.tiles:
                raise MachineError(f"MULTIPLY must have {self.open.tiles} passes, as many as tiles, not {passes}")
            self.commands.append(self.open)
            self.open = None
        self._progress()

    def drain(self, instruction: Instruction, number: int) -> None:
        """Execute a DRAIN: read factors and biases; results are written when they come.

        Raises
        ------
        MachineError
            If a word is written twice, or is both a result and a factor or bias.
        """
        columns = instruction["columns"]
        places = [self.memories.v.reads(instruction[f"{name}_base"] + np.arange(columns)) if instruction[name] else None
                  for name in _STEPS]
        target = nest((instruction["rows0"], instruction["rows1"], columns),
                      (instruction["row0"], instruction["row1"], instruction["column"]), instruction["base"])
        target = self.memories.v.address(target.reshape(columns, -1))
        once(self.memories.v, target)
        for place in places:
            own = np.intersect1d(target, [] if place is None else place)
            if own.size:
                raise MachineError(f"{self.memories.v.at(own[0])} must not be both a result of a DRAIN and its factors "
                                   "or biases")
        vectors = tuple(None if place is None else self.memories.v_data[place] for place in places)
        self.drains.append(_Drain(target, vectors, number))
        self._progress()

    def finish(self) -> None:
        """Raise MachineError if anything is left at a YIELD or HALT."""
        if self.open or self.tiles or self.commands or self.drains:
            waiting = [name for name, queue in (("WEIGHTS", self.tiles), ("MULTIPLY", self.commands or self.open),
                                                ("DRAIN", self.drains)) if queue]
            raise MachineError(f"{' and '.join(waiting)} must not be left uncompleted at a YIELD or HALT: the core's "
                               "queues do not agree about its commands")

    # --- The rows of X --------------------------------------------------------------------------

    def _rows(self, instruction):
        """What an instruction reads of X: axes M, passes."""
        get, design, memories = instruction.__getitem__, self.design, self.memories
        rows, passes = (get("rows0"), get("rows1")), (get("passes0"), get("passes1"), get("passes2"))
        address = nest((*passes, *rows), (get("pass0"), get("pass1"), get("pass2"), get("row0"), get("row1")),
                       get("base")).reshape(prod(rows), prod(passes))
        if not get("bounded"):
            address = memories.x.reads(address)
            return _Rows(memories.x_data[address], memories.x_exponent[address], memories.x_invalid[address])
        x = nest((*passes, *rows), (0, get("x_pass"), 0, get("x_row"), 0), get("x")).reshape(address.shape)
        y = nest((*passes, *rows), (0, 0, get("y_pass"), 0, get("y_row")), get("y")).reshape(address.shape)
        inside = (x >= 0) & (x < get("width")) & (y >= 0) & (y < get("height"))
        mantissa = np.zeros((*address.shape, design.rows), np.int32)
        exponent = np.full((*address.shape, design.segments), max(-126, self.format.exponent_range[0]), np.int32)
        invalid = np.zeros(exponent.shape, bool)
        used = memories.x.reads(address[inside])
        mantissa[inside], exponent[inside] = memories.x_data[used], memories.x_exponent[used]
        invalid[inside] = memories.x_invalid[used]
        return _Rows(mantissa, exponent, invalid)

    # --- Products -------------------------------------------------------------------------------

    def _progress(self):
        """Compute commands as long as everything that they need is there."""
        while self.commands and self.drains:
            commands = self.commands[0]
            drain = self.drains[0]
            count = min(commands.columns, len(drain.target) - drain.done)
            missing = count * commands.tiles - sum(len(part[0]) for part in commands.taken)
            if sum(tiles.left for tiles in self.tiles) < missing:
                return
            self._check(commands, drain)
            weights = _joined([*commands.taken, self._take(missing)])
            results = self._product(commands, weights, count)
            for result in results:
                self._write(commands, drain, result)
            if drain.done == len(drain.target):
                self.drains.popleft()
                self.order.complete(Unit.DRAIN, drain.number)
            commands.columns -= count
            if not commands.columns:
                self.commands.popleft()
                for number in commands.numbers[len(commands.taken):]:
                    self.order.complete(Unit.MULTIPLY, number)
        self._part_by_part()

    def _part_by_part(self):
        """Of a command that is open, parts whose weights have come; with nothing before them they are done."""
        while not self.commands and self.open and len(self.open.taken) < len(self.open.parts):
            done = len(self.open.taken)
            passes = self.open.parts[done].mantissa.shape[1]
            if sum(tiles.left for tiles in self.tiles) < passes:
                return
            self.open.taken.append(self._take(passes))
            self.order.complete(Unit.MULTIPLY, self.open.numbers[done])

    @staticmethod
    def _check(commands, drain):
        steps = tuple(int(vector is not None) for vector in drain.vectors)
        if (drain.target.shape[1], steps) != (commands.rows, commands.steps):
            raise MachineError(
                f"DRAIN {drain.number} and MULTIPLY {commands.numbers[0]} must have the same rows and steps, not "
                f"{drain.target.shape[1]} and {commands.rows} rows, steps {steps} and {commands.steps}")

    def _take(self, count):
        """So many tiles in their order: mantissas, exponents and flags."""
        pieces = []
        while count:
            tiles = self.tiles[0]
            piece = min(count, tiles.left)
            pieces.append(tiles.take(piece))
            count -= piece
            if not tiles.left:
                self.tiles.popleft()
                self.order.complete(Unit.WEIGHTS, tiles.number)
        return _joined(pieces)

    def _product(self, commands, weights, count):
        """Results of so many commands, each (M, C) as bit patterns, the side unit's steps not yet taken."""
        passes, design = commands.tiles, self.design
        rows = [np.concatenate([getattr(part, name) for part in commands.parts], axis=1)
                for name in ("mantissa", "exponent", "invalid")]
        # From here on axes are K (or segments along K) and N: column tiles one beside the other.
        mantissa, exponent, invalid = (
            part.reshape(count, -1, design.cols).transpose(1, 0, 2).reshape(-1, count * design.cols)
            for part in weights)
        last = np.arange(passes * design.segments)
        if design.block_tiles > 1:    # of the passes of a block the last one's exponents count
            last = np.minimum(np.arange(0, passes, design.block_tiles) + design.block_tiles, passes) - 1
        x = Blocks(np.ascontiguousarray(rows[0].reshape(commands.rows, -1)),
                   np.ascontiguousarray(rows[1].reshape(commands.rows, -1)[:, last]),
                   np.ascontiguousarray(rows[2].reshape(commands.rows, -1)[:, last]), self.format, -1)
        w = Blocks(np.ascontiguousarray(mantissa), np.ascontiguousarray(exponent[last]),
                   np.ascontiguousarray(invalid[last]), self.format, -2)
        y = elements.product(design, x, w)
        return y.view(np.uint32).reshape(commands.rows, count, -1).transpose(1, 0, 2)

    def _write(self, commands, drain, result):
        """One command through the side unit to V."""
        scale, bias = (None if vector is None else vector[drain.done] for vector in drain.vectors)
        now, self.order.number = self.order.number, drain.number
        words = self.memories.v.writes(drain.target[drain.done])
        self.order.number = now
        self.memories.v_data[words] = golden.side(result, scale, bias, commands.relu)
        drain.done += 1


def _joined(pieces):
    """Tiles one behind the other."""
    return pieces[0] if len(pieces) == 1 else tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))
