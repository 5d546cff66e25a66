"""A library of six cells with numbers that are easy to add up, and netlists of them for the engine."""

from pathlib import Path

from synth.power import engine, netlist, tables
from synth.power.liberty import read

#: Of an output of each cell: energy of a rise and of a fall in fJ; delay in ns; pins have 1 fF, at 2 V.
ENERGY = {"BUF": (2, 2), "INV": (3, 5), "NAND": (7, 11), "XOR": (13, 17), "DFF": (19, 23)}
DELAY = {"BUF": 0.1, "INV": 0.1, "NAND": 0.01, "XOR": 0.02, "DFF": 0.05}
#: Of a flip-flop's pins, whatever its data: energy of a rising and of a falling clock, and of either edge of D.
CLOCK, DATA = (29, 31), 37
VOLTS = 2


def _pin(name):
    return f"pin ({name}) {{ direction : input; capacitance : 1; }}"


def _table(name, value):
    """A table of one value everywhere."""
    return f'{name} (square) {{ values ("{value}, {value}", "{value}, {value}"); }}'


def _output(cell, name, function, pins, kind="combinational"):
    rise, fall = ENERGY[cell]
    sense = {"BUF": "positive_unate", "INV": "negative_unate", "NAND": "negative_unate"}.get(cell, "non_unate")
    arcs = "".join(f"""
      timing () {{ related_pin : "{pin}"; timing_type : {kind}; timing_sense : {sense};
        {_table("cell_rise", DELAY[cell])} {_table("cell_fall", DELAY[cell])}
        {_table("rise_transition", 0)} {_table("fall_transition", 0)} }}
      internal_power () {{ related_pin : "{pin}"; {_table("rise_power", rise)} {_table("fall_power", fall)} }}"""
                   for pin in pins)
    return f'pin ({name}) {{ direction : output; function : "{function}"; {arcs} }}'


TEXT = f"""
library (easy) {{
  time_unit : "1ns"; voltage_unit : "1V"; leakage_power_unit : "1nW"; nom_voltage : {VOLTS};
  capacitive_load_unit (1, ff);
  lu_table_template (square) {{ variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;
    index_1 ("0.1, 1"); index_2 ("1, 10"); }}
  cell (BUF) {{ area : 1; {_pin("A")} {_output("BUF", "Y", "A", "A")} }}
  cell (INV) {{ area : 1; cell_leakage_power : 1; {_pin("A")} {_output("INV", "Y", "!A", "A")} }}
  cell (NAND2) {{ area : 2; cell_leakage_power : 2; {_pin("A")} {_pin("B")} {_output("NAND", "Y", "!(A & B)", "AB")} }}
  cell (XOR) {{ area : 3; cell_leakage_power : 3; {_pin("A")} {_pin("B")} {_output("XOR", "Y", "A ^ B", "AB")} }}
  cell (DFF) {{ area : 4; cell_leakage_power : 4; ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "D"; }}
    pin (CK) {{ direction : input; capacitance : 1; clock : true;
      internal_power () {{ rise_power (scalar) {{ values ("{CLOCK[0]}"); }}
        fall_power (scalar) {{ values ("{CLOCK[1]}"); }} }} }}
    pin (D) {{ direction : input; capacitance : 1; internal_power () {{ power (scalar) {{ values ("{DATA}"); }} }} }}
    {_output("DFF", "Q", "IQ", ["CK"], "rising_edge")} }}
  cell (DFFN) {{ area : 4; ff (IQ, IQN) {{ clocked_on : "(!CK)"; next_state : "D"; }}
    pin (CK) {{ direction : input; capacitance : 1; clock : true;
      internal_power () {{ rise_power (scalar) {{ values ("{CLOCK[0]}"); }}
        fall_power (scalar) {{ values ("{CLOCK[1]}"); }} }} }}
    pin (D) {{ direction : input; capacitance : 1; internal_power () {{ power (scalar) {{ values ("{DATA}"); }} }} }}
    {_output("DFF", "Q", "IQ", ["CK"], "falling_edge")} }}
}}
"""
PINS = {"BUF": ["A", "Y"], "INV": ["A", "Y"], "NAND2": ["A", "B", "Y"], "XOR": ["A", "B", "Y"], "DFF": ["CK", "D", "Q"],
        "DFFN": ["CK", "D", "Q"]}


def library(folder: Path) -> str:
    """The library for the engine."""
    path = folder / "easy.lib"
    path.write_text(TEXT)
    return tables.text(read(path), PINS, path)


def run(folder: Path, body: str, bits: int, values: list[int], period: float = 10, modules=(), components=None,
        **settings) -> engine.Result:
    """Run a netlist in BLIF whose inputs are ``i__payload`` of ``bits`` bits, which take ``values`` in turn, one a
    cycle; all cycles but the first one are followed.
    """
    import numpy as np

    width = -(-bits // 8)
    ports = ["clk", *engine.bits("i__payload", bits), "i__valid", "i__ready", "o__valid", "o__ready", "o__payload"]
    text = f".model top\n.inputs {' '.join(ports)}\n.outputs\n.names i__valid o__valid\n1 1\n.names $true i__ready\n" \
           f"1 1\n{body}\n.end\n"
    found = [*modules, netlist.read_blif(text, {module.name for module in modules})]
    beats = np.array([list(value.to_bytes(width, "little")) for value in values], np.uint8)
    streams = [engine.Stream("i", bits, beats), engine.Stream("o", 1, len(values))]
    chosen = engine.Settings(**{"period": period, "wire": 0, "access": 0.3, "pace": "i", "window": (1, len(values)),
                                **settings})
    described = netlist.text(found, list(PINS), PINS, components or {"top": 0})
    return engine.run(library(folder), described, len(components or [0]), ports, streams, chosen)
