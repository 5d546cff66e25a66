"""What a conversion draws under stochastic rounding: fields of CONVERT for a part of a matrix."""

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Pixels:
    """How images draw: those of a tensor (N, H, W, C), as a matrix (pixels, C).

    Attributes
    ----------
    draw : Draw
    drawn : Drawn
        The same in words.
    sides : (int, int)
        H and W.
    """
    draw: Draw
    drawn: Drawn
    sides: tuple[int, int]

    @classmethod
    def of(cls, draw: Draw | None, shape: tuple[int, ...], lanes: int) -> "Pixels | None":
        """Of images (N, C, H, W) that draw so; None of those that do not."""
        return None if draw is None else cls(draw, Drawn(draw.key, pitch(shape[1]) // lanes, 0), (shape[2], shape[3]))

    def fields(self, image: int, line: int) -> dict[str, int]:
        """Of a CONVERT whose first word is the first one of a line of an image."""
        high, wide = self.sides
        return self.drawn.fields((image * high + line) * wide, 0)


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


def of_gradient(text: str) -> Draw | None:
    """How the gradient of a convolution's output draws, of whose product this is the text; None if to nearest.

    Raises
    ------
    LoweringError
        If x or w would draw.
    """
    if any(draws(text, "x", "w")):
        raise LoweringError("its x or w would be rounded stochastically, which those of linear layers and of products "
                            "of matrices are; g alone, or rounding to nearest, would do")
    return draws(text, "g")[0]
