"""FP32 to HBFP on a GPU: the host's side of :mod:`golden.gpu.convert_kernel`."""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
import triton

from hbfp.format import HBFPFormat

from .convert_kernel import convert

#: Forms that mantissas are kept in.
_TYPE = {"values": torch.bfloat16, "int8": torch.int8, "int16": torch.int16}
#: Sides of a program's tile of lines and of square tiles, at least; elements of a tile that is converted one way.
_SIDE, _ELEMENTS = {False: 32, True: 64}, 2048
#: Elements of a warp, tiles that a program converts one after the other, and elements of a tile that is enough.
_EACH, _TURNS, _ONE = 1024, 4, 4096
#: Terms of a block that make a tile too large for both ways at once: it takes as long, one after the other.
_TWICE = 64
#: Numbers that a line is filled up to, so that each begins where the copy engine can: 16 bytes.
_ALIGNED = 16


@lru_cache(256)
def form(fmt: HBFPFormat) -> str:
    """How the products take the mantissas of a format: ``values``, ``int8`` or ``int16``; see :data:`_TYPE`."""
    if fmt.mantissa <= 8 and fmt.terms >= 128 and fmt.terms % 32 == 0:
        return "int8"
    if fmt.mantissa <= 9 and fmt.terms * fmt.limit ** 2 < 1 << 23:
        return "values"
    return "int8" if fmt.mantissa <= 8 else "int16"


@dataclass(frozen=True, eq=False)
class Lines:
    """A stack of matrices in HBFP as a product takes them: lines with K contiguous.

    Attributes
    ----------
    data : Tensor
        (S, lines, K) in a form of :func:`form`.
    scales : Tensor
        (S, blocks along K, lines or lines of tiles) float32: two to the power of the mantissas' last bit; NaN where a
        block is invalid.
    span : Tensor
        Three int32: what exponents are in use, for both directions in which a matrix is converted, and the largest
        exponent field of its numbers.
    fmt : HBFPFormat
        The format.
    """
    data: torch.Tensor
    scales: torch.Tensor
    span: torch.Tensor
    fmt: HBFPFormat

    @property
    def form(self) -> str:
        """The form of ``data``."""
        return next(name for name, dtype in _TYPE.items() if dtype == self.data.dtype)

    @property
    def side(self) -> int:
        """Lines that share an exponent."""
        return self.fmt.block[0]

    @property
    def exponent(self) -> torch.Tensor:
        """(S, lines, blocks) int32; of an invalid block what its exponent field 255 gives."""
        last = (self.scales.mT.double().view(torch.int64) >> 52) - 1023
        lowest, highest = self.fmt.exponent_range
        return torch.where(self.invalid, min(max(129, lowest), highest), last + self.fmt.magnitude).int()

    @property
    def invalid(self) -> torch.Tensor:
        """(S, lines, blocks) bool."""
        return self.scales.mT.isnan()

    @property
    def mantissa(self) -> torch.Tensor:
        """(S, lines, K) int32."""
        scales = self.scales.mT.repeat_interleave(self.fmt.terms, 2)[:, :, :self.data.shape[2]]
        scales = scales.repeat_interleave(self.side, 1)[:, :self.data.shape[1]].double()
        power = ((2046 << 52) - scales.view(torch.int64)).view(torch.float64)      # one over a power of two, exactly
        whole = self.data.double() * power if self.form == "values" else self.data.double()
        return whole.masked_fill(scales.isnan(), 0).int()


