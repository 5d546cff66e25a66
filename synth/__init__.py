"""Area and timing of the emitted Verilog."""
