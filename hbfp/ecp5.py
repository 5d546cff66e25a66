"""The ECP5 devices: what there is of each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """A device as nextpnr knows it, and how many LUTs, 18 x 18 multipliers and block RAMs of 18 kbit it has."""
    option: str
    luts: int
    dsps: int
    rams: int


#: Name -> device, the largest last.
DEVICES = {
    "LFE5U-12F": Device("--12k", 24288, 28, 56),
    "LFE5U-25F": Device("--25k", 24288, 28, 56),
    "LFE5U-45F": Device("--45k", 43848, 72, 108),
    "LFE5U-85F": Device("--85k", 83640, 156, 208),
}
