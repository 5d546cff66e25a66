"""Constants of the analytic design space, from the price book."""

from dataclasses import dataclass

from .prices import ASSUMED, BOOK, BYTES, NAND2, price, sources


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What area, power and cycles are computed from; names end in the unit, and prices.json has each entry's source."""
    mac_pj: float = price("mac_pj")
    mac_um2: float = price("mac_um2")
    element_bytes: float = price("hbfp8_bytes")
    activation_pj: float = price("sram256_pj")
    weight_pj: float = price("weight_pj")
    array_columns: int = price("array_columns")
    sram_mb: float = price("sram_mb")
    sram_um2: float = price("sram_um2")
    other_mm2: float = price("other_mm2")
    static_w: float = price("static_w")
    low_ghz: float = price("low_ghz")
    low_v: float = price("low_v")
    high_ghz: float = price("high_ghz")
    high_v: float = price("high_v")
    area_mm2: float = price("area_mm2")
    power_w: float = price("power_w")
    step_cycles: int = price("step_cycles")

    @property
    def fixed_mm2(self) -> float:
        """mm2 without elements; SRAM is counted in units of 2^20 bytes."""
        return self.sram_mb * 2 ** 20 * 8 * self.sram_um2 * 1e-6 + self.other_mm2

    def scale(self, ghz: float) -> float:
        """Energy at a clock over that at 1 GHz: the square of the voltages' ratio."""
        def volts(clock: float) -> float:
            return self.low_v + (self.high_v - self.low_v) * (clock - self.low_ghz) / (self.high_ghz - self.low_ghz)
        return (volts(ghz) / volts(1.0)) ** 2


_SCALED = f"HBFP8's in proportion to the area, {ASSUMED}"


def published(number: str) -> tuple[Constants, dict[str, str]]:
    """Published constants for a number: (Constants, name -> source)."""
    own, base = BOOK["mac_um2"], BOOK["mac_pj"]
    if number == "hbfp8":
        return _made(number, own.value, own.source, base.value, base.source)
    if number == "bf16":
        return _made(number, BOOK["bf16_mac_um2"].value, BOOK["bf16_mac_um2"].source,
                     BOOK["bf16_mac_pj"].value, BOOK["bf16_mac_pj"].source)
    if number == "int8":
        over = BOOK["hbfp8_over_int8"]
        um2, source = own.value / over.value, f"HBFP8 over {over.value:g}, {over.source}"
    else:
        most, less = BOOK["fp32_over_hbfp8"], BOOK[f"fp32_over_{number}"]
        um2 = own.value * most.value / less.value
        source = f"HBFP8 times {most.value:g} / {less.value:g}, the ratios of {less.source}"
    return _made(number, um2, source, base.value * um2 / own.value, _SCALED)


def measured(number: str) -> tuple[Constants, dict[str, str]]:
    """Areas that this project measured, and energies in proportion to them: (Constants, name -> source)."""
    scale, reference = BOOK["nand2_um2"], "bf16" if number == "bf16" else "hbfp8"
    source = f"make area: {NAND2[number]:.1f} NAND2 a MAC, {scale.value:g} um2 a NAND2 {scale.source}"
    return _made(number, NAND2[number] * scale.value, source,
                 published(reference)[0].mac_pj * NAND2[number] / NAND2[reference], published(number)[1]["mac_pj"])


def _made(number: str, um2: float, source: str, pj: float, energy: str) -> tuple[Constants, dict[str, str]]:
    return (Constants(mac_um2=um2, mac_pj=pj, element_bytes=BYTES[number]),
            sources(Constants) | {"mac_um2": source, "mac_pj": energy,
                                  "element_bytes": BOOK[f"{number}_bytes"].source})


#: Name of a set -> function of the number.
SETS = {"published": published, "measured": measured}
