"""One design, as data: what the generator emits, the golden model mirrors and the flows measure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from . import describe
from .arithmetic import KINDS, Arithmetic
from .declared import ACCELERATOR, BLOCKS, CORES, FLOATS, INTEGERS, SCALED, SYSTEMS, USES
from .fields import choice, declare, flag, nested, pair, whole
from .format import MANTISSA_RANGE, HBFPFormat
from .lay import Lay
from .sparsity import DENSE, Sparsity

ARITHMETICS = tuple(KINDS)
#: Accumulation in floats -> bits of the fraction of its sums.
FLOAT_SUMS = {"fp32": 23, "fp24": 15, "bf16": 7}
ACCUMULATES = ("fp32", "aligned", "fp24", "bf16")
MULTIPLIERS = ("plain", "recoded")
FABRICS = ("gates", "fpga")
WEIGHT_CLOCKS = ("free", "gated")
SIDE_RANGE = (1, 256)
DEPTH_RANGE = (1, 65536)
SHARE_RANGE = (1, 64)
BANKS_RANGE = (1, 2)
WEIGHT_TILES_RANGE = (1, 2)
TILE_BITS = 16    # bits of the command's count of K tiles
#: Arithmetic -> most registers inside each FP32 unit, for those that have such units.
PIPELINES = {name: kind.registers for name, kind in KINDS.items() if kind.registers}
ACCUMULATOR_LIMIT = 60    # widest integer that is converted to FP32


class ConflictError(ValueError):
    """One parameter contradicts another.

    Attributes
    ----------
    name, value, rule : str
        The parameter, its value, a pair as the command line takes it, and what it must be.
    """

    def __init__(self, name: str, value: object, rule: str) -> None:
        value = ",".join(map(str, value)) if isinstance(value, tuple) else value
        self.name, self.value, self.rule = name, value, rule
        super().__init__(f"{name.replace('_', ' ').capitalize()} {value} {rule}")


def _divisor(number, limit):
    """Largest divisor of ``number`` that is a power of two and at most ``limit``."""
    return min(number & -number, limit)


@dataclass(frozen=True, kw_only=True)
class Design(describe.Description):
    """A systolic core: number format, array shape, accumulation.

    Parameters
    ----------
    format : HBFPFormat
        Format of both operands. ``int`` uses its mantissa alone; floats use none of it.
    rows, cols : int
        Elements along K and along N; ``cols`` None means as many as rows.
    accumulate : str
        How block sums add up along K: as floats of 32, 24 or 16 bits (``fp32``, ``fp24``, ``bf16``), or as integers
        (``aligned``).
    arithmetic : str
        ``hbfp``, or a baseline with the same dataflow: ``fp32`` (product and sum rounded, subnormals flushed),
        ``fma`` (IEEE 754: one rounding, subnormals kept), ``bf16`` and ``fp16`` (FP32 sums), ``int8``
        (sums of 32 bits, FP32 on the way out), ``int``.
    group : tuple of int, optional
        Rows and columns of the elements that form one combinational dot product between pipeline
        registers; None chooses the largest powers of two up to :attr:`GROUP` that fit.
    multiplier : str
        How products are formed; equal bits. ``plain``: ``*`` and ``+``, quick to simulate. ``recoded``:
        activations recoded once a row, one tree of full adders for a column of a group, least area; bit by bit, so
        slow to build and to simulate (docs/decisions/0101-dot-product.md); in lanes that columns share and in an
        accelerator's vector unit, too (docs/decisions/0140-least-logic.md).
    pipeline : int
        Registers inside each multiply-add of floats, whose groups are then one row tall, or inside the adders that
        accumulate block sums in FP32, and with more of them inside converter, side unit and, from 7 on, each group of
        elements (docs/decisions/0114-one-clock.md); at most :data:`PIPELINES`.
    depth : int
        Rows of X that one command may stream: words of an accumulator bank.
    share : int
        Columns that share one converter and accumulator; more than one only where blocks span at least as many
        passes (docs/decisions/0103-shared-accumulation.md). Equal bits.
    ragged : bool
        Accept a block that neither divides nor is divided by the rows, leaving rows idle.
    sparse : tuple of int
        N and M: a command may have weights of which N of every M along K are sent, with their indices; (1, 1) is a
        core without. Its other commands have the same bits and speed as without (docs/design/09-sparse-weights.md).
    guard, growth : int
        ``aligned``: fraction bits below a block sum, and bits for 2^growth blocks along K. ``int``: bits for
        2^growth tiles along K.
    wide : int
        Bits of the mantissas of commands that take them as two digits of the array (docs/numerics.md, section 3); 0 if
        there are no such commands.
    side_lanes : int
        Lanes of the side unit, a divisor of the columns: a row takes columns / lanes cycles to leave; 0 stands for as
        many lanes as columns. Equal bits.
    banks : int
        Banks of accumulators. With one, a command's first sums follow the read-out of the command before row by row;
        with two, that of the one before that (docs/decisions/0113-banks.md). Equal bits.
    weight_tiles : int
        Tiles of weights that the core holds. With one, the buffer has room for only as much of the next tile as is
        loaded before the array has taken up the last one: passes follow each other without gaps. Equal bits.
    convert_lanes : int
        Lanes of the converter, a divisor of those that it has else: a block takes more beats. 0: as many as rows, where
        blocks allow it. Equal bits but for the noise of stochastic rounding, which goes by lanes.
    fabric : str
        What the core is built for: ``gates``, or ``fpga``, where sums go through carry chains, and registers stand
        behind each product of an element and each word of an accumulator's bank, which DSP blocks and block RAMs have
        inside (docs/decisions/0115-fpga-core.md); only with a pipeline. Equal bits.
    weight_clock : str
        What lets the elements take up a tile of weights: ``free``, a multiplexer before each bit of a register whose
        clock runs freely, or ``gated``, a clock for each group that stands still else
        (docs/decisions/0175-smaller-cores.md). Equal bits.

    Raises
    ------
    ValueError
        If a value is out of range or two values contradict each other.
    """
    #: Default group, rows x columns; see docs/decisions for the area behind it.
    GROUP = (8, 4)

    format: HBFPFormat = nested(HBFPFormat)
    rows: int = whole(
        32, *SIDE_RANGE, title="Rows", text="elements along K",
        tag="r", place=4, always=True, serves=(*CORES, *SYSTEMS))
    cols: int = whole(
        None, *SIDE_RANGE, title="Columns", text="elements along N", usual="as many as rows",
        tag="c", place=5, always=True, serves=(*CORES, *SYSTEMS))
    accumulate: str = choice(
        "fp32", ACCUMULATES, title="Accumulation", text="how block sums add up along K",
        tag="", place=7, always=True, where="blocked", serves=(BLOCKS, ACCELERATOR))
    arithmetic: str = choice(
        "hbfp", ARITHMETICS, title="Arithmetic", text="block floating point, or a baseline with the same dataflow",
        tag="", place=0, always=True, serves=(*CORES, ACCELERATOR))
    group: tuple[int, int] = pair(
        None, *SIDE_RANGE, title="Group", text="rows,columns of elements without registers between them",
        usual=f"what fits, at most {GROUP[0]},{GROUP[1]}", tag="g", place=6, always=True,
        serves=(*CORES, *SYSTEMS))
    multiplier: str = choice(
        "plain", MULTIPLIERS, title="Multiplier",
        text="how products are formed, quick to simulate or of least area, with equal bits",
        tag="", place=13, serves=(*CORES, *SYSTEMS))
    pipeline: int = whole(
        0, 0, max(PIPELINES.values()), title="Pipeline depth", unit=" registers",
        text="registers inside each FP32 multiply-add, or adder of block sums (7: inside groups, too); fp32 takes up "
             "to 8, hbfp and fma 7, bf16 and fp16 6",
        tag="p", place=14, serves=(BLOCKS, FLOATS, ACCELERATOR))
    depth: int = whole(
        512, *DEPTH_RANGE, title="Depth", unit=" rows", text="rows of X that one command may stream",
        tag="d", place=16, serves=(*CORES, ACCELERATOR))
    share: int = whole(
        1, *SHARE_RANGE, title="Share", unit=" columns",
        text="columns that share a converter and an accumulator, where blocks are longer than the rows",
        tag="share", place=15, serves=(BLOCKS, ACCELERATOR))
    ragged: bool = flag(title="Ragged", text="accept a block that leaves rows idle", serves=(BLOCKS,))
    sparse: tuple[int, int] = declare(Sparsity(
        low=1, high=8, title="Sparsity", usual="1,1: none", tag="sparse", place=17,
        serves=(BLOCKS, ACCELERATOR), text="N,M for commands whose weights are N of every M along K"), DENSE)
    guard: int = whole(
        4, 0, 16, title="Guard width", unit=" bits", text="fraction bits below a block sum, where sums are aligned",
        tag="ag", place=11, where="aligned", serves=(BLOCKS, ACCELERATOR))
    growth: int = whole(
        8, 0, 16, title="Growth width", unit=" bits", text="bits for 2^growth sums along K, where sums are integers",
        tag="aw", place=12, where="summed_as_integers", serves=(BLOCKS, INTEGERS, ACCELERATOR))
    wide: int = whole(
        0, 0, MANTISSA_RANGE[1], title="Wide mantissa", unit=" bits",
        text="mantissa bits, sign included, of operands that a command runs as two digits; 0 for none",
        tag="wide", place=18, serves=(BLOCKS, ACCELERATOR))
    side_lanes: int = whole(
        0, 0, SIDE_RANGE[1], title="Side lanes", text="lanes of the side unit, which serve the columns in turns",
        usual="as many as columns", tag="side", place=19, where="sided",
        serves=(BLOCKS, FLOATS, SCALED, ACCELERATOR))
    banks: int = whole(
        2, *BANKS_RANGE, title="Banks",
        text="banks of accumulators; with one, commands follow the read-out of the command before",
        tag="banks", place=20, serves=(*CORES, ACCELERATOR))
    weight_tiles: int = whole(
        2, *WEIGHT_TILES_RANGE, title="Weight tiles",
        text="tiles of weights that the core holds; with one, there are as many more rows as full speed takes",
        tag="wt", place=21, serves=(*CORES, ACCELERATOR))
    convert_lanes: int = whole(
        0, 0, SIDE_RANGE[1], title="Convert lanes",
        text="lanes of the converter, a divisor of those that it has without this option",
        usual="as many as rows, where blocks allow it", tag="cl", place=22, where="blocked", serves=(BLOCKS,))
    fabric: str = choice(
        "gates", FABRICS, title="Fabric",
        text="what sums, products and memories are built for: gates, or the blocks of an FPGA, with equal bits",
        tag="", place=23, rare=True, serves=(BLOCKS, FLOATS, ACCELERATOR))
    weight_clock: str = choice(
        "free", WEIGHT_CLOCKS, title="Weight clock",
        text="clock of the weights in the elements: free, with a multiplexer a bit, or gated, a gate for each group",
        tag="", place=24, rare=True, serves=(*CORES, ACCELERATOR))

    def __post_init__(self):
        if self.cols is None:
            object.__setattr__(self, "cols", self.rows)
        describe.check(self)
        self.require(self.number.use, vars(self))    # what a format says that has no effect is no contradiction
        self._check_wide()
        if self.side_lanes and self.cols % self.side_lanes:
            raise ConflictError("side_lanes", self.side_lanes, f"must be 0 or divide the {self.cols} columns")
        if self.pipeline > (most := self.number.registers):
            raise ConflictError("pipeline", self.pipeline, f"must be 0 to {most} where arithmetic is {self.arithmetic}")
        terms = self.format.terms
        if self.blocked and not self.ragged and terms % self.rows and self.rows % terms:
            raise ConflictError("block", self.format.block,
                                f"must divide or be divided by the {self.rows} rows along K, or be ragged")
        self._check_sparse()
        passes = self.lay(self.takes_sparse).block_tiles
        if self.share & (self.share - 1) or self.cols % self.share or self.share > passes:
            raise ConflictError("share", self.share, f"must be a power of two that divides {self.cols} columns and is "
                                f"at most {passes}, the passes of a block")
        if self.accumulate == "aligned":
            if 2 ** self.growth < self.segments:
                raise ConflictError("growth", self.growth, f"must be {(self.segments - 1).bit_length()} or more for "
                                    f"{self.segments} segments of a column")
            if self.accumulator_width > ACCUMULATOR_LIMIT:
                raise ConflictError("growth", self.growth, f"must keep the accumulator at {ACCUMULATOR_LIMIT} bits or "
                                    f"fewer, not {self.accumulator_width}")
        if self.banks == 1 and self.share > 1:
            raise ConflictError("banks", self.banks, "must be 2 where columns share an accumulator")
        self._check_fabric()
        for where, wrong in (("where the fabric is fpga", self.on_fpga),
                             ("where weights may be sparse", self.takes_sparse)):
            if self.gated and wrong:
                raise ConflictError("weight_clock", self.weight_clock, f"must be free {where}")
        if self.convert_lanes and self.most_lanes % self.convert_lanes:
            raise ConflictError("convert_lanes", self.convert_lanes,
                                f"must be 0 or divide the {self.most_lanes} lanes of a converter")
        if self.group is None:
            tall = 1 if self.pipeline and not self.blocked else _divisor(gcd(self.height, self.rows), self.GROUP[0])
            object.__setattr__(self, "group", (tall, _divisor(self.cols, self.GROUP[1])))
        wholes = gcd(self.height, self.rows), self.cols
        if any(all_of % side for side, all_of in zip(self.group, wholes, strict=True)):
            raise ConflictError("group", self.group,
                                f"must divide {wholes[0]} rows of a segment and {wholes[1]} columns")
        if self.pipeline and not self.blocked and self.group[0] != 1:
            raise ConflictError("group", self.group, "must be one row tall with a pipeline")
        if self.segments > 1 and self.pipeline > (apart := self.height // self.group[0]):
            raise ConflictError("pipeline", self.pipeline, f"must be at most {apart}, the cycles between segments")

    def _check_wide(self):
        """ConflictError unless wide mantissas are two digits, and the columns pairs; see rtl/accumulate/digits.py."""
        if not self.wide:
            return
        narrow = self.format.mantissa
        most = min(2 * narrow - 1, MANTISSA_RANGE[1])
        if not narrow < self.wide <= most:
            raise ConflictError("wide", self.wide, f"must be 0 or {narrow + 1} to {most} where mantissas have {narrow} "
                                "bits" if narrow < most else f"must be 0 where mantissas have {narrow} bits")
        if self.cols % 2:
            raise ConflictError("cols", self.cols, "must be even with wide mantissas: their digits take two columns")
        if self.group is not None and self.group[1] % 2:
            raise ConflictError("group", self.group, "must have an even number of columns with wide mantissas")

    def require(self, use: str, values: Mapping[str, Any] | None = None) -> None:
        """Raise ConflictError if a field that does not serve ``use`` has another value than its default.

        Parameters
        ----------
        use : str
            Of :data:`hbfp.declared.USES`.
        values : dict, optional
            The values that are looked at, by name; all of the design and its format by default.
        """
        values = describe.flat(self) if values is None else values
        for name, (about, default) in describe.unserved(Design, use).items():
            if values.get(name, default) != default:
                raise ConflictError(name, values[name], f"must be {about.spelled(default)} {USES[use].format(self)}")

    def _check_fabric(self):
        """Raise ConflictError if the registers of an FPGA's blocks do not go with the rest."""
        for where, wrong in (("where there is no pipeline", not self.pipeline),
                             ("where columns share an accumulator", self.share > 1),
                             ("where weights may be sparse", self.takes_sparse),
                             ("where multipliers are recoded", self.recoded)):
            if self.on_fpga and wrong:
                raise ConflictError("fabric", self.fabric, f"must be gates {where}")

    def _check_sparse(self):
        """Raise ConflictError if sparse weights do not go with the rest."""
        if not self.takes_sparse:
            return
        (kept, group), terms = self.sparse, self.format.terms
        if self.rows % kept:
            raise ConflictError("rows", self.rows, f"must be a multiple of {kept} where weights are {kept} of {group}")
        block, wide = self.format.block, self.reach(self.rows)
        if terms % group:
            raise ConflictError("block", block, f"must be a multiple of {group} along K where weights are {kept} of "
                                f"{group}")
        if self.rows < terms < wide:
            raise ConflictError("block", block, f"must be at most {self.rows} or at least {wide} along K where "
                                f"weights are {kept} of {group}")
        if not self.ragged and terms % wide and wide % terms:
            raise ConflictError("block", block, f"must divide or be divided by the {wide} terms of a sparse pass, or "
                                "be ragged")
        if self.group is not None and self.group[0] % kept:
            raise ConflictError("group", self.group, f"must have a multiple of {kept} rows where "
                                f"weights are {kept} of {group}")

    @property
    def number(self) -> Arithmetic:
        """The kind of number that elements compute with: :class:`hbfp.arithmetic.Arithmetic`."""
        return KINDS[self.arithmetic]

    @property
    def blocked(self) -> bool:
        """Whether operands carry shared exponents."""
        return self.number.blocked

    @property
    def aligned(self) -> bool:
        """Whether block sums add up as integers."""
        return self.accumulate == "aligned"

    @property
    def on_fpga(self) -> bool:
        """Whether it is built for the blocks of an FPGA."""
        return self.fabric == "fpga"

    @property
    def gated(self) -> bool:
        """Whether elements take up weights by a gated clock."""
        return self.weight_clock == "gated"

    @property
    def sided(self) -> bool:
        """Whether there is a side unit: results are FP32."""
        return self.number.float_results

    @property
    def side_turns(self) -> int:
        """Cycles that a row takes in the side unit, and so to leave."""
        return self.cols // self.side_lanes if self.side_lanes else 1

    @property
    def summed_as_integers(self) -> bool:
        """Whether a column's sums add up as integers: of blocks, or of the ``int`` baseline."""
        return self.aligned or not self.number.float_results

    # --- How blocks lie on the rows -------------------------------------------------------------

    @property
    def takes_sparse(self) -> bool:
        """Whether commands may have sparse weights."""
        return self.sparse != DENSE

    def require_sparse(self) -> None:
        """Raise ConflictError if no command has sparse weights."""
        if not self.takes_sparse:
            raise ConflictError("sparse", "1,1", "must be N,M: only cores for sparse weights have this unit")

    def reach(self, rows: int) -> int:
        """Terms along K that ``rows`` rows of elements choose from; one each without sparse weights."""
        kept, group = self.sparse
        return rows * group // kept

    def lay(self, sparse: bool = False) -> Lay:
        """How blocks lie on the rows in a command, dense or sparse: :class:`~hbfp.lay.Lay`."""
        kept, group = self.sparse if sparse else DENSE
        return Lay(self.rows, self.format.terms * kept // group if self.blocked else self.rows)

    @property
    def height(self) -> int:
        """Rows of a segment: the elements of a column whose sum leaves as one integer; the least of all commands."""
        return self.lay(self.takes_sparse).height

    @property
    def segments(self) -> int:
        """Segments that a column is cut into; more than one where blocks are shorter than the column."""
        return self.rows // self.height

    @property
    def joined(self) -> int:
        """Segments that a dense command's block takes, at least one; more only with sparse weights."""
        return self.lay().height // self.height

    @property
    def tile_rows(self) -> int:
        """Terms along K that one pass of a dense command covers; below ``rows`` only if ragged."""
        return self.lay().tile_rows

    @property
    def block_tiles(self) -> int:
        """Passes that one block spans in a dense command; more than one where blocks are longer than the column."""
        return self.lay().block_tiles

    @property
    def max_tiles(self) -> int:
        """Most passes of a dense command: what its field holds, or what fits accumulators of limited width."""
        return self.most_tiles()

    def most_tiles(self, sparse: bool = False) -> int:
        """Most passes of a command, dense or sparse."""
        limit, lay = 2 ** TILE_BITS - 1, self.lay(sparse)
        if self.number.sums:
            of_tile = replace(self.format, mantissa=self.lane_width).sum_width(self.rows)
            return min(limit, 2 ** (self.number.sums - of_tile))
        return min(limit, 2 ** self.growth * lay.block_tiles // lay.segments) if self.summed_as_integers else limit

    # --- Widths ---------------------------------------------------------------------------------

    @property
    def lane_width(self) -> int:
        """Bits of an operand element."""
        return self.number.bits or self.format.mantissa

    @property
    def recoded(self) -> bool:
        """Whether activations travel as digits."""
        return self.integer and self.multiplier == "recoded"

    @property
    def integer(self) -> bool:
        """Whether products and their sums are exact integers."""
        return self.number.exact

    @property
    def of_mantissas(self) -> bool:
        """Whether operands have as many bits as the format's mantissas."""
        return self.number.bits is None

    @property
    def widest(self) -> HBFPFormat:
        """The format, with the widest mantissas that a command may have."""
        return replace(self.format, mantissa=self.wide) if self.wide else self.format

    @property
    def scale_cols(self) -> int:
        """Neighbouring columns of a group whose weights always have one exponent: more than one only with tiles."""
        return gcd(self.format.block[0], self.group[1])

    @property
    def block_sum_width(self) -> int:
        """Bits of the sum of a whole block."""
        return self.widest.sum_width(self.format.terms)

    @property
    def accumulator_width(self) -> int:
        """Bits of an integer accumulator: ``aligned``, or of integers."""
        if self.number.sums:
            return self.number.sums
        terms = self.format.terms if self.blocked else self.rows
        return self.widest.sum_width(terms) + self.growth + (self.guard if self.blocked else 0)

    @property
    def result_width(self) -> int:
        """Bits of one element of the result stream."""
        return 32 if self.number.float_results else self.accumulator_width

    # --- Groups and the converter ---------------------------------------------------------------

    @property
    def group_rows(self) -> int:
        """Groups down a column."""
        return self.rows // self.group[0]

    @property
    def group_cols(self) -> int:
        """Groups along a row."""
        return self.cols // self.group[1]

    @property
    def encode_lanes(self) -> int:
        """Elements a cycle that the FP32 -> HBFP converter takes."""
        return self.convert_lanes or self.most_lanes

    @property
    def most_lanes(self) -> int:
        """Lanes that the converter has at most: they divide a block, and are no more than the rows."""
        terms = self.format.terms
        return max(lanes for lanes in range(1, min(terms, self.rows) + 1) if terms % lanes == 0)

    @property
    def encode_beats(self) -> int:
        """Beats of ``encode_lanes`` elements that form one block, in row-major order of the block."""
        return self.format.block[0] * self.format.terms // self.encode_lanes

    @property
    def name(self) -> str:
        """Name of the top module: every parameter that changes the hardware, the rare ones only where they do."""
        parts = describe.name_parts(self)
        if not self.number.float_results:    # as the width of a number, not of a mantissa: int8
            parts[:2] = [f"{self.arithmetic}{self.format.mantissa}"]
        elif self.number.sums:
            parts[:1] = [f"{self.arithmetic}_fp32"]
        return "_".join(parts)
