"""Passes of a command in portions, each an instruction of its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Portion:
    """Passes ``first`` to ``first + tiles - 1`` of a command, and the fields of MULTIPLY that say them."""
    first: int
    tiles: int
    fields: dict[str, int]


def even(rows: int, most: int, step: int = 1) -> int:
    """Rows of pieces of at most ``most`` rows, multiples of ``step``, that are about equal."""
    share = -(-rows // -(-rows // most))
    return min(-(-share // step) * step, most)


def portions(fields: dict[str, int], most: int, step: int = 1) -> Sequence[Portion]:
    """All passes, in order, in portions of at most ``most``, which are multiples of ``step`` but for the last.

    ``most`` is a multiple of ``step``, and the innermost loop, too, if it is not the only one.
    """
    counts = [fields[f"passes{loop}"] for loop in range(3)]
    if prod(counts) <= most:
        return [Portion(0, prod(counts), fields)]
    loop = max(number for number in range(3) if prod(counts[:number]) <= most)
    inside = prod(counts[:loop])
    return list(_portions(fields, counts, loop, inside, even(counts[loop], most // inside, step if loop == 0 else 1)))


def _portions(fields, counts, loop, inside, share) -> Iterator[Portion]:
    """Shares of one loop, for each step of those around it."""
    done, outer = 0, counts[loop + 1:]
    for index in range(prod(outer)):
        around = [index // prod(outer[:n]) % size for n, size in enumerate(outer)]
        for start in range(0, counts[loop], share):
            at = [0] * loop + [start, *around]
            size = min(share, counts[loop] - start)
            moved = dict(fields)
            moved["base"] += sum(step * fields.get(f"pass{number}", 0) for number, step in enumerate(at))
            moved |= {f"passes{number}": 1 for number in range(loop + 1, 3)} | {f"passes{loop}": size}
            if fields.get("bounded"):
                moved["x"] += at[1] * fields["x_pass"]
                moved["y"] += at[2] * fields["y_pass"]
            yield Portion(done, size * inside, moved)
            done += size * inside
