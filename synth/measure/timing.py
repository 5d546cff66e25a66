"""The shortest clock period of mapped netlists, by OpenSTA where there is one."""

import re
from dataclasses import replace

from hbfp import entries, files

from ..tools import opensta
from . import partition
from .area import generate, synthesise

#: Kinds whose paths are reported; the others are registers and wiring between them.
KINDS = ("group", "accumulator", "block_sum", "shared_accumulator", "shared_control", "encode",
         "sequencer", "weights", "drain")

_PERIOD = 10000    # ns; longer than any path
_SCRIPT = f"""\
read_liberty cells.lib
read_verilog netlist.v
link_design {{top}}
create_clock -name clk -period {_PERIOD} [get_ports clk]
set_input_delay 0 -clock clk [all_inputs]
set_output_delay 0 -clock clk [all_outputs]
report_worst_slack
exit
"""
_PORT = re.compile(r"^  (?:wire|input|output) *(?:\[(\d+):0\])? *(\w+) *;", re.MULTILINE)


def registered(ram):
    """A memory's stand-in: a flip-flop at each of its ports, so that paths from and to it count."""
    width = {name: int(high or 0) + 1 for high, name in _PORT.findall(ram.verilog)}
    ins = [name for name in width if name not in ("clk", "rst", "r_data")]
    head = ", ".join(["clk", *ins, "r_data"])
    lines = [f"module {ram.top}({head});", "  input clk;"]
    lines += [f"  input [{width[name] - 1}:0] {name};\n  reg [{width[name] - 1}:0] {name}_q;" for name in ins]
    lines += [f"  output reg [{width['r_data'] - 1}:0] r_data;", "  always @(posedge clk) begin"]
    lines += [f"    {name}_q <= {name};" for name in ins]
    ends = [f"{name}_q[{n}]" for name in ins for n in range(width[name])]
    size = width["r_data"]    # every register has to lead somewhere
    lines += [f"    r_data[{n}] <= ^{{{', '.join(ends[n::size] or ['w_data_q'])}}};" for n in range(size)]
    return replace(ram, verilog="\n".join([*lines, "  end", "endmodule"]) + "\n")


def _parts(unit, by_name):
    """The unit and all that it contains, memories as registers."""
    found = {unit.top: registered(unit) if unit.kind == "ram" else unit}
    for name in unit.uses:
        found |= _parts(by_name[name], by_name)
    return found


_VECTOR = re.compile(r"^  (?:wire|input|output) +\[(\d+):(\d+)\] (\\\S+|\w+) *;", re.MULTILINE)
_PIECE = re.compile(r"(\d+)'([hbd])(\w+)|(\\\S+|\w+) *(?:\[(\d+)(?::(\d+))?\])?")


def structural(text):
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


def period(unit, by_name, recipe, library):
    """Shortest clock period of a unit with its parts in ns: no wires, no clock skew, inputs and outputs registered."""
    text = "\n".join(structural((synthesise(part, recipe, library) / "mapped.v").read_text())
                     for part in _parts(unit, by_name).values())
    script = _SCRIPT.format(top=unit.top)

    def run():
        return _PERIOD - opensta.worst_slack(unit.top, text, library, script)

    key = files.key(opensta.version(opensta.find()), script, library.sha256, text)
    return entries.value(files.cache("synth") / f"sta-{key}", run)


def periods(design, recipe, library):
    """Kind of unit -> longest of its clock periods in ns; empty without OpenSTA or a library."""
    if not opensta.find() or not library:
        return {}
    units = partition.units(*generate(design))
    by_name, found = {unit.top: unit for unit in units}, {}
    for unit in units:
        if unit.kind in KINDS:
            found[unit.kind] = max(found.get(unit.kind, 0.0), period(unit, by_name, recipe, library))
    return found
