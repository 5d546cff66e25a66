"""A cell library of few cells, as Liberty text."""

_TABLE = 'values("0.1, 0.2", "0.2, 0.3");'


def _timing(pin, sense):
    kinds = ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
    return (f'    timing() {{ related_pin : "{pin}"; timing_sense : {sense};\n'
            + "".join(f"      {kind}(square) {{ {_TABLE} }}\n" for kind in kinds) + "    }\n"
            + f'    internal_power() {{ related_pin : "{pin}"; power(square) {{ {_TABLE} }} }}\n')


def _cell(name, area, function, sense="negative_unate"):
    inputs = [pin for pin in "ABC" if pin in function]
    pins = "".join(f"  pin({pin}) {{ direction : input; capacitance : 0.01; }}\n" for pin in inputs)
    arcs = "".join(_timing(pin, sense) for pin in inputs)
    return (f'cell ({name}) {{\n  area : {area};\n{pins}  pin(Y) {{ direction : output; function : "{function}";\n'
            f"{arcs}  }}\n}}\n")


LIBERTY = """\
library (tiny) {
  time_unit : "1ns";
  capacitive_load_unit (1, pf);
  lu_table_template(square) {
    variable_1 : input_net_transition;
    variable_2 : total_output_net_capacitance;
    index_1("0.1, 1");
    index_2("0.01, 0.1");
  }
""" + "".join([
    _cell("BUF", 32, "(A)", "positive_unate"), _cell("INV", 16, "(!A)"),
    _cell("NAND2", 24, "(!(A B))"), _cell("NOR2", 24, "(!(A+B))"), _cell("OAI21", 32, "(!((A+B) C))"),
    _cell("XOR2", 56, "(A^B)", "non_unate")]) + """\
cell (DFF) {
  area : 96;
  ff (IQ, IQN) { next_state : "D"; clocked_on : "CK"; }
  pin(CK) { direction : input; clock : true; }
  pin(D) { direction : input; }
  pin(Q) { direction : output; function : "IQ"; }
}
}
"""
#: A full adder whose sum is a complement, and the library with it.
FULL_ADDER = """\
cell (PLUS) {
  area : 100;
  pin(P) { direction : input; }
  pin(Q) { direction : input; }
  pin(R) { direction : input; }
  pin(ODD) { direction : output; function : "(!(P^Q^R))"; }
  pin(MOST) { direction : output; function : "(P Q)+(R (P+Q))"; }
}
"""
ADDING = LIBERTY.replace("cell (DFF)", FULL_ADDER + "cell (DFF)")