def converted(x: torch.Tensor, fmt: HBFPFormat, *, across: bool = False, down: bool = False,
              noise: torch.Tensor | None = None, kind: str | None = None,
              places: tuple[torch.Tensor, torch.Tensor] | None = None) -> tuple[Lines | None, Lines | None]:
    """Matrices converted in one pass for the products that take them.

    Parameters
    ----------
    x : Tensor
        (S, rows, columns), or with S in two dimensions, any strides, of :data:`golden.gpu.tensors.TYPES`.
    fmt : HBFPFormat
        The format.
    across, down : bool
        Which of the two to make: with K along the columns, and with K along the rows.
    noise : Tensor, optional
        (S, rows, columns) of integers, for ``stochastic``: the same numbers in both directions.
    kind : str, optional
        The form; by default that of :func:`form`.
    places : tuple of Tensor, optional
        Where the elements of one matrix lie in ``x``, of any shape, contiguous: (rows) and (columns) int64, added.

    Returns
    -------
    tuple of Lines or None
        Of ``across`` (S, rows, columns), of ``down`` (S, columns, rows).
    """
    kind = kind or form(fmt)
    *lead, rows, columns = x.shape if places is None else (1, *map(len, places))
    stacks, inner = math.prod(lead), lead[-1]
    span = torch.zeros(3, dtype=torch.int32, device=x.device)      # of nothing
    if across and down and not fmt.square and fmt.terms > _TWICE:
        return (converted(x, fmt, across=True, noise=noise, kind=kind, places=places)[0],
                converted(x, fmt, down=True, noise=noise, kind=kind, places=places)[1])
    made = [_empty(x, stacks, fmt, kind, lines, k, span) if wanted else None
            for wanted, lines, k in ((across, rows, columns), (down, columns, rows))]
    if not stacks * rows * columns:
        for each in made:
            if each is not None:
                each.scales.fill_(2.0 ** (min(max(-126, fmt.exponent_range[0]), fmt.exponent_range[1]) - fmt.magnitude))
        return made[0], made[1]
    (row_step, high, row_blocks), (column_step, wide, column_blocks), repeat, warps = _tile(fmt, across, down)
    repeat = min(repeat, triton.cdiv(columns, column_step * column_blocks))
    grid = triton.cdiv(columns, column_step * column_blocks * repeat), triton.cdiv(rows, row_step * row_blocks), stacks
    place = [(span, span, 0, 0, 0, 0) if each is None else
             (each.data, each.scales, *each.data.stride()[:2], each.scales.stride(1), _filled(each)) for each in made]
    lowest, highest = fmt.exponent_range
    outer, *strides = (0, *x.stride())[-4:] if places is None else (0, 0, 0, 0)
    dice, steps = (x, strides) if noise is None else (noise, noise.stride())
    convert[grid](x, *places or (span, span), inner, outer, dice, place[0][0], place[0][1], place[1][0], place[1][1],
                  span, rows, columns, *strides, *steps, *place[0][2:], *place[1][2:], ROW_STEP=row_step,
                  COLUMN_STEP=column_step, ROWS=high, COLUMNS=wide, ROW_BLOCKS=row_blocks,
                  COLUMN_BLOCKS=column_blocks, REPEAT=repeat, SQUARE=fmt.square, ACROSS=across,
                  DOWN=down, MAGNITUDE=fmt.magnitude, LOWEST=lowest, HIGHEST=highest, ROUNDING=fmt.rounding,
                  NOISE_BITS=fmt.noise_bits, GRADUAL=fmt.subnormals == "gradual", FORM=kind,
                  GATHERED=places is not None, num_warps=warps)
    return made[0], made[1]


@lru_cache(256)
def _tile(fmt, across, down):
    """Of a program's tile the steps along rows and columns (elements, places, how many), its turns, and warps."""
    terms, places = fmt.terms, triton.next_power_of_2(fmt.terms)
    side = max(places, _SIDE[fmt.square])
    high = wide = terms, places, side // places
    elements = side * side
    if not fmt.square and not (across and down):
        elements = max(_ELEMENTS, (1 if across else 16) * side)
        other = elements // side, elements // side, 1
        high, wide = (other, wide) if across else (high, other)
    return high, wide, _TURNS if elements < _ONE else 1, min(16, max(1, elements // _EACH))


def _filled(lines):
    """Numbers of a line that the conversion writes: whole blocks, as far as there is room."""
    terms = lines.fmt.terms
    return min(lines.data.stride(1), -(-lines.data.shape[2] // terms) * terms)


def _empty(x, stacks, fmt, kind, lines, k, span):
    """What a conversion of ``lines`` along ``k`` fills."""
    whole = fmt.terms if fmt.terms % _ALIGNED == 0 else _ALIGNED
    pitch = -(-k // whole) * whole
    data = x.new_empty((stacks, lines, pitch), dtype=_TYPE[kind])[:, :, :k]
    in_grid = -(-lines // fmt.block[0])
    scales = x.new_empty((stacks, -(-k // fmt.terms), -(-in_grid // 4) * 4), dtype=torch.float32)[:, :, :in_grid]
    return Lines(data, scales, span, fmt)
