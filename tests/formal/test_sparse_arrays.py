# amaranth: UnusedElaboratable=no
"""Arrays for sparse weights give dot products of the activations that offsets choose, for all inputs, from any state.

Sums are shown to be those of what elements choose, and what they choose to be what the page says: in a dense tile the
activation of their place, in a sparse one so many further on as the weight's offset (:mod:`rtl.number.sparse`). Where a
dense block takes two segments, the lower sum is that of both in rows of X that join them.
"""

import pytest
from z3 import And, BitVecVal, If, Implies, Not, SignExt

from tests.cases import sweep
from tests.formal.test_arrays import Ports, array_of, high, holds, product
from tests.formal.views import Fields, chosen, number


class SparsePorts(Ports):
    """What a sparse array takes and gives."""

    def sparse(self):
        """Whether the tile that is loaded is sparse."""
        return high(self.seen("sparse", 0))

    def joins(self, x):
        """Whether row x of X joins segments."""
        return high(self.seen("joins", x)) if self.params.joined > 1 else False

    def held(self, row, col):
        """The weight of an element: value and offset."""
        return Fields(self.weight(row, col), self.params.number.weight)

    def picked(self, x, row, col):
        """The activation that an element chooses for row x of X, when that comes to it."""
        (kr, kc), params = self.params.group, self.params
        cycle = x + 1 + row // kr * params.number.step + col // kc
        return self.seen(f"r{row // kr}.g{col // kc}.c{col % kc}_act{row % kr}", cycle)


def sparse_law(ports):
    """Sums are exact ones of what is chosen, and that is what offsets say."""
    params, kind = ports.params, ports.params.number
    width, kept, group = kind.width, kind.kept, kind.group
    none, most, exact = BitVecVal(1 << width - 1, width), (2 ** (width - 1) - 1) ** 2, 2 * width + 8
    given, laws = [ports.swaps()], []
    for col in range(params.cols):
        for row in range(ports.rows):
            offset = number(ports.held(row, col).offset)
            given += [ports.held(row, col).value != none, offset <= group - kept]
    for x in range(2):
        for col in range(params.cols):
            above = None
            for segment in range(params.segments):
                total = BitVecVal(0, exact)
                if segment % params.joined:
                    total = If(ports.joins(x), above, total)
                for row in range(segment * params.height, (segment + 1) * params.height):
                    first, held = row // kept * group + row % kept, ports.held(row, col)
                    offset = If(ports.sparse(), number(held.offset), 0)
                    act = ports.picked(x, row, col)
                    laws.append(act == chosen([ports.act(x, first + n) for n in range(group - kept + 1)], offset))
                    each = product(act, held.value)
                    given += [act != none, each <= most, each >= -most]
                    total += SignExt(exact - 2 * width, each)
                above = total
                whole = segment % params.joined == params.joined - 1 or Not(ports.joins(x))
                laws.append(Implies(whole, SignExt(exact - ports.size, ports.sum(x, segment, col)) == total))
    return Implies(And(*given), And(*laws))


CASES = [(rows, block, {"mantissa": mantissa, "sparse": sparse, "group": group, "pipeline": pipeline})
         for rows, block, sparse, group in (
             (4, 8, (2, 4), (4, 2)), (4, 4, (2, 4), (2, 1)), (4, 8, (1, 2), (2, 2)), (4, 4, (1, 2), (1, 1)))
         for mantissa in (8, 3) for pipeline in (0, 7) if not pipeline or block == 8]


@pytest.mark.parametrize("rows, block, options", sweep(len(CASES), CASES), ids=lambda value: "-".join(
    str(each).replace(" ", "") for each in value.values()) if isinstance(value, dict) else None)
def test_sparse_array_is_the_dot_product(rows, block, options):
    assert holds(array_of(rows, block, **options), sparse_law, SparsePorts)


def test_offsets_of_a_dense_tile_are_of_no_account():
    """The law of sparse tiles, asked of dense ones, too."""
    class Sparse(SparsePorts):
        def sparse(self):
            return high(self.seen("swap", 0))
    assert not holds(array_of(4, 8, mantissa=3, sparse=(2, 4), group=(2, 1)), sparse_law, Sparse)
