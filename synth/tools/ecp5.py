"""Yosys scripts that map a whole design to an ECP5, with as many DSP blocks as it has."""

from collections.abc import Mapping
from typing import Any

#: Bits of the operands of a DSP block.
DSP_BITS = 18, 18
#: Flattened, and the operands of multipliers as narrow as they may be; what stands in ``muls.il`` is then chosen from.
COARSE = """{read}synth_ecp5 -top {top} -run :coarse
proc -latches error
flatten
opt_expr
opt_clean
opt -nodffe -nosdff
wreduce
peepopt
opt_clean
dump -n -o muls.il t:$mul
write_rtlil coarse.il
"""
#: Of :data:`MAPPED`: no LUTs of more than four inputs, which are several side by side and take so many wires to one
#: place that nextpnr finds no way for all of a large design.
NARROW = " -nowidelut"
#: Multipliers of ``soft.txt`` become carry chains, all others DSP blocks.
MAPPED = """read_rtlil coarse.il
read_verilog -lib -specify +/lattice/cells_sim_ecp5.v +/lattice/cells_bb_ecp5.v
select -set soft -read soft.txt
techmap -map soft.v @soft
clean
synth_ecp5{luts} -top {top} -run coarse:
opt_clean -purge
tee -q -o stat.json stat -json
write_json mapped.json
"""
#: A multiplier of carry chains. Two partial products at a time are added in the LUTs of the chain that forms them, and
#: the pairs in a tree. The last pair subtracts its upper row where operands are signed.
SOFT = """(* techmap_celltype = "$mul" *)
module soft_mul (A, B, Y);
  parameter A_SIGNED = 0;
  parameter B_SIGNED = 0;
  parameter A_WIDTH = 1;
  parameter B_WIDTH = 1;
  parameter Y_WIDTH = 1;
  input [A_WIDTH-1:0] A;
  input [B_WIDTH-1:0] B;
  output [Y_WIDTH-1:0] Y;
  localparam SIGNED = A_SIGNED && B_SIGNED;
  localparam PAIRS = (B_WIDTH + 1) / 2;
  localparam WIDTH = A_WIDTH + 2;             // of a pair
  localparam CELLS = (WIDTH + 1) / 2;
  localparam FULL = A_WIDTH + 2 * PAIRS;      // of the product
  wire top = SIGNED ? A[A_WIDTH-1] : 1'b0;
  wire [2*CELLS:0] a = {{(2 * CELLS + 1 - A_WIDTH){top}}, A};
  wire [2*PAIRS-1:0] b = {SIGNED ? B[B_WIDTH-1] : 1'b0, B};
  localparam LEVELS = $clog2(PAIRS);
  wire [(LEVELS+1)*PAIRS*FULL-1:0] sums;      // of each level, extended to the width of the product
  genvar p, n, l;
  generate
    for (p = 0; p < PAIRS; p = p + 1) begin:pair
      localparam LAST = SIGNED && p == PAIRS - 1;
      wire [2*CELLS-1:0] sum;
      wire [CELLS:0] carry;
      assign carry[0] = LAST;
      for (n = 0; n < CELLS; n = n + 1) begin:cell
        // Generate is A & B in front of a carry, so the row that is taken off is in front.
        CCU2C #(.INIT0(LAST ? 16'h8777 : 16'h7888), .INIT1(LAST ? 16'h8777 : 16'h7888),
                .INJECT1_0("NO"), .INJECT1_1("NO")) chain (
          .CIN(carry[n]), .COUT(carry[n+1]), .S0(sum[2*n]), .S1(sum[2*n+1]),
          .A0(LAST ? (n ? a[2*n-1] : 1'b0) : a[2*n]), .B0(LAST ? b[2*p+1] : b[2*p]),
          .C0(LAST ? a[2*n] : (n ? a[2*n-1] : 1'b0)), .D0(LAST ? b[2*p] : b[2*p+1]),
          .A1(LAST ? a[2*n] : a[2*n+1]), .B1(LAST ? b[2*p+1] : b[2*p]),
          .C1(LAST ? a[2*n+1] : a[2*n]), .D1(LAST ? b[2*p] : b[2*p+1]));
      end
      assign sums[p*FULL +: FULL] = {{FULL{SIGNED && sum[WIDTH-1]}}, sum[WIDTH-1:0]};
    end
    for (l = 0; l < LEVELS; l = l + 1) begin:level
      localparam SPACE = 2 << l;              // bits between two neighbours
      localparam UPPER = A_WIDTH + SPACE < FULL - SPACE ? A_WIDTH + SPACE : FULL - SPACE;
      for (p = 0; p < PAIRS; p = p + (2 << l)) begin:node
        wire [FULL-1:0] low = sums[(l*PAIRS+p)*FULL +: FULL];
        if (p + (1 << l) < PAIRS) begin
          wire [FULL-1:0] high = sums[(l*PAIRS+p+(1<<l))*FULL +: FULL];
          wire [UPPER-1:0] upper, differ, carry;
          \\$alu #(.A_SIGNED(SIGNED), .B_SIGNED(SIGNED), .A_WIDTH(FULL - SPACE), .B_WIDTH(UPPER), .Y_WIDTH(UPPER)) add (
            .A(low[FULL-1:SPACE]), .B(high[UPPER-1:0]), .CI(1'b0), .BI(1'b0), .Y(upper), .X(differ), .CO(carry));
          assign sums[((l+1)*PAIRS+p)*FULL +: FULL] = {{FULL{SIGNED && upper[UPPER-1]}}, upper, low[SPACE-1:0]};
        end else
          assign sums[((l+1)*PAIRS+p)*FULL +: FULL] = low;
      end
    end
  endgenerate
  wire [FULL-1:0] product = sums[LEVELS*PAIRS*FULL +: FULL];
  assign Y = {{Y_WIDTH{SIGNED && product[FULL-1]}}, product};
endmodule
"""


def open_ends(module: Mapping[str, Any]) -> None:
    """Take the carry out of each last cell of a chain off its wire, where nothing reads that.

    nextpnr brings every carry that ends in a wire out through one more cell, whether it is read or not.

    Parameters
    ----------
    module : dict
        A module of a netlist, as Yosys' ``write_json`` writes it; changed in place.
    """
    read = {bit for cell in module["cells"].values() for port, bits in cell["connections"].items()
            if cell["port_directions"].get(port) != "output" for bit in bits}
    read.update(bit for port in module["ports"].values() if port["direction"] != "input" for bit in port["bits"])
    for cell in module["cells"].values():
        if cell["type"] == "CCU2C" and read.isdisjoint(cell["connections"]["COUT"]):
            cell["connections"]["COUT"] = ["x"]
