# amaranth: UnusedElaboratable=no
"""Arrays of floats are chains of their multiply-adds, for all inputs and from any state.

Multiply-adds are hollow, functions of which nothing is known: what a column gives is the first one's result with zero,
of which the second one's, and so on, each with its own activation and weight. What a multiply-add is,
``test_fp32.py`` proves.
"""

import re

import pytest
from z3 import And, BitVecVal, Implies

from golden.spec.floats import FP32
from hbfp.design import Design
from rtl.array.array import Array
from rtl.fp32.inside import PackSum, Prepare, sum_layout
from rtl.fp32.multiply_add import SumOfProduct
from tests.cases import sweep
from tests.formal.cycles import Cycles, Hollow
from tests.formal.test_arrays import Ports

#: What is hollow, by the names of instances in a group.
KINDS = {r"c\d+_\d+": SumOfProduct, r"prepare\d+": Prepare, r"c\d+_pack": PackSum}


def chain_law(ports, mac, prepare, pack):
    """Each sum is what its chain gives, from zero; where sums go on unpacked, the last one is packed."""
    number, params, sums = ports.params.number, ports.params, []
    size = number.sum(1, params.height).width
    zero = BitVecVal(1 << sum_layout(FP32)["zero"].offset if number.chained else 0, size)
    for x in range(2):
        for col in range(params.cols):
            total = zero
            for row in range(params.height):
                act = ports.act(x, row)
                total = mac(a=prepare(i=act) if number.small else act, b=ports.weight(row, col), c=total)
            sums.append(ports.sum(x, 0, col) == (pack(i=total) if number.chained else total))
    return Implies(ports.swaps(), And(*sums))


def holds(rows, kind=Ports, **options):
    """Whether the law holds of the array of a design of two columns."""
    array = Array.made(Array.Parameters.of(Design(rows=rows, cols=2, **options)))
    number = array.params.number
    parts = {r"c\d+_\d+": Hollow("mac", number.unit(), c=number.lead, o=number.lead + number.step - 1)}
    if number.small:
        parts[r"prepare\d+"] = Hollow("prepare", Prepare(number.FORMAT, number.SUBNORMALS))
    if number.chained:
        parts[r"c\d+_pack"] = Hollow("pack", PackSum(FP32))
    cycles = Cycles.of(array, tuple(KINDS.values()))
    cycles.run(Ports([], array).last)
    given = []
    for pattern, part in parts.items():
        found = (re.fullmatch(rf"(r\d+\.g\d+\.{pattern})\.o", name) for name in vars(cycles.at[0]))
        paths = [match[1] for match in found if match]
        assert paths
        given += part.assumed(cycles.at, paths)
    functions = [parts.get(pattern) for pattern in KINDS]
    return cycles.law(Implies(And(*given), chain_law(kind(cycles.at, array), *functions)), 300,
                      "".join(part.definition for part in parts.values()))


CASES = [(rows, {"arithmetic": arithmetic, "group": group, "multiplier": multiplier, "pipeline": pipeline})
         for arithmetic in ("bf16", "fp32", "fma", "fp16") for multiplier in ("plain", "recoded")
         for rows, group, pipeline in ((2, (2, 2), 0), (4, (2, 1), 0), (4, (1, 2), 3), (2, (1, 1), 6))]


@pytest.mark.parametrize("rows, options", sweep(len(CASES), CASES, [CASES[12]]),
                         ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else None)
def test_array_is_the_chain_of_its_multiply_adds(rows, options):
    assert holds(rows, **options)


def test_another_order_is_seen():
    """Rows from the lowest up."""
    class Turned(Ports):
        def act(self, x, row):
            return super().act(x, self.rows - 1 - row)

        def weight(self, row, col):
            return super().weight(self.rows - 1 - row, col)
    assert not holds(2, Turned, arithmetic="bf16", group=(1, 1))
