"""What memories take: no recipe maps them, so each bit has a price in NAND2-equivalents.

A price stands for a macro: cells, decoders and sense amplifiers. It depends on the ports and the size of the macro far
more than on what is stored, so every figure with memories names the price that it was made with.
"""

#: NAND2-equivalents a bit, by kind of macro. All are assumed: none was measured with the cells of this report.
PRICES = {
    "one port": 0.66,      # macros of foundries, one access a cycle
    "two ports": 1.2,      # one write and one read a cycle, as rtl/lib/memory.py needs
    "OpenRAM": 4.3,        # macros that OpenRAM makes for sky130, of 1 to 2 KiB
}
#: The price unless a user gives one.
BIT = PRICES["two ports"]
#: What a user may give.
BIT_RANGE = (0, 100)
