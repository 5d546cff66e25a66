"""Verilog under Verilator: models built and kept, and whole blocks of payloads through them."""
