// A host and a DRAM before an accelerator, for a simulator with four states. What a channel of theirs does not offer is
// undefined, and so is DRAM that nobody wrote. Every output must be defined in every cycle, a payload while it is valid,
// data of writes where they have strobes; what is offered must stay until it is taken, all of it.
`timescale 1ns / 1ns
module bench;
  parameter BEAT = 32, BEATS = 1, ADDRESS = 8, STEPS = 1, PAUSES = 0;
  localparam WRITE = 0, READ = 1, AWAIT = 2, IDLE = 3;    // what the host does, step by step
  localparam MOST = 16, PATIENCE = 100000;

  reg aclk = 0, aresetn = 0;
  reg [ADDRESS-1:0] s_axil_awaddr, s_axil_araddr;
  reg s_axil_awvalid = 0, s_axil_wvalid = 0, s_axil_bready = 0, s_axil_arvalid = 0, s_axil_rready = 0;
  reg [31:0] s_axil_wdata;
  reg [3:0] s_axil_wstrb;
  wire s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_arready, s_axil_rvalid;
  wire [1:0] s_axil_bresp, s_axil_rresp;
  wire [31:0] s_axil_rdata;
  reg m_axi_arready = 0, m_axi_rlast, m_axi_rvalid = 0, m_axi_awready = 0, m_axi_wready = 0, m_axi_bvalid = 0;
  reg [8*BEAT-1:0] m_axi_rdata;
  reg [1:0] m_axi_rresp, m_axi_bresp;
  wire [63:0] m_axi_araddr, m_axi_awaddr;
  wire [7:0] m_axi_arlen, m_axi_awlen;
  wire [18:0] ar_rest, aw_rest;
  wire m_axi_arvalid, m_axi_rready, m_axi_awvalid, m_axi_wlast, m_axi_wvalid, m_axi_bready, interrupt;
  wire [8*BEAT-1:0] m_axi_wdata;
  wire [BEAT-1:0] m_axi_wstrb;
  wire [21:0] traces;

  `TOP dut (
      .aclk(aclk), .aresetn(aresetn), .interrupt(interrupt),
      .s_axil_awaddr(s_axil_awaddr), .s_axil_awprot(3'bx), .s_axil_awvalid(s_axil_awvalid),
      .s_axil_awready(s_axil_awready), .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb),
      .s_axil_wvalid(s_axil_wvalid), .s_axil_wready(s_axil_wready), .s_axil_bresp(s_axil_bresp),
      .s_axil_bvalid(s_axil_bvalid), .s_axil_bready(s_axil_bready), .s_axil_araddr(s_axil_araddr),
      .s_axil_arprot(3'bx), .s_axil_arvalid(s_axil_arvalid), .s_axil_arready(s_axil_arready),
      .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp), .s_axil_rvalid(s_axil_rvalid),
      .s_axil_rready(s_axil_rready),
      .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen), .m_axi_arid(ar_rest[0]), .m_axi_arsize(ar_rest[3:1]),
      .m_axi_arburst(ar_rest[5:4]), .m_axi_arlock(ar_rest[6]), .m_axi_arcache(ar_rest[10:7]),
      .m_axi_arprot(ar_rest[13:11]), .m_axi_arqos(ar_rest[17:14]), .m_axi_arvalid(m_axi_arvalid),
      .m_axi_arready(m_axi_arready), .m_axi_rid(1'bx), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(m_axi_rresp),
      .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready),
      .m_axi_awaddr(m_axi_awaddr), .m_axi_awlen(m_axi_awlen), .m_axi_awid(aw_rest[0]), .m_axi_awsize(aw_rest[3:1]),
      .m_axi_awburst(aw_rest[5:4]), .m_axi_awlock(aw_rest[6]), .m_axi_awcache(aw_rest[10:7]),
      .m_axi_awprot(aw_rest[13:11]), .m_axi_awqos(aw_rest[17:14]), .m_axi_awvalid(m_axi_awvalid),
      .m_axi_awready(m_axi_awready), .m_axi_wdata(m_axi_wdata), .m_axi_wstrb(m_axi_wstrb), .m_axi_wlast(m_axi_wlast),
      .m_axi_wvalid(m_axi_wvalid), .m_axi_wready(m_axi_wready), .m_axi_bid(1'bx), .m_axi_bresp(m_axi_bresp),
      .m_axi_bvalid(m_axi_bvalid), .m_axi_bready(m_axi_bready),
      .trace_started(traces[6:0]), .trace_completed(traces[13:7]), .trace_waiting(traces[20:14]),
      .trace_running(traces[21]));
  assign ar_rest[18] = 0, aw_rest[18] = 0;
  always #5 aclk = ~aclk;

  integer seed = 1, cycle = 0, quiet = 0, lane;
  reg [8*BEAT-1:0] dram [0:BEATS-1], strobed, was;
  reg [71:0] steps [0:STEPS-1];
  reg moved_r = 0, moved_b = 0, aw_over = 0, w_over = 0, ar_over = 0;
  // Bursts that wait: number of the next beat, beats to come. Writes likewise, and responses.
  integer r_at [0:MOST-1], r_left [0:MOST-1], reads = 0, r_first = 0;
  integer w_at [0:MOST-1], w_left [0:MOST-1], writes = 0, w_first = 0, answers = 0;
  integer step = 0, idle = 0;
  wire [7:0] what = steps[step][71:64];
  wire [31:0] address = steps[step][63:32], data = steps[step][31:0];

  `define STILL ({$random(seed)} % 100 < PAUSES)

  task fail(input [8*60-1:0] message);
    begin
      $display("%0s in cycle %0d", message, cycle);
      $finish(0);
    end
  endtask

  task drive;
    begin
      if (!m_axi_rvalid || moved_r) begin
        m_axi_rvalid = reads != 0 && !`STILL;
        m_axi_rdata = m_axi_rvalid ? dram[r_at[r_first]] : {8 * BEAT{1'bx}};
        m_axi_rlast = m_axi_rvalid ? r_left[r_first] == 1 : 1'bx;
        m_axi_rresp = m_axi_rvalid ? 2'd0 : 2'bx;
      end
      if (!m_axi_bvalid || moved_b) begin
        m_axi_bvalid = answers != 0 && !`STILL;
        m_axi_bresp = m_axi_bvalid ? 2'd0 : 2'bx;
      end
      m_axi_arready = reads < MOST && !`STILL;
      m_axi_awready = writes < MOST && !`STILL;
      m_axi_wready = writes != 0 && !`STILL;
      s_axil_awvalid = what == WRITE && !aw_over && (s_axil_awvalid || !`STILL);
      s_axil_wvalid = what == WRITE && !w_over && (s_axil_wvalid || !`STILL);
      s_axil_arvalid = what == READ && !ar_over && (s_axil_arvalid || !`STILL);
      s_axil_bready = what == WRITE && !`STILL;
      s_axil_rready = what == READ && !`STILL;
      s_axil_awaddr = s_axil_awvalid ? address : {ADDRESS{1'bx}};
      s_axil_araddr = s_axil_arvalid ? address : {ADDRESS{1'bx}};
      s_axil_wdata = s_axil_wvalid ? data : 32'bx;
      s_axil_wstrb = s_axil_wvalid ? 4'd15 : 4'bx;
    end
  endtask

  // Names of outputs, and of channels, are those of the ports.
  `define DEFINED(name) if (^name === 1'bx) fail({`"name`", " is undefined"});
  `define STAYS(channel, payload) \
      `DEFINED(channel``valid) \
      if (waits_``channel && (!channel``valid || {payload} !== kept_``channel)) \
        fail({`"channel`", " changed while it waited"}); \
      waits_``channel = channel``valid && !channel``ready; kept_``channel = {payload};
  reg waits_s_axil_b = 0, waits_s_axil_r = 0, waits_m_axi_ar = 0, waits_m_axi_aw = 0, waits_m_axi_w = 0;
  reg [1:0] kept_s_axil_b;
  reg [33:0] kept_s_axil_r;
  reg [90:0] kept_m_axi_ar, kept_m_axi_aw;
  reg [9*BEAT:0] kept_m_axi_w;

  task check;
    begin
      `DEFINED(s_axil_awready) `DEFINED(s_axil_wready) `DEFINED(s_axil_arready) `DEFINED(interrupt) `DEFINED(traces)
      `DEFINED(m_axi_rready) `DEFINED(m_axi_bready)
      `STAYS(s_axil_b, s_axil_bresp)
      `STAYS(s_axil_r, {s_axil_rdata, s_axil_rresp})
      `STAYS(m_axi_ar, {m_axi_araddr, m_axi_arlen, ar_rest})
      `STAYS(m_axi_aw, {m_axi_awaddr, m_axi_awlen, aw_rest})
      `STAYS(m_axi_w, {m_axi_wdata, m_axi_wstrb, m_axi_wlast})
      if (s_axil_bvalid) begin `DEFINED(s_axil_bresp) end
      if (s_axil_rvalid) begin `DEFINED(s_axil_rresp) `DEFINED(s_axil_rdata) end
      if (m_axi_arvalid) begin `DEFINED(m_axi_araddr) `DEFINED(m_axi_arlen) `DEFINED(ar_rest) end
      if (m_axi_awvalid) begin `DEFINED(m_axi_awaddr) `DEFINED(m_axi_awlen) `DEFINED(aw_rest) end
      if (m_axi_wvalid) begin
        `DEFINED(m_axi_wstrb) `DEFINED(m_axi_wlast)
        for (lane = 0; lane < BEAT; lane = lane + 1)
          strobed[8*lane+:8] = m_axi_wstrb[lane] ? m_axi_wdata[8*lane+:8] : 8'd0;
        if (^strobed === 1'bx) fail("m_axi_wdata is undefined");
      end
      if (m_axi_arvalid && m_axi_araddr / BEAT >= BEATS) fail("m_axi_araddr is beyond the DRAM");
      if (m_axi_awvalid && m_axi_awaddr / BEAT >= BEATS) fail("m_axi_awaddr is beyond the DRAM");
    end
  endtask

  task dram_moves;
    begin
      moved_r = m_axi_rvalid && m_axi_rready;
      moved_b = m_axi_bvalid && m_axi_bready;
      if (moved_r) begin
        r_at[r_first] = r_at[r_first] + 1;
        r_left[r_first] = r_left[r_first] - 1;
        if (m_axi_rlast) begin
          r_first = (r_first + 1) % MOST;
          reads = reads - 1;
        end
      end
      if (m_axi_arvalid && m_axi_arready) begin
        r_at[(r_first + reads) % MOST] = m_axi_araddr / BEAT;
        r_left[(r_first + reads) % MOST] = m_axi_arlen + 1;
        reads = reads + 1;
      end
      if (moved_b) answers = answers - 1;
      if (m_axi_wvalid && m_axi_wready) begin
        was = dram[w_at[w_first]];
        for (lane = 0; lane < BEAT; lane = lane + 1)
          if (m_axi_wstrb[lane]) was[8*lane+:8] = m_axi_wdata[8*lane+:8];
        dram[w_at[w_first]] = was;
        if (m_axi_wlast !== (w_left[w_first] == 1)) fail("m_axi_wlast is wrong");
        w_at[w_first] = w_at[w_first] + 1;
        w_left[w_first] = w_left[w_first] - 1;
        if (m_axi_wlast) begin
          w_first = (w_first + 1) % MOST;
          writes = writes - 1;
          answers = answers + 1;
        end
      end
      if (m_axi_awvalid && m_axi_awready) begin
        w_at[(w_first + writes) % MOST] = m_axi_awaddr / BEAT;
        w_left[(w_first + writes) % MOST] = m_axi_awlen + 1;
        writes = writes + 1;
      end
    end
  endtask

  task host_moves;
    reg over;
    begin
      over = 0;
      idle = idle + 1;
      if (s_axil_awvalid && s_axil_awready) aw_over = 1;
      if (s_axil_wvalid && s_axil_wready) w_over = 1;
      if (s_axil_arvalid && s_axil_arready) ar_over = 1;
      if (what == WRITE) over = s_axil_bvalid && s_axil_bready;
      if (what == READ && s_axil_rvalid && s_axil_rready) begin
        $display("%h %h", address, s_axil_rdata);
        over = 1;
      end
      if (what == AWAIT) over = interrupt;
      if (what == IDLE) over = idle > data;
      quiet = over ? 0 : quiet + 1;
      if (quiet > PATIENCE) fail("nothing more happens");
      if (over) begin
        step = step + 1;
        idle = 0;
        aw_over = 0;
        w_over = 0;
        ar_over = 0;
      end
    end
  endtask

  initial begin
    $readmemh("dram.hex", dram);
    $readmemh("steps.hex", steps);
    repeat (4) @(negedge aclk);
    aresetn = 1;
    while (step < STEPS) begin
      drive;
      #4 check;    // everything has settled; the edge comes next
      dram_moves;
      host_moves;
      cycle = cycle + 1;
      @(negedge aclk);
    end
    $writememh("after.hex", dram);
    $display("done");
    $finish(0);
  end
endmodule
