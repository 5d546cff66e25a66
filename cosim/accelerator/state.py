"""A Verilated accelerator whose registers and memories a test may change while it runs."""

import ctypes
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from hbfp import files

from ..simulate.verilator import build_library
from .device import Device, with_more

#: Registers have an initial value, and what a memory gives is a register without one; memories have places.
_STATE = re.compile(r"^  (?:output )?reg (?:\[\d+:0\] )?(?:\w+(?= = )|r_data(?=;)|\w+ \[\d+:0\](?=;))", re.MULTILINE)
_PUBLIC = "/*verilator public_flat_rw*/"
_FUNCTIONS = """\
#include "driver.h"
#include "verilated_sym_props.h"
#include "verilated_syms.h"

// Everything that is public: a line for each, its name, bits and places.
extern "C" API void* sim_states(Simulation* sim) {
    static std::string text;
    text.clear();
    for (const auto& scope : *sim->context.scopeNameMap())
        if (scope.second->varsp())
            for (const auto& each : *scope.second->varsp()) {
                const VerilatedVar& var = each.second;
                const int places = var.udims() ? var.elements(1) : 1;
                text += std::string(scope.first) + "." + each.first + " " + std::to_string(var.entBits()) + " " +
                        std::to_string(places) + " " + std::to_string(reinterpret_cast<uintptr_t>(var.datap())) + " " +
                        std::to_string(var.totalSize()) + "\\n";
            }
    return text.data();
}
"""


@dataclass(frozen=True)
class State:
    """A register, or a memory of ``places`` words.

    Attributes
    ----------
    name : str
        Its instances from the top on, with dots between.
    bits, places : int
    data : ndarray of uint8, (places, bytes)
        Where it lies; what is written there is so from the next cycle on.
    """
    name: str
    bits: int
    places: int
    data: np.ndarray

    @property
    def part(self) -> str:
        """The part of the accelerator that it is in."""
        return self.name.split(".")[0]

    def flip(self, place: int, bit: int) -> None:
        """Turn a bit round."""
        self.data[place, bit // 8] ^= 1 << bit % 8


class StateDevice(Device):
    """As :class:`Device`, slower to run, with :attr:`states`.

    Attributes
    ----------
    states : list of State
        Every register and memory, by name.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._library.sim_states.restype = ctypes.c_void_p
        text = ctypes.string_at(self._library.sim_states(ctypes.c_void_p(self._handle))).decode()
        self.states = sorted((_state(*line.rsplit(" ", 4)) for line in text.splitlines()), key=lambda each: each.name)

    def _built(self, verilog, top, sources, *, verilate, **options):
        text = _STATE.sub(lambda found: f"{found[0]} {_PUBLIC}", verilog.read_text())
        sources = with_more(sources, {"state.cpp": _FUNCTIONS})
        with files.scratch() as folder:
            (folder / verilog.name).write_text(text)
            return build_library(folder / verilog.name, top, sources, verilate=(*verilate, "--flatten"), **options)

    def scatter(self, seed: int) -> None:
        """Give every bit of every register and memory a value by a seed, as it has when power comes."""
        rng = np.random.default_rng(seed)
        for each in self.states:
            own = np.packbits(np.arange(8 * each.data.shape[1]) < each.bits, bitorder="little")
            each.data[:] = rng.integers(0, 256, each.data.shape, np.uint8) & own


def _state(name, bits, places, address, size):
    array = (ctypes.c_uint8 * int(size)).from_address(int(address))
    return State(name.removeprefix("TOP.").removeprefix("dut."), int(bits), int(places),
                 np.frombuffer(array, np.uint8).reshape(int(places), -1))
