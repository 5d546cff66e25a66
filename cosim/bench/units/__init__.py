"""cocotb tests of a core and of its parts, a file each; they run inside the simulator."""
