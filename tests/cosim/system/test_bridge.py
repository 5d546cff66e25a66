"""The bridge from a CPU's bus to AXI4-Lite, before a slave that takes address and data in any order, when it likes."""

import ctypes
from pathlib import Path
from random import Random

import pytest

from cosim.simulate.verilator import build_library
from cosim.system import run

pytestmark = pytest.mark.cosim
IN = ("resetn", "valid", "writes", "awready", "wready", "bvalid", "arready", "rvalid")
OUT = ("ready", "awvalid", "wvalid", "bready", "arvalid", "rready")
DRIVER = f"""
#include "Vdut.h"
#include "verilated.h"
struct Simulated {{ VerilatedContext context; Vdut top{{&context}}; }};
#define API __attribute__((visibility("default")))
extern "C" {{
API void* sim_open() {{ return new Simulated; }}
API void sim_close(Simulated* it) {{ delete it; }}
API uint32_t sim_step(Simulated* it, uint32_t in, int edge) {{
    Vdut& top = it->top;
    uint32_t out = 0;
    top.clk = 0;
    {' '.join(f"top.{'wstrb' if name == 'writes' else name} = in >> {bit} & 1;" for bit, name in enumerate(IN))}
    top.eval();
    {' '.join(f'out |= uint32_t(top.{name}) << {bit};' for bit, name in enumerate(OUT))}
    if (edge) top.clk = 1, top.eval();
    return out;
}}
}}
"""


@pytest.fixture(scope="module")
def step():
    """From inputs by name to outputs by name, in one cycle."""
    text = Path(run.__file__).with_name("bridge.v")
    library = ctypes.CDLL(str(build_library(text, "register_bridge", {"driver.cpp": DRIVER}, level="-O1")))
    library.sim_open.restype, library.sim_step.restype = ctypes.c_void_p, ctypes.c_uint32
    model = ctypes.c_void_p(library.sim_open())

    def cycle(edge=1, **values):
        word = sum(bool(values.get(name)) << bit for bit, name in enumerate(IN))
        out = library.sim_step(model, word, edge)
        return {name: out >> bit & 1 for bit, name in enumerate(OUT)}
    yield cycle
    library.sim_close(model)


def access(step, pick, writes, ready):
    """One access to the end; each channel is ready in that share of cycles. The handshakes of each channel."""
    channels = ("aw", "w") if writes else ("ar",)
    answer, other = ("b", "r") if writes else ("r", "b")    # of the other nobody has asked anything
    taken, waits, shown = dict.fromkeys(("aw", "w", "ar"), 0), pick.randrange(4), set()
    for _ in range(1000):
        given = {f"{name}ready": pick.random() < ready for name in taken}
        answered = all(taken[name] for name in channels) and not waits
        waits -= all(taken[name] for name in channels) and waits > 0
        out = step(resetn=1, valid=1, writes=writes, **given,
                   **{f"{answer}valid": answered, f"{other}valid": pick.random() < 0.3})
        valid = {name for name in taken if out[f"{name}valid"]}
        assert valid >= shown    # what was offered and not taken is offered still
        assert valid <= set(channels)
        for name in valid:
            taken[name] += given[f"{name}ready"]
        shown = {name for name in valid if not given[f"{name}ready"]}
        assert not out[f"{other}ready"] and out["ready"] == answered    # the CPU goes on then, not before
        if answered:
            assert out[f"{answer}ready"] and not shown
            return taken
    raise AssertionError("no end")


@pytest.mark.parametrize("ready", [0.1, 0.5, 1.0])
def test_each_access_is_one_transfer(step, ready):
    pick = Random(ready)
    step(resetn=0)
    for _ in range(400):
        writes = pick.random() < 0.5
        assert access(step, pick, writes, ready) == {"aw": writes, "w": writes, "ar": not writes}
        for _ in range(pick.randrange(3)):    # some follow at once
            out = step(resetn=1, **{name: pick.random() < 0.5 for name in IN[2:]})
            assert not any(out.values())


@pytest.mark.parametrize("writes, given", [(1, "awready"), (1, "wready"), (0, "arready")])
def test_a_reset_forgets_half_of_an_access(step, writes, given):
    step(resetn=0)
    step(resetn=1, valid=1, writes=writes, **{given: 1})
    step(resetn=0, valid=1, writes=writes)
    out = step(0, resetn=1, valid=1, writes=writes)
    assert all(out[f"{name}valid"] for name in (("aw", "w") if writes else ("ar",)))
