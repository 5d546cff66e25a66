"""An accelerator that is not there: registers that say what it is, and a memory."""

import numpy as np

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import Instruction, Opcode
from hbfp.isa.registers import BY_NAME, parameters
from hbfp.program import Program, Region, Tensor
from hbfp.system import Accelerator

MACHINE = Accelerator(core=Design(rows=8, format=HBFPFormat(mantissa=8, block=(1, 8))), x_words=128, w_words=128,
                      v_words=256)
HALT = Instruction(Opcode.HALT, {})
#: Tensors of every layout: rows with a gap, rows that are filled up, one number alone, and weights.
PROGRAM = Program(
    accelerator=MACHINE, limit=8192, instructions=(HALT,) * 70, arguments=(7, 0xFFFFFFFF),
    memory=(Region(0, b"abc"), Region(64, bytes(range(200)))),
    tensors={"x": Tensor(320, (2, 3, 10), role="input"), "apart": Tensor(1024, (3, 5), "dense", row=40),
             "one": Tensor(2048, (), role="output"), "w": Tensor(4096, (17, 9), "records", "weight")})


class Registers:
    """A transport whose registers keep what is written, and do nothing."""

    def __init__(self, accelerator=MACHINE, size=1 << 16, address=0x1_0000_0000):
        self.memory, self.address, self.slept = np.zeros(size, np.uint8), address, 0
        self.values = {BY_NAME[name].address: value for name, value in parameters(accelerator).items()}
        self.failing = None

    def read(self, address):
        if address == self.failing:
            raise OSError("bus")
        return self.values.get(address, 0)

    def write(self, address, value):
        if BY_NAME["interrupt_status"].address == address:
            self.values[address] = self.values.get(address, 0) & ~value
        elif BY_NAME["control"].address != address:
            self.values[address] = value
        return int(address == self.failing)

    def sleep(self):
        self.slept += 1
        return False

    def close(self):
        self.memory = None

    def has(self, name):
        """What was written into a register."""
        return self.values.get(BY_NAME[name].address)

    def put(self, name, value):
        """Let a register say something."""
        self.values[BY_NAME[name].address] = value
