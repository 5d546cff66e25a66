# amaranth: UnusedElaboratable=no
"""Laws of the readable text, over many designs: every bit has one driver, none is its own, registers start alike.

Covers: gen/readable.py.
"""

import json
import re
import subprocess
from collections import Counter

import pytest

from benchmarks.same_logic import compare
from gen.emit import FOOTER, HEADER, Emitter, verilog
from gen.readable import TEXTS
from gen.units import make_part, make_unit
from hbfp.options import design_from_values

from .emitted import modules
from .test_lint import quiet
from .test_names import SYSTEMS, drawn, systems

_DECLARED = re.compile(r"^  (input|output reg|output|wire|reg) (?:\[(\d+):0\] )?(\S+?)(?: (\[\d+:0\]))?(?: = (.*))?;$",
                       re.MULTILINE)
_ASSIGN = re.compile(r"^  assign (\w+)(?:\[(\d+)(?::(\d+))?\])? = (.*);$", re.MULTILINE)
_SET = re.compile(r"(?:^ +|\) |else |: )(\w+)(?:\[(\d+)(?::(\d+))?\](?= )|\[[^\]]*\])* <?= ", re.MULTILINE)
_PART = re.compile(r"^  (hbfp_\w+) \w+ \($(.*?)^  \);$", re.MULTILINE | re.DOTALL)
_PIN = re.compile(r"^    \.(\w+)\((.*)\),?$", re.MULTILINE)
_NAME = re.compile(r"(?<![\w'$])([A-Za-z_]\w*)(?:\[(\d+)(?::(\d+))?\])?")


def faults(body, outputs):
    """What breaks a law in the text of one module; ``outputs`` has those of every module, by its name."""
    found, kinds, whole, driven, memories = [], {}, {}, {}, set()
    for kind, high, name, memory, _ in _DECLARED.findall(body):
        found += [f"{name} is declared twice"] * (name in kinds)
        kinds[name], whole[name] = kind, 1 if memory else (2 << int(high or 0)) - 1
        memories |= {name} if memory else set()
    logic = re.sub(r"^ *(?://.*|/\*.*|initial .*|\(\*.*)$|" + _DECLARED.pattern[1:], "", body.split(";\n", 1)[1],
                   flags=re.MULTILINE)

    def bits(name, high="", low=""):
        return (2 << int(high)) - (1 << int(low or high)) if high and name not in memories else whole[name]

    def drive(name, which):
        found.extend([f"{name} is driven twice"] * bool(driven.get(name, 0) & which))
        driven[name] = driven.get(name, 0) | which
    for name, high, low, value in _ASSIGN.findall(logic):
        drive(name, bits(name, high, low))
        found += [f"{name} is said of itself"] * (not high and name in (each[0] for each in _NAME.findall(value)))
    for names, value in re.findall(r"^  assign \{(.*?)\} = (.*);$", logic, re.MULTILINE):
        for each in _NAME.findall(names):
            drive(each[0], bits(*each))
            found += [f"{each[0]} is said of itself"] * (each in _NAME.findall(value))
    for process in re.findall(r"^  always .*?(?=^  (?:assign|always|hbfp_\w+|end$)|\Z)", logic,
                              re.MULTILINE | re.DOTALL):
        text = process.split("\n", 1)[-1] if process.split("\n", 1)[0].endswith("begin") else (
            process.replace("always", " ", 1))
        sets = {}
        for name, high, low in _SET.findall(text):
            sets[name] = sets.get(name, 0) | bits(name, high, low)
        for name, which in sets.items():
            drive(name, which)
    for part, pins in _PART.findall(logic):
        for pin, value in _PIN.findall(pins):
            for each in _NAME.findall(value) if pin in outputs[part] else ():
                drive(each[0], bits(*each))
    read = {name for name, _, _ in _NAME.findall(re.sub(r"\$signed|(?<=\.)\w+(?=\()", "", _PART.sub(
        lambda part: part[2], logic)))} - {"assign", "always", "posedge", "negedge", "begin", "end", "if", "else",
                                           "casez", "default", "endcase", "endmodule", "wakes"}
    found += [f"{name} is not declared" for name in sorted(read - kinds.keys())]
    return found + [f"{name} is not driven" for name, kind in kinds.items() if kind != "input" and name != "wakes"
                    and (name in read or "output" in kind) and driven.get(name, 0) != whole[name]]


