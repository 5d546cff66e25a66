"""The system in LiteX: VexRiscv, the accelerator as a second master of LiteDRAM, its registers and its interrupt.

LiteX writes the Verilog; it is loaded with this file alone.
"""

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from litedram.frontend.axi import LiteDRAMAXI2Native
from litedram.init import get_sdram_phy_init_sequence
from litedram.modules import MT48LC16M16
from litedram.phy import GENSDRPHY
from litedram.phy.model import SDRAMPHYModel
from litex.build.generic_platform import Pins, Subsignal
from litex.build.io import CRG, DDROutput
from litex.build.sim import SimPlatform
from litex.gen import LiteXModule
from litex.soc.cores.clock import ECP5PLL
from litex.soc.cores.uart import RS232PHYModel, UARTBone
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import axi
from litex_boards.platforms import radiona_ulx3s
from migen import ClockDomain, ClockSignal, Instance, ResetSignal, Signal

from hbfp.isa.registers import BY_NAME
from hbfp.manifest import Manifest

from .boards import RAM, ROM

#: Where the CPU finds the accelerator's registers, and bytes that a region of the bus has at least.
REGISTERS, _LEAST = 0x9000_0000, 0x1000
#: Name of the top module.
TOP = "hbfp_soc"
#: What python -m synth soc reads.
FILE = "soc.json"
_CHANNELS = ("aw", "ar", "w", "r", "b")
#: Characters in the place of serial lines: of what firmware prints, and of the bridge. And the interrupt on its way to
#: the CPU: whether the accelerator raises it, whether the CPU is told, and whether its handler looks for a reason.
_SIMULATED = [("sys_clk", 0, Pins(1)), ("sys_rst", 0, Pins(1)),
              *((line, 0, *(Subsignal(f"{way}_{name}", Pins(8 if name == "data" else 1))
                            for way in ("source", "sink") for name in ("valid", "ready", "data")))
                for line in ("serial", "bridge")),
              ("interrupt", 0, *(Subsignal(name, Pins(1)) for name in ("raised", "told", "looked")))]


class Accelerator(LiteXModule):
    """The Verilog of an accelerator between two buses.

    Attributes
    ----------
    registers : AXILiteInterface
    dram : AXIInterface
    ev : object
        With its interrupt, ``irq``, as LiteX looks for it; through ``way``, if there is one.
    """

    def __init__(self, manifest: Manifest, way: Any = None) -> None:
        ports = manifest.ports
        self.registers = axi.AXILiteInterface(data_width=32, address_width=32)
        self.dram = axi.AXIInterface(data_width=ports["m_axi_wdata"].width, address_width=32, id_width=1)
        raised, wires = Signal(), {}
        self.ev = SimpleNamespace(irq=raised if way is None else way.told)
        if way is not None:
            channel, at = self.registers.ar, BY_NAME["interrupt_status"].address
            self.comb += [way.raised.eq(raised),
                          way.looked.eq(channel.valid & channel.ready & (channel.addr[:12] == at))]
        for name, port in ports.items():
            for prefix, bus in (("s_axil_", self.registers), ("m_axi_", self.dram)):
                if name.startswith(prefix):
                    part = name.removeprefix(prefix)
                    channel = next(each for each in _CHANNELS if part.startswith(each))
                    wires[name] = self._wire(getattr(bus, channel), part.removeprefix(channel), port.width)
        self.specials += Instance(
            manifest.top, i_aclk=ClockSignal("sys"), i_aresetn=~ResetSignal("sys"), o_interrupt=raised,
            **{f"{ports[name].direction[0]}_{name}": wire for name, wire in wires.items()})

    def _wire(self, channel, name, width):
        """A signal of a channel, as wide as the port; of addresses the bus has fewer bits, or more."""
        there = getattr(channel, name, None)
        there = getattr(channel.param, name) if there is None else there
        if len(there) == width:
            return there
        wire = Signal(width)
        self.comb += there.eq(wire) if width > len(there) else wire.eq(there)
        return wire


