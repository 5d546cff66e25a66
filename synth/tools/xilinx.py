"""Yosys scripts that map a whole design to a Xilinx device, with as many DSP blocks as it has; nothing is placed."""

#: Bits of the operands of a DSP block, signed, by family.
DSP_BITS = {"xc7": (25, 18), "xcup": (27, 18)}
_SYNTH = "synth_xilinx -family {family} -flatten -noiopad -noclkbuf -top {top} -run "
#: Flattened; what stands in ``muls.il`` is then chosen from.
COARSE = f"{{read}}{_SYNTH}begin:map_dsp\ndump -n -o muls.il t:$mul\nwrite_rtlil coarse.il\n"
#: Multipliers of ``soft.txt`` pass by the mapping to DSP blocks, as those do that Yosys finds too narrow for one.
MAPPED = f"""read_rtlil coarse.il
read_verilog -lib -specify +/xilinx/cells_sim.v
read_verilog -lib +/xilinx/cells_xtra.v
select -set soft -read soft.txt
chtype -set $__soft_mul @soft
select -clear
{_SYNTH}map_dsp:
opt_clean -purge
tee -q -o stat.json stat -json
"""
#: Column of a count -> type of cell -> how many of the column it takes: LUTs of six inputs, block RAMs of 36 kbit.
CELLS: dict[str, dict[str, float]] = {
    "luts": {**{f"LUT{n}": 1 for n in range(1, 7)}, "INV": 1, "SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1, "RAM32X1D": 2,
             "RAM64X1D": 2, "RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8},
    "flipflops": {name: 1 for name in ("FDRE", "FDSE", "FDCE", "FDPE")},
    "rams": {"RAMB18E1": 0.5, "RAMB36E1": 1, "RAMB18E2": 0.5, "RAMB36E2": 1},
    "dsps": {"DSP48E1": 1, "DSP48E2": 1},
}
