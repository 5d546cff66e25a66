"""Random accelerators over all options that one may have, small enough that each is built in about a minute."""

import random

from hbfp import describe
from hbfp.arithmetic import KINDS
from hbfp.declared import ACCELERATOR
from hbfp.design import Design
from hbfp.options import design_from_values
from hbfp.system import FUNCTIONS, NUMBERS, Accelerator
from hbfp.values import ContradictionError

from ..accelerator.pair import PART
from .random_designs import option_values

#: Most bits of an operand where multipliers are recoded, which are built bit by bit: those of floats take minutes.
RECODED = 4
#: Most accelerators are HBFP, which has most options.
_ARITHMETICS = ("hbfp",) * 5 + NUMBERS
#: Rows and columns where they differ.
_OBLONG = ((4, 8), (8, 4), (4, 16), (16, 4))
#: Cores that share the columns.
_ARRAYS = (1, 1, 1, 2, 4)
#: Of which weights N of M are kept; most are dense.
_SPARSE = (*(None,) * 8, (2, 4), (1, 4), (1, 2), (4, 8))
#: Words of a memory.
_WORDS = (64, 128, 256)


def draw(seed: int, number: int = 0, *, side: int = 8) -> Accelerator:
    """The accelerator of a number in the sequence of a seed; contradictions, and what is too large, are drawn again.

    Parameters
    ----------
    seed, number : int
        The sequence, and the place in it; an accelerator does not depend on the others.
    side : int
        Rows and columns, those of all cores together, of every other one; the others' may differ.
    """
    rng = random.Random(f"accelerator {seed} {number}")
    parity = random.Random(f"parity {seed} {number}").random() < 0.5    # of its own, so that others stay as they were
    refused = describe.unserved(Design, ACCELERATOR)
    while True:
        rows, cols = (side, side) if rng.random() < 0.5 else rng.choice(_OBLONG)
        arrays = rng.choice(_ARRAYS)
        values = option_values(rng, rows, cols // arrays, 4 * side, 8 * side) | {"arrays": arrays}
        terms = 4 << rng.randint(0, 3)
        values |= {"depth": rng.randint(max(side, rows), 8 * side), "block": rng.choice(((1, terms), (terms, terms)))}
        values |= _system_values(rng, cols) | {"arithmetic": rng.choice(_ARITHMETICS)}
        if (sparse := rng.choice(_SPARSE)) is not None and rows <= cols and not (
                rows % sparse[1] or cols % sparse[1]):
            terms = max(rows * sparse[1] // sparse[0], cols) << rng.randint(0, 1)
            values |= {"sparse": sparse, "block": rng.choice(((1, terms), (terms, terms))), "arithmetic": "hbfp"}
        values |= {"parity": parity, "short_rows": rng.randint(0, values["row_words"])}
        if values["short_rows"] == 1 or values["vector_lanes"] != cols:
            values["short_rows"] = 0
        unserved = refused | describe.unserved(Design, KINDS[values["arithmetic"]].use)
        try:
            found = design_from_values({name: value for name, value in values.items() if name not in unserved},
                                       Accelerator)
            if found.contexts > 1:
                found.share(PART)
        except ValueError as error:
            if isinstance(error, ContradictionError) or values["contexts"] > 1:
                continue
            raise
        core = found.core
        if core.multiplier != "recoded" or (core.number.bits or core.format.mantissa) <= RECODED:
            return found


def _system_values(rng, side):
    """A value for every option beside those of the core, each valid by itself."""
    lanes = rng.choice([number for number in range(1, side + 1) if not side % number])
    shared = rng.choice([number for number in range(1, lanes + 1) if not lanes % number])
    functions = rng.choice((FUNCTIONS, tuple(name for name in FUNCTIONS if rng.random() < 0.4)))
    contexts = rng.choice((1, 1, 1, 2))
    words = _WORDS if contexts == 1 else _WORDS[-1:]    # shares of less would be too small
    return {**{f"{name}_words": rng.choice(words) for name in "xwvp"}, "row_words": rng.randint(1, 6),
            "vector_rows": rng.randint(1, 6), "register_copies": rng.choice((1, 3)),
            "vector_lanes": lanes, "functions": functions,
            "function_lanes": shared if functions else 0, "queue": rng.randint(2, 6), "reads": rng.randint(1, 8),
            "burst": rng.randint(1, 16), "contexts": contexts,
            "memory_banks": rng.choice((0, 1, 2, 4, 8)),
            **(_dispatcher(rng) if contexts > 1 else {})}


def _dispatcher(rng):
    """In front of two contexts, or none."""
    places = rng.choice((0, 4, 16))
    return {"dispatch": places, "dispatch_batch": rng.randint(1, 4), "dispatch_ring": places > 0 and rng.random() < 0.5}