def starts(body):
    """Values of registers at power-up, with how many bits and registers have each."""
    return Counter((high, start) for _, high, name, _, start in _DECLARED.findall(body) if start)


@pytest.fixture(scope="module", params=["few", pytest.param("many", marks=pytest.mark.slow)])
def texts(request):
    """Name of the top -> readable and plain text: a core and a dispatcher, or many designs of all kinds."""
    found, many = {}, request.param == "many"
    cores = [make_unit(unit, design_from_values(values)) for unit, values in drawn(6)[:6 if many else 1]]
    for component in [*cores, *(systems(len(SYSTEMS)) if many else [make_part("dispatch", {})])]:
        emitter = Emitter()
        top = emitter.convert(component)
        found[top] = verilog(emitter), verilog(emitter, "plain")
    return found


def test_every_bit_has_one_driver(texts):
    parts = {name: body for text, _ in texts.values() for name, body in modules(text).items()}
    outputs = {name: {each[2] for each in _DECLARED.findall(body) if "output" in each[0]}
               for name, body in parts.items()}
    found = {name: faults(body, outputs) for name, body in parts.items()}
    assert len(found) > 15 and {name: said for name, said in found.items() if said} == {}


def test_registers_start_alike(texts):
    for text, plain in texts.values():
        bodies = modules(plain)
        for name, body in modules(text).items():
            assert starts(body) == starts(bodies[name].replace("  = ", " = ")), name


@pytest.mark.synth
@pytest.mark.parametrize("unit", ["sequencer", "drain", pytest.param("encode", marks=pytest.mark.slow)])
def test_texts_are_the_same_logic(unit, tmp_path):
    """Of all that the list of ``python -m benchmarks.same_logic --text`` has, what takes seconds."""
    emitter = Emitter()
    top = emitter.convert(make_unit(unit, design_from_values({"rows": 2, "block": (1, 2), "depth": 4})))
    for text in TEXTS:
        (tmp_path / text).mkdir()
        (tmp_path / text / "top.v").write_text(verilog(emitter, text))
        (tmp_path / text / "manifest.json").write_text(json.dumps({"top": top, "verilog": "top.v"}))
    level, cells, found = compare(tmp_path / "plain", tmp_path / "readable", tmp_path, flat=False)
    assert found == [] and cells > 50


TEXT = """\
module top(a, o);
  input a;
  output o;
  wire b;
  assign b = a;
  assign o = ~b;
endmodule"""


@pytest.mark.parametrize("old, new, said", [
    ("b = a", "b = b", ["b is said of itself"]), ("o = ~b", "o = ~c", ["c is not declared"]),
    ("assign b = a", "assign o = a", ["o is driven twice", "b is not driven"]),
    ("wire b;", "wire b;\n  wire b;", ["b is declared twice"]), ("wire b", "wire [1:0] b", []),
    ("assign b = a", "assign b[1] = a", ["b is not driven"]),
    ("wire b;\n  assign b = a;", ("reg [1:0] b;\n  always @* begin\n    b[0] = a;\n    if (a) b[0] = 1'h0;\n"
                                     "  end\n  always @* begin\n    b[1] = a;\n  end"), []),
    ("wire b;\n  assign b = a;", ("reg [1:0] b;\n  always @* begin\n    b[0] = a;\n  end\n"
                                     "  always @* begin\n    b[1:0] = 2'h0;\n  end"), ["b is driven twice"]),
])
def test_a_fault_is_found(old, new, said):
    assert faults(TEXT, {}) == [] and faults(TEXT.replace(old, new), {}) == said


def test_icarus(texts, tmp_path):
    for text, _ in texts.values():
        (tmp_path / "top.v").write_text(text)
        quiet(["iverilog", "-g2005", "-Wall", "-Wno-timescale", "-o", "out", "top.v"], tmp_path / "top.v")


@pytest.mark.cosim
def test_verilator(texts, tmp_path):
    from cosim.simulate.verilator import find_tool
    tool = find_tool()
    for top, (text, _) in texts.items():
        assert text.startswith(HEADER) and text.endswith(FOOTER)
        (tmp_path / "top.v").write_text(text)
        command = [str(tool.program), "--lint-only", "-Wall", "--quiet", "--top-module", top, "top.v"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=tool.environment())
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
