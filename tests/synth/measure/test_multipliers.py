"""Which multiplications of a core are DSP blocks, and which carry chains."""

import pytest

from synth.measure.multipliers import Multiplier, multipliers, soft

TEXT = """
  attribute \\src "unit.v:5130.17-5130.59"
  cell $mul $flatten\\dut.\\array.\\r1.\\g0.$mul$unit.v:5130$1904
    parameter \\A_SIGNED 1
    parameter \\B_SIGNED 1
    parameter \\A_WIDTH 8
    parameter \\B_WIDTH 7
    parameter \\Y_WIDTH 15
    connect \\A \\dut.array.skew.o__1
    connect \\Y \\dut.array.r1.g0.$1
  end

  cell $mul $mul$unit.v:7
    parameter signed \\A_WIDTH 24
    parameter signed \\B_WIDTH 12
  end
"""


def test_multipliers_of_a_netlist():
    found = multipliers(TEXT)
    assert found == [Multiplier("$flatten\\dut.\\array.\\r1.\\g0.$mul$unit.v:5130$1904", (8, 7)),
                     Multiplier("$mul$unit.v:7", (24, 12))]
    assert multipliers("") == []


@pytest.mark.parametrize("bits, blocks", [((8, 8), 1), ((18, 18), 1), ((19, 2), 2), ((24, 12), 2), ((24, 24), 4)])
def test_blocks_of_a_multiplier(bits, blocks):
    assert Multiplier("m", bits).blocks() == blocks


@pytest.mark.parametrize("bits, blocks", [
    ((25, 18), 1), ((18, 25), 1), ((24, 24), 2), ((26, 19), 2), ((26, 26), 4), ((8, 8), 1)])
def test_blocks_of_operands_of_two_widths(bits, blocks):
    assert Multiplier("m", bits).blocks((25, 18)) == blocks


@pytest.mark.parametrize("budget, chains", [
    (0, ["wide", "m1", "m2", "m10"]), (1, ["wide", "m2", "m10"]), (2, ["m1", "m2", "m10"]), (4, ["m10"]), (5, []),
    (156, [])])
def test_wide_ones_first_then_in_order_of_their_numbers(budget, chains):
    found = [Multiplier("m10", (8, 8)), Multiplier("m2", (8, 8)), Multiplier("wide", (24, 12)),
             Multiplier("m1", (8, 8))]
    assert [each.cell for each in soft(found, budget)] == chains
