"""The shortest clock period of mapped netlists, by OpenSTA where there is one."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from hbfp import entries, files
from hbfp.design import Design

from ..tools import opensta
from ..tools.library import Library
from . import partition
from .area import generate, synthesise

#: Kinds whose paths are reported, beside those of the whole core.
KINDS = ("group", "array", "accumulator", "block_sum", "shared_accumulator", "shared_control", "encode",
         "credit_encode", "sequencer", "weights", "drain", "credit_drain", "side", "side_turns", "free_turns")
#: The name of the whole design among them: every path, from part to part as well.
WHOLE = "core"
#: Time in ns from a memory's clock to the word that it reads, by the name of a library; assumed, not measured: about
#: 10 delays of an inverter with four loads. ``None`` stands for all other libraries.
ACCESS = {"osu018_stdcells": 1.2, None: 0.3}
#: What a user may give.
ACCESS_RANGE = (0, 100)

_PERIOD = 10000    # ns; longer than any path
_SCRIPT = f"""\
read_liberty cells.lib
read_liberty memories.lib
read_verilog netlist.v
link_design {{top}}
create_clock -name clk -period {_PERIOD} [get_ports clk]
set_input_delay 0 -clock clk [all_inputs]
set_output_delay 0 -clock clk [all_outputs]
set_wire_load_model -name stated
report_checks -path_delay max -format full -fields {{{{net}}}}
set place [file dirname [get_full_name [get_property [lindex [find_timing_paths] 0] endpoint]]]
foreach name {{{{Q QN q}}}} {{{{
  set pin [get_pins -quiet $place/$name]
  if {{{{[llength $pin]}}}} {{{{ puts "register [get_full_name [get_nets -of_objects $pin]]"; break }}}}
}}}}
exit
"""
#: Where a clock is gated, what reaches the gate in half a cycle is left out: a register's output without logic.
_HALVES = "set_false_path -fall_to [get_clocks clk]\nset_false_path -fall_from [get_clocks clk]"
#: A register whose output is there ``access`` after the clock: what reads a word of a memory.
_MEMORIES = """\
library (memories) {{
  delay_model : table_lookup; time_unit : "1ns"; voltage_unit : "1V"; current_unit : "1mA";
  pulling_resistance_unit : "1kohm"; capacitive_load_unit (1, pf); nom_voltage : 1.0;
  input_threshold_pct_rise : 50; input_threshold_pct_fall : 50;
  output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;
  slew_lower_threshold_pct_rise : 20; slew_upper_threshold_pct_rise : 80;
  slew_lower_threshold_pct_fall : 20; slew_upper_threshold_pct_fall : 80;
  cell ({cell}) {{
    ff (state, inverse) {{ clocked_on : "clk"; next_state : "d"; }}
    pin (clk) {{ direction : input; clock : true; capacitance : 0; }}
    pin (d) {{ direction : input; capacitance : 0; }}
    pin (q) {{ direction : output; function : "state"; timing () {{ related_pin : "clk"; timing_type : rising_edge;
      cell_rise (scalar) {{ values ("{access}"); }} cell_fall (scalar) {{ values ("{access}"); }}
      rise_transition (scalar) {{ values ("0"); }} fall_transition (scalar) {{ values ("0"); }} }} }}
  }}
}}
"""
#: A net's wires where their capacitance for each sink is stated, in pF: no resistance.
_WIRES = """\
  wire_load (stated) {{ resistance : 0; capacitance : {capacitance}; area : 0; slope : 1;
    fanout_length (1, 1); fanout_length (2, 2); }}
