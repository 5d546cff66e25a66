"""The dispatcher's Verilog beside its cycle-true twin."""
