"""Verilog with a driver in C++, as a library: built as benches are, for a quick build."""

import ctypes
from pathlib import Path
from tempfile import TemporaryDirectory

from cosim.simulate.verilator import build_library

#: What every driver begins with; ``API`` stands before what Python calls.
PROLOGUE = """
#include <cstdint>
#include <cstring>

#include "Vdut.h"
#include "verilated.h"

#define API extern "C" __attribute__((visibility("default")))
static VerilatedContext context;
static Vdut top{&context};
"""


def build(text, top, driver):
    """The library of a design and of a driver of ``top``, its only instance; built once for the same texts."""
    with TemporaryDirectory() as folder:
        verilog = Path(folder) / "dut.v"
        verilog.write_text(text)
        return ctypes.CDLL(str(build_library(verilog, top, {"driver.cpp": PROLOGUE + driver}, level="-O1")))
