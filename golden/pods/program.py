"""A program for a machine of pods: what every part does in every round, and what lies in the banks at first."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from hbfp.program import ProgramError


class Spot(NamedTuple):
    """A tile's bank, and its first row there."""
    bank: int
    address: int


@dataclass(frozen=True)
class Operation:
    """A tile of X times a tile of W in a pod.

    The sums go on from those at ``back``, or from zeros, and are written to ``out``. ``copies`` are the numbers of the
    copies of the networks of X, W, and sums in and out that it uses.
    """
    pod: int
    x: Spot
    w: Spot
    back: Spot | None
    out: Spot
    copies: tuple[int, int, int, int]


@dataclass(frozen=True)
class Pass:
    """A tile of sums through a post-processor.

    Attributes
    ----------
    layer, row, column : int
        Which tile of which layer's results it belongs to.
    source : Spot
        The sums.
    post : Spot
        The post-processor, and the tile of its memory that it works with.
    add, keep, last : bool
        Whether the sums are added to what the memory has there; whether the results go there; whether it is the tile's
        last pass.
    vectors : int
        Number of its pair of factors and biases in the post-processor.
    steps : tuple of bool
        Which of :data:`golden.spec.pods.STEPS` it takes.
    x : Spot or None
        Where the results go as a tile of X; None if they do not become one.
    copies : tuple of int
        Which copies of the networks to and from the post-processor it uses.
    """
    layer: int
    row: int
    column: int
    source: Spot
    post: Spot
    add: bool
    keep: bool
    last: bool
    vectors: int
    steps: tuple[bool, bool, bool]
    x: Spot | None
    copies: tuple[int, int]


class Tile(NamedTuple):
    """Mantissas of a tile and, by row and segment of X, or by segment and column of W, exponents and flags."""
    mantissa: np.ndarray
    exponent: np.ndarray
    invalid: np.ndarray


@dataclass(frozen=True, eq=False)
class Program:
    """All that a machine is given.

    Attributes
    ----------
    key : int
        The machine that it is for, :attr:`hbfp.pods.PodsDesign.key`.
    rows, length : int
        Rows of X in a tile; cycles of a round.
    operations, passes : sequence of tuple
        By round.
    x, w : mapping
        Spot -> tile that is there from the start.
    vectors : mapping
        (post-processor, pair) -> factors and biases (2, columns).
    notes : tuple of str
        Lines for the user: which formats run as wider ones.
    """
    key: int
    rows: int
    length: int
    operations: Sequence[tuple[Operation, ...]]
    passes: Sequence[tuple[Pass, ...]]
    x: Mapping[Spot, Tile]
    w: Mapping[Spot, Tile]
    vectors: Mapping[tuple[int, int], np.ndarray]
    notes: tuple[str, ...] = ()

    @property
    def rounds(self) -> int:
        """How many rounds the program has."""
        return len(self.operations)

    def require(self, key: int) -> None:
        """Raise ProgramError if it is not for the machine of that key."""
        if key != self.key:
            raise ProgramError(f"Program must be for machine {key:08x}, not for {self.key:08x}")

    def text(self) -> str:
        """As JSON; :func:`from_text` reads it."""
        tiles = {name: [[*spot, *(part.tolist() for part in tile)] for spot, tile in getattr(self, name).items()]
                 for name in ("x", "w")}
        return json.dumps({
            "key": self.key, "rows": self.rows, "length": self.length, "notes": self.notes, **tiles,
            "operations": [[asdict(each) for each in every] for every in self.operations],
            "passes": [[asdict(each) for each in every] for every in self.passes],
            "vectors": [[*place, values.view(np.uint32).tolist()] for place, values in self.vectors.items()]})


def _spot(value):
    return None if value is None else Spot(*value)


def from_text(text: str) -> Program:
    """The program of which :meth:`Program.text` is the text.

    Raises
    ------
    ProgramError
        If the text is no program.
    """
    try:
        data = json.loads(text)
        tiles = {name: {Spot(bank, address): Tile(np.array(mantissa, np.int32), np.array(exponent, np.int32),
                                                  np.array(invalid, bool))
                        for bank, address, mantissa, exponent, invalid in data[name]} for name in ("x", "w")}
        operations = [tuple(Operation(each["pod"], Spot(*each["x"]), Spot(*each["w"]), _spot(each["back"]),
                                      Spot(*each["out"]), tuple(each["copies"])) for each in every)
                      for every in data["operations"]]
        passes = [tuple(Pass(**each | {"source": Spot(*each["source"]), "post": Spot(*each["post"]),
                                       "steps": tuple(each["steps"]), "copies": tuple(each["copies"]),
                                       "x": _spot(each["x"])}) for each in every) for every in data["passes"]]
        vectors = {(post, pair): np.array(values, np.uint32).view(np.float32)
                   for post, pair, values in data["vectors"]}
        return Program(data["key"], data["rows"], data["length"], operations, passes, **tiles, vectors=vectors,
                       notes=tuple(data["notes"]))
    except (ValueError, KeyError, TypeError):
        raise ProgramError("Program must be a file that this command has saved") from None
