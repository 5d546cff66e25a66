"""Emit Verilog and its manifest from a design."""
