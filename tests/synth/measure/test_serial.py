"""A design behind six pins: every bit that is shifted in arrives, and every bit that comes is shifted out."""

import random
import re

import pytest

from hbfp.manifest import Port, Stream
from synth.measure.serial import chains, wrapper
from synth.tools import yosys

PORTS = {"a__payload": Port("in", 5), "a__valid": Port("in", 1), "a__ready": Port("out", 1), "error": Port("out", 2),
         "b__payload": Port("out", 5), "b__valid": Port("out", 1), "b__ready": Port("in", 1), "mode": Port("in", 3)}
STREAMS = {"a": Stream("in", 5, ()), "b": Stream("out", 5, ())}
#: One word of a buffer: what comes at ``a`` plus ``mode`` leaves at ``b``; ``error`` shows two bits of ``mode``.
TOY = """module toy(input clk, input rst, input [4:0] a__payload, input a__valid, output a__ready, output [1:0] error,
           output [4:0] b__payload, output reg b__valid, input b__ready, input [2:0] mode);
  reg [4:0] word;
  assign a__ready = ~b__valid, error = mode[2:1], b__payload = b__valid ? word : ~word;
  always @(posedge clk)
    if (rst) b__valid <= 0;
    else if (a__valid & a__ready) begin b__valid <= 1; word <= a__payload + mode; end
    else if (b__ready) b__valid <= 0;
endmodule
"""


def packed(side, values):
    """Bits of a chain, the first one to be shifted in first."""
    word = sum(values.get(place.port, 0) << place.offset for place in side)
    return [word >> n & 1 for n in reversed(range(side[-1].offset + side[-1].width))]


def unpacked(side, bits):
    word = sum(bit << n for n, bit in enumerate(reversed(bits)))
    return {place.port: word >> place.offset & (1 << place.width) - 1 for place in side}


def play(folder, rounds):
    """Shift in each of ``rounds``, let streams go, and what is shifted out behind each."""
    given, kept = chains(PORTS)
    long = max(side[-1].offset + side[-1].width for side in (given, kept))
    pins, marks = {name: [] for name in ("rst", "shift", "go", "i")}, []

    def cycle(times=1, **high):
        for name, levels in pins.items():
            levels += [high.get(name, 0)] * times
    cycle(3, rst=1)
    cycle(3)
    for values in [*rounds, {}]:
        bits = packed(given, values)
        marks.append(len(pins["i"]) + 1)    # `o` shows the top bit when `shift` has passed its register
        for bit in [0] * (long - len(bits)) + bits:
            cycle(shift=1, i=bit)
        cycle(2)
        cycle(go=1)
        cycle(6)
    count = len(pins["i"])
    (folder / "all.v").write_text(TOY + wrapper("toy", PORTS, STREAMS))
    levels = " ".join(f"-set-at {step + 1} {name} {level}" for name, each in pins.items()
                      for step, level in enumerate(each))
    yosys.run("read_verilog -sv all.v\nprep -top serial -flatten\n"
              f"sat -seq {count} -set-init-zero {levels} -show o serial\n", folder)
    table = (folder / "yosys.log").read_text().rpartition("Time Signal Name")[2]
    seen = [int(bit) for bit in re.findall(r"^ +\d+ \\o .* ([01])$", table, re.MULTILINE)]
    assert len(seen) == count
    return [unpacked(kept, seen[mark:mark + long][:kept[-1].offset + kept[-1].width]) for mark in marks[1:]]


@pytest.mark.synth
def test_words_go_in_and_come_out(tmp_path):
    rng = random.Random(1)
    rounds = [{"a__payload": rng.randrange(32), "a__valid": 1, "b__ready": 1, "mode": rng.randrange(8)}
              for _ in range(8)]
    for values, got in zip(rounds, play(tmp_path, rounds), strict=True):
        assert got == {"a__ready": 1, "b__valid": 1, "error": values["mode"] >> 1,
                       "b__payload": (values["a__payload"] + values["mode"]) % 32}


@pytest.mark.synth
def test_only_streams_that_are_asked_for_move_a_word(tmp_path):
    idle, offer, take = {}, {"a__payload": 9, "a__valid": 1, "mode": 2}, {"b__ready": 1}
    got = play(tmp_path, [idle, take, offer, offer | {"a__payload": 30}, take, take])
    assert [(each["a__ready"], each["b__valid"]) for each in got] == [
        (0, 0), (0, 0), (1, 0), (0, 0), (0, 1), (0, 0)]
    assert got[4]["b__payload"] == 11


def test_every_port_has_bits_of_its_own():
    text = wrapper("toy", PORTS, STREAMS)
    assert set(re.findall(r"\.(\w+)\(", text.split(" dut (")[1])) == {"clk", "rst", *PORTS}
    for side, direction in zip(chains(PORTS), ("in", "out"), strict=True):
        assert [(place.port, place.width) for place in side] == [
            (name, port.width) for name, port in PORTS.items() if port.direction == direction]
        assert [place.offset for place in side] == [sum(each.width for each in side[:n]) for n in range(len(side))]
