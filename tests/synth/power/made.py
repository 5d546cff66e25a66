"""Energies that nobody measured, for what compares, prints and draws them."""

from hbfp.design import Design
from hbfp.options import design_from_values
from synth.power.measure import Component, Energy


def made(design: Design | None = None, scale: float = 1.0, longest: float = 2.0, period: float = 2.0) -> Energy:
    """An energy of 100 fJ times ``scale`` in elements, 50 in accumulation with memories, and 10 beside."""
    def component(name, whole, memories=0.0):
        part = whole * scale * 1e-15
        return Component(name, part / 2, part / 4, part / 8, part / 8, memories * scale * 1e-15, part / 2, 7, 3)

    design = design or design_from_values({"rows": 2, "block": (1, 2)})
    return Energy(design, "area", "easy", "gaussian", period, longest, 1000, 500, 16, 9, ["layer 1"], [
        component("elements", 100), component("accumulation", 40, 10), component("side unit", 10)])
