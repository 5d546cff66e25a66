"""How the blocks of a command lie on the rows of an array."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Lay:
    """Segments and passes of blocks that take ``block`` rows each, one after the other.

    Parameters
    ----------
    rows : int
        Of the array.
    block : int
        Rows of a whole block.
    """
    rows: int
    block: int

    @property
    def height(self) -> int:
        """Rows of a segment: the elements of a column whose sum leaves as one integer."""
        return min(self.block, self.rows)

    @property
    def segments(self) -> int:
        """Segments that a column is cut into; more than one where blocks are shorter than the column."""
        return self.rows // self.height

    @property
    def tile_rows(self) -> int:
        """Rows that a pass uses; below ``rows`` only if ragged."""
        return self.segments * self.height

    @property
    def block_tiles(self) -> int:
        """Passes that one block spans; more than one where blocks are longer than the column."""
        return -(-self.block // self.height)
