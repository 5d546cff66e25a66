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
from ..core.digits import joined
from ..number.blocks import Blocks
from ..sparsity import expand
from . import elements
from .errors import Fault, MachineError
from .loops import nest
from .memories import Memories, once
from .order import Order

#: Steps of the side unit, and how a command reads its operands, as fields of instructions.
_STEPS, _MODES = ("scale", "bias"), ("wide_x", "wide_w", "sparse")


@dataclass
class _Rows:
    """The rows of X of commands: mantissas (M, passes, R), wide ones joined, exponents and flags (M, passes, S).

    Rows of sparse commands have R M / N mantissas.
    """
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
    wide: tuple[int, ...]
    sparse: int
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
    index: np.ndarray       # (tiles, R, C)
    left: int
    number: int             # of the instruction

    def take(self, count):
        """The next ``count`` tiles; behind the last one the first comes again."""
        tiles = len(self.mantissa)
        which = np.arange(-self.left, -self.left + count) % tiles
        self.left -= count
        if count == tiles:    # the usual case needs no copy
            which = slice(None) if which[0] == 0 else which
        return self.mantissa[which], self.exponent[which], self.invalid[which], self.index[which]


@dataclass
class _Drain:
    """Where results go, as words of V (columns, rows), and the side unit's factors and biases, each (columns, C).

    If the commands are ``wide``, columns take turns in the even and the odd lanes of words. If there are ``lines`` of
    rows, those of line n go to lanes n and on.
    """
    target: np.ndarray
    vectors: tuple[np.ndarray | None, ...]
    number: int
    wide: bool = False
    lines: int = 0
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
        mantissa, index = (values[rows].reshape(tiles, design.rows, -1)
                           for values in (self.memories.w_data, self.memories.w_index))
        self.tiles.append(_Tiles(mantissa, exponent, invalid, index, tiles * instruction["repeats"], number))
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
        steps, (*wide, sparse) = (tuple(instruction[name] for name in names) for names in (_STEPS, _MODES))
        if instruction["tiles"] > (most := self.design.most_tiles(bool(sparse))):
            raise Fault(Cause.REFUSED, f"tiles of a command must be 1 to {most}, not {instruction['tiles']}")
        relu = bool(instruction["relu"])
        if instruction["first"]:
            if self.open is not None:
                raise MachineError("MULTIPLY must not begin a command before the last one has ended")
            self.open = _Commands(rows, instruction["tiles"], instruction["columns"], steps, tuple(wide),
                                  sparse, relu)
        if self.open is None:
            raise MachineError("MULTIPLY must begin a command: none is open")
        if (rows, steps, tuple(wide), sparse, relu, instruction["tiles"]) != (
                self.open.rows, self.open.steps, self.open.wide, self.open.sparse, self.open.relu, self.open.tiles):
            raise MachineError("MULTIPLY must have the rows, tiles, steps and widths of the command that is open")
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
        columns, wide = instruction["columns"], instruction["wide"]
        word = np.arange(columns) >> wide
        places = [self.memories.v.reads(instruction[f"{name}_base"] + word) if instruction[name] else None
                  for name in _STEPS]
        target = nest((instruction["rows0"], instruction["rows1"], word[-1] + 1),
                      (instruction["row0"], instruction["row1"], instruction["column"]), instruction["base"])
        target = self.memories.v.address(target.reshape(word[-1] + 1, -1))
        lines = instruction["rows1"] * instruction["diagonal"]
        if not lines:
            once(self.memories.v, target)
        target = target[word]
        for place in places:
            own = np.intersect1d(target, [] if place is None else place)
            if own.size:
                raise MachineError(f"{self.memories.v.at(own[0])} must not be both a result of a DRAIN and its factors "
                                   "or biases")
        vectors = tuple(None if place is None else self.memories.v_data[place] for place in places)
        self.drains.append(_Drain(target, vectors, number, bool(wide), lines))
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
        get, design = instruction.__getitem__, self.design
        rows, passes = (get("rows0"), get("rows1")), (get("passes0"), get("passes1"), get("passes2"))
        address = nest((*passes, *rows), (get("pass0"), get("pass1"), get("pass2"), get("row0"), get("row1")),
                       get("base")).reshape(prod(rows), prod(passes))
        if not get("bounded"):
            return _Rows(*self._words(instruction, address))
        x = nest((*passes, *rows), (0, get("x_pass"), 0, get("x_row"), 0), get("x")).reshape(address.shape)
        y = nest((*passes, *rows), (0, 0, get("y_pass"), 0, get("y_row")), get("y")).reshape(address.shape)
        inside = (x >= 0) & (x < get("width")) & (y >= 0) & (y < get("height"))
        reach = design.reach(design.rows) if get("sparse") else design.rows
        mantissa = np.zeros((*address.shape, reach), np.int32)
        exponent = np.full((*address.shape, design.segments), max(-126, self.format.exponent_range[0]), np.int32)
        invalid = np.zeros(exponent.shape, bool)
        mantissa[inside], exponent[inside], invalid[inside] = self._words(instruction, address[inside])
        return _Rows(mantissa, exponent, invalid)

    def _words(self, instruction, address):
        """Mantissas, exponents and flags of rows of X; where they are wide, addresses are those of high digits."""
        memories = self.memories
        one = self.accelerator.row_pieces
        pieces = np.arange(one * self.accelerator.spread if instruction["sparse"] else one)
        own = memories.x.reads(address[..., None] + pieces)
        if not instruction["wide_x"]:    # the first exponents count
            return self._row(memories.x_data[own]), *self._scales(own[..., :one])
        low = memories.x.reads(address[..., None] + pieces + instruction["low"])    # the second beat's exponents count
        return self._joined(*(self._row(memories.x_data[each]) for each in (own, low))), *self._scales(low[..., :one])

    @staticmethod
    def _row(pieces):
        """Rows of the core from what their pieces have: (..., pieces, n) to (..., pieces n)."""
        return pieces.reshape(*pieces.shape[:-2], pieces.shape[-2] * pieces.shape[-1])

    def _scales(self, words):
        """Exponents and flags of rows of the core: of a segment of several pieces those of the first."""
        x = self.memories
        return tuple(found[..., ::found.shape[-1] // self.design.segments] for found in (
            self._row(x.x_exponent[words]), self._row(x.x_invalid[words])))

    def _joined(self, high, low):
        """Wide mantissas from digits; MachineError if these are not those of wide mantissas."""
        mantissa = joined(high, low, self.design.format.mantissa).astype(np.int32)
        if mantissa.size and int(np.abs(mantissa).max()) > self.design.widest.limit:
            raise MachineError("MULTIPLY must have digits of wide mantissas where it says so, not of other conversions")
        return mantissa

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
            weights = _behind([*commands.taken, self._take(missing)])
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
        steps, wide = tuple(int(vector is not None) for vector in drain.vectors), any(commands.wide)
        if (drain.target.shape[1], steps, drain.wide) != (commands.rows, commands.steps, wide):
            raise MachineError(
                f"DRAIN {drain.number} and MULTIPLY {commands.numbers[0]} must have the same rows, steps and width, not"
                f" {drain.target.shape[1]} and {commands.rows} rows, steps {steps} and {commands.steps}, wide "
                f"{drain.wide:d} and {wide:d}")

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
        return _behind(pieces)

    def _product(self, commands, weights, count):
        """Results of so many commands, each (M, C) as bit patterns, the side unit's steps not yet taken.

        If an operand is wide, a weight has two columns, and (M, C / 2) are given.
        """
        passes, design, lanes = commands.tiles, self.design, self.accelerator.lanes
        rows = [np.concatenate([getattr(part, name) for part in commands.parts], axis=1)
                for name in ("mantissa", "exponent", "invalid")]
        # From here on axes are K (or segments along K) and N: column tiles one beside the other.
        mantissa, exponent, invalid, index = (
            part.reshape(count, -1, lanes).transpose(1, 0, 2).reshape(-1, count * lanes)
            for part in weights)
        if commands.sparse:
            if index.size and int(index.min()) < 0:
                raise MachineError("MULTIPLY must have sparse weights where it says so, not those of other conversions "
                                   "or loads")
            mantissa = np.ascontiguousarray(expand(mantissa, index, *design.sparse, axis=0))
        wide_x, wide_w = commands.wide
        if wide_x or wide_w:
            mantissa = self._joined(mantissa[:, 1::2], mantissa[:, ::2]) if wide_w else mantissa[:, ::2]
            exponent, invalid = exponent[:, ::2], invalid[:, ::2]
        of_x, of_w = (replace(self.format, mantissa=design.wide) if wide else self.format for wide in commands.wide)
        last = np.arange(passes * design.segments)
        each = design.lay(bool(commands.sparse)).block_tiles
        if each > 1:    # of the passes of a block the last one's exponents count
            last = np.minimum(np.arange(0, passes, each) + each, passes) - 1
        x = Blocks(np.ascontiguousarray(rows[0].reshape(commands.rows, -1)),
                   np.ascontiguousarray(rows[1].reshape(commands.rows, -1)[:, last]),
                   np.ascontiguousarray(rows[2].reshape(commands.rows, -1)[:, last]), of_x, -1)
        w = Blocks(np.ascontiguousarray(mantissa), np.ascontiguousarray(exponent[last]),
                   np.ascontiguousarray(invalid[last]), of_w, -2)
        y = elements.product(design, x, w)
        return y.view(np.uint32).reshape(commands.rows, count, -1).transpose(1, 0, 2)

    def _write(self, commands, drain, result):
        """One command through the side unit to V."""
        lanes = slice(drain.done & 1, None, 2) if drain.wide else slice(None)
        scale, bias = (None if vector is None else vector[drain.done, lanes] for vector in drain.vectors)
        now, self.order.number = self.order.number, drain.number
        words, values = drain.target[drain.done], golden.side(result, scale, bias, commands.relu)
        if drain.wide or drain.lines:
            every = np.arange(self.accelerator.lanes)
            for line, rows in enumerate(np.split(np.arange(len(words)), drain.lines or 1)):
                parts = every[line % self.accelerator.lanes:] if drain.lines else every[lanes]
                self.memories.v.write_parts(words[rows, None], parts)
                self.memories.v_data[words[rows, None], parts] = values[rows][:, parts if drain.lines else slice(None)]
        else:
            self.memories.v_data[self.memories.v.writes(words)] = values
        self.order.number = now
        drain.done += 1


def _behind(pieces):
    """Tiles one behind the other."""
    return pieces[0] if len(pieces) == 1 else tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))
