"""Benches on the emitted Verilog, compared with the golden model bit for bit."""
