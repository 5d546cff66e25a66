"""The Verilated accelerator behind AXI: its DRAM and host, runs of whole models, tables and timelines."""
