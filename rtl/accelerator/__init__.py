"""The accelerator: memories, DMA and instructions around the core and the vector unit."""
