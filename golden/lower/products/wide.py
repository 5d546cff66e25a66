"""Which operands of a product have wide mantissas: fields of CONVERT, MULTIPLY and DRAIN."""

from collections.abc import Iterator
from dataclasses import dataclass

from hbfp.golden.nn.placed import read
from hbfp.system import Accelerator

from ..errors import LoweringError


@dataclass(frozen=True)
class Wide:
    """Whether X and W are wide.

    Attributes
    ----------
    x, w : int
        1 if so.
    """
    x: int = 0
    w: int = 0

    @property
    def digits(self) -> int:
        """Words of X for a word of V: one, or one of high digits and one of low ones, apart from each other."""
        return 1 + self.x

    @property
    def tiles(self) -> int:
        """Column tiles for a word of V: if an operand is wide one of its even lanes, and one of its odd ones."""
        return 1 + (self.x | self.w)

    def multiply(self, low: int) -> dict[str, int]:
        """Fields of a MULTIPLY whose low digits lie ``low`` words behind the high ones."""
        fields = {"wide_x": self.x, "wide_w": self.w, "low": low if self.x else 0}
        return {name: value for name, value in fields.items() if value}

    def rows(self) -> Iterator[dict[str, int]]:
        """Fields of the CONVERTs of rows of X, the high digits first."""
        yield from ({"wide": 1, "part": part} for part in range(2)) if self.x else ({},)

    def columns(self, part: int) -> dict[str, int]:
        """Fields of the CONVERT of one of the column tiles that a word of V has."""
        return {"wide": 1, "part": part} if self.w else {}

    @property
    def drain(self) -> dict[str, int]:
        """Fields of a DRAIN."""
        return {"wide": 1} if self.tiles > 1 else {}


#: Of products of which nothing is wide.
NARROW = Wide()


def widths(text: str, accelerator: Accelerator, x: str = "x", w: str = "w") -> Wide:
    """The widths of a traced product's operands, which have these roles.

    Raises
    ------
    LoweringError
        If the accelerator does not have them.
    """
    formats, _ = read(text)
    return Wide(*(_wide(getattr(formats, role).mantissa, accelerator) for role in (x, w)))


def _wide(mantissa, accelerator):
    core = accelerator.core
    if mantissa in (core.format.mantissa, core.wide or core.format.mantissa):
        return int(mantissa != core.format.mantissa)
    raise LoweringError(f"its product has mantissas of {mantissa} bits, the accelerator {has(accelerator)}; "
                        f"{would(mantissa, accelerator)}")


def has(accelerator: Accelerator) -> str:
    """The widths of an accelerator, in words."""
    core = accelerator.core
    return f"{core.format.mantissa} or {core.wide}" if core.wide else str(core.format.mantissa)


def would(mantissa: int, accelerator: Accelerator) -> str:
    """What would do for mantissas that an accelerator does not have."""
    narrow = accelerator.core.format.mantissa
    return f"--{'wide' if narrow < mantissa < 2 * narrow else 'mantissa'} {mantissa} would do"
