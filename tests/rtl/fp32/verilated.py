"""Runs components on arrays in compiled code: one Verilator build holds many of them."""

import ctypes

import numpy as np
from amaranth import ClockDomain, DomainRenamer, Module, Signal
from amaranth.back import verilog
from amaranth.lib.wiring import Component, In, Out

from tests.rtl.library import build

DRIVER = """
static CData *clocks[] = {CLOCKS};
static QData *outputs[] = {OUTPUTS};
API void run(int unit, long count, long delay, const uint64_t *p, const uint64_t *q, const uint64_t *r,
             uint64_t *o) {
    for (long i = 0; i < count + delay; i++) {
        if (i < count) { top.p = p[i]; top.q = q[i]; top.r = r[i]; }
        *clocks[unit] = 0; top.eval();
        *clocks[unit] = 1; top.eval();
        if (i >= delay) o[i - delay] = *outputs[unit];
    }
}
"""


class Rack(Component):
    """Units side by side, each behind input registers on a clock of its own, so that only the one
    that is clocked is evaluated."""

    def __init__(self, units):
        self.units = units
        members = {"p": In(64), "q": In(64), "r": In(64)}
        for n in range(len(units)):
            members |= {f"clk{n}": In(1), f"o{n}": Out(64)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        for n, unit in enumerate(self.units):
            domain = f"d{n}"
            clock = ClockDomain(domain, reset_less=True)
            m.domains += clock
            m.d.comb += clock.clk.eq(getattr(self, f"clk{n}"))
            m.submodules[f"u{n}"] = DomainRenamer(domain)(unit)
            if hasattr(unit, "en"):
                m.d.comb += unit.en.eq(1)
            for source, port in zip((self.p, self.q, self.r), operands(unit), strict=False):
                held = Signal(len(port), name=f"u{n}_in")
                m.d[domain] += held.eq(source)
                m.d.comb += port.eq(held)
            m.d.comb += getattr(self, f"o{n}").eq(unit.o)
        return m


def operands(unit):
    """Input ports of a unit in order, without the enable."""
    return [getattr(unit, name) for name, member in unit.signature.members.items()
            if member.flow == In and name != "en"]


class Verilated:
    """Units compiled together; ``self(n, *arrays)`` runs unit ``n`` on arrays of patterns."""

    def __init__(self, units):
        self.units = units
        number = range(len(units))
        driver = (DRIVER.replace("CLOCKS", ", ".join(f"&top.clk{n}" for n in number))
                  .replace("OUTPUTS", ", ".join(f"&top.o{n}" for n in number)))
        self.run = build(verilog.convert(Rack(units), name="rack", emit_src=False), "rack", driver).run

    def __call__(self, n, *arrays):
        arrays = np.broadcast_arrays(*arrays)
        shape = arrays[0].shape
        arrays = [np.ascontiguousarray(a).astype(np.int64).reshape(-1) for a in arrays]
        arrays += [arrays[0]] * (3 - len(arrays))
        out = np.empty(arrays[0].size, np.uint64)
        pointer = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, out)]
        self.run(n, ctypes.c_long(out.size), ctypes.c_long(self.units[n].latencies["result"]), *pointer)
        return out.reshape(shape)
