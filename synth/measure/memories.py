"""What memories take: no recipe maps them, so each bit has a price in NAND2-equivalents.

A price stands for a macro: cells, decoders and sense amplifiers. It depends on the ports and the size of the macro far
more than on what is stored, so every figure with memories names the price that it was made with.
"""

from hbfp.figures import figure

_BOOK = figure("prices.areas")
#: NAND2-equivalents a bit, by kind of macro. All are assumed: none was measured with the cells of this report. What
#: rtl/lib/memory.py needs has two ports, a write and a read a cycle.
PRICES = {"one port": _BOOK["bit_one_port"]["value"], "two ports": _BOOK["bit_two_ports"]["value"],
          "OpenRAM": _BOOK["bit_openram"]["value"]}
#: The price unless a user gives one.
BIT = PRICES["two ports"]
#: What a user may give.
BIT_RANGE = (0, 100)