"""
_CELL = "hbfp_memory_access"
_PORT = re.compile(r"^  (?:wire|input|output(?: reg)?) *(?:\[(\d+):0\])? *(\w+) *(?:= .*)?;", re.MULTILINE)


def registered(ram: partition.Unit) -> partition.Unit:
    """A memory's stand-in: a flip-flop at each of its inputs, and one that takes as long as a memory at its output."""
    width = {name: int(high or 0) + 1 for high, name in _PORT.findall(ram.verilog)}
    ins = [name for name in width if name not in ("clk", "rst", "r_data")]
    head = ", ".join(["clk", *ins, "r_data"])
    lines = [f"module {ram.top}({head});", "  input clk;"]
    lines += [f"  input [{width[name] - 1}:0] {name};\n  reg [{width[name] - 1}:0] {name}_q;" for name in ins]
    lines += [f"  output [{width['r_data'] - 1}:0] r_data;", "  always @(posedge clk) begin"]
    lines += [f"    {name}_q <= {name};" for name in ins]
    ends = [f"{name}_q[{n}]" for name in ins for n in range(width[name])]
    size = width["r_data"]    # every register has to lead somewhere
    lines += ["  end"]
    lines += [f"  {_CELL} word_{n}(.clk(clk), .d(^{{{', '.join(ends[n::size] or ['w_data_q'])}}}), .q(r_data[{n}]));"
              for n in range(size)]
    cell = f"(* blackbox *)\nmodule {_CELL}(clk, d, q);\n  input clk;\n  input d;\n  output q;\nendmodule\n"
    return replace(ram, verilog="\n".join([*lines, "endmodule"]) + "\n" + cell)


def _parts(unit, by_name):
    """The unit and all that it contains, memories as registers."""
    found = {unit.top: registered(unit) if unit.kind == "ram" else unit}
    for name in unit.uses:
        found |= _parts(by_name[name], by_name)
    return found


_VECTOR = re.compile(r"^  (?:wire|input|output) +\[(\d+):(\d+)\] (\\\S+|\w+) *;", re.MULTILINE)
_PIECE = re.compile(r"(\d+)'([hbd])(\w+)|(\\\S+|\w+) *(?:\[(\d+)(?::(\d+))?\])?")


def structural(text: str) -> str:
    """A mapped netlist as OpenSTA reads it: no ``signed``, no concatenation that is assigned to."""
    text = re.sub(r"\bsigned\b", "", text)
    vectors = {name: (int(high), int(low)) for high, low, name in _VECTOR.findall(text)}

    def bits(side):
        for width, base, digits, name, high, low in _PIECE.findall(side):
            if width:
                value = int(digits.replace("x", "0"), {"h": 16, "d": 10, "b": 2}[base])
                yield from (f"1'b{value >> n & 1}" for n in reversed(range(int(width))))
                continue
            if not high and name not in vectors:
                yield name
                continue
            top, last = vectors[name] if not high else (int(high), int(low or high))
            yield from (f"{name} [{n}]" for n in range(top, last - 1, -1))

    def split(found):
        return "\n".join(f"  assign {left} = {right} ;" for left, right in zip(
            bits(found[1]), bits(found[2]), strict=True))
    return re.sub(r"^  assign \{(.*?)\} = (.*);$", split, text, flags=re.MULTILINE)


@dataclass(frozen=True)
class Path:
    """The longest path of a unit.

    Attributes
    ----------
    period : float
        Its time in ns: the shortest clock period. No clock skew, inputs and outputs registered.
    start, end : str
        Net that it starts from, and that of the register, or port, at its end.
    places : list of (str, float)
        Instances of parts that it passes, by name, each with the time in ns at which it leaves them.
    """
    period: float
    start: str
    end: str
    places: list[tuple[str, float]]

    def __str__(self):
        through = [f"{name} {time:.2f}" for name, time in self.places if name]
        return f"{self.start} to {self.end}" + (f" (through {', '.join(through)})" if through else "")


def _places(pins):
    """The instances of parts on a path of pins, each once, with the time of its last pin."""
    found = []
    for pin, time in pins:
        name = "/".join(pin.split("/")[:-2])
        if found and found[-1][0] == name:
            found.pop()
        found.append((name, time))
    return found


