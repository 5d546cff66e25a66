"""Comments that say what is in the bits of packed names: the layouts of the source, in words."""

import re

import pytest

from gen.emit import Emitter, verilog
from gen.fields import explained, fields
from gen.manifest import manifest
from gen.module import Declaration, Module
from gen.units import make_part, make_unit
from hbfp.options import design_from_values
from rtl.lib.layout import ArrayLayout, StructLayout

PAIR = StructLayout({"first": 3, "more": 1})


@pytest.mark.parametrize("layout, said", [
    (PAIR, "first 2:0, more 3"),
    (StructLayout({"pair": PAIR, "last": 2}), "pair 3:0 {first 2:0, more 3}, last 5:4"),
    (StructLayout({"many": ArrayLayout(4, 8), "one": ArrayLayout(4, 1)}), "many 31:0 (8 of 4 bits), one 35:32"),
    (StructLayout({"pairs": ArrayLayout(PAIR, 2), "none": 0}), "pairs 7:0 (2 of {first 2:0, more 3})"),
])
def test_a_layout_in_words(layout, said):
    assert layout.bits == said


def test_fields_by_their_bits():
    entry = Declaration({"wire"}, 8, notes=['fields = "pair 3:0 {first 2:0, more 3}, many 6:4 (3 of 1 bit), last 7"'])
    assert fields(entry) == {(3, 0): "pair", (6, 4): "many", (7, 7): "last"} and fields(Declaration()) == {}


def test_names_of_equal_fields_share_a_comment():
    module = Module("""\
module top(a, b, c);
  (* fields = "low 1:0, high 2" *)
  input [2:0] a;
  (* fields = "low 1:0, high 2" *)
  wire [2:0] a;
  (* fields = "low 1:0, high 2" *)
  output [2:0] b;
  (* enum_base_type = "State" *)
  (* enum_value_10 = "DONE" *)
  (* enum_value_00 = "IDLE" *)
  output [1:0] c;
  assign b = a;
  assign c = a[1:0];
endmodule""")
    explained(module)
    assert module.comments == ["  // Bits of a, b: low 1:0, high 2.", "  // Values of c: 0 IDLE, 2 DONE."]
    assert not any(entry.notes for entry in module.declared.values())


@pytest.mark.parametrize("make", [lambda: make_unit("core", design_from_values({"rows": 2, "block": (1, 2)})),
                                  lambda: make_part("dispatch", {"depth": 4})], ids=["core", "dispatch"])
def test_comments_are_what_the_manifest_says(make):
    """Of all streams of the top: each field has its bits in a comment, and the plain text has no such lines."""
    emitter = Emitter()
    top = emitter.convert(make())
    text = verilog(emitter)
    head = re.search(rf"^module {top}\(.*?^  input", text, re.MULTILINE | re.DOTALL)[0]
    said = re.findall(r"Bits of ([\w, ]+): (.*?)\.(?: //|\n| *input|$)", re.sub(r"\n  //   ", " ", head))
    packed = {name: text for names, text in said for name in names.split(", ")}
    streams = manifest(emitter, top, text).streams
    some = 0
    for name, stream in streams.items():
        for field in stream.fields if len(stream.fields) > 1 else ():
            high = field.offset + field.width * field.count - 1
            bits = f"{high}:{field.offset}" if high > field.offset else f"{high}"
            assert re.search(rf"\b{field.name} {bits}\b", packed[f"{name}__payload"]), (name, field)
            some += 1
    assert some > 4
    assert "Bits of" not in verilog(emitter, "plain") and "fields =" not in text + verilog(emitter, "plain")
