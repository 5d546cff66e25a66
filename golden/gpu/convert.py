"""FP32 to HBFP on a GPU: the host's side of :mod:`golden.gpu.convert_kernel`."""

from dataclasses import dataclass
from functools import lru_cache

import torch
import triton

from hbfp.format import HBFPFormat

from .convert_kernel import INVALID, convert

#: Types that the conversion reads: FP32 has all of their numbers.
TYPES = (torch.float32, torch.bfloat16, torch.float16)
#: Forms that mantissas are kept in.
_TYPE = {"values": torch.bfloat16, "int8": torch.int8, "int16": torch.int16}
#: Elements of a program's tile, about.
_ELEMENTS = 2048
#: Tiles that a program converts, one after the other.
_TURNS = 4
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
    codes : Tensor
        (S, blocks along K, lines or lines of tiles) int16: exponents, those of invalid blocks with
        :data:`~golden.gpu.convert_kernel.INVALID` added.
    span : Tensor
        Two int32: what exponents are in use, for both directions in which a matrix is converted.
    fmt : HBFPFormat
        The format.
    """
    data: torch.Tensor
    codes: torch.Tensor
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
        """(S, lines, blocks) int32."""
        codes = self.codes.int().mT
        return torch.where(codes >= INVALID.value // 2, codes - INVALID.value, codes)

    @property
    def invalid(self) -> torch.Tensor:
        """(S, lines, blocks) bool."""
        return self.codes.mT >= INVALID.value // 2

    @property
    def mantissa(self) -> torch.Tensor:
        """(S, lines, K) int32."""
        if self.form != "values":
            return self.data.int()
        exponent = self.exponent.repeat_interleave(self.fmt.terms, 2)[:, :, :self.data.shape[2]]
        exponent = exponent.repeat_interleave(self.side, 1)[:, :self.data.shape[1]]
        power = ((self.fmt.magnitude - exponent.long() + 1023) << 52).view(torch.float64)
        return (self.data.double() * power).nan_to_num(0).int()


def spans(device: torch.device) -> torch.Tensor:
    """The span of nothing."""
    return torch.zeros(2, dtype=torch.int32, device=device)


def converted(x: torch.Tensor, fmt: HBFPFormat, *, across: bool = False, down: bool = False,
              noise: torch.Tensor | None = None, kind: str | None = None) -> tuple[Lines | None, Lines | None]:
    """Matrices converted in one pass for the products that take them.

    Parameters
    ----------
    x : Tensor
        (S, rows, columns), any strides, of :data:`TYPES`.
    fmt : HBFPFormat
        The format.
    across, down : bool
        Which of the two to make: with K along the columns, and with K along the rows.
    noise : Tensor, optional
        (rows, columns) of integers, for ``stochastic``; with S = 1 and one direction, or square tiles.
    kind : str, optional
        The form; by default that of :func:`form`.

    Returns
    -------
    tuple of Lines or None
        Of ``across`` (S, rows, columns), of ``down`` (S, columns, rows).
    """
    kind = kind or form(fmt)
    stacks, rows, columns = x.shape
    span = spans(x.device)
    if across and down and not fmt.square and fmt.terms > 128:     # more than a tile
        return (converted(x, fmt, across=True, noise=noise, kind=kind)[0],
                converted(x, fmt, down=True, noise=noise, kind=kind)[1])
    made = [_empty(x, fmt, kind, lines, k, span) if wanted else None
            for wanted, lines, k in ((across, rows, columns), (down, columns, rows))]
    if not x.numel():
        for each in made:
            if each is not None:
                each.codes.fill_(min(max(-126, fmt.exponent_range[0]), fmt.exponent_range[1]))
        return made[0], made[1]
    row_step = fmt.terms if fmt.square or down else max(1, _ELEMENTS // triton.next_power_of_2(fmt.terms))
    column_step = fmt.terms if fmt.square or across else max(16, _ELEMENTS // triton.next_power_of_2(fmt.terms))
    high, wide = (triton.next_power_of_2(step) for step in (row_step, column_step))
    repeat = min(_TURNS, triton.cdiv(columns, column_step))
    grid = triton.cdiv(columns, column_step * repeat), triton.cdiv(rows, row_step), stacks
    place = [(each.data, each.codes, each.data.stride(0), each.data.stride(1), each.codes.shape[2]) if each is not None
             else (span, span, 0, 0, 0) for each in made]
    lowest, highest = fmt.exponent_range
    dice = x if noise is None else noise
    convert[grid](x, dice, place[0][0], place[0][1], place[1][0], place[1][1], span, rows, columns, *x.stride(),
                  *dice.stride()[-2:], *place[0][2:], *place[1][2:], ROW_STEP=row_step, COLUMN_STEP=column_step,
                  ROWS=high, COLUMNS=wide, REPEAT=repeat, SQUARE=fmt.square, ACROSS=across, DOWN=down,
                  MAGNITUDE=fmt.magnitude, LOWEST=lowest, HIGHEST=highest, ROUNDING=fmt.rounding,
                  NOISE_BITS=fmt.noise_bits, GRADUAL=fmt.subnormals == "gradual", FORM=kind,
                  num_warps=min(8, max(1, high * wide // 512)))
    return made[0], made[1]


def _empty(x, fmt, kind, lines, k, span):
    """What a conversion of ``lines`` along ``k`` fills."""
    stacks, pitch = len(x), -(-k // _ALIGNED) * _ALIGNED
    data = x.new_empty((stacks, lines, pitch), dtype=_TYPE[kind])[:, :, :k]
    codes = x.new_empty((stacks, -(-k // fmt.terms), -(-lines // fmt.block[0])), dtype=torch.int16)
    return Lines(data, codes, span, fmt)