def memories(access: float, wire: float = 0.0) -> str:
    """The Liberty text of what reads a word of a memory in ``access`` ns, and of wires of ``wire`` fF a sink."""
    head, brace, tail = _MEMORIES.format(cell=_CELL, access=access).rpartition("}")
    return head + _WIRES.format(capacitance=f"{wire / 1000:g}") + brace + tail


def access_time(library: Library) -> float:
    """What reading a memory takes in ns, with a library."""
    return ACCESS.get(library.name, ACCESS[None])


def longest_path(unit: partition.Unit, by_name: Mapping[str, partition.Unit], recipe: str, library: Library,
                 access: float | None = None, timed: Library | None = None, wire: float = 0.0) -> Path:
    """The longest :class:`Path` of a unit with its parts.

    Parameters
    ----------
    unit : Unit
    by_name : dict of str to Unit
    recipe : str
    library : Library
    access : float, optional
        Time in ns that reading a memory takes; :data:`ACCESS` unless given.
    timed : Library, optional
        Whose delays count, if they are not those of the library that the unit is mapped to.
    wire : float, optional
        fF of wire for each sink, in place of what the library has for wires.
    """
    timed = timed or library
    text = "\n".join(structural((synthesise(part, recipe, library) / "mapped.v").read_text())
                     for part in _parts(unit, by_name).values())
    script = _SCRIPT.format(top=unit.top)
    if "hbfp_gated_" in "".join(part.verilog for part in by_name.values()):
        script = script.replace("\nreport", f"\n{_HALVES}\nreport", 1)
    macros = memories(access_time(library) if access is None else access, wire)

    def run():
        slack, start, end, pins = opensta.longest_path(unit.top, {
            "cells.lib": timed.path, "memories.lib": macros, "netlist.v": text}, script)
        return [_PERIOD - slack, start, end, _places(pins)]

    key = files.key(opensta.version(opensta.find()), script, timed.sha256, macros, text)
    time, start, end, places = entries.value(files.cache("synth") / f"path-{key}", run)
    return Path(time, start, end, [tuple(place) for place in places])


def period(unit: partition.Unit, by_name: Mapping[str, partition.Unit], recipe: str, library: Library,
           access: float | None = None) -> float:
    """Shortest clock period of a unit in ns; see :func:`longest_path`."""
    return longest_path(unit, by_name, recipe, library, access).period


def paths(design: Design, recipe: str, library: Library | None, unit: str = "core", access: float | None = None,
          kinds: Container[str] = (*KINDS, WHOLE), timed: Library | None = None, wire: float = 0.0
          ) -> dict[str, Path]:
    """Kind of unit, and :data:`WHOLE` for all of the design -> the longest of its paths; empty without OpenSTA or a
    library.

    Parameters
    ----------
    design : Design
    recipe, library, access, timed, wire
        As for :func:`longest_path`.
    unit : str
        A part alone, as ``python -m gen --unit``.
    kinds : sequence of str
        What is timed: all of a core of floats takes a million cells.
    """
    if not opensta.find() or not library:
        return {}
    units = partition.units(*generate(design, unit))
    by_name = {each.top: each for each in units}
    found: dict[str, Path] = {}
    for each in units:
        kind = WHOLE if each is units[-1] else each.kind
        if kind in kinds:
            path = longest_path(each, by_name, recipe, library, access, timed, wire)
            if kind not in found or path.period > found[kind].period:
                found[kind] = path
    return found


def periods(design: Design, recipe: str, library: Library | None, unit: str = "core", access: float | None = None,
            kinds: Container[str] = (*KINDS, WHOLE)) -> dict[str, float]:
    """Kind of unit, and :data:`WHOLE` -> its clock period in ns, as :func:`paths` finds them."""
    return {kind: path.period for kind, path in paths(design, recipe, library, unit, access, kinds).items()}
