"""A vector unit in Verilator, driven from compiled code: programs and rows in, rows and cycles out."""

import ctypes

import numpy as np

from gen.emit import Emitter, verilog
from golden.spec.vector import VectorInstruction
from rtl.vector.unit import Vector
from tests.rtl.library import build

# In C++ Verilator writes 05F, the code of an underscore, into names with two in a row.
DRIVER = """
static uint32_t state = 1;
static bool chance(uint32_t share) {                 // share in 2^-32
    state ^= state << 13; state ^= state >> 17; state ^= state << 5;
    return state >= share;
}
static void cycle() { top.clk = 1; top.eval(); top.clk = 0; top.eval(); }
// Returns cycles, or -1 if it does not end. A stalled beat of o must not change.
API long run(const uint64_t *words, long n_words, const uint32_t *in, long n_in, uint32_t *out, long n_out,
             uint32_t idle, uint32_t stall, uint32_t seed, long limit, int *error) {
    long w = 0, i = 0, o = 0, t = 0;
    bool offered = false, held = false;
    uint32_t before[LANES];
    state = seed;
    top.rst = 1; top.clear = 0; top.i_program__valid = 0; top.i__valid = 0; top.o__ready = 0;
    top.clk = 0; top.eval(); cycle(); top.rst = 0;
    for (; t < limit; t++) {
        top.i_program__valid = w < n_words;
        if (w < n_words) top.i_program__payload = words[w];
        offered = i < n_in && (offered || chance(idle));
        top.i__valid = offered;
        if (i < n_in) std::memcpy(&top.i__payload, in + i * LANES, LANES * 4);
        top.o__ready = chance(stall);
        top.eval();
        if (held && (!top.o__valid || std::memcmp(&top.o__payload, before, LANES * 4))) return -2;
        held = top.o__valid && !top.o__ready;
        if (held) std::memcpy(before, &top.o__payload, LANES * 4);
        bool wt = top.i_program__valid && top.i_program__ready, it = offered && top.i__ready;
        if (top.o__valid && top.o__ready) {
            if (o == n_out) return -3;
            std::memcpy(out + o++ * LANES, &top.o__payload, LANES * 4);
        }
        if ((w == n_words && !top.busy && !top.o__valid) || top.error) break;
        cycle();
        w += wt;
        if (it) { i++; offered = false; }
    }
    *error = top.error;
    return t == limit || (!top.error && (o != n_out || i != n_in)) ? -1 : t;
}
"""


class VectorModel:
    """A compiled unit; a call runs one program from reset.

    Parameters
    ----------
    unit : golden.spec.vector.VectorUnit
    """

    def __init__(self, unit):
        self.unit = unit
        emitter = Emitter()
        top = emitter.convert(Vector.made(unit))
        driver = DRIVER.replace("LANES", str(unit.lanes)).replace("__", "___05F")
        self._run = build(verilog(emitter), top, driver).run
        self._run.restype = ctypes.c_long

    def __call__(self, program, rows, outputs, length, idle=0.0, stall=0.0, seed=1):
        """Rows given, cycles taken, whether the unit reported an error.

        Parameters
        ----------
        program : sequence of VectorInstruction or int
        rows : sequence of uint32 arrays, (length,)
        outputs : int
            Rows that the program gives.
        idle, stall : float
            Share of cycles in which the input is not offered, the output not taken.
        """
        lanes = self.unit.lanes
        beats = -(-length // lanes)
        words = np.array([item.encode() if isinstance(item, VectorInstruction) else item for item in program],
                         np.uint64)
        data = np.zeros((len(rows), beats * lanes), np.uint32)
        for padded, row in zip(data, rows, strict=True):
            padded[:length] = row
        out, error = np.zeros((outputs, beats * lanes), np.uint32), ctypes.c_int()
        pointer = [ctypes.c_void_p(array.ctypes.data) for array in (words, data, out)]
        cycles = self._run(pointer[0], ctypes.c_long(words.size), pointer[1], ctypes.c_long(len(rows) * beats),
                           pointer[2], ctypes.c_long(outputs * beats), ctypes.c_uint32(int(idle * 2 ** 32)),
                           ctypes.c_uint32(int(stall * 2 ** 32)), ctypes.c_uint32(seed),
                           ctypes.c_long(1000 + 100 * (words.size + data.size)), ctypes.byref(error))
        if cycles < 0:
            raise AssertionError(["does not end or leaves beats over", "a stalled beat changed", "too many beats"]
                                 [-1 - cycles])
        return list(out[:, :length]), cycles, bool(error.value)
