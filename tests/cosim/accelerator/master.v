// A stand-in with the accelerator's ports, as plain as can be: it copies COUNT bursts of LEN beats from `source` to
// `target`, one burst at a time. The driver and its DRAM are tested on it. Register 0x5c plants a defect.
// Registers: 0x40 write 1: start; 0x44 busy, done, error; 0x50 source, 0x54 target, 0x58 bursts; 0x70 clears interrupt.
module master #(parameter BEAT = 32, LEN = 4, parameter [2:0] SIZE = 5) (
    input aclk, input aresetn, output reg interrupt,
    input [11:0] s_axil_awaddr, input s_axil_awvalid, output s_axil_awready,
    input [31:0] s_axil_wdata, input [3:0] s_axil_wstrb, input s_axil_wvalid, output s_axil_wready,
    output reg [1:0] s_axil_bresp, output reg s_axil_bvalid, input s_axil_bready,
    input [11:0] s_axil_araddr, input s_axil_arvalid, output s_axil_arready,
    output reg [31:0] s_axil_rdata, output reg [1:0] s_axil_rresp, output reg s_axil_rvalid, input s_axil_rready,
    output [31:0] m_axi_araddr, output [7:0] m_axi_arlen, output [2:0] m_axi_arsize, output [1:0] m_axi_arburst,
    output m_axi_arvalid, input m_axi_arready,
    input [8*BEAT-1:0] m_axi_rdata, input [1:0] m_axi_rresp, input m_axi_rlast, input m_axi_rvalid, output m_axi_rready,
    output [31:0] m_axi_awaddr, output [7:0] m_axi_awlen, output [2:0] m_axi_awsize, output [1:0] m_axi_awburst,
    output m_axi_awvalid, input m_axi_awready,
    output [8*BEAT-1:0] m_axi_wdata, output [BEAT-1:0] m_axi_wstrb, output m_axi_wlast, output m_axi_wvalid,
    input m_axi_wready,
    input [1:0] m_axi_bresp, input m_axi_bvalid, output m_axi_bready,
    output [6:0] trace_started, output [6:0] trace_completed, output [6:0] trace_waiting, output trace_running);
  localparam IDLE = 0, READ = 1, TAKE = 2, WRITE = 3, PUT = 4, ANSWER = 5;
  reg [2:0] state;
  reg [3:0] fault;
  reg [31:0] source, target, bursts, left;
  reg [1:0] beat;
  reg [7:0] age;
  reg done, error, aw_there, w_there;
  reg [11:0] aw;
  reg [31:0] w;
  reg [8*BEAT-1:0] data [0:LEN-1];

  wire start = aw_there && w_there && !s_axil_bvalid && aw == 12'h40;
  assign s_axil_awready = !aw_there && fault != 9, s_axil_wready = !w_there, s_axil_arready = !s_axil_rvalid;
  assign m_axi_araddr = source + (fault == 1 ? {30'd0, age[1:0]} * BEAT : 0) + (fault == 6 ? 1 : 0);
  assign m_axi_arvalid = state == READ && !(fault == 2 && age[1:0] == 2);
  assign m_axi_rready = state == TAKE;
  assign m_axi_awaddr = target + (fault == 3 ? 4096 - BEAT : 0);
  assign m_axi_awvalid = state == WRITE || fault == 4 && !aresetn;
  assign m_axi_wdata = data[beat] ^ (fault == 5 ? {8*BEAT{age[0]}} : 0);
  assign m_axi_wvalid = state == PUT, m_axi_wlast = beat == LEN - 1 - (fault == 7 ? 1 : 0), m_axi_wstrb = {BEAT{1'b1}};
  assign m_axi_bready = state == ANSWER;
  assign m_axi_arlen = LEN - 1, m_axi_awlen = LEN - 1, m_axi_arburst = 1, m_axi_awburst = fault == 8 ? 0 : 1;
  assign m_axi_arsize = SIZE, m_axi_awsize = SIZE;
  assign trace_started = {5'd0, state == WRITE && m_axi_awready, start};
  assign trace_completed = {5'd0, state == ANSWER && m_axi_bvalid, m_axi_rready && m_axi_rvalid && m_axi_rlast};
  assign trace_running = state != IDLE;
  assign trace_waiting = {5'd0, state == READ || state == TAKE, 1'b0};

  always @(posedge aclk) begin
    age <= age + 1;
    if (s_axil_awvalid && s_axil_awready) begin aw_there <= 1; aw <= s_axil_awaddr; end
    if (s_axil_wvalid && s_axil_wready) begin w_there <= 1; w <= s_axil_wdata; end
    if (s_axil_bvalid && (s_axil_bready || fault == 13)) s_axil_bvalid <= 0;
    if (aw_there && w_there && !s_axil_bvalid) begin
      aw_there <= 0; w_there <= 0; s_axil_bvalid <= 1;
      s_axil_bresp <= aw == 12'hffc ? 2 : 0;
      case (aw)
        12'h50: source <= w;
        12'h54: target <= w;
        12'h5c: fault <= w[3:0];
        12'h58: bursts <= w;
        12'h70: interrupt <= 0;
        default: ;
        12'h40: begin left <= bursts; state <= READ; done <= 0; error <= 0; age <= 0; end
      endcase
    end
    if (s_axil_rvalid && s_axil_rready) s_axil_rvalid <= fault == 10;
    if (s_axil_rvalid && fault == 12) s_axil_rdata <= ~s_axil_rdata;
    if (fault == 11 && state == TAKE) s_axil_bvalid <= 1;
    if (s_axil_arvalid && s_axil_arready) begin
      s_axil_rvalid <= 1;
      s_axil_rresp <= s_axil_araddr == 12'hffc ? 2 : 0;
      s_axil_rdata <= s_axil_araddr == 12'h44 ? {29'd0, error, done, state != IDLE} : source;
    end
    case (state)
      READ: if (m_axi_arvalid && m_axi_arready) begin state <= TAKE; beat <= 0; end
      TAKE: if (m_axi_rvalid) begin
        data[beat] <= m_axi_rdata;
        beat <= m_axi_rlast ? 0 : beat + 1;
        error <= error || m_axi_rresp != 0;
        if (m_axi_rlast) state <= WRITE;
      end
      WRITE: if (m_axi_awready) state <= PUT;
      PUT: if (m_axi_wready) begin
        beat <= beat == LEN - 1 ? 0 : beat + 1;
        if (beat == LEN - 1) state <= ANSWER;
      end
      default: ;
      ANSWER: if (m_axi_bvalid) begin
        error <= error || m_axi_bresp != 0;
        source <= source + LEN * BEAT; target <= target + LEN * BEAT; left <= left - 1;
        state <= left == 1 ? IDLE : READ;
        if (left == 1) begin done <= 1; interrupt <= 1; end
      end
    endcase
    if (!aresetn) begin
      state <= IDLE; interrupt <= 0; done <= 0; error <= 0; age <= 0; fault <= fault == 4 ? 4 : 0; aw_there <= 0; w_there <= 0;
      s_axil_bvalid <= 0; s_axil_rvalid <= 0;
    end
  end
endmodule
