"""What may take a wire's place: no operator may get other bits or another sign by it."""

import shutil
import subprocess

import pytest

from gen.expression import read, replaced, show
from gen.fold import COLUMNS, OPERATORS, fits, fold
from gen.module import Module
from gen.statements import Slot

#: The inputs, and their bits.
INPUTS = {"a": 3, "b": 3, "n": 2, "c": 1}
#: Bits of the wire, its value, what reads it as ``w``, bits of what takes that; whether the value may stand there,
#: and, where it may not, whether it would give other bits: some rules only keep the cells of a netlist as they are.
CASES = [
    (3, "a & b", "w | a", 3, True, False),
    (3, "a + b", "w + a", 3, True, False),
    (3, "a + b", "w + a", 4, False, True),             # a carry would come through
    (4, "a + b", "w + a", 4, True, False),             # and does where the wire has it
    (4, "a + b", "{w, c}", 5, False, True),            # but not in braces, where a sum has three bits
    (3, "a + b", "{w, c}", 4, True, False),
    (4, "a + b", "w == {c, a}", 1, True, False),
    (4, "a + b", "w < a", 1, False, True),             # the carry would be lost
    (3, "a + b", "w < {c, a}", 1, False, True),
    (4, "a + b", "|w", 1, False, True),
    (3, "~a", "w + b", 4, False, True),
    (3, "~a", "w & b", 3, True, False),
    (3, "~a", "&w", 1, True, False),
    (3, "a - b", "w < {c, a}", 1, False, True),
    (3, "a - b", "w >> n", 3, True, False),
    (3, "a - b", "w >> n", 4, False, True),
    (3, "a << n", "w >> n", 3, True, False),
    (5, "a << n", "w >> n", 5, True, False),
    (3, "a << n", "w >> n", 5, False, True),
    (2, "n + {1'h0, c}", "a << w", 3, True, False),
    (3, "n + {1'h0, c}", "a << w", 3, False, True),    # an amount stands for itself
    (3, "c ? a : b", "w ^ b", 3, True, False),
    (3, "c ? a : b", "w ^ b", 4, False, False),
    (1, "a == b", "w + n", 2, True, False),            # a bit, whatever stands around it
    (1, "|a", "w + n", 3, True, False),
    (1, "a < b", "{3{w}} & a", 3, True, False),
    (6, "{a, b}", "w + a", 7, True, False),
    (3, "a[2:0]", "w + b", 4, True, False),
    (3, "$signed(a) + $signed(b)", "w + {c, n}", 3, False, False),
    (3, "$signed(a) + $signed(b)", "$signed(w) < $signed(a)", 1, True, False),
    (4, "$signed(a) + $signed(b)", "$signed(w) < $signed(a)", 1, False, True),
    (6, "$signed(a) * $signed(b)", "$signed(w) + $signed(a)", 7, False, True),
    (3, "$signed(a)", "w + {c, a}", 4, False, False),
    (4, "$signed(a)", "w + {c, a}", 4, False, True),
    (3, "$signed(a) >>> n", "w + b", 3, False, True),   # shifts zeros in where its sign is lost
    (3, "$signed(a) >>> n", "{w, c}", 4, True, False),
    (3, "$signed(a) < $signed(b) ? a : b", "w & b", 3, True, False),
    (3, "a ^ b", "w[1] & c", 1, False, True),          # no bits of an expression
    (1, "a == b", "w ? a : b", 3, True, False),
    (3, "a - b", "w ? a : b", 3, True, False),
    (4, "a - b", "w ? a : b", 3, False, False),
    (3, "a * b", "w + b", 6, False, True),
    (6, "a * b", "w + b", 6, True, False),
    (3, "-a", "w + b", 4, False, True),
    (1, "~c", "w & a", 3, False, True),
    (1, "~c", "{3{w}} & a", 3, True, False),
]


def put(value, into):
    return show(replaced(read(into), lambda of: read(value) if of.word == "w" and of.kind == "name" else None))


