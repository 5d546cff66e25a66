"""Liberty's tables: units, interpolation, conditions and functions, by hand on a library of two cells.

Covers: synth/tools/liberty.py.
"""

import itertools
import re

import numpy as np
import pytest

from hbfp.values import OptionError
from synth.power.liberty import read
from synth.tools.liberty import evaluate

TEXT = """\
/* two cells { */
library (two) {
  time_unit : "1ps"; voltage_unit : "1V"; leakage_power_unit : "1uW"; nom_voltage : 1.5;
  capacitive_load_unit (10, ff);
  lu_table_template (d) { variable_1 : total_output_net_capacitance; variable_2 : input_net_transition;
    index_1 ("1, 2"); index_2 ("100, 300, 500"); }
  power_lut_template (e) { variable_1 : input_transition_time; index_1 ("100, 300"); }
  cell (INV) {
    leakage_power () { when : "A"; value : 2; }
    leakage_power () { when : "!A"; value : 4; }
    pin (A) { direction : input; capacitance : 0.3; }
    pin (Y) { direction : output; function : "A'";
      timing () { related_pin : "A"; cell_rise (d) { values ("10, 20, 30", \\
                                                              "50, 60, 70"); }
        rise_transition (scalar) { values ("5"); } }
      internal_power () { related_pin : "A"; when : "!B"; rise_power (e) { values ("4, 8"); }
        fall_power (scalar) { values ("3"); } } }
  }
  cell (DFF) {
    cell_leakage_power : 7;
    ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; }
    pin (CK) { direction : input; capacitance : 1; clock : true;
      internal_power () { power (scalar) { values ("0.5"); } } }
    pin (D) { direction : input; capacitance : 2; timing () { related_pin : "CK"; timing_type : hold_rising; } }
    pin (Q) { direction : output; function : "IQ"; timing () { related_pin : "CK"; timing_type : rising_edge; }
      timing () { related_pin : "R"; timing_type : clear; } }
    pin (QN) { direction : output; function : "IQN"; }
  }
}
"""


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "two.lib"
    path.write_text(TEXT)
    found = read(path)
    assert found.volts == 1.5
    return found.cells


def test_units_are_those_of_the_file(cells):
    inverter, flipflop = cells["INV"], cells["DFF"]
    assert inverter.inputs == {"A": pytest.approx(3)} and flipflop.inputs == {"CK": 10, "D": 20}    # fF
    assert inverter.leakage == pytest.approx(3000) and flipflop.leakage == pytest.approx(7000)     # nW, mean of states
    arc, = inverter.energies["Y"]
    rise, fall = arc.tables["energy"]
    assert (arc.pin, arc.when) == ("A", "!B")
    assert fall.at(9, 9) == pytest.approx(30)    # times 10 fF V^2


def test_energies_go_with_the_square_of_the_unit_of_volts(tmp_path):
    path = tmp_path / "volts.lib"
    path.write_text(TEXT.replace('"1V"', '"100mV"'))
    _, fall = read(path).cells["INV"].energies["Y"][0].tables["energy"]
    assert fall.at(0, 0) == pytest.approx(0.3)


@pytest.mark.parametrize("slew, load, delay", [
    (0.1, 10, 10), (0.3, 20, 60), (0.2, 10, 15), (0.1, 15, 30), (0.4, 15, 45),
    (0.9, 10, 30), (0.01, 10, 10),    # a transition stays in the table
    (0.1, 30, 90)])                   # a load goes on beyond it
def test_a_table_is_linear_between_its_points(cells, slew, load, delay):
    arc, = cells["INV"].delays["Y"]
    rise, fall = arc.tables["delay"]
    assert fall is None
    assert rise.at(slew, load) == pytest.approx(delay * 1e-3)    # ns
    assert arc.tables["transition"][0].at(slew, load) == pytest.approx(5e-3)


def test_a_table_over_transitions_alone(cells):
    rise, _ = cells["INV"].energies["Y"][0].tables["energy"]
    assert np.allclose(rise.at(np.array([0.1, 0.2, 0.3, 1.0]), np.array([1, 5, 50, 500])), [40, 60, 80, 80])


def test_a_flipflop_has_its_clock_its_energy_and_both_outputs(cells):
    flipflop = cells["DFF"]
    assert flipflop.clock == "CK" and flipflop.outputs == {"Q": "(D)", "QN": "!(D)"}
    assert flipflop.inverted == {"QN"} and flipflop.unsupported is None
    assert [arc.pin for arc in flipflop.delays["Q"]] == ["CK"]    # how it is cleared is no delay of its clock
    hidden, = flipflop.hidden
    assert hidden.pin == "CK" and [table.at(0, 0) for table in hidden.tables["energy"]] == [5, 5]


@pytest.mark.parametrize("words", ["clear : \"R\"; clocked_on : \"CK\"", "preset : \"S\"; clocked_on : \"CK\"",
                                   'clocked_on : "CK & E"'])
def test_a_flipflop_that_is_more_than_a_clock_is_marked(tmp_path, words):
    path = tmp_path / "reset.lib"
    path.write_text(TEXT.replace('clocked_on : "CK"', words))
    assert read(path).cells["DFF"].unsupported == \
        "its flip-flop has a reset of its own, or another clock than an edge of one pin"


@pytest.mark.parametrize("clock, falling", [("CK", False), ("!CK", True), ("(!CK)", True), ("CK'", True)])
def test_the_edge_of_a_flipflop(tmp_path, clock, falling):
    path = tmp_path / "edge.lib"
    path.write_text(TEXT.replace('clocked_on : "CK"', f'clocked_on : "{clock}"'))
    found = read(path).cells["DFF"]
    assert (found.clock, found.falling, found.unsupported) == ("CK", falling, None)


@pytest.mark.parametrize("text, python", [
    ("A & B | C", "A & B | C"), ("A*B + !C", "A & B | ~C"), ("A B' + C", "A & ~B | C"), ("(A ^ B) C", "(A ^ B) & C"),
    ("A & B ^ C", "A & (B ^ C)"), ("!(A | B) ^ C", "~(A | B) ^ C"), ("(A+B)'", "~(A | B)"), ("!A !B", "~A & ~B"),
    ("1 & A", "A & A"), ("0 | C", "C | C")])
def test_functions_over_all_inputs(text, python):
    columns = np.array(list(itertools.product([False, True], repeat=3))).T
    values = dict(zip("ABC", columns, strict=True))
    assert np.array_equal(evaluate(text, values), eval(python, {}, values))


def test_a_pin_without_a_value_is_named():
    with pytest.raises(KeyError, match="^'B'$"):
        evaluate("A & B", {"A": np.array(True)})


def test_a_library_without_tables_of_power_is_refused(tmp_path):
    path = tmp_path / "none.lib"
    path.write_text(re.sub("internal_power", "other", TEXT))
    with pytest.raises(OptionError, match=r"^--liberty \S+/none\.lib: has no tables of power "
                       r"\(internal_power\), which energies are made from$"):
        read(path)


def test_a_file_that_ends_early_is_refused(tmp_path):
    path = tmp_path / "short.lib"
    path.write_text(TEXT[:-20])
    with pytest.raises(OptionError, match=r"^--liberty \S+/short\.lib: cannot be read \(\w+ is not closed\)$"):
        read(path)
