"""A CPU beside the accelerator, both in Verilog: its firmware, the bus between them, one memory."""
