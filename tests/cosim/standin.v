// A stand-in with the streams of an integer core, written as plainly as they can be met: the benches'
// own machinery is tested on it, so that a fault there is not mistaken for one of the generator.
// Parameters are set by the test; FAULT plants a defect.
module standin #(parameter R = 4, C = 3, W = 8, A = 24, D = 16, FAULT = 0) (
    input clk, input rst,
    input [20:0] i_cmd__payload, input i_cmd__valid, output i_cmd__ready,   // rows 5, tiles 16
    input [R*W-1:0] i_x__payload, input i_x__valid, output i_x__ready,
    input [C*W-1:0] i_w__payload, input i_w__valid, output i_w__ready,
    output [C*A:0] o__payload, output o__valid, input o__ready,
    output reg error);
  localparam IDLE = 0, LOAD = 1, MULTIPLY = 2, SEND = 3;
  reg [1:0] state;
  reg [4:0] rows, row;
  reg [15:0] tiles, beat;
  reg signed [W-1:0] weight [0:R*C-1];
  reg signed [A-1:0] sums [0:D*C-1];
  reg [7:0] taken;
  integer r, c;
  reg signed [A-1:0] total;

  wire wrong = i_cmd__payload[4:0] == 0 || i_cmd__payload[4:0] > D || i_cmd__payload[20:5] == 0
      || i_cmd__payload[20:5] > 256;    // growth 8
  assign i_cmd__ready = state == IDLE, i_w__ready = state == LOAD, i_x__ready = state == MULTIPLY;
  assign o__valid = state == SEND && !(FAULT == 1 && taken[2:0] == 3) && FAULT != 5;
  assign o__payload[C*A] = row == rows - 5'd1;
  genvar g;
  generate for (g = 0; g < C; g = g + 1) begin : column
    assign o__payload[g*A +: A] = sums[row*C + g] ^ ((FAULT == 2 && taken == 5) || (FAULT == 3 && taken[0]) ? 1 : 0);
  end endgenerate

  always @(posedge clk) begin
    taken <= FAULT == 3 || o__valid && o__ready || FAULT == 1 ? taken + 1 : taken;
    case (state)
      IDLE: if (i_cmd__valid) begin
        error <= error | wrong;
        if (!wrong) begin
          state <= LOAD; rows <= i_cmd__payload[4:0]; tiles <= i_cmd__payload[20:5];
          for (r = 0; r < D*C; r = r + 1) sums[r] <= 0;
        end
      end
      LOAD: if (i_w__valid) begin
        for (c = 0; c < C; c = c + 1) weight[beat*C + c] <= i_w__payload[c*W +: W];
        beat <= beat == R - 1 ? 0 : beat + 1;
        if (beat == R - 1) state <= MULTIPLY;
      end
      MULTIPLY: if (i_x__valid) begin
        for (c = 0; c < C; c = c + 1) begin
          total = sums[row*C + c];
          for (r = 0; r < R; r = r + 1) total = total + $signed(i_x__payload[r*W +: W]) * weight[r*C + c];
          sums[row*C + c] <= total;
        end
        row <= row == rows - 1 ? 0 : row + 1;
        if (row == rows - 1) begin
          tiles <= tiles - 1;
          state <= tiles == 1 ? SEND : LOAD;
        end
      end
      SEND: if (o__valid && o__ready) begin
        row <= row == rows - 1 ? 0 : row + 1;
        if (row == rows - 1) state <= FAULT == 4 ? SEND : IDLE;
      end
    endcase
    if (rst) begin state <= IDLE; row <= 0; beat <= 0; error <= 0; taken <= 0; end
  end
endmodule