class Clocks(LiteXModule):
    """Clock and reset of the ULX3S: its oscillator through a PLL, and a clock of the SDRAM a quarter behind."""

    def __init__(self, platform: Any, frequency: float) -> None:
        self.rst = Signal()
        self.cd_sys = ClockDomain()
        self.cd_sys_ps = ClockDomain()
        self.pll = pll = ECP5PLL()
        self.comb += pll.reset.eq(platform.request("rst") | self.rst)
        pll.register_clkin(platform.request("clk25"), 25e6)
        pll.create_clkout(self.cd_sys, frequency)
        pll.create_clkout(self.cd_sys_ps, frequency, phase=90)
        self.specials += DDROutput(1, 0, platform.request("sdram_clock"), ClockSignal("sys_ps"))
        self.comb += platform.request("wifi_gpio0").eq(1)    # else the other chip of the board resets this one


class System(SoCCore):
    """The system.

    Parameters
    ----------
    manifest : Manifest
        Of the accelerator.
    device : str
        The FPGA; None for a simulation, with a model of the SDRAM.
    frequency : float
        Of its one clock, in Hz.
    rom : list of int
        Words that the CPU begins with.
    """

    def __init__(self, manifest: Manifest, device: str | None, frequency: float, rom: list[int]) -> None:
        platform = radiona_ulx3s.Platform(device=device, toolchain="trellis") if device else SimPlatform(
            "SIM", list(_SIMULATED))
        self.crg = Clocks(platform, frequency) if device else CRG(platform.request("sys_clk"),
                                                                  platform.request("sys_rst"))
        # The serial line is a master of the bus: a host writes programs and images through it, and drives the
        # accelerator if it likes. In the simulation it is one of its own.
        super().__init__(platform, frequency, cpu_type="vexriscv", integrated_rom_size=ROM,
                         integrated_rom_init=rom or [0], integrated_sram_size=RAM, timer_uptime=True, ident="HBFP",
                         uart_name="crossover" if device else "sim", with_uartbone=device is not None)
        if not device:
            self.bridge_line = RS232PHYModel(platform.request("bridge"))
            self.bridge = UARTBone(self.bridge_line, frequency, address_width=self.bus.address_width)
            self.bus.add_master("bridge", self.bridge.wishbone)
        module = MT48LC16M16(frequency, "1:1")
        self.sdrphy = GENSDRPHY(platform.request("sdram"), frequency) if device else SDRAMPHYModel(
            module, data_width=16, clk_freq=frequency, init=[0])
        # No cache behind the CPU's own, which writes through: the accelerator does not see into one.
        self.add_sdram("sdram", phy=self.sdrphy, module=module, l2_cache_size=0)
        self.hbfp = Accelerator(manifest, None if device else platform.request("interrupt"))
        size = max(_LEAST, 1 << manifest.ports["s_axil_awaddr"].width)
        self.bus.add_slave("hbfp", self.hbfp.registers, SoCRegion(origin=REGISTERS, size=size, cached=False))
        self.irq.add("hbfp", use_loc_if_exists=True)
        port = self.sdram.crossbar.get_port(data_width=self.hbfp.dram.data_width)
        self.to_dram = LiteDRAMAXI2Native(self.hbfp.dram, port, base_address=self.bus.regions["main_ram"].origin)

    def header(self) -> str:
        """What firmware has to know, as a C header; behind :meth:`finalize`."""
        ram, sequence = self.bus.regions["main_ram"], get_sdram_phy_init_sequence(
            self.sdrphy.settings, self.sdram.controller.settings.timing)[0]
        where = {name: region.origin for name, region in self.csr.regions.items()}

        def register(block, name):
            address = where[block]
            for each in self.csr.regions[block].obj:
                if each.name == name:
                    return address
                address += 4 * -(-each.size // 32)
            raise KeyError(name)

        numbers = {"registers": REGISTERS, "memory": ram.origin, "memory_bytes": ram.size,
                   "ram": self.bus.regions["sram"].origin, "ram_bytes": RAM, "interrupt": self.irq.locs["hbfp"],
                   "rxtx": register("uart", "rxtx"), "txfull": register("uart", "txfull"),
                   "latch": register("timer0", "uptime_latch"), "uptime": register("timer0", "uptime_cycles") + 4,
                   "control": register("sdram", "dfii_control"), "command": register("sdram", "dfii_pi0_command"),
                   "issue": register("sdram", "dfii_pi0_command_issue"),
                   "address": register("sdram", "dfii_pi0_address"), "bank": register("sdram", "dfii_pi0_baddress")}
        lines = ["/* Addresses of a system of CPU and accelerator, and what its SDRAM is told at first: address, bank,",
                 "   command, and cycles until the next. */", "#ifndef HBFP_SOC_H", "#define HBFP_SOC_H", "",
                 *(f"#define HBFP_SOC_{name.upper()} 0x{value:08X}u" for name, value in numbers.items()), "",
                 "#define HBFP_SOC_SDRAM \\"]
        steps = [f"    {{0x{address:04X}, {bank}, {_command(command)}, {wait}}}" for _, address, bank, command, wait
                 in sequence]
        return "\n".join([*lines, ", \\\n".join(steps), "", "#endif", ""])


def _command(text):
    """A command of LiteDRAM's sequences as bits of its register; 0 of what goes to the control register."""
    bits = {"DFII_COMMAND_CS": 1, "DFII_COMMAND_WE": 2, "DFII_COMMAND_CAS": 4, "DFII_COMMAND_RAS": 8}
    return sum(bits.get(word, 0) for word in text.split("|"))


def _build(platform, system, folder):
    """Verilog, constraints and scripts, with copies of all sources, so that the folder can be taken elsewhere.

    In LiteX's own script multipliers become LUTs: of itself Yosys would take more DSP blocks than there are, and says
    nothing of it. python -m synth soc reads what to build from a file, and has a better way for them.
    """
    platform.toolchain._synth_opts += "-nodsp "
    platform.build(system, build_dir=str(folder), build_name=TOP, run=False)
    script = (folder / f"{TOP}.ys").read_text()
    for source, *_ in platform.sources:
        name = Path(source).name
        if Path(source).parent != folder:
            (folder / name).write_text(Path(source).read_text())
        script = script.replace(str(source), name)
    (folder / f"{TOP}.ys").write_text(script)
    tools = platform.toolchain
    (folder / FILE).write_text(json.dumps({
        "top": TOP, "device": platform.device.rpartition("-")[0], "package": tools._package,
        "speed": tools._speed_grade, "verilog": [Path(source).name for source, *_ in platform.sources],
        "data": sorted(path.name for path in folder.glob("*.init")), "constraints": f"{TOP}.lpf"}, indent=1) + "\n")


def write(manifest: Manifest, device: str | None, frequency: float, rom: list[int], folder: Path) -> list[str]:
    """Write a system into a folder, which has the accelerator's files: names of the main ones.

    For a board LiteX writes constraints and a script for Yosys and nextpnr, too; for a simulation one Verilog file, and
    files of what is in its memories.
    """
    logging.disable(logging.INFO)    # LiteX tells of all that it does
    system = System(manifest, device, frequency, rom)
    system.platform.add_source(str(folder / manifest.verilog))
    if device:
        _build(system.platform, system, folder / "gateware")
        names = [f"gateware/{TOP}.{kind}" for kind in ("v", "lpf")] + [f"gateware/build_{TOP}.sh"]
    else:
        system.finalize()
        fragment = system.get_fragment()
        system.platform.finalize(fragment)
        output = system.platform.get_verilog(fragment, name=TOP, regular_comb=False)
        sources = [Path(path).read_text() for path, *_ in system.platform.sources]
        (folder / f"{TOP}.v").write_text("\n".join([output.main_source, *sources]))
        for name, content in output.data_files.items():
            (folder / name).write_text(content)
        names = [f"{TOP}.v"]
    (folder / "hbfp_soc.h").write_text(system.header())
    return [*names, "hbfp_soc.h"]
