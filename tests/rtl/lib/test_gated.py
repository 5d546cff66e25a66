# amaranth: UnusedElaboratable=no
"""A word behind a gated clock is one behind an enable: in Amaranth's simulator, and in Verilog beside its registers."""

import random
import re
import shutil
import subprocess

import pytest
from amaranth.sim import Simulator

from gen.emit import Emitter, verilog
from rtl.lib.gated import Gated

BENCH = """
module bench;
  reg clk = 0, load = 0, differs = 0;
  reg [3:0] i = 0, held;
  wire [3:0] o;
  integer cycle, loads = 0;
  hbfp_gated_w4 dut (.clk(clk), .rst(1'b0), .load(load), .i(i), .o(o));
  always #5 clk = ~clk;
  always @(posedge clk) begin
    if (load) begin held <= i; loads <= loads + 1; end
    if (loads != 0 && o !== held) differs <= 1;
    load <= $random;
    i <= $random;
  end
  initial begin #5000 $display("%0d loads, %0d", loads, differs); $finish; end
endmodule
"""


def test_holds_but_where_it_loads():
    dut, rng, kept, seen = Gated(8), random.Random(1), 0, []
    sim = Simulator(dut)
    sim.add_clock(1e-6)

    async def bench(ctx):
        nonlocal kept
        for _ in range(50):
            load, value = rng.random() < 0.5, rng.getrandbits(8)
            ctx.set(dut.load, load)
            ctx.set(dut.i, value)
            kept = value if load else kept
            await ctx.tick()
            seen.append((ctx.get(dut.o), kept))
    sim.add_testbench(bench)
    sim.run()
    assert len(seen) == 50 and [got for got, _ in seen] == [want for _, want in seen]


def run(text, folder):
    """What the bench says of a module's text, without values at power-up."""
    assert shutil.which("iverilog"), "iverilog is missing: apt-get install iverilog"
    text, count = re.subn(r"^(  (?:output )?reg [^=\n]*) = [^;]*;", r"\1;", text, flags=re.MULTILINE)
    assert count == 2
    (folder / "bench.v").write_text(text + BENCH)
    subprocess.run(["iverilog", "-g2005", "-o", "bench", "bench.v"], cwd=folder, check=True)
    return subprocess.run(["vvp", "-n", "bench"], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("style", ["readable", "plain"])
def test_no_race_in_four_states(style, tmp_path):
    """Data changes at the edge that rises the gated clock, and nothing is defined at the start."""
    emitter = Emitter()
    emitter.convert(Gated(4))
    text = verilog(emitter, style)
    loads, differs = re.fullmatch(r"(\d+) loads, (\d)\n", run(text, tmp_path)).groups()
    assert int(loads) > 200 and differs == "0"
    assert text.count("always @(negedge clk)") == 1 and run(
        text.replace("negedge", "posedge"), tmp_path).endswith(", 1\n")
