"""Plays ports cycle by cycle through a Verilated model: given inputs in, every output of every cycle out."""

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np

from hbfp import files

from ..manifest import Manifest, port_bytes
from .verilator import build_library

_SOURCE = """\
// Sets all inputs of a cycle, evaluates, keeps all outputs, and lets the clock rise; no stream is understood here.
#include <cstdint>
#include <cstring>

#include "Vdut.h"
#include "verilated.h"

extern "C" __attribute__((visibility("default"))) void play(uint64_t cycles, const uint8_t* in, uint8_t* out) {
    VerilatedContext context;
    Vdut top{&context};
    for (uint64_t cycle = 0; cycle < cycles; cycle++) {
        top.clk = 0;
@INPUTS@
        top.eval();
@OUTPUTS@
        top.clk = 1;
        top.eval();
    }
}
"""


class Player:
    """A Verilated model whose ports are set and read in every cycle.

    Parameters
    ----------
    manifest : cosim.manifest.Manifest
        The design; ``rst`` is one of its inputs here.
    verilate : tuple of str
        Further Verilator options.
    level : str
        Optimisation of the C++, as of :func:`cosim.simulate.verilator.build_library`.

    Raises
    ------
    BuildError
        If a tool is missing or fails.
    """

    def __init__(self, manifest: Manifest, verilate: Sequence[str] = (), level: str = "-O3") -> None:
        ports = {name: (port.direction, port.width) for name, port in manifest.ports.items()}
        ports["rst"] = "in", 1
        self.widths = {flow: {name: width for name, (direction, width) in ports.items() if direction == flow}
                       for flow in ("in", "out")}
        source = _SOURCE
        for flow, copy in (("in", "memcpy(&top.{0}, in, {1}); in += {1};"),
                           ("out", "memcpy(out, &top.{0}, {1}); out += {1};")):
            lines = (f"        {copy.format(name.replace('__', '___05F'), port_bytes(width))}"
                     for name, width in self.widths[flow].items())
            source = source.replace("@INPUTS@" if flow == "in" else "@OUTPUTS@", "\n".join(lines))
        self._play = ctypes.CDLL(str(self._built(manifest, {"play.cpp": source}, verilate, level))).play

    def _built(self, manifest, sources, verilate, level):
        """The library of a design and the C++ that plays it."""
        return build_library(manifest.verilog, manifest.top, sources, verilate=verilate, level=level,
                             cache=files.cache("players"))

    def play(self, inputs: Mapping[str, Sequence[int] | np.ndarray]) -> dict[str, np.ndarray]:
        """Run from a model's first cycle on.

        Parameters
        ----------
        inputs : dict of str to sequence of int
            Every input port, ``rst`` included: its value in each cycle.

        Returns
        -------
        dict of str to ndarray
            Every output port: its value in each cycle, before the clock rises; uint64, or Python's integers where a
            port is wider.
        """
        cycles = len(inputs["rst"])
        columns = [_bytes(inputs[name], port_bytes(width)) for name, width in self.widths["in"].items()]
        given = np.ascontiguousarray(np.concatenate(columns, axis=1))
        stride = sum(map(port_bytes, self.widths["out"].values()))
        taken = np.zeros((cycles, stride), np.uint8)
        self._play(ctypes.c_uint64(cycles), given.ctypes.data_as(ctypes.c_void_p),
                   taken.ctypes.data_as(ctypes.c_void_p))
        result, start = {}, 0
        for name, width in self.widths["out"].items():
            end = start + port_bytes(width)
            result[name] = _numbers(taken[:, start:end])
            start = end
        return result


def _bytes(values, length):
    """Integers as little-endian bytes, (cycles, length)."""
    data = b"".join(int(value).to_bytes(length, "little") for value in values)
    return np.frombuffer(data, np.uint8).reshape(len(values), length)


def _numbers(rows):
    """Little-endian bytes as integers."""
    length = rows.shape[1]
    if length > 8:
        return np.array([int.from_bytes(row, "little") for row in map(bytes, rows)], object)
    wide = np.zeros((len(rows), 8), np.uint8)
    wide[:, :length] = rows
    return wide.view("<u8").reshape(-1)
