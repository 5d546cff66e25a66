"""Systems around a core, as data: the accelerator."""

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

from . import describe
from .declared import ACCELERATOR
from .design import ConflictError, Design
from .fields import flag, nested, several, whole
from .format import HBFPFormat
from .functions import FUNCTIONS as FUNCTIONS
from .functions import parts
from .values import given

#: Rows and columns of an accelerator's array: powers of two; a bus, a word of V, has at most 1024 bits.
ROWS, COLUMNS = (4, 8, 16, 32, 64, 128, 256), (4, 8, 16, 32)
#: Most cores that share a stream of rows of X.
_ARRAYS = 16
#: Addresses of X at the most.
_ADDRESSES = 1 << 18
#: Kinds of number that its array may compute with.
NUMBERS = ("hbfp", "fp32", "bf16", "fp16", "int8")
#: Registers inside each evaluator of functions.
_FUNCTION_PIPELINE = 4
#: Registers inside multipliers and adders of its lanes on an FPGA: behind a DSP block, and for about the same clock.
_ON_FPGA = 1, 2
#: Copies of the vector unit's registers.
COPIES = (1, 3)
#: Equal parts of each memory, of which contexts have shares.
SHARES = 16


@dataclass(frozen=True)
class Share:
    """A context's share of the memories V, X, W and P, in that order, in sixteenths.

    Attributes
    ----------
    first, size : tuple of int
        The first sixteenth of each memory, and how many.

    Raises
    ------
    ValueError
        If one ends beyond its memory, or there are not four whole numbers of each.
    """
    first: tuple[int, ...] = (0,) * 4
    size: tuple[int, ...] = (SHARES,) * 4

    def __post_init__(self):
        for name, values in (("First", self.first), ("Size", self.size)):
            if not isinstance(values, tuple | list) or len(values) != 4 or not all(
                    isinstance(value, Integral) for value in values):
                raise ValueError(f"{name} of a share must be four whole numbers, not {given(values)}")
        for name, first, size in zip("VXWP", self.first, self.size, strict=True):
            if first < 0 or size < 0 or first + size > SHARES:
                raise ValueError(f"Share of {name} must end at sixteenth {SHARES} or before it, not be {size} from "
                                 f"{first} on")

    @classmethod
    def of_all(cls, first: int, size: int) -> Self:
        """The same of each memory."""
        return cls((first,) * 4, (size,) * 4)

    def words(self, accelerator: "Accelerator") -> dict[str, tuple[int, int]]:
        """Memory, ``v``, ``x``, ``w`` or ``p`` -> its first address and the one behind its last."""
        each = {name: getattr(accelerator, "x_pieces" if name == "x" else f"{name}_words") // SHARES for name in "vxwp"}
        return {name: (first * each[name], (first + size) * each[name])
                for name, first, size in zip("vxwp", self.first, self.size, strict=True)}

    def registers(self) -> dict[str, int]:
        """Name -> value of a context's registers."""
        return {f"share_{name}": sum(value << 8 * place for place, value in enumerate(values))
                for name, values in (("first", self.first), ("size", self.size))}


def _tag(name: str) -> dict[str, Any]:
    return {"tag": name, "place": 0}


@dataclass(frozen=True, kw_only=True)
class Accelerator(describe.Description):
    """A core with its memories, converter, vector unit, DMA and instructions; docs/design/11-accelerator.md.

    A word of V, which is a beat of the bus, is as many FP32 numbers as there are columns: the core's, or those of all
    cores that share its rows of X.

    Parameters
    ----------
    core : Design
        A core of 4 to 256 rows and 4 to 32 columns, powers of two; 4 rows only with mantissas of more than 4 bits.
    x_words, v_words : int
        Words of the memories X (rows of the core, mantissas and exponents) and V.
    w_words : int
        Rows of the memory W, each as many mantissas as the core has columns.
    p_words : int
        Instruction words of the vector unit's programs.
    row_words : int
        Words of V that the longest row of the vector unit has.
    vector_rows : int
        Rows that the vector unit holds.
    short_rows : int
        Rows of one word that a pass of the vector unit may take one behind the other, each with sums of its own, so
        that one computes while others wait for their sums; 0: one row. Not with fewer lanes than columns. Equal bits.
    register_copies : int
        Of these rows: 3, one for each operand of a pass, or 1: a beat takes a cycle for each row that its pass reads.
        Equal bits.
    vector_lanes : int
        Lanes of the vector unit, a divisor of the columns: a word of V takes columns / lanes cycles; 0: as many as
        columns. Sums along a row go by lanes, so that their order differs.
    function_lanes : int
        Evaluators of functions (exp, rsqrt and so on), a divisor of the vector unit's lanes, which they serve in turns:
        a pass with a function takes lanes over evaluators cycles a beat; 0: one in each lane. Equal bits.
    functions : tuple of str
        Those of :data:`FUNCTIONS` that the vector unit has; a program with another one is an error.
    queue : int
        Instructions that the queue of each unit holds.
    reads : int
        Bursts of reads in flight.
    burst : int
        Beats of the longest burst.
    contexts : int
        Programs that it holds at a time; with two, each has its share of the memories.
    memory_banks : int
        0: each memory is read and written in a cycle; else memories have one port, so that a read waits for a write,
        or a load of weights for a read: W and P as a whole, V and X in so many banks, a power of two, a word in that of
        its address modulo so many, and registers of the vector unit in two. Equal bits.
    dispatch : int
        Requests that the dispatcher in front of two contexts holds, a power of two from 2 on; 0: there is none. With
        one context it is what programs of such a machine are made for, and nothing that is built.
    dispatch_batch : int
        Requests that its batches have at most, no more than it holds.
    dispatch_ring : bool
        Whether the dispatcher reads requests as descriptors from a ring in DRAM, too.
    arrays : int
        Cores side by side that take the same rows of X, each with its own of the columns: 4 to 32 together, a power of
        two. To programs they are one core of all columns, with its bits.
    parity : bool
        Whether V, X, W and P have a bit of parity for each part of a word that is written alone: a bit of theirs that
        has turned round ends the program that reads it, with an error. They are cleared behind a reset. Equal bits.

    Raises
    ------
    ValueError
        If a value is out of range, or two contradict each other.
    """
    core: Design = nested(Design)
    x_words: int = whole(8192, 64, 65536, title="X memory", unit=" words", text="words of X, a row of the core each",
                         **_tag("x"))
    w_words: int = whole(4096, 64, 65536, title="W memory", unit=" rows", text="rows of W", **_tag("w"))
    v_words: int = whole(4096, 64, 65536, title="V memory", unit=" words",
                         text="words of V, as many FP32 numbers as the core has columns", **_tag("v"))
    p_words: int = whole(512, 32, 4096, title="Vector programs", unit=" words",
                         text="instruction words of the vector unit", **_tag("pw"))
    row_words: int = whole(32, 1, 256, title="Vector row", unit=" words", text="words of the vector unit's longest row",
                           **_tag("rw"))
    vector_rows: int = whole(8, 1, 16, title="Vector registers", unit=" rows", text="rows that the vector unit holds",
                             **_tag("vr"))
    register_copies: int = whole(3, 1, 3, title="Register copies", **_tag("rc"),
                                 text="copies of these rows: 3, one for each operand, or 1, read in turns")
    short_rows: int = whole(0, 0, 256, title="Short rows", usual="one", **_tag("sr"),
                            text="rows of one word that a pass of the vector unit may take, each with its own sums")
    vector_lanes: int = whole(0, 0, COLUMNS[-1], title="Vector lanes", usual="as many as columns", where="turned",
                              text="lanes of the vector unit, which serve the columns in turns", **_tag("vl"))
    function_lanes: int = whole(0, 0, COLUMNS[-1], title="Function lanes", usual="as many as vector lanes",
                                where="shared", **_tag("fl"),
                                text="evaluators of exp, rsqrt and so on, which serve the vector unit's lanes in turns")
    functions: tuple[str, ...] = several(
        FUNCTIONS, title="Functions", usual="all", tag="fn", place=0,
        text="functions of the vector unit; a program that needs another is refused")
    queue: int = whole(4, 2, 64, title="Queue", unit=" instructions", text="instructions that a unit's queue holds",
                       **_tag("q"))
    reads: int = whole(8, 1, 16, title="Reads", unit=" bursts", text="bursts of reads in flight", **_tag("rd"))
    burst: int = whole(16, 1, 32, title="Burst", unit=" beats", text="beats of the longest burst", **_tag("bu"))
    contexts: int = whole(1, 1, 2, title="Contexts", text="programs at a time, which take turns where they yield",
                          **_tag("cx"))
    memory_banks: int = whole(0, 0, 16, title="Memory banks", usual="two ports", **_tag("mb"),
                              text="banks of V and of X, where each memory has one port for reads and writes")
    dispatch: int = whole(0, 0, 4096, title="Dispatcher", unit=" requests", usual="none", **_tag("dq"),
                          text="requests that the dispatcher in front of two contexts holds")
    dispatch_batch: int = whole(8, 1, 32, title="Dispatcher's batch", unit=" requests", where="dispatched",
                                text="requests that its batches have at most", **_tag("db"))
    dispatch_ring: bool = flag(title="Dispatcher's ring", text="the dispatcher reads requests from a ring in DRAM",
                               **_tag("dr"))
    arrays: int = whole(1, 1, _ARRAYS, title="Arrays", unit=" cores", **_tag("ar"),
                        text="cores that share the rows of X, each with its own of the columns")
    parity: bool = flag(title="Parity", text="memories have parity: a bit that has turned round ends the program",
                        **_tag("parity"))

    def __post_init__(self):
        describe.check(self)
        core = self.core
        core.require(ACCELERATOR)
        if core.arithmetic not in NUMBERS:
            raise ConflictError("arithmetic", core.arithmetic, f"must be one of {', '.join(NUMBERS)} in an accelerator")
        if not core.blocked:    # elements are grouped as blocks of a word are, which share nothing
            fmt = HBFPFormat(mantissa=core.format.mantissa, block=(1, core.rows))
            object.__setattr__(self, "core", core := replace(core, format=fmt))
        if core.rows not in ROWS:
            raise ConflictError("rows", core.rows, f"must be one of {', '.join(map(str, ROWS))} in an accelerator")
        if self.lanes not in COLUMNS:
            several = ", ".join(map(str, COLUMNS))
            if self.arrays > 1:
                raise ConflictError("arrays", self.arrays, f"times the {core.cols} columns of a core must be one "
                                    f"of {several}")
            raise ConflictError("cols", core.cols, f"must be one of {several} in an accelerator")
        if self.packed > core.rows:
            raise ConflictError("rows", core.rows, f"must be at least {self.packed} in an accelerator of "
                                f"{self.mantissa} bits")
        if self.packed > core.height or core.height & core.height - 1:
            raise ConflictError("block", core.format.block, f"must be a power of two of at least "
                                f"{self.packed} along K in an accelerator of {self.mantissa} bits")
        if core.takes_sparse:
            self._check_sparse()
        if self.lanes % self.unit_lanes:
            raise ConflictError("vector_lanes", self.vector_lanes, f"must be 0 or divide the {self.lanes} columns")
        if self.register_copies not in COPIES:
            raise ConflictError("register_copies", self.register_copies, "must be 1 or 3")
        if self.short_rows == 1 or self.short_rows > self.row_words:
            raise ConflictError("short_rows", self.short_rows, f"must be 0, or 2 to {self.row_words}: they are as many "
                                "words as the longest row at most")
        if self.short_rows and self.turned:
            raise ConflictError("short_rows", self.short_rows, "must be 0 where the vector unit has fewer lanes than "
                                "a word has numbers")
        if self.unit_lanes % self.evaluators:
            raise ConflictError("function_lanes", self.function_lanes,
                                f"must be 0 or divide the {self.unit_lanes} lanes of the vector unit")
        if self.function_lanes and not self.functions:
            raise ConflictError("function_lanes", self.function_lanes,
                                "must be 0 where the vector unit has no function")
        for name in ("x_words", "w_words", "v_words", "p_words", "memory_banks"):
            value = getattr(self, name)
            if value & value - 1:
                raise ConflictError(name, value, "must be a power of two")
        if self.x_pieces > _ADDRESSES:
            raise ConflictError("x_words", self.x_words, f"must be at most {_ADDRESSES // self.row_pieces} with "
                                f"{core.rows} rows and {self.lanes} columns")
        if self.burst * self.beat > 4096:
            raise ConflictError("burst", self.burst, f"must be at most {4096 // self.beat} with beats of {self.beat} "
                                "bytes: a burst stays in 4 KiB")
        together = self.x_line // self.row_pieces
        if self.x_words < together * self.memory_banks:
            raise ConflictError("x_words", self.x_words, f"must be at least {together * self.memory_banks} in "
                                f"{self.memory_banks} banks of words of {together} rows")
        if self.dispatch:
            if self.dispatch == 1 or self.dispatch & self.dispatch - 1:
                raise ConflictError("dispatch", self.dispatch, "must be 0 or a power of two from 2 on")
            if self.dispatch_batch > self.dispatch:
                raise ConflictError("dispatch_batch", self.dispatch_batch,
                                    f"must be at most {self.dispatch}, the requests that the dispatcher holds")
        if self.dispatch_ring and not self.dispatch:
            raise ConflictError("dispatch_ring", self.dispatch_ring, "must not be given without a dispatcher")
        if self.contexts > 1:
            for name, each in (("x_words", together), ("v_words", 1)):
                if (value := getattr(self, name)) < (least := SHARES * max(self.memory_banks, each > 1) * each):
                    raise ConflictError(name, value, f"must be at least {least} with two contexts and "
                                        f"{self.memory_banks} banks: memories are shared by sixteenths")
            for name, least in (("w_words", core.rows), ("p_words", self.lanes // 2)):
                if (value := getattr(self, name)) < SHARES * least:
                    raise ConflictError(name, value, f"must be at least {SHARES * least} with two contexts, {SHARES} "
                                        f"times {least}: memories are shared by sixteenths")

    def _check_sparse(self):
        """ConflictError unless a row of a sparse command is some words of X, of one block."""
        core, reach = self.core, self.core.reach(self.core.rows)
        if core.format.terms < reach:
            raise ConflictError("block", core.format.block, f"must have at least {reach} terms along K, those of a "
                                "sparse pass, in an accelerator with sparse weights")
        if core.rows > self.lanes:
            raise ConflictError("rows", core.rows, f"must be at most {self.lanes}, as many as columns, in an "
                                "accelerator with sparse weights")
        if core.format.terms < self.lanes:
            raise ConflictError("block", core.format.block, f"must have at least {self.lanes} terms along K, as many "
                                "as columns, in an accelerator with sparse weights")
        for name, value in (("rows", core.rows), ("cols", self.lanes)):
            if value % core.sparse[1]:
                raise ConflictError(name, value, f"must be a multiple of {core.sparse[1]} in an accelerator whose "
                                    "weights are {} of {}".format(*core.sparse))
        if self.mantissa < self.index:
            raise ConflictError("mantissa", self.mantissa, f"must be at least {self.index}, the bits of an index of "
                                "sparse weights, in an accelerator")

    def share(self, sixteenths: int) -> Self:
        """What a context sees that has so many sixteenths of each memory: an accelerator of one context, whose programs
        name requests as those of the whole do.

        Raises
        ------
        ValueError
            If such an accelerator cannot be: if they are no power of two, or a memory gets too small.
        """
        return replace(self, contexts=1, **{name: getattr(self, name) * sixteenths // SHARES
                                            for name in ("x_words", "w_words", "v_words", "p_words")})

    @property
    def name(self) -> str:
        """Name of the top module: the core's, and what differs from the defaults."""
        return "_".join(["accelerator", *describe.name_parts(self)])

    @property
    def stochastic(self) -> bool:
        """Whether conversions may round stochastically; each says whether it does, and rounds to nearest if not."""
        return self.core.format.rounding == "stochastic"

    @property
    def extras(self) -> tuple[str, ...]:
        """What its instructions have that not all accelerators' have: of :data:`hbfp.isa.instructions.EXTRAS`."""
        has = {"stochastic": self.stochastic, "wide": bool(self.core.wide), "requests": self.dispatched,
               "sparse": self.core.takes_sparse}
        return tuple(name for name, there in has.items() if there)

    @property
    def dispatched(self) -> bool:
        """Whether a dispatcher stands in front of the contexts."""
        return self.dispatch > 0

    @property
    def requests(self) -> int:
        """Requests of a batch whose places instructions read; 0 without a dispatcher."""
        return self.dispatch_batch if self.dispatch else 0

    @property
    def nearest(self) -> HBFPFormat:
        """The format of conversions that draw no numbers."""
        return replace(self.core.format, rounding="rne") if self.stochastic else self.core.format

    def conversion(self, wide: bool, stochastic: bool = False) -> HBFPFormat:
        """The format of a conversion to wide mantissas or not, which draws numbers or does not."""
        core = self.core
        return replace(core.widest if wide else core.format,
                       rounding=core.format.rounding if stochastic or not self.stochastic else "rne")

    @property
    def mantissa(self) -> int:
        """Bits of an element of X and W: a mantissa, or a number that shares no exponent."""
        return self.core.lane_width

    @property
    def plain(self) -> str:
        """The arithmetic of numbers that share no exponents; empty for blocks."""
        return "" if self.core.blocked else self.core.arithmetic

    @property
    def exponent(self) -> int:
        """Bits of a shared exponent; 0 for numbers without."""
        return self.core.format.exponent if self.core.blocked else 0

    @property
    def spread(self) -> int:
        """Words of X that a row of a sparse command has: M / N; 1 where weights cannot be sparse."""
        return self.core.reach(1)

    @property
    def index(self) -> int:
        """Bits of a weight's place in its group; 0 where weights cannot be sparse."""
        return (self.core.sparse[1] - 1).bit_length()

    @property
    def lanes(self) -> int:
        """FP32 numbers of a word of V: the columns of all cores."""
        return self.core.cols * self.arrays

    @property
    def piece(self) -> int:
        """Mantissas at an address of X: the fewer of a word of V and a row of the core; the greater has several."""
        return min(self.core.rows, self.lanes)

    @property
    def whole(self) -> int:
        """Mantissas that are a word of V, or several, and a row of the core, or several."""
        return max(self.core.rows, self.lanes)

    @property
    def word_pieces(self) -> int:
        """Addresses of X that a word of V fills: more than one with more columns than rows."""
        return self.lanes // self.piece

    @property
    def row_pieces(self) -> int:
        """Addresses of X that are a row of the core: more than one with more rows than columns."""
        return self.core.rows // self.piece

    @property
    def piece_segments(self) -> int:
        """Exponents at an address of X."""
        return max(1, self.piece // self.core.format.terms)

    @property
    def sparse_words(self) -> int:
        """Words of V that are rows of sparse commands, or one."""
        return max(1, self.core.reach(self.core.rows) // self.lanes)

    @property
    def x_line(self) -> int:
        """Addresses of X that are one word of its memory: a word of V, and a row of any command, are in one."""
        return max(self.whole // self.piece, self.row_pieces * self.spread)

    @property
    def x_pieces(self) -> int:
        """Addresses of X."""
        return self.x_words * self.row_pieces

    @property
    def oblong(self) -> bool:
        """Whether rows and columns differ."""
        return self.core.rows != self.lanes

    @property
    def unit_lanes(self) -> int:
        """Lanes of the vector unit."""
        return self.vector_lanes or self.lanes

    @property
    def evaluators(self) -> int:
        """Evaluators of functions in the vector unit, if it has functions."""
        return self.function_lanes or self.unit_lanes

    @property
    def turns(self) -> int:
        """Beats of the vector unit that are a word of V."""
        return self.lanes // self.unit_lanes

    @property
    def turned(self) -> bool:
        """Whether the vector unit has fewer lanes than a word of V has numbers."""
        return self.turns > 1

    @property
    def function_turns(self) -> int:
        """Lanes of the vector unit that an evaluator of functions serves."""
        return self.unit_lanes // self.evaluators

    @property
    def function_pipeline(self) -> int:
        """Registers inside each evaluator of functions: on an FPGA one behind each part that there is."""
        return len(parts(self.functions)) if self.core.on_fpga and self.functions else _FUNCTION_PIPELINE

    @property
    def vector_registers(self) -> tuple[int, int]:
        """Registers inside multipliers and adders of the vector unit."""
        return _ON_FPGA if self.core.on_fpga else (0, 0)

    @property
    def registered(self) -> bool:
        """Whether units have more registers, for an FPGA: behind words of V and P, and before what is checked."""
        return self.core.on_fpga

    @property
    def shared(self) -> bool:
        """Whether evaluators of functions serve several lanes each."""
        return self.function_turns > 1

    @property
    def single(self) -> bool:
        """Whether memories have one port."""
        return self.memory_banks > 0

    @property
    def beat(self) -> int:
        """Bytes of a beat of the bus, which is a word of V."""
        return 4 * self.lanes

    @property
    def stored(self) -> int:
        """Bits of an element of W in DRAM: 4, 8, 16 or 32."""
        return next(bits for bits in (4, 8, 16, 32) if bits >= self.mantissa)

    @property
    def packed(self) -> int:
        """Rows of W in a beat: those that are written together."""
        return 32 // self.stored

    @property
    def record_beats(self) -> int:
        """Beats of a segment of W in DRAM: its rows, and one of exponents if there are any."""
        return self.core.height // self.packed + int(self.core.blocked)
