"""What a conversion draws under stochastic rounding: fields of CONVERT for a part of a matrix."""

from dataclasses import dataclass

from hbfp.golden.nn.formats import Formats
from hbfp.golden.nn.placed import Draw, read
from hbfp.golden.position import pitch

from ..errors import LoweringError


@dataclass(frozen=True)
class Drawn:
    """How a matrix (rows, columns), as it lies in V, draws numbers.

    Attributes
    ----------
    key : int
        Of its tensor, without the step's part.
    row, first : int
        Words from a row of the tensor to the next, and to the matrix's first.
    """
    key: int
    row: int
    first: int

    def fields(self, row: int, word: int) -> dict[str, int]:
        """Of a CONVERT whose first word is word ``word`` of row ``row``."""
        return {"stochastic": 1, "key": self.key, "place": self.first + row * self.row + word, "place_row": self.row}


def fields(drawn: Drawn | None, row: int, word: int) -> dict[str, int]:
    """:meth:`Drawn.fields`; none of what is rounded to nearest."""
    return {} if drawn is None else drawn.fields(row, word)


def draws(text: str, *roles: str) -> list[Draw | None]:
    """How operands of a traced product draw, in these roles; None for those that are rounded to nearest."""
    formats, product = read(text)
    return [product.role(role) if product is not None and _stochastic(formats, role) else None for role in roles]


def _stochastic(formats, role):
    return getattr(formats, role).rounding == "stochastic"


def in_v(draw: Draw | None, turned: bool, columns: int, lanes: int) -> Drawn | None:
    """How a matrix draws whose transpose lies in V if ``turned``, where the tensor has so many columns.

    Raises
    ------
    LoweringError
        If a word would hold elements of several rows of the tensor.
    """
    if draw is None:
        return None
    if draw.turned != turned:
        raise LoweringError("a word of its operand has numbers of several rows of the tensor that is rounded "
                            "stochastically; rounding it to nearest would do")
    row = pitch(columns) // lanes
    return Drawn(draw.key, row, draw.first * row)


def refuse(formats: Formats) -> None:
    """LoweringError if a product that cannot draw numbers would have to."""
    if formats.stochastic:
        raise LoweringError("its product would round stochastically, which linear layers and products of matrices do; "
                            "rounding to nearest would do")
