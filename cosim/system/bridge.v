// A CPU's reads and writes, one at a time, as transfers of AXI4-Lite; the CPU has its answer in the cycle of the response.
module register_bridge(input clk, input resetn,
    input valid, output ready, input [31:0] wdata, input [3:0] wstrb,
    output awvalid, input awready, output wvalid, input wready, input bvalid, output bready,
    output arvalid, input arready, input rvalid, output rready);

  reg address_taken, data_taken;
  wire writes = |wstrb;

  assign awvalid = valid & writes & ~address_taken;
  assign wvalid = valid & writes & ~data_taken;
  assign arvalid = valid & ~writes & ~address_taken;
  assign bready = valid & writes;
  assign rready = valid & ~writes;
  assign ready = valid & (writes ? bvalid : rvalid);

  always @(posedge clk)
    if (!resetn | ready) begin
      address_taken <= 0;
      data_taken <= 0;
    end else begin
      address_taken <= address_taken | (awvalid & awready) | (arvalid & arready);
      data_taken <= data_taken | (wvalid & wready);
    end
endmodule
