// A register that nothing resets or writes: what it holds at the start is what the simulator gave it.
module before_reset (input clk, input rst, output [31:0] value);
  reg [31:0] register;
  assign value = register;
  always @(posedge clk) if (rst && !rst) register <= 0;
endmodule
