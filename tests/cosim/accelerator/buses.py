"""cocotb tests of the accelerator between a DRAM and a host that are not ours; run by test_buses.py."""

import json
import os
import random

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

from cosim.accelerator.host import place, room, settings
from golden.machine.machine import Machine
from golden.machine.random_programs import random_program
from hbfp.isa.registers import BY_NAME, IDENTITY, Cause
from tests.cosim.accelerator.built import ACCELERATOR, SIZE

DONE, ERROR = 2, 4
COMPARED = []


def pauses(seed, share):
    """Whether a channel stands still, cycle by cycle."""
    pick = random.Random(seed)
    while True:
        yield pick.random() < share


class Bench:
    """The accelerator out of reset, a DRAM with a program in it, and a host.

    The models of both watch the rules of AXI that they know: bursts within 4 KiB, ``wlast`` where it belongs, widths.
    """

    def __init__(self, dut, program):
        self.dut, self.program = dut, program
        self.memory = np.empty(room(program)[0], np.uint8)
        place(program, self.memory)

    async def start(self, share=0.0):
        """Reset, and everything running, each channel of both buses with pauses of its own."""
        dut = self.dut
        Clock(dut.aclk, 10, unit="ns").start()
        dut.aresetn.value = 0
        await ClockCycles(dut.aclk, 4)
        reset = {"reset": dut.aresetn, "reset_active_level": False}
        self.ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.aclk, size=SIZE, **reset)
        self.host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.aclk, **reset)
        self.ram.write(0, self.memory.tobytes())
        for number, part in enumerate((self.ram.read_if, self.ram.write_if, self.host.read_if, self.host.write_if)):
            part.log.setLevel("WARNING")
            for name in ("ar", "r", "aw", "w", "b"):
                if channel := getattr(part, f"{name}_channel", None):
                    channel.set_pause_generator(pauses(f"{number} {name}", share))
        await ClockCycles(dut.aclk, 2)
        dut.aresetn.value = 1
        await ClockCycles(dut.aclk, 2)

    async def read(self, name):
        """The value of a register."""
        return await self.host.read_dword(BY_NAME[name].address)

    async def write(self, name, value):
        """Write a register."""
        await self.host.write_dword(BY_NAME[name].address, value)

    async def run(self):
        """Ring the doorbell, wait for the interrupt and clear it; the status."""
        assert await self.read("id") == IDENTITY
        for name, value in settings(self.program).items():
            await self.write(name, value)
        assert not self.dut.interrupt.value
        await self.write("control", 1)
        await RisingEdge(self.dut.interrupt)
        status = await self.read("status")
        await self.write("interrupt_status", 3)
        await ClockCycles(self.dut.aclk, 2)
        assert not self.dut.interrupt.value
        return status

    def compare(self):
        """Every word of DRAM that the golden machine knows, and all that lies outside the program's reach."""
        golden = Machine(self.program)
        golden.run()
        base = room(self.program)[1]
        found = np.frombuffer(self.ram.read(0, len(self.memory)), np.uint8)
        known = golden.dram.defined[:, 0]
        assert np.array_equal(found[:base], self.memory[:base])
        assert np.array_equal(found[base:].view(np.uint32)[known], golden.dram.data[known])
        COMPARED.append(int(known.sum()))
        with open(os.environ["HBFP_COVERAGE"], "w") as file:
            json.dump({"compared": sum(COMPARED), "corners": {}}, file)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(seed=(0, 1), share=(0.0, 0.4))
async def programs_do_what_they_do_on_the_golden_machine(dut, seed, share):
    bench = Bench(dut, random_program(ACCELERATOR, seed))
    await bench.start(share)
    assert await bench.run() == DONE
    bench.compare()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def an_error_of_the_bus_ends_a_program(dut):
    bench = Bench(dut, random_program(ACCELERATOR, 2))
    await bench.start()
    base, answer = room(bench.program)[1], bench.ram.read_if._read

    async def poisoned(address, length):
        assert address < base, "data cannot be read"
        return await answer(address, length)

    bench.ram.read_if._read = poisoned
    assert await bench.run() == ERROR and await bench.read("cause") == Cause.BUS
