"""The tools that the figures come from: Yosys and its scripts, cell libraries."""