@pytest.mark.parametrize("bits, value, into, taken, may, _", CASES)
def test_fits(bits, value, into, taken, may, _):
    assert fits(read(value), "w", Slot(read(into), taken), INPUTS | {"w": bits}) is may


def test_values_are_those_of_the_wire(tmp_path):
    """In a simulator, over all inputs: what may be folded gives the same bits, and what would not, does not."""
    assert shutil.which("iverilog"), "iverilog is missing: apt-get install iverilog"
    lines, found = [f"  reg [{bits - 1}:0] {name};" for name, bits in INPUTS.items()], range(len(CASES))
    for n, (bits, value, into, taken, _, _) in enumerate(CASES):
        reader = into.replace("w", f"w{n}") if "[" in into else put(f"w{n}", into)
        folded = put(value, into) if "w[" not in into else f"(~({value})) & c"
        lines += [f"  wire [{bits - 1}:0] w{n} = {value};", f"  wire [{taken - 1}:0] x{n} = {reader};",
                  f"  wire [{taken - 1}:0] y{n} = {folded};", f"  reg differs{n} = 0;"]
    lines += ["  integer i;", "  initial begin", "    for (i = 0; i < 512; i = i + 1) begin",
              "      {a, b, n, c} = i; #1;", *(f"      if (x{n} !== y{n}) differs{n} = 1;" for n in found), "    end",
              *(f"    $display(\"%b\", differs{n});" for n in found), "  end"]
    (tmp_path / "bench.v").write_text("\n".join(["module bench;", *lines, "endmodule", ""]))
    subprocess.run(["iverilog", "-g2005", "-o", "bench", "bench.v"], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert [case for each, case in zip(done.stdout.split(), CASES, strict=True) if int(each) != case[-1]] == []


TEXT = """\
module top(a, b, c, o, p);
  input [2:0] a;
  wire [2:0] a;
  input [2:0] b;
  wire [2:0] b;
  input c;
  wire c;
  output [3:0] o;
  wire [3:0] o;
  output p;
  wire p;
  wire [2:0] \\$1 ;
  wire [3:0] \\$2 ;
  wire \\$3 ;
  wire [2:0] \\$4 ;
  wire [2:0] named;
  assign \\$1  = a & b;
  assign \\$2  = \\$1  + b;
  assign \\$3  = | \\$2 ;
  assign o = \\$2  - { \\$3 , \\$4  };
  assign \\$4  = ~ b;
  assign named = a ^ b;
  assign p = \\$4 [1] & named == b;
endmodule
"""


def folded(text):
    module = Module(text)
    fold(module)
    return [line for item in module.items for line in item.lines()], module


def test_what_is_read_once_is_folded():
    """``$1`` is in a wider sum, ``$2`` read twice, ``$4`` by its bits, and ``named`` has a name."""
    lines, module = folded(TEXT)
    assert lines == ["  assign \\$1  = a & b;", "  assign \\$2  = \\$1  + b;", "  assign o = \\$2  - {|\\$2 , \\$4 };",
                     "  assign \\$4  = ~b;", "  assign named = a ^ b;", "  assign p = \\$4 [1] & (named == b);"]
    assert "$3" not in module.declared and "$1" in module.declared


def test_chains_are_folded_up_to_a_limit():
    count = 3 * OPERATORS
    names = "".join(f"  wire \\${n} ;\n" for n in range(1, count))
    first = "  assign \\$1  = a[0] & b[0];\n"
    links = "".join(f"  assign \\${n}  = \\${n - 1}  ^ b[{n % 3}];\n" for n in range(2, count))
    head, tail = TEXT.split("  wire [2:0] \\$1")[0], f"  assign o = \\${count - 1}  ? 4'h1 : 4'h2;\nendmodule\n"
    lines, _ = folded(head + names + first + links + tail)
    assert 3 <= len(lines) <= 6 and all(len(line) <= COLUMNS for line in lines)
