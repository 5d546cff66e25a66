"""The tools that the figures come from: Yosys and its scripts, OpenSTA, nextpnr, cell libraries."""
