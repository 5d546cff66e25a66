"""The top of a system in Verilog: PicoRV32, a bridge to the accelerator's registers, its interrupt; memory outside."""

from pathlib import Path

from ..manifest import Manifest

#: Where the CPU sees the accelerator's registers: addresses of these upper four bits.
REGISTERS = 0x9000_0000

_TEXT = """
module @TOP@_system(input aclk, input aresetn, output trap, output interrupt,
    output cpu_valid, input cpu_ready, output [31:0] cpu_address, output [31:0] cpu_wdata, output [3:0] cpu_wstrb,
    input [31:0] cpu_rdata@PORTS@);

  wire valid, ready;
  wire [31:0] rdata;
  wire registers = cpu_address[31:28] == 4'h9;
  wire bridge_ready;
  wire awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;

  assign cpu_valid = valid & ~registers;
  assign ready = registers ? bridge_ready : cpu_ready;

  picorv32 #(.BARREL_SHIFTER(1), .ENABLE_FAST_MUL(1), .ENABLE_DIV(1), .ENABLE_IRQ(1), .ENABLE_IRQ_QREGS(0),
             .LATCHED_IRQ(0), .REGS_INIT_ZERO(1)) cpu (
    .clk(aclk), .resetn(aresetn), .trap(trap), .mem_valid(valid), .mem_ready(ready), .mem_addr(cpu_address),
    .mem_wdata(cpu_wdata), .mem_wstrb(cpu_wstrb), .mem_rdata(registers ? rdata : cpu_rdata),
    .irq({28'b0, interrupt, 3'b0}), .pcpi_wr(1'b0), .pcpi_rd(32'b0), .pcpi_wait(1'b0), .pcpi_ready(1'b0));

  register_bridge bridge (
    .clk(aclk), .resetn(aresetn), .valid(valid & registers), .ready(bridge_ready), .wdata(cpu_wdata), .wstrb(cpu_wstrb),
    .awvalid(awvalid), .awready(awready), .wvalid(wvalid), .wready(wready), .bvalid(bvalid), .bready(bready),
    .arvalid(arvalid), .arready(arready), .rvalid(rvalid), .rready(rready));

  @TOP@ accelerator (
    .aclk(aclk), .aresetn(aresetn), .interrupt(interrupt),
    .s_axil_awaddr(cpu_address[@HIGH@:0]), .s_axil_awprot(3'b0), .s_axil_awvalid(awvalid), .s_axil_awready(awready),
    .s_axil_wdata(cpu_wdata), .s_axil_wstrb(cpu_wstrb), .s_axil_wvalid(wvalid), .s_axil_wready(wready),
    .s_axil_bvalid(bvalid), .s_axil_bready(bready),
    .s_axil_araddr(cpu_address[@HIGH@:0]), .s_axil_arprot(3'b0), .s_axil_arvalid(arvalid), .s_axil_arready(arready),
    .s_axil_rdata(rdata), .s_axil_rvalid(rvalid), .s_axil_rready(rready)@NETS@);
endmodule
"""


def system(manifest: Manifest, cpu: Path) -> tuple[str, str]:
    """The text of a system, and the name of its top module.

    Parameters
    ----------
    manifest : Manifest
        The emitted accelerator.
    cpu : Path
        ``picorv32.v``.
    """
    master = {name: port for name, port in manifest.ports.items() if name.startswith("m_axi_")}
    ports = "".join(f",\n    {port.direction}put [{port.width - 1}:0] {name}" for name, port in master.items())
    nets = "".join(f",\n    .{name}({name})" for name in master)
    text = _TEXT.replace("@TOP@", manifest.top).replace("@PORTS@", ports).replace("@NETS@", nets).replace(
        "@HIGH@", str(manifest.ports["s_axil_awaddr"].width - 1))
    bridge = Path(__file__).with_name("bridge.v").read_text()
    return "\n".join([manifest.verilog.read_text(), cpu.read_text(), bridge, text]), f"{manifest.top}_system"
